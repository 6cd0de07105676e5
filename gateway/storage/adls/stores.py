# SPDX-License-Identifier: Apache-2.0
"""Clients of Azure storage, made from profiles and cached.

The underlying library reads the process environment first, and arguments override it. So every option that could
redirect a request or change its identity is always given.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from obstore.store import AzureStore

from gateway.scope.credential import Credential
from gateway.scope.endpoint import EndpointRoute
from gateway.scope.profile import StorageProfile
from gateway.scope.rules import StorageRules
from gateway.scope.store_addresses import ACCOUNT
from gateway.storage.adls.credential import (
    AdlsCredential,
    AdlsSas,
    AdlsSharedKey,
    BearerToken,
    adls_credential,
)
from gateway.storage.adls.profile import AdlsProfile, adls_profile, blob_host, identity_refusal
from gateway.storage.errors import StorageDenied

if TYPE_CHECKING:
    from obstore.store import ClientConfig

__all__ = ["AdlsStores", "blob_address"]

GetToken = Callable[[AdlsProfile, AdlsCredential], Awaitable[BearerToken]]

MAX_STORES: Final = 256
# For refused listings the library has no exception type, only this text.
_REFUSED: Final = re.compile(
    r"\AGeneric MicrosoftAzure error: Error performing (?:list|bulk delete) request: [^\n]*?"
    r" non-2xx status code: 40[13]\b"
)


def blob_address(profile: AdlsProfile, endpoint: str | None) -> str:
    """Return the address of the account's blob service. `endpoint` is that of the operator, if any."""
    if endpoint is not None:
        return endpoint.replace(ACCOUNT, profile.account_name)
    return f"https://{profile.account_name}.{blob_host(profile.host)}"


class AdlsStores:
    """An LRU cache of clients by account, file system and credential.

    `token` makes tokens of a warehouse's credential. Profiles are checked against `rules` with every use. `endpoint` is
    the operator's address of the blob service, with `{account}` in place of the account.
    """

    refused = _REFUSED

    def __init__(
        self,
        *,
        token: GetToken,
        rules: StorageRules,
        connect_seconds: float,
        request_seconds: float,
        certificates: str | None = None,
        endpoint: str | None = None,
    ) -> None:
        self._token = token
        self._rules = rules
        self._connect = timedelta(seconds=connect_seconds)
        self._request = timedelta(seconds=request_seconds)
        self._certificates = certificates
        self._endpoint = endpoint
        self._cached: OrderedDict[tuple[str, str, str], AzureStore] = OrderedDict()

    def route(self, profile: StorageProfile) -> EndpointRoute | None:
        """Return None: a profile names Azure's own servers only."""
        return None

    def store(self, profile: StorageProfile, credential: Credential) -> AzureStore:
        """Return the client for both.

        Raises InvalidStorageProfile for a host that is not allowed here, and StorageDenied for such a credential.
        """
        found = adls_profile(profile)
        found.check(self._rules)
        key = (found.server, found.filesystem, credential.digest)
        known = self._cached.get(key)
        if known is None:
            known = self._cached[key] = self._make(found, credential)
            while len(self._cached) > MAX_STORES:
                self._cached.popitem(last=False)
        self._cached.move_to_end(key)
        return known

    def _make(self, profile: AdlsProfile, credential: Credential) -> AzureStore:
        given = adls_credential(credential)
        refusal = identity_refusal(profile, given, self._rules.identity(AdlsProfile.provider))
        if refusal is not None:
            raise StorageDenied(refusal)
        endpoint = blob_address(profile, self._endpoint)

        async def current() -> Any:
            if isinstance(given, AdlsSas):
                return {"sas_token": given.token, "expires_at": given.expires_at}
            if isinstance(given, AdlsSharedKey):
                return {"access_key": given.key, "expires_at": None}
            token = await self._token(profile, given)
            return {"token": token.token, "expires_at": token.expires_at}

        return AzureStore(
            profile.filesystem,
            account_name=profile.account_name,
            endpoint=endpoint,
            use_emulator=False,
            use_fabric_endpoint=False,
            skip_signature=False,
            credential_provider=current,
            client_options=self._client(endpoint),
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

    def _client(self, endpoint: str) -> ClientConfig:
        options: ClientConfig = {
            "allow_http": endpoint.startswith("http://"),
            "connect_timeout": self._connect,
            "timeout": self._request,
            "user_agent": "lakegate",
        }
        if self._certificates is not None:
            options["root_certificate"] = self._certificates
        return options
