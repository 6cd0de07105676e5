# SPDX-License-Identifier: Apache-2.0
"""Clients of Google Cloud Storage, made from profiles and cached.

The underlying library reads the process environment first, and arguments override it. So every option that could
redirect a request or change its identity is always given.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from obstore.store import GCSStore

from gateway.scope.credential import Credential
from gateway.scope.endpoint import EndpointRoute
from gateway.scope.profile import StorageProfile
from gateway.scope.rules import IdentityRules
from gateway.storage.errors import StorageDenied
from gateway.storage.gcs.credential import GcsCredential, GcsToken, gcs_credential
from gateway.storage.gcs.profile import gcs_profile, identity_refusal

if TYPE_CHECKING:
    from obstore.store import ClientConfig

__all__ = ["GcsStores"]

OwnToken = Callable[[GcsCredential], Awaitable[GcsToken]]

ENDPOINT: Final = "https://storage.googleapis.com"
MAX_STORES: Final = 256
#: The library needs a token for its requests, and would otherwise ask the metadata service of the machine for one.
NO_TOKEN: Final = "none"  # noqa: S105 - a text that says that there is no token
# For refused listings the library has no exception type, only this text.
_REFUSED: Final = re.compile(
    r"\AGeneric GCS error: Error performing list request: [^\n]*? non-2xx status code: 40[13]\b"
)


class GcsStores:
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
        self._own_token = own_token
        self._rules = rules
        self._connect = timedelta(seconds=connect_seconds)
        self._request = timedelta(seconds=request_seconds)
        self._certificates = certificates
        self._endpoint = endpoint
        self._cached: OrderedDict[tuple[str, str], GCSStore] = OrderedDict()

    def route(self, profile: StorageProfile) -> EndpointRoute | None:
        """Return None: a profile names no server. The environment's proxy settings apply, as for Google's clients."""
        return None

    def store(self, profile: StorageProfile, credential: Credential) -> GCSStore:
        """Return the client for both. Raises `StorageDenied` if this kind of credential is not allowed here."""
        key = (gcs_profile(profile).bucket, credential.digest)
        found = self._cached.get(key)
        if found is None:
            found = self._cached[key] = self._make(profile, credential)
            while len(self._cached) > MAX_STORES:
                self._cached.popitem(last=False)
        self._cached.move_to_end(key)
        return found

    def _make(self, profile: StorageProfile, credential: Credential) -> GCSStore:
        given = gcs_credential(credential)
        refusal = identity_refusal(gcs_profile(profile), given, self._rules)
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
            gcs_profile(profile).bucket,
            credential_provider=current,
            base_url=self._endpoint,
            client_options=self._client(),
            retry_config={
                "max_retries": 2,
                "retry_timeout": self._request,
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(seconds=1),
                    "base": 2,
                },
            },
        )

    def _client(self) -> ClientConfig:
        options: ClientConfig = {
            "allow_http": self._endpoint.startswith("http://"),
            "connect_timeout": self._connect,
            "timeout": self._request,
            "user_agent": "lakegate",
        }
        if self._certificates is not None:
            options["root_certificate"] = self._certificates
        return options
