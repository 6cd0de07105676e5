# SPDX-License-Identifier: Apache-2.0
"""Signatures of requests to S3 stores (version 4), by botocore, which AWS's own clients use.

A signature needs no call of the store, so it is made on the event loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from gateway.scope.signing import ReadRequest
from gateway.storage.s3.credential import S3AccessKey, S3TemporaryCredential

__all__ = ["sign"]

NO_GUARDS: Final[Mapping[str, str]] = MappingProxyType({})


class _StatedPayload(S3SigV4Auth):
    """Signs the hash of the body that the request states, because the gateway does not have the body."""

    def __init__(self, credentials: Credentials, region: str, payload: str) -> None:
        super().__init__(credentials, "s3", region)
        self._payload = payload

    def payload(self, request: Any) -> str:
        """Return the stated hash."""
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
