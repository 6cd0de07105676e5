# SPDX-License-Identifier: Apache-2.0
"""Clients of S3 stores, made from profiles and kept for reuse.

The underlying library reads the process environment first and lets arguments override it. Everything that could
redirect a request or change who signs it is therefore always given: endpoint, credentials, signing.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from obstore.store import S3Store

from gateway.scope.credential import Credential
from gateway.scope.endpoint import EndpointRoute, RouteTo
from gateway.scope.profile import StorageProfile
from gateway.storage.errors import StorageDenied
from gateway.storage.s3.credential import (
    AnyS3Credential,
    S3AccessKey,
    S3Credential,
    S3TemporaryCredential,
    s3_credential,
)
from gateway.storage.s3.profile import S3Profile, s3_profile

if TYPE_CHECKING:
    from obstore.store import ClientConfig

__all__ = ["OwnRole", "S3Stores"]

# Makes a session of the profile's assume-role-arn for the gateway's own reading and writing (`Sts.assume_own_role`).
OwnRole = Callable[[S3Profile, S3Credential], Awaitable[S3TemporaryCredential]]

MAX_STORES: Final = 256

# For listings and deletions of many the library has no exception of its own for a refusal, only these words. Requests
# are shown with their addresses percent-encoded, so no key can bring the words in.
_REFUSED: Final = re.compile(
    r"\AGeneric S3 error: ("
    r"Error performing list request: [^\n]*? non-2xx status code: 40[13]\b"
    r"|DeleteObjects request failed for key [^\n]* \(code: AccessDenied\))"
)


class S3Stores:
    """A bounded set of clients, one for each profile and credential, the least recently used given up first.

    `own_role` assumes the profile's `assume-role-arn`; without it such profiles are refused. A temporary credential is
    used as it is. `route` leads to profiles' endpoints.
    """

    refused = _REFUSED

    def __init__(
        self,
        *,
        own_role: OwnRole | None,
        system_identities: bool,
        connect_seconds: float,
        request_seconds: float,
        certificates: str | None = None,
        route: RouteTo | None = None,
    ) -> None:
        self._certificates = certificates
        self._route = route
        self._own_role = own_role
        self._system_identities = system_identities
        self._connect = timedelta(seconds=connect_seconds)
        self._request = timedelta(seconds=request_seconds)
        self._kept: OrderedDict[tuple[bytes, str], S3Store] = OrderedDict()

    def route(self, profile: StorageProfile) -> EndpointRoute | None:
        """Return the route to the profile's endpoint; None for a profile that names none.

        AWS's own endpoints are reached as the environment says. Raises InvalidStorageProfile for an address that is
        not allowed.
        """
        found = s3_profile(profile)
        if found.endpoint is None or self._route is None:
            return None
        return self._route(_address(found)[0])

    def store(self, profile: StorageProfile, credential: Credential) -> S3Store:
        """The client for both; raises `StorageDenied` when the credential's kind is not allowed here, and what `route`
        raises.
        """
        key = (hashlib.sha256(msgspec.json.encode(profile)).digest(), credential.digest)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._make(s3_profile(profile), s3_credential(credential))
            while len(self._kept) > MAX_STORES:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return found

    def _make(self, profile: S3Profile, credential: AnyS3Credential) -> S3Store:
        endpoint, virtual_host = _address(profile)
        options: dict[str, Any] = {
            "region": profile.region,
            "endpoint": endpoint,
            "aws_endpoint_url_s3": endpoint,  # else the environment's AWS_ENDPOINT_URL_S3 goes before `endpoint`
            "virtual_hosted_style_request": virtual_host,
            "skip_signature": False,
            "unsigned_payload": False,
            "conditional_put": "etag",
        }
        if profile.aws_kms_key_arn is not None:
            options |= {"server_side_encryption": "aws:kms", "sse_kms_key_id": profile.aws_kms_key_arn}
        provider = self._provider(profile, credential)
        if provider is not None:
            options["credential_provider"] = provider
        return S3Store(
            profile.bucket,
            client_options=self._client(endpoint, self.route(profile)),
            retry_config={
                "max_retries": 2,
                "retry_timeout": self._request,
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(seconds=1),
                    "base": 2,
                },
            },
            **options,
        )

    def _client(self, endpoint: str, route: EndpointRoute | None) -> ClientConfig:
        options: ClientConfig = {
            "allow_http": endpoint.startswith("http://"),
            "connect_timeout": self._connect,
            "timeout": self._request,
            "user_agent": "lakegate",
        }
        if self._certificates is not None:
            options["root_certificate"] = self._certificates
        if route is not None:
            options["proxy_url"] = route.proxy_url
        return options

    def _provider(self, profile: S3Profile, credential: AnyS3Credential) -> Callable[[], Any] | None:
        if isinstance(credential, S3TemporaryCredential):
            answer = _as_given(credential)
            return lambda: answer
        if not isinstance(credential, S3AccessKey) and not self._system_identities:
            raise StorageDenied("System identities are not enabled in this gateway")
        if profile.assume_role_arn is not None:
            own_role = self._own_role
            if own_role is None:
                raise StorageDenied("The storage profile wants a role assumed and this gateway cannot assume roles")
            given = credential

            async def assume() -> dict[str, Any]:
                return _as_given(await own_role(profile, given))

            return assume
        if isinstance(credential, S3AccessKey):
            answer = {
                "access_key_id": credential.access_key_id,
                "secret_access_key": credential.secret_access_key,
                "token": None,
                "expires_at": None,
            }
            return lambda: answer
        return None  # the library's own search for an instance role or web identity


def _as_given(temporary: S3TemporaryCredential) -> dict[str, Any]:
    return {
        "access_key_id": temporary.access_key_id,
        "secret_access_key": temporary.secret_access_key,
        "token": temporary.session_token,
        "expires_at": temporary.expires_at,
    }


def _address(profile: S3Profile) -> tuple[str, bool]:
    """Endpoint and whether it names the bucket in its host; a bucket with dots has no valid TLS name, so never then."""
    virtual_host = not profile.path_style_access and "." not in profile.bucket
    suffix = "amazonaws.com.cn" if profile.partition == "aws-cn" else "amazonaws.com"
    endpoint = profile.endpoint or f"https://s3.{profile.region}.{suffix}"
    if virtual_host:
        scheme, _, host = endpoint.partition("://")
        endpoint = f"{scheme}://{profile.bucket}.{host}"
    return endpoint, virtual_host
