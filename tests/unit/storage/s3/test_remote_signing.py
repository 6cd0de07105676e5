# SPDX-License-Identifier: Apache-2.0
"""Test which key signs requests to S3 stores: never the warehouse's own where the store's checks are not known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import (
    RemoteSigningDisabled,
    SignWithoutCredentials,
    UnsignedRequest,
    UnsupportedSignRequest,
)
from gateway.scope.location import Location
from gateway.storage.s3.credential import S3AccessKey, S3SystemIdentity, S3TemporaryCredential
from gateway.storage.s3.profile import SCHEME, Flavor, S3Profile
from gateway.storage.s3.signing.signer import S3Signer

_ROLE = "arn:aws:iam::123456789012:role/r"
_AWS = S3Profile(bucket="lake", region="eu-central-1")
_OTHER = S3Profile(
    bucket="lake", region="eu-central-1", endpoint="https://s3.example.com", flavor=Flavor.S3_COMPAT, sts_enabled=False
)
_WITH_STS = S3Profile(
    bucket="lake", region="eu-central-1", endpoint="https://s3.example.com", flavor=Flavor.S3_COMPAT, sts_enabled=True
)
_R2 = S3Profile(bucket="lake", region="auto", endpoint="https://acc.r2.cloudflarestorage.com", flavor=Flavor.S3_COMPAT)
_TABLE = Location(SCHEME, "lake", ("wh", "t1"))
_KEY = S3AccessKey(access_key_id="AKIA", secret_access_key="a-secret")
_SESSION = S3TemporaryCredential(
    access_key_id="ASIA", secret_access_key="a-secret", session_token="a-token", expires_at=datetime.now(UTC)
)
_DELETION = "<Delete><Object><Key>wh/t1/a</Key></Object></Delete>"
_CAUTIOUS, _TRUSTING = S3Signer(own_keys_allowed=False), S3Signer(own_keys_allowed=True)


def _request(
    profile: S3Profile, method: str = "GET", path: str = "/wh/t1/a", body: str | None = None
) -> UnsignedRequest:
    store = "https://s3.eu-central-1.amazonaws.com" if profile.endpoint is None else profile.endpoint
    return UnsignedRequest(region=profile.region, method=method, uri=f"{store}/lake{path}", body=body)


@pytest.mark.parametrize(
    ("signer", "profile", "offered"),
    [
        (_CAUTIOUS, _AWS, False),
        (_TRUSTING, _AWS, False),
        (_TRUSTING, _R2, False),
        (_CAUTIOUS, _OTHER, False),
        (_CAUTIOUS, _WITH_STS, True),
        (_TRUSTING, _OTHER, True),
        (_TRUSTING, replace(_OTHER, remote_signing_enabled=False), False),
    ],
)
def test_own_keys_sign_only_for_stores_without_sessions_and_if_the_operator_allows_it(
    signer: S3Signer, profile: S3Profile, offered: bool
) -> None:
    assert signer.offered(profile) is offered
    if offered:
        assert signer.read(profile, _TABLE, _request(profile)).keys == ("wh/t1/a",)
    else:
        with pytest.raises(RemoteSigningDisabled):
            signer.read(profile, _TABLE, _request(profile))


def test_a_session_signs_everything_and_shows_no_secret() -> None:
    for request in (_request(_WITH_STS), _request(_WITH_STS, "POST", "?delete", _DELETION)):
        headers = _CAUTIOUS.sign(_WITH_STS, _CAUTIOUS.read(_WITH_STS, _TABLE, request), _SESSION)
        assert headers["x-amz-security-token"] == "a-token"
        assert "a-secret" not in str(headers)
        assert "x-forwarded-prefix" not in headers


def test_an_own_key_signs_forwarding_headers_as_empty_for_other_stores() -> None:
    headers = _TRUSTING.sign(_OTHER, _TRUSTING.read(_OTHER, _TABLE, _request(_OTHER)), _KEY)
    assert headers["x-forwarded-prefix"] == headers["x-forwarded-host"] == ""
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"x-forwarded-host", "x-forwarded-prefix"} <= set(signed)


def test_an_own_key_signs_no_bodies_with_keys() -> None:
    for_other = _TRUSTING.read(_OTHER, _TABLE, _request(_OTHER, "POST", "?delete", _DELETION))
    with pytest.raises(UnsupportedSignRequest):
        _TRUSTING.sign(_OTHER, for_other, _KEY)


def test_a_warehouse_without_a_key_of_its_own_signs_nothing() -> None:
    assuming = replace(_OTHER, assume_role_arn=_ROLE)
    for profile, credential in ((_OTHER, S3SystemIdentity()), (assuming, _KEY)):
        with pytest.raises(SignWithoutCredentials):
            _TRUSTING.sign(profile, _TRUSTING.read(profile, _TABLE, _request(profile)), credential)


def test_an_own_key_never_signs_where_it_is_not_offered() -> None:
    read = _TRUSTING.read(_OTHER, _TABLE, _request(_OTHER))
    with pytest.raises((TypeError, CatalogError)):
        _CAUTIOUS.sign(_OTHER, read, _KEY)
