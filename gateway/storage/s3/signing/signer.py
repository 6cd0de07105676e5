# SPDX-License-Identifier: Apache-2.0
"""Remote signing for S3 stores: which warehouses sign, with which key, and the properties for clients.

A request is signed with the keys of a session for the table, or with the warehouse's own key. The store itself refuses
a session's keys outside of the table. The warehouse's own key is not restricted: if the store read a request
differently from this parser, the signature could give access to the whole bucket. Stores differ in what they check:
SeaweedFS 4.48 computes a signature over `X-Forwarded-Prefix` and the path together, and does not compare a body with
its signed hash. So the own key signs only for AWS, and for other stores if the operator allows it. For other stores it
never signs a body that contains keys.

Signatures (version 4) are made by botocore, which AWS's own clients use. A signature needs no call of the store, so it
is made on the event loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from gateway.scope.credential import (
    Credential,
    ReadRequest,
    RemoteSigningDisabled,
    SignWithoutCredentials,
    UnsignedRequest,
    UnsupportedSignRequest,
)
from gateway.scope.location import Location
from gateway.scope.profile import StorageProfile
from gateway.storage.s3.confinement import StoreKind
from gateway.storage.s3.credential import S3AccessKey, S3TemporaryCredential, s3_credential
from gateway.storage.s3.profile import S3Profile
from gateway.storage.s3.signing.request import read_request
from gateway.storage.stored import typed

__all__ = [
    "S3Signer",
    "sign",
]

#: Headers by which a store behind a proxy computes another address. They are signed as empty, so that a client cannot
#: add them.
_NEVER_FORWARDED: Final = {"x-forwarded-host": "", "x-forwarded-prefix": ""}


class S3Signer:
    """`Signer` of S3 stores. `own_keys_allowed` is True if the keys of warehouses may sign for stores without session
    keys.
    """

    def __init__(self, *, own_keys_allowed: bool) -> None:
        self._own_keys_allowed = own_keys_allowed

    def offered(self, profile: StorageProfile) -> bool:
        """Return True if requests of clients are signed: the profile allows it, and the warehouse has a key that may
        sign.
        """
        found = typed(profile, S3Profile)
        return found.remote_signing_enabled and (found.sts_enabled or self._own_key_signs(found))

    def client_properties(self, *, uri: str | None, endpoint: str) -> dict[str, str]:
        """Return the properties of Java and Python clients. `endpoint` is relative to `uri`, by default the catalog's.

        PyIceberg has only one file client that supports signing, so this client is selected too.
        """
        properties = {
            "s3.remote-signing-enabled": "true",
            "signer.endpoint": endpoint,
            "s3.signer.endpoint": endpoint,
            "s3.signer": "S3V4RestSigner",
            "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
        }
        return properties if uri is None else {**properties, "signer.uri": uri, "s3.signer.uri": uri}

    def read(self, profile: StorageProfile, location: Location, request: UnsignedRequest) -> ReadRequest:
        """Parse a request, and check that it concerns only keys below `location`.

        Raises RemoteSigningDisabled, and the errors of `read_request`.
        """
        found = typed(profile, S3Profile)
        if not self.offered(found):
            raise RemoteSigningDisabled(
                "Remote signing is disabled for this warehouse, or its store needs sts-enabled for it. Load the table "
                "with the header X-Iceberg-Access-Delegation: vended-credentials"
            )
        return read_request(found, location, request)

    def sign(self, profile: StorageProfile, request: ReadRequest, credential: Credential) -> Mapping[str, str]:
        """Return the headers that the client must send, by their names in lower case.

        Raises SignWithoutCredentials for a credential that cannot sign by itself, and UnsupportedSignRequest if the
        warehouse's own key may not sign the request.
        """
        found, key = typed(profile, S3Profile), s3_credential(credential)
        if isinstance(key, S3TemporaryCredential):
            return sign(request, key, found.region)
        if not self._own_key_signs(found):
            raise TypeError("the own key of this warehouse must not sign; check `offered` first")
        if not isinstance(key, S3AccessKey) or found.assume_role_arn is not None:
            raise SignWithoutCredentials(
                "The warehouse has no access key that can sign by itself. Set sts-enabled in its storage profile"
            )
        if request.checks_body:
            raise UnsupportedSignRequest(
                "A deletion of several objects is not signed with the warehouse's own key, because its store may not "
                "compare the body with the signature. Delete the objects one by one, or set sts-enabled"
            )
        return sign(request, key, found.region, guards=_NEVER_FORWARDED)

    def _own_key_signs(self, profile: S3Profile) -> bool:
        """Return True if the warehouse's own key signs: for S3-compatible stores that may have no sessions. AWS, R2 and
        OSS have sessions.
        """
        return self._own_keys_allowed and profile.kind is StoreKind.COMPATIBLE


NO_GUARDS: Final[Mapping[str, str]] = MappingProxyType({})


class _StatedPayload(S3SigV4Auth):
    """A signer that signs the body hash in the request, because the gateway does not have the body."""

    def __init__(self, credentials: Credentials, region: str, payload: str) -> None:
        super().__init__(credentials, "s3", region)
        self._payload = payload

    def payload(self, request: Any) -> str:
        """Return the body hash in the request."""
        return self._payload


def sign(
    request: ReadRequest,
    credential: S3AccessKey | S3TemporaryCredential,
    region: str,
    *,
    guards: Mapping[str, str] = NO_GUARDS,
) -> dict[str, str]:
    """Return the headers that the client must send: those of the request, those of the signature, and `guards`.

    They contain no secret key. The session token of a temporary credential is among them; without the secret key it
    signs nothing.
    """
    token = credential.session_token if isinstance(credential, S3TemporaryCredential) else None
    keys = Credentials(credential.access_key_id, credential.secret_access_key, token)
    signed = AWSRequest(method=request.method, url=request.uri, headers={**request.headers, **guards})
    _StatedPayload(keys, region, request.payload).add_auth(signed)
    return {**request.unsigned_headers, **{name.lower(): value for name, value in signed.headers.items()}}
