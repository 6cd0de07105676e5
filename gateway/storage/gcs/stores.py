# SPDX-License-Identifier: Apache-2.0
"""Clients of Google Cloud Storage, made from profiles and cached.

The underlying library reads the process environment first, and arguments override it. So every option that could
redirect a request or change its identity is always given.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from obstore.store import GCSStore

from gateway.scope.credential import Credential
from gateway.scope.profile import StorageProfile
from gateway.scope.rules import IdentityRules
from gateway.storage.errors import StorageDenied
from gateway.storage.gcs.credential import GcsCredential, GcsToken, gcs_credential
from gateway.storage.gcs.profile import GcsProfile, identity_refusal
from gateway.storage.object_files import CachedStores
from gateway.storage.stored import typed

__all__ = ["GcsStores"]

OwnToken = Callable[[GcsCredential], Awaitable[GcsToken]]

ENDPOINT: Final = "https://storage.googleapis.com"
#: The library needs a token for its requests, and would otherwise ask the metadata service of the machine for one.
NO_TOKEN: Final = "none"  # noqa: S105 - a text that says that there is no token
# For refused listings the library has no exception type, only this text.
_REFUSED: Final = re.compile(
    r"\AGeneric GCS error: Error performing list request: [^\n]*? non-2xx status code: 40[13]\b"
)


class GcsStores(CachedStores[tuple[str, str], GCSStore]):
    """An LRU cache of clients by bucket and credential.

    `own_token` makes tokens of a warehouse's credential; None if the store is an emulator without authentication.
    `rules` are those for the gateway's own identity. `endpoint` is the address of the store.
    """

    refused = _REFUSED

    def __init__(
        self,
        *,
        own_token: OwnToken | None,
        rules: IdentityRules,
        connect_seconds: float,
        request_seconds: float,
        certificates: str | None = None,
        endpoint: str = ENDPOINT,
    ) -> None:
        super().__init__(connect_seconds=connect_seconds, request_seconds=request_seconds, certificates=certificates)
        self._own_token = own_token
        self._rules = rules
        self._endpoint = endpoint

    def store(self, profile: StorageProfile, credential: Credential) -> GCSStore:
        """Return the client for both. Raises `StorageDenied` if this kind of credential is not allowed here."""
        key = (typed(profile, GcsProfile).bucket, credential.digest)
        return self._cache(key, lambda: self._make(profile, credential))

    def _make(self, profile: StorageProfile, credential: Credential) -> GCSStore:
        given = gcs_credential(credential)
        refusal = identity_refusal(typed(profile, GcsProfile), given, self._rules)
        if refusal is not None:
            raise StorageDenied(refusal)

        async def current() -> Any:
            if isinstance(given, GcsToken):
                token = given
            elif self._own_token is not None:
                token = await self._own_token(given)
            else:
                return {"token": NO_TOKEN, "expires_at": None}
            return {"token": token.token, "expires_at": token.expires_at}

        return GCSStore(
            typed(profile, GcsProfile).bucket,
            credential_provider=current,
            base_url=self._endpoint,
            client_options=self._client(self._endpoint),
            retry_config=self._retries(),
        )
