# SPDX-License-Identifier: Apache-2.0
"""Cloudflare R2: scope, proof, and the request for temporary credentials in its documented form."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import InvalidLocation, InvalidStorageCredential, InvalidStorageProfile
from gateway.scope.location import Location
from gateway.scope.profile import STRICTEST
from gateway.storage.errors import ShortTermCredentialError, StorageAnswerMalformed, StorageSessionUnavailable
from gateway.storage.registry import decode_credential, encode_credential
from gateway.storage.s3.aws.sts import Sts
from gateway.storage.s3.client import S3Sessions
from gateway.storage.s3.confinement import StoreKind
from gateway.storage.s3.credential import S3AccessKey, S3CloudflareR2, S3TemporaryCredential
from gateway.storage.s3.profile import SCHEME, Flavor, S3Profile
from gateway.storage.s3.r2.proof import UnsupportedScope, evaluate, prove_scope
from gateway.storage.s3.r2.scope import build_r2_scope
from gateway.storage.s3.r2.sessions import R2Sessions
from gateway.storage.s3.sessions import SessionRequests
from gateway.vending.vendor import NoCredentials, SessionIdentity, Vended, Vendor
from tests.support.location_segments import SEGMENT
from tests.support.servers.storage_routes import clients
from tests.support.servers.storage_servers import Request, recording, serving

ACCOUNT = "0123456789abcdef0123456789abcdef"
ENDPOINT = f"https://{ACCOUNT}.r2.cloudflarestorage.com"
R2 = S3CloudflareR2(access_key_id="parent", secret_access_key="s3cr3t", token="t0ken", account_id=ACCOUNT)
PROFILE = S3Profile(
    bucket="lake", region="auto", endpoint=ENDPOINT, flavor=Flavor.S3_COMPAT, key_prefix="base", sts_enabled=True
)
TABLE = Location(SCHEME, "lake", ("base", "ns", "t1"))
LEVELS = (AccessLevel.READ, AccessLevel.READ_WRITE_DELETE)
#: https://developers.cloudflare.com/r2/examples/authenticate-r2-temp-credentials/
ANSWER = {
    "result": {"accessKeyId": "temp-key", "secretAccessKey": "temp-secret", "sessionToken": "temp-token"},
    "errors": [],
    "messages": [],
    "success": True,
}


# -- scope and proof ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "permission"), list(zip(LEVELS, ("object-read-only", "object-read-write"), strict=True))
)
def test_the_scope_is_one_bucket_one_prefix_and_one_permission(level: AccessLevel, permission: str) -> None:
    expected = {"bucket": "lake", "permission": permission, "prefixes": ["base/ns/t1/"]}
    assert json.loads(build_r2_scope(TABLE, level)) == expected


@given(st.lists(SEGMENT, min_size=1, max_size=5), st.sampled_from(LEVELS), st.lists(st.text(max_size=30), max_size=8))
def test_every_accepted_location_is_proven(segments: list[str], level: AccessLevel, others: list[str]) -> None:
    try:
        location = Location(SCHEME, "lake", tuple(segments))
        scope = build_r2_scope(location, level)
    except InvalidLocation:
        return
    assert prove_scope(scope, location, level, others) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"prefixes": ["base/ns/"]},
        {"prefixes": ["base/ns/t1/", "base/ns/t2/"]},
        {"prefixes": ["base/ns/t1/data/"]},
        {"bucket": "other"},
        {"permission": "object-read-write"},
    ],
)
def test_the_proof_detects_another_reach(changes: dict[str, Any]) -> None:
    scope = json.loads(build_r2_scope(TABLE, AccessLevel.READ)) | changes
    assert prove_scope(json.dumps(scope), TABLE, AccessLevel.READ, ["base/ns/t2/f"]) != []


@pytest.mark.parametrize(
    "scope",
    [
        {"bucket": "lake", "permission": "object-read-only"},
        {"bucket": "lake", "permission": "object-read-only", "prefixes": []},
        {"bucket": "lake", "permission": "object-read-only", "prefixes": [""]},
        {"bucket": "lake", "permission": "object-read-only", "prefixes": ["base/ns/t1"]},
        {"bucket": "lake", "permission": "object-read-only", "prefixes": ["base/*/"]},
        {"bucket": "lake", "permission": "admin-read-only", "prefixes": ["base/ns/t1/"]},
        {"bucket": "lake", "permission": "object-read-only", "prefixes": ["base/ns/t1/"], "objects": ["x"]},
    ],
)
def test_a_scope_with_anything_else_is_not_proven(scope: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedScope):
        evaluate(json.dumps(scope), "get", bucket="lake", key="base/ns/t1/f")


# -- profile and credential --------------------------------------------------------------------------------------------


def test_the_endpoint_shows_the_store() -> None:
    assert PROFILE.kind is StoreKind.R2
    for other in ("https://r2.cloudflarestorage.com.evil.org", "https://xr2.cloudflarestorage.com", "https://s3.x"):
        assert S3Profile(bucket="lake", region="auto", endpoint=other).kind is StoreKind.COMPATIBLE


@pytest.mark.parametrize(
    "fields",
    [
        {"assume_role_arn": "arn:aws:iam::123456789012:role/x"},
        {"sts_role_arn": "arn:aws:iam::123456789012:role/x"},
        {"aws_kms_key_arn": "arn:aws:kms:eu-west-1:123456789012:key/1"},
        {"sts_session_tags": {"team": "x"}},
    ],
)
def test_fields_of_aws_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidStorageProfile, match="Cloudflare R2"):
        S3Profile(bucket="lake", region="auto", endpoint=ENDPOINT, **fields)


def test_the_credential_is_read_stored_and_not_shown() -> None:
    text = {
        "type": "s3", "credential-type": "cloudflare-r2", "access-key-id": "parent", "secret-access-key": "s3cr3t",
        "token": "t0ken", "account-id": ACCOUNT,
    }  # fmt: skip
    found = decode_credential(json.dumps(text).encode(), rules=STRICTEST)
    assert found == R2 and decode_credential(encode_credential(found)) == R2
    assert "s3cr3t" not in repr(found) and "t0ken" not in repr(found)
    for wrong in ({"account-id": "../x"}, {"token": ""}, {"token": "a b"}, {"tokn": "x"}):
        with pytest.raises(InvalidStorageCredential) as refused:
            decode_credential(json.dumps(text | wrong).encode(), rules=STRICTEST)
        assert "s3cr3t" not in refused.value.message and "t0ken" not in refused.value.message
    others = [{"token": "x"}, {"account_id": "f" * 32}, {"access_key_id": "x"}, {"secret_access_key": "x"}]
    fields = {"access_key_id": "parent", "secret_access_key": "s3cr3t", "token": "t0ken", "account_id": ACCOUNT}
    assert len({R2.digest, *(S3CloudflareR2(**(fields | other)).digest for other in others)}) == 5


# -- requests ----------------------------------------------------------------------------------------------------------


def sessions(url: str) -> S3Sessions:
    made = R2Sessions(SessionRequests(), on_latency=lambda _seconds, _outcome: None, api=f"{url}/client/v4")
    return S3Sessions(Sts(), r2=made)


async def vend(url: str, level: AccessLevel, credential: Any = R2) -> Vended | NoCredentials:
    vendor = Vendor(clients())
    vendor._clients._clients["s3"] = _with_sessions(vendor, sessions(url))  # type: ignore[index]  # a dict in fact
    return await vendor.vend(
        profile=PROFILE,
        profile_version="1",
        credential=credential,
        location=TABLE,
        level=level,
        seconds=1800,
        session=SessionIdentity(principal="oidc~ann"),
    )


def _with_sessions(vendor: Vendor, made: S3Sessions) -> Any:
    from dataclasses import replace

    return replace(vendor._clients.of(PROFILE), sessions=made)


@pytest.mark.parametrize(
    ("level", "permission"), list(zip(LEVELS, ("object-read-only", "object-read-write"), strict=True))
)
async def test_the_request_is_that_of_the_documentation(level: AccessLevel, permission: str) -> None:
    before = datetime.now(UTC)
    with recording(lambda _: (200, "application/json", json.dumps(ANSWER))) as (url, seen):
        vended = await vend(url, level)
    ((method, path, headers, body),) = seen
    assert (method, path) == ("POST", f"/client/v4/accounts/{ACCOUNT}/r2/temp-access-credentials")
    assert headers["authorization"] == "Bearer t0ken" and headers["content-type"] == "application/json"
    assert json.loads(body) == {
        "bucket": "lake",
        "parentAccessKeyId": "parent",
        "permission": permission,
        "ttlSeconds": 1800,
        "prefixes": ["base/ns/t1/"],
    }
    assert isinstance(vended, Vended) and isinstance(vended.temporary, S3TemporaryCredential)
    found = vended.temporary
    assert (found.access_key_id, found.secret_access_key, found.session_token) == (
        "temp-key",
        "temp-secret",
        "temp-token",
    )
    assert before + timedelta(seconds=1800) <= found.expires_at <= datetime.now(UTC) + timedelta(seconds=1800)


async def test_a_level_that_r2_cannot_express_gets_no_credential() -> None:
    with recording(lambda _: (200, "application/json", json.dumps(ANSWER))) as (url, seen):
        vended = await vend(url, AccessLevel.READ_WRITE)
    assert isinstance(vended, NoCredentials) and "nothing more" in vended.reason and seen == []
    with pytest.raises(InvalidLocation):
        build_r2_scope(TABLE, AccessLevel.READ_WRITE)


async def test_a_credential_of_another_store_makes_no_session() -> None:
    with recording(lambda _: (200, "application/json", json.dumps(ANSWER))) as (url, seen):
        for other in (S3AccessKey(access_key_id="AK", secret_access_key="x"),):
            with pytest.raises(ShortTermCredentialError, match="cloudflare-r2") as refused:
                await vend(url, AccessLevel.READ, other)
            assert refused.value.reason == "profile"
        aws = S3Profile(bucket="lake", region="eu-west-1", sts_enabled=True, sts_role_arn="arn:aws:iam::1:role/x")
        with pytest.raises(ShortTermCredentialError, match="access-key"):
            await sessions(url).make(profile=aws, credential=R2, policy="{}", session_name="x", seconds=900)
    assert seen == []


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (401, {"success": False}, "credential"),
        (403, {"success": False}, "credential"),
        (400, {"success": False, "errors": [{"message": "t0ken"}]}, "refused"),
        (200, {"success": False, "result": ANSWER["result"]}, "malformed"),
        (200, {"success": True, "result": None}, "malformed"),
        (200, {"success": True, "result": {"accessKeyId": "x"}}, "malformed"),
        (200, [], "malformed"),
        (302, ANSWER, "malformed"),
        (500, {}, "unreachable"),
        (502, {}, "unreachable"),
    ],
)
async def test_errors_have_a_reason_and_no_text_of_the_store(status: int, body: Any, reason: str) -> None:
    with (
        recording(lambda _: (status, "application/json", json.dumps(body))) as (url, seen),
        pytest.raises(ShortTermCredentialError) as failed,
    ):
        await vend(url, AccessLevel.READ)
    assert failed.value.reason == reason and "t0ken" not in failed.value.message
    assert isinstance(failed.value, StorageAnswerMalformed) is (reason == "malformed")
    assert isinstance(failed.value, StorageSessionUnavailable) is (reason == "unreachable")
    assert len(seen) == (3 if status >= 500 else 1)


async def test_an_outage_is_retried() -> None:
    answers = iter([(503, "text/plain", ""), (200, "application/json", json.dumps(ANSWER))])

    def answer(_: Request) -> tuple[int, str, str]:
        return next(answers)

    with recording(answer) as (url, seen):
        assert isinstance(await vend(url, AccessLevel.READ), Vended)
    assert len(seen) == 2


@pytest.mark.threat("LG-DEC-05")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    with (
        serving(body=json.dumps(ANSWER).encode()) as inner,
        serving(status, {"location": f"{inner.url}/"}) as outer,
        pytest.raises(StorageAnswerMalformed),
    ):
        await vend(outer.url, AccessLevel.READ)
    assert outer.seen and not inner.seen


async def test_an_endless_answer_is_cut() -> None:
    with (
        recording(lambda _: (200, "application/json", json.dumps(ANSWER | {"x": "y" * 100_000}))) as (url, _),
        pytest.raises(StorageAnswerMalformed),
    ):
        await vend(url, AccessLevel.READ)


@pytest.mark.parametrize("scope", ["{}", '{"bucket":"lake","permission":"object-read-only","prefixes":[]}'])
async def test_a_credential_without_a_prefix_is_never_requested(scope: str) -> None:
    with (
        recording(lambda _: (200, "application/json", json.dumps(ANSWER))) as (url, seen),
        pytest.raises(ValueError, match="prefixes"),
    ):
        await sessions(url).make(profile=PROFILE, credential=R2, policy=scope, session_name="x", seconds=900)
    assert seen == []
