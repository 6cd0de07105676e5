# SPDX-License-Identifier: Apache-2.0
"""Make clients of Azure storage from profiles, and cache them.

The underlying library reads the process environment, and arguments override it. So every option that could redirect a
request or change its identity is always passed as an argument.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from obstore.store import AzureStore

from gateway.scope.credential import Credential
from gateway.scope.endpoint import ACCOUNT
from gateway.scope.profile import StorageProfile, StorageRules
from gateway.storage.adls.credential import (
    AdlsCredential,
    AdlsSas,
    AdlsSharedKey,
    BearerToken,
    adls_credential,
)
from gateway.storage.adls.profile import AdlsProfile, blob_host, identity_refusal
from gateway.storage.errors import StorageDenied
from gateway.storage.object_files import CachedStores
from gateway.storage.stored import typed

__all__ = ["AdlsStores", "blob_address"]

GetToken = Callable[[AdlsProfile, AdlsCredential], Awaitable[BearerToken]]

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


class AdlsStores(CachedStores[tuple[str, str, str], AzureStore]):
    """An LRU cache of clients by account, file system and credential.

    `token` gets tokens of a warehouse's credential. Profiles are checked against `rules` at every use. `endpoint` is
    the operator's address of the blob service, with `{account}` instead of the account.
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
        super().__init__(connect_seconds=connect_seconds, request_seconds=request_seconds, certificates=certificates)
        self._token = token
        self._rules = rules
        self._endpoint = endpoint

    def store(self, profile: StorageProfile, credential: Credential) -> AzureStore:
        """Return the client for the profile and the credential.

        Raises InvalidStorageProfile if the host is not allowed, and StorageDenied if the credential is not.
        """
        found = typed(profile, AdlsProfile)
        found.check(self._rules)
        key = (found.server, found.filesystem, credential.digest)
        return self._cache(key, lambda: self._make(found, credential))

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
            retry_config=self._retries(),
        )
