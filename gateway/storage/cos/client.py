# SPDX-License-Identifier: Apache-2.0
"""Clients of COS, made from profiles and cached. The store also serves the protocol of S3, which the library speaks.

The library reads the process environment first, and arguments override it. So every option that could redirect a
request or change its signer is always given.
"""

from __future__ import annotations

import re
from typing import Any, Final

from obstore.store import S3Store

from gateway.scope.credential import Credential
from gateway.scope.profile import StorageProfile
from gateway.storage.cos.profile import CosProfile, CosSecretKey
from gateway.storage.object_files import CachedStores, ObjectFiles
from gateway.storage.provider import ClientOptions, StorageClient
from gateway.storage.stored import typed

__all__ = ["CosStores", "open_client"]

# For refused listings and bulk deletions the library has no exception type, only this text.
_REFUSED: Final = re.compile(
    r"\AGeneric S3 error: ("
    r"Error performing list request: [^\n]*? non-2xx status code: 40[13]\b"
    r"|DeleteObjects request failed for key [^\n]* \(code: AccessDenied\))"
)


class CosStores(CachedStores[tuple[CosProfile, str], S3Store]):
    """An LRU cache of clients by profile and credential. `address` replaces the address of the store."""

    refused = _REFUSED

    def __init__(self, *, address: str | None, **options: Any) -> None:
        super().__init__(**options)
        self._address = address

    def store(self, profile: StorageProfile, credential: Credential) -> S3Store:
        """Return the client for both. Raises TypeError for those of another provider."""
        own, key = typed(profile, CosProfile), typed(credential, CosSecretKey)
        return self._cache((own, key.digest), lambda: self._make(own, key))

    def _make(self, profile: CosProfile, key: CosSecretKey) -> S3Store:
        endpoint = self._address or f"https://{profile.host}"
        options: dict[str, Any] = {
            "region": profile.region,
            "endpoint": endpoint,
            "aws_endpoint_url_s3": endpoint,  # AWS_ENDPOINT_URL_S3 in the environment overrides `endpoint`
            "virtual_hosted_style_request": self._address is None,
            "skip_signature": False,
            "unsigned_payload": False,
            "conditional_put": "etag",
        }
        keys: Any = {
            "access_key_id": key.secret_id,
            "secret_access_key": key.secret_key,
            "token": None,
            "expires_at": None,
        }
        return S3Store(
            profile.bucket,
            client_options=self._client(endpoint),
            retry_config=self._retries(),
            credential_provider=lambda: keys,
            **options,
        )


def open_client(options: ClientOptions) -> StorageClient:
    """Open the client. It has no sessions and nothing to close."""
    stores = CosStores(
        address=options.addresses_of(CosProfile.provider).files,
        connect_seconds=options.connect_seconds,
        request_seconds=options.request_seconds,
        certificates=options.certificates,
    )
    files = ObjectFiles(stores, total_seconds=options.total_seconds)
    return StorageClient(files=files, sessions=None, close=lambda: None)
