# SPDX-License-Identifier: Apache-2.0
"""Make clients of Google Cloud Storage from profiles, and cache them.

The underlying library reads the process environment, and arguments override it. So every option that could redirect a
request or change its identity is always passed as an argument.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from obstore.store import GCSStore

from gateway.scope.credential import Credential, TemporaryCredential
from gateway.scope.profile import IdentityRules, StorageProfile
from gateway.storage.errors import ShortTermCredentialError, StorageCheckFailed, StorageDenied
from gateway.storage.gcs.access_boundary import whole_bucket
from gateway.storage.gcs.credential import GcsCredential, GcsToken, gcs_credential
from gateway.storage.gcs.profile import GcsProfile, identity_refusal
from gateway.storage.gcs.tokens import GcsTokens
from gateway.storage.object_files import CachedStores, ObjectFiles
from gateway.storage.provider import ClientOptions, FileClient, StorageClient
from gateway.storage.stored import typed

__all__ = [
    "GcsSessions",
    "GcsStores",
    "open_client",
]


class GcsSessions:
    """`Sessions` by downscoped tokens.

    A token has no name, so the store's logs contain only the service account. The audit log contains the principal.
    """

    def __init__(self, tokens: GcsTokens, files: FileClient, rules: IdentityRules) -> None:
        self._rules = rules
        self._tokens = tokens
        self._files = files

    async def make(
        self, *, profile: StorageProfile, credential: Credential, policy: str, session_name: str, seconds: int
    ) -> TemporaryCredential:
        """Return a token that has only the rights of `policy`, an access boundary."""
        own = gcs_credential(credential)
        if isinstance(own, GcsToken):
            raise TypeError("a temporary credential cannot issue another temporary credential")
        refusal = identity_refusal(typed(profile, GcsProfile), own, self._rules)
        if refusal is not None:
            raise ShortTermCredentialError(refusal, "profile")
        return await self._tokens.downscoped(own, policy, seconds=seconds)

    async def require_confined(self, profile: StorageProfile, temporary: TemporaryCredential) -> None:
        """Raise StorageCheckFailed if the token can be exchanged for one that lists the whole bucket."""
        token = gcs_credential(temporary)
        if not isinstance(token, GcsToken):
            raise TypeError("only a temporary credential has an access boundary that can be tested")
        other = await self._tokens.exchanged(token, whole_bucket(typed(profile, GcsProfile).bucket))
        if other is None:
            return
        with contextlib.suppress(StorageDenied):
            await self._files.list(profile, other, "", 1)
            raise StorageCheckFailed("A vended token can be exchanged for a token without its access boundary")


def open_client(options: ClientOptions) -> StorageClient:
    """Open the client. It connects to Google's servers, or to the addresses that the operator set."""
    addresses = options.addresses_of(GcsProfile.provider)
    rules = options.rules.identity(GcsProfile.provider)
    tokens = GcsTokens(
        on_latency=options.on_session,
        ca_bundle=options.ca_bundle,
        address=addresses.tokens,
    )
    # An endpoint without TLS is an emulator. It does not check tokens, and a token must not be sent unencrypted.
    authenticated = not addresses.unencrypted or addresses.tokens is not None
    stores = GcsStores(
        own_token=tokens.own if authenticated else None,
        rules=rules,
        connect_seconds=options.connect_seconds,
        request_seconds=options.request_seconds,
        certificates=options.certificates,
        endpoint=addresses.files or ENDPOINT,
    )
    files = ObjectFiles(stores, total_seconds=options.total_seconds)
    return StorageClient(files=files, sessions=GcsSessions(tokens, files, rules), close=tokens.close)


OwnToken = Callable[[GcsCredential], Awaitable[GcsToken]]

ENDPOINT: Final = "https://storage.googleapis.com"
#: Without a token, the library would request one from the metadata service of the machine.
NO_TOKEN: Final = "none"  # noqa: S105 - a text that says that there is no token
# For refused listings the library has no exception type, only this text.
_REFUSED: Final = re.compile(
    r"\AGeneric GCS error: Error performing list request: [^\n]*? non-2xx status code: 40[13]\b"
)


class GcsStores(CachedStores[tuple[str, str], GCSStore]):
    """An LRU cache of clients by bucket and credential.

    `own_token` gets tokens of a warehouse's credential; None if the store is an emulator without authentication.
    `rules` restrict the use of the gateway's own identity. `endpoint` is the address of the store.
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
        """Return the client for the profile and the credential. Raises `StorageDenied` if this kind of credential is
        not allowed.
        """
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
