# SPDX-License-Identifier: Apache-2.0
"""The gateway's own identity in AWS, from botocore's chain of credential providers.

The chain knows environment variables, web identity files (IRSA), container credentials (ECS, EKS Pod Identity), shared
files and the instance metadata service, and refreshes keys before they expire. It blocks, so it runs in threads with
limits on time. The keys themselves are never vended: sessions with a policy are made from them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Final

import botocore.exceptions
import botocore.session
from botocore.config import Config

from gateway.storage.errors import StorageDenied, StorageUnavailable

__all__ = ["IdentityKeys", "SystemIdentity"]

CONNECT_SECONDS: Final = 2.0
READ_SECONDS: Final = 5.0
TOTAL_SECONDS: Final = 15.0
MAX_THREADS: Final = 2
# botocore refreshes keys at least ten minutes before their expiry, so keys that it returns are valid for nine minutes.
VALID_FOR: Final = timedelta(minutes=9)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityKeys:
    """The current keys of the identity. `use_until` is the time after which they must be read again."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None
    use_until: datetime

    def __repr__(self) -> str:
        return f"IdentityKeys(access_key_id={self.access_key_id!r})"


class SystemIdentity:
    """The identity of this process. Close it with `close`. `new_session` creates the botocore session, which has the
    chain.

    The chain is read at the first use. If it finds no identity, each use reads it again.
    """

    def __init__(
        self,
        *,
        new_session: Callable[[], Any] = botocore.session.Session,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
        total_seconds: float = TOTAL_SECONDS,
    ) -> None:
        self._new_session = new_session
        self._config = Config(
            connect_timeout=connect_seconds, read_timeout=read_seconds, retries={"total_max_attempts": 2}
        )
        self._total_seconds = total_seconds
        self._found: Any = None
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(max_workers=MAX_THREADS, thread_name_prefix="aws-identity")

    def load_credentials(self) -> Any:
        """Return the refreshable credentials of botocore, None if there is no identity. Blocks, so call it in a thread.

        The method has this name because sessions use this object as botocore's component `credential_provider`.
        """
        with self._lock:
            if self._found is None:
                session = self._new_session()
                session.set_default_client_config(self._config)
                self._found = session.get_credentials()
            return self._found

    async def keys(self) -> IdentityKeys:
        """Return the current keys. Raises StorageDenied if there is no identity, and StorageUnavailable."""
        try:
            async with asyncio.timeout(self._total_seconds):
                return await asyncio.get_running_loop().run_in_executor(self._pool, self._frozen)
        except TimeoutError:
            raise _unavailable() from None

    def close(self) -> None:
        """Shut down the threads. Calls in progress end by their own timeouts."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _frozen(self) -> IdentityKeys:
        try:
            found = self.load_credentials()
            if found is None:
                raise StorageDenied(
                    "The gateway has no identity in AWS. Check the role of its instance, container or service account"
                )
            keys = found.get_frozen_credentials()
        except botocore.exceptions.BotoCoreError:
            raise _unavailable() from None
        except botocore.exceptions.ClientError:
            raise StorageDenied(
                "AWS refused to issue keys for the gateway's own identity. Check the trust policy of its role"
            ) from None
        return IdentityKeys(
            access_key_id=keys.access_key,
            secret_access_key=keys.secret_key,
            session_token=keys.token,
            use_until=datetime.now(UTC) + VALID_FOR,
        )


def _unavailable() -> StorageUnavailable:
    return StorageUnavailable(
        "The service that issues keys for the gateway's own identity in AWS did not answer in time. Try again"
    )
