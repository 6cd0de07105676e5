# SPDX-License-Identifier: Apache-2.0
"""Store secrets in HashiCorp Vault, secrets engine KV version 2
(https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2).

The content of an id is the field `credential` of the secret `<mount>/<prefix>/<id>`, always in version 1. Calls run in
threads that only this store uses, so a slow Vault cannot delay other work.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

import structlog

from gateway.secret_stores.port import SecretStoreRefused, SecretStoreUnavailable, SecretUnreadable
from gateway.secret_stores.vault_session import REFUSED, Login, VaultAddress, VaultOutage, VaultSession, outage

if TYPE_CHECKING:
    import hvac

_log = structlog.get_logger("secret_stores.vault")

Answer = TypeVar("Answer")

KV2: Final = "kv2"
_FIELD: Final = "credential"
_THREADS: Final = 4
_ATTEMPTS: Final = 3
_BACKOFF_SECONDS: Final = 0.1
_NO_CONTENT: Final = 204
_NEEDED: Final = {"data": ("create", "read"), "metadata": ("delete",)}
"""The capabilities that the policy must give for the paths `<mount>/<key>/<prefix>/*`."""


class VaultSecrets:
    """The secret store in Vault.

    `timeout` limits an operation in seconds, including logins and retries. Each call to Vault gets half of it.
    """

    name = KV2

    def __init__(self, address: VaultAddress, login: Login, *, mount: str, prefix: str, timeout: float) -> None:
        self._session = VaultSession(address, login)
        self._mount = mount.strip("/")
        self._prefix = prefix.strip("/")
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="vault")

    async def put(self, id: UUID, plain: bytes) -> None:
        """Write the content of a new id. If a write arrived but its response was lost, its repetition succeeds."""
        await self._run(lambda client: self._put(client, id, plain.decode()))

    async def get(self, id: UUID) -> bytes:
        """Return the content of an id. Raises SecretUnreadable if there is none."""
        found = await self._run(lambda client: self._get(client, id))
        if found is None:
            raise SecretUnreadable(f"Vault has no secret {self._path(id)} in the secrets engine {self._mount}")
        return found.encode()

    async def delete(self, id: UUID) -> None:
        """Delete the content of an id with all versions and metadata."""
        await self._run(lambda client: self._delete(client, id))

    async def check(self) -> None:
        """Log in. Check that the secrets engine has version 2, and that the policy gives all needed rights.

        Raises SecretStoreRefused with the reason in its message.
        """
        try:
            await self._run(self._check)
        except SecretStoreRefused as refused:
            # This runs at the start of a process, so only the operator reads the message, and it may contain the
            # reason.
            raise SecretStoreRefused(
                f"The secret store kv2 cannot be used: {refused.reason}", reason=refused.reason
            ) from None

    async def close(self) -> None:
        """Close the connections. Calls in progress end by their own timeouts."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._session.close()

    def _path(self, id: UUID | str) -> str:
        return f"{self._prefix}/{id}" if self._prefix else str(id)

    def _put(self, client: hvac.Client, id: UUID, text: str) -> None:
        from hvac import exceptions

        try:
            # With the version 0 for check-and-set, Vault writes only if the secret has no version.
            answer = client.secrets.kv.v2.create_or_update_secret(
                self._path(id), {_FIELD: text}, cas=0, mount_point=self._mount
            )
        except exceptions.InvalidRequest:
            if self._get(client, id) != text:
                raise
            return
        # A redirect, which is not followed, is not an error for hvac.
        if _nested(answer, "data", "version") is None:
            raise outage("the response to a write does not have the form of a response of Vault")

    def _delete(self, client: hvac.Client, id: UUID) -> None:
        answer = client.secrets.kv.v2.delete_metadata_and_all_versions(self._path(id), mount_point=self._mount)
        if getattr(answer, "status_code", None) != _NO_CONTENT:
            raise outage(f"the response to a deletion does not have the status {_NO_CONTENT} of Vault")

    def _get(self, client: hvac.Client, id: UUID) -> str | None:
        from hvac import exceptions

        try:
            answer = client.secrets.kv.v2.read_secret_version(
                self._path(id), mount_point=self._mount, raise_on_deleted_version=True
            )
        except exceptions.InvalidPath as error:
            # If the secrets engine is missing, Vault's response has error texts. If only the secret is missing, it has
            # none.
            if error.errors:
                raise
            return None
        found = _nested(answer, "data", "data", _FIELD)
        if not isinstance(found, str):
            raise outage("the response to a read does not contain a secret that the gateway has written")
        return found

    def _check(self, client: hvac.Client) -> None:
        mount = client.adapter.get(f"/v1/sys/internal/ui/mounts/{self._mount}")
        if _nested(mount, "data", "type") != "kv" or _nested(mount, "data", "options", "version") != "2":
            raise SecretStoreRefused(
                REFUSED, reason=f"the secrets engine {self._mount!r} (KV2__SECRET_MOUNT) is not of type KV version 2"
            )
        paths = {part: f"{self._mount}/{part}/{self._path(UUID(int=0))}" for part in _NEEDED}
        answer = client.adapter.post("/v1/sys/capabilities-self", json={"paths": list(paths.values())})
        missing = [
            f"{right} on {self._mount}/{part}/{self._path('*')}"
            for part, rights in _NEEDED.items()
            for right in rights
            if not {right, "root"} & set(_nested(answer, paths[part]) or _nested(answer, "data", paths[part]) or ())
        ]
        if missing:
            raise SecretStoreRefused(REFUSED, reason=f"the policy of the login lacks {', '.join(missing)}")

    async def _run(self, work: Callable[[hvac.Client], Answer]) -> Answer:
        """Run `work` in a thread, and return its result. Outages are retried within the timeout."""
        try:
            async with asyncio.timeout(self._timeout):
                for attempt in range(1, _ATTEMPTS + 1):
                    try:
                        return await self._in_thread(work)
                    except SecretStoreUnavailable:
                        if attempt == _ATTEMPTS:
                            raise
                    await asyncio.sleep(_BACKOFF_SECONDS * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
        except TimeoutError:
            _log.warning("secret_store.call_failed", store=KV2, reason="no answer in time")
            raise outage("no answer in time") from None
        except VaultOutage as error:
            _log.warning("secret_store.call_failed", store=KV2, reason=error.reason)
            raise
        except SecretStoreRefused as refused:
            _log.error("secret_store.call_refused", store=KV2, reason=refused.reason)
            raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _in_thread(self, work: Callable[[hvac.Client], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._translated, work)

    def _translated(self, work: Callable[[hvac.Client], Answer]) -> Answer:
        from hvac import exceptions

        try:
            return self._session.call(work)
        except exceptions.Forbidden:
            raise SecretStoreRefused(
                REFUSED,
                reason=f"the secrets engine {self._mount!r} (KV2__SECRET_MOUNT) does not exist, or the policy of the "
                f"login gives too few rights on {self._mount}/data/{self._path('*')} and "
                f"{self._mount}/metadata/{self._path('*')}",
            ) from None
        except exceptions.VaultError as error:
            raise SecretStoreRefused(
                REFUSED, reason=f"Vault answered {type(error).__name__}: {self._session.message_of(error)}"
            ) from None


def _nested(answer: Any, *keys: str) -> Any:
    """Return the value at a path of keys in nested JSON objects; None if it is missing."""
    for key in keys:
        if not isinstance(answer, Mapping):
            return None
        answer = answer.get(key)
    return answer
