# SPDX-License-Identifier: Apache-2.0
"""Make clients of S3 stores from profiles, and cache them.

The underlying library reads the process environment, and arguments override it. So every option that could redirect a
request or change its signer is always passed as an argument: endpoint, credentials, signing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final

import msgspec
from obstore.store import S3Store

from gateway.scope.credential import Credential
from gateway.scope.endpoint import EndpointRoute, RouteTo
from gateway.scope.profile import IdentityRules, StorageProfile
from gateway.storage.errors import StorageDenied
from gateway.storage.object_files import CachedStores
from gateway.storage.s3.aws.identity import SystemIdentity
from gateway.storage.s3.aws.identity_rules import require_own_files
from gateway.storage.s3.credential import (
    AnyS3Credential,
    S3SystemIdentity,
    S3TemporaryCredential,
    StsCredential,
    s3_credential,
)
from gateway.storage.s3.profile import S3Profile
from gateway.storage.stored import typed

__all__ = ["OwnRole", "S3Stores", "address"]

# Function that assumes the profile's assume-role-arn and returns a session for the gateway's own file accesses
# (`Sts.assume_own_role`).
OwnRole = Callable[[S3Profile, StsCredential], Awaitable[S3TemporaryCredential]]

# For refused listings and bulk deletions the library has no exception type, only this text. The library percent-encodes
# the addresses in its texts, so no key can imitate the text.
_REFUSED: Final = re.compile(
    r"\AGeneric S3 error: ("
    r"Error performing list request: [^\n]*? non-2xx status code: 40[13]\b"
    r"|DeleteObjects request failed for key [^\n]* \(code: AccessDenied\))"
)


class S3Stores(CachedStores[tuple[bytes, str], S3Store]):
    """An LRU cache of clients by profile and credential.

    `own_role` assumes the profile's `assume-role-arn`; without it such profiles are refused. `identity` is the
    gateway's own identity, used as `identity_rules` allow. A temporary credential is used directly. `route` returns the
    routes to the endpoints of profiles.
    """

    refused = _REFUSED

    def __init__(
        self,
        *,
        own_role: OwnRole | None,
        identity: SystemIdentity | None,
        identity_rules: IdentityRules,
        connect_seconds: float,
        request_seconds: float,
        certificates: str | None = None,
        route: RouteTo | None = None,
    ) -> None:
        super().__init__(connect_seconds=connect_seconds, request_seconds=request_seconds, certificates=certificates)
        self._route = route
        self._own_role = own_role
        self._identity = identity
        self._identity_rules = identity_rules

    def route(self, profile: StorageProfile) -> EndpointRoute | None:
        """Return the route to the profile's endpoint; None if the profile has none.

        For AWS's own endpoints, the environment's proxy settings apply. Raises InvalidStorageProfile for an address
        that is not allowed.
        """
        found = typed(profile, S3Profile)
        if found.endpoint is None or self._route is None:
            return None
        return self._route(address(found)[0])

    def store(self, profile: StorageProfile, credential: Credential) -> S3Store:
        """Return the client for the profile and the credential. Raises `StorageDenied` if this kind of credential is
        not allowed, and the errors of `route`.
        """
        key = (hashlib.sha256(msgspec.json.encode(profile)).digest(), credential.digest)
        return self._cache(key, lambda: self._make(typed(profile, S3Profile), s3_credential(credential)))

    def _make(self, profile: S3Profile, credential: AnyS3Credential) -> S3Store:
        endpoint, virtual_host = address(profile)
        options: dict[str, Any] = {
            "region": profile.region,
            "endpoint": endpoint,
            "aws_endpoint_url_s3": endpoint,  # AWS_ENDPOINT_URL_S3 in the environment overrides `endpoint`
            "virtual_hosted_style_request": virtual_host,
            "skip_signature": False,
            "unsigned_payload": False,
            "conditional_put": "etag",
        }
        if profile.aws_kms_key_arn is not None:
            options |= {"server_side_encryption": "aws:kms", "sse_kms_key_id": profile.aws_kms_key_arn}
        options["credential_provider"] = self._provider(profile, credential)
        return S3Store(
            profile.bucket,
            client_options=self._client(endpoint, self.route(profile)),
            retry_config=self._retries(),
            **options,
        )

    def _provider(self, profile: S3Profile, credential: AnyS3Credential) -> Callable[[], Any]:
        if isinstance(credential, S3TemporaryCredential):
            answer = _of_session(credential)
            return lambda: answer
        require_own_files(profile, credential, self._identity_rules)
        if profile.assume_role_arn is not None:
            own_role = self._own_role
            if own_role is None:
                raise StorageDenied("The storage profile has an assume-role-arn, but this gateway cannot assume roles")
            if not isinstance(credential, StsCredential):
                raise StorageDenied(
                    "A storage credential of this type cannot assume a role. Remove assume-role-arn from the storage "
                    "profile, or set an access key or aws-system-identity"
                )
            given = credential

            async def assume() -> dict[str, Any]:
                return _of_session(await own_role(profile, given))

            return assume
        if not isinstance(credential, S3SystemIdentity):
            answer = _library_credential(credential.access_key_id, credential.secret_access_key)
            return lambda: answer
        identity = self._identity
        if identity is None:
            raise StorageDenied("This gateway has no identity in AWS")

        async def own_keys() -> dict[str, Any]:
            keys = await identity.keys()
            return _library_credential(keys.access_key_id, keys.secret_access_key, keys.session_token, keys.use_until)

        return own_keys


def _of_session(session: S3TemporaryCredential) -> dict[str, Any]:
    return _library_credential(
        session.access_key_id, session.secret_access_key, session.session_token, session.expires_at
    )


def _library_credential(
    id: str, secret: str, token: str | None = None, expires_at: datetime | None = None
) -> dict[str, Any]:
    return {"access_key_id": id, "secret_access_key": secret, "token": token, "expires_at": expires_at}


def address(profile: S3Profile) -> tuple[str, bool]:
    """Return (endpoint, True if its host contains the bucket). Buckets with dots use path style, because no TLS
    certificate is valid for their host names.
    """
    virtual_host = not profile.path_style_access and "." not in profile.bucket
    suffix = "amazonaws.com.cn" if profile.partition == "aws-cn" else "amazonaws.com"
    endpoint = profile.endpoint or f"https://s3.{profile.region}.{suffix}"
    if virtual_host:
        scheme, _, host = endpoint.partition("://")
        endpoint = f"{scheme}://{profile.bucket}.{host}"
    return endpoint, virtual_host
