# SPDX-License-Identifier: Apache-2.0
"""The client of Google Cloud Storage: files with the object store library, tokens with google-auth."""

import contextlib

from gateway.scope.credential import Credential, TemporaryCredential
from gateway.scope.profile import StorageProfile
from gateway.scope.rules import IdentityRules
from gateway.storage.errors import ShortTermCredentialError, StorageCheckFailed, StorageDenied
from gateway.storage.gcs.access_boundary import whole_bucket
from gateway.storage.gcs.credential import GcsToken, gcs_credential
from gateway.storage.gcs.profile import GcsProfile, identity_refusal
from gateway.storage.gcs.stores import ENDPOINT, GcsStores
from gateway.storage.gcs.tokens import GcsTokens
from gateway.storage.object_files import ObjectFiles
from gateway.storage.provider import ClientOptions, FileClient, StorageClient
from gateway.storage.stored import typed

__all__ = ["GcsSessions", "open_client"]


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
        """Return a token with the rights of `policy`, an access boundary."""
        own = gcs_credential(credential)
        if isinstance(own, GcsToken):
            raise TypeError("a temporary credential makes no sessions")
        refusal = identity_refusal(typed(profile, GcsProfile), own, self._rules)
        if refusal is not None:
            raise ShortTermCredentialError(refusal, "profile")
        return await self._tokens.downscoped(own, policy, seconds=seconds)

    async def require_confined(self, profile: StorageProfile, temporary: TemporaryCredential) -> None:
        """Raise StorageCheckFailed if the token can be exchanged for one that lists the whole bucket."""
        token = gcs_credential(temporary)
        if not isinstance(token, GcsToken):
            raise TypeError("only a temporary credential has a boundary to get rid of")
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
    # A token must not be sent unencrypted, and an emulator does not check it.
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
