# SPDX-License-Identifier: Apache-2.0
"""The client of Azure storage: files with the object store library, signatures by delegation keys."""

import base64
import hashlib
from datetime import UTC, datetime, timedelta
from uuid import UUID

from gateway.scope.credential import Credential, TemporaryCredential
from gateway.scope.errors import InvalidStorageProfile
from gateway.scope.profile import StorageProfile, StorageRules
from gateway.storage.adls.credential import AdlsSas, AdlsSharedKey, adls_credential
from gateway.storage.adls.delegation import Delegation
from gateway.storage.adls.directories import AdlsFiles
from gateway.storage.adls.profile import AdlsProfile, identity_refusal
from gateway.storage.adls.sas import read_directory, sign_with_account, sign_with_delegation
from gateway.storage.adls.stores import AdlsStores
from gateway.storage.errors import ShortTermCredentialError
from gateway.storage.provider import ClientOptions, StorageClient
from gateway.storage.stored import typed

__all__ = ["AdlsSessions", "correlation_id", "open_client"]

#: The clocks of gateway and store may differ by this time.
_CLOCK = timedelta(minutes=1)


class AdlsSessions:
    """`Sessions` by shared access signatures. They are signed by a delegation key, or by the account's key if the
    warehouse has it.
    """

    def __init__(self, delegation: Delegation, rules: StorageRules) -> None:
        self._delegation = delegation
        self._rules = rules

    async def make(
        self, *, profile: StorageProfile, credential: Credential, policy: str, session_name: str, seconds: int
    ) -> TemporaryCredential:
        """Return a signature for the directory that `policy` describes, valid for `seconds`.

        A signature by a delegation key ends with the key at the latest.
        """
        own = adls_credential(credential)
        if isinstance(own, AdlsSas):
            raise TypeError("a temporary credential cannot issue another temporary credential")
        try:
            profile.check(self._rules)
        except InvalidStorageProfile as refused:
            raise ShortTermCredentialError(refused.message, "endpoint") from None
        refusal = identity_refusal(typed(profile, AdlsProfile), own, self._rules.identity(AdlsProfile.provider))
        if refusal is not None:
            raise ShortTermCredentialError(refusal, "profile")
        directory = read_directory(policy)
        now = datetime.now(UTC)
        start, expiry = now - _CLOCK, now + timedelta(seconds=seconds)
        if isinstance(own, AdlsSharedKey):
            token = sign_with_account(directory, base64.b64decode(own.key), start=start, expiry=expiry)
        else:
            key = await self._delegation.key(typed(profile, AdlsProfile), own)
            expiry = min(expiry, key.expires_at)
            token = sign_with_delegation(
                directory, key, start=start, expiry=expiry, correlation_id=correlation_id(session_name)
            )
        return AdlsSas(token=token, expires_at=expiry.replace(microsecond=0))

    async def require_confined(self, profile: StorageProfile, temporary: TemporaryCredential) -> None:
        """Do nothing: no service exchanges a signature for another credential."""


def correlation_id(session_name: str) -> str:
    """Return a GUID for the store's logs, which an auditor can compute from the session name in the audit log."""
    return str(UUID(bytes=hashlib.sha256(session_name.encode()).digest()[:16], version=4))


def open_client(options: ClientOptions) -> StorageClient:
    """Open the client. It connects to Azure's servers, to hosts that the operator lists, and to the operator's
    addresses.
    """
    addresses = options.addresses_of(AdlsProfile.provider)
    delegation = Delegation(
        on_latency=options.on_session,
        ca_bundle=options.ca_bundle,
        blob_endpoint=addresses.files,
        authority=addresses.tokens,
    )
    stores = AdlsStores(
        token=delegation.token,
        rules=options.rules,
        connect_seconds=options.connect_seconds,
        request_seconds=options.request_seconds,
        certificates=options.certificates,
        endpoint=addresses.files,
    )
    files = AdlsFiles(
        stores,
        endpoint=addresses.files,
        connect_seconds=options.connect_seconds,
        request_seconds=options.request_seconds,
        total_seconds=options.total_seconds,
        ca_bundle=options.ca_bundle,
    )

    def close() -> None:
        files.close()
        delegation.close()

    return StorageClient(files=files, sessions=AdlsSessions(delegation, options.rules), close=close)
