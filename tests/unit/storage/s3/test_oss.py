# SPDX-License-Identifier: Apache-2.0
"""Alibaba Cloud OSS: policy, proof, and AssumeRole at its STS in its documented form."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import InvalidLocation, InvalidStorageProfile, PolicyTooLarge
from gateway.scope.location import Location
from gateway.scope.profile import STRICTEST
from gateway.storage.errors import ShortTermCredentialError, StorageAnswerMalformed, StorageCheckFailed
from gateway.storage.registry import decode_credential
from gateway.storage.s3.aws.sts import Sts
from gateway.storage.s3.client import S3Sessions
from gateway.storage.s3.confinement import StoreKind
from gateway.storage.s3.credential import S3AccessKey, S3AliyunOss, S3TemporaryCredential
from gateway.storage.s3.oss.policy import build_oss_policy
from gateway.storage.s3.oss.proof import Owner, UnsupportedOssPolicy, evaluate, prove_scope
from gateway.storage.s3.oss.sessions import OssSessions, rpc_signature
from gateway.storage.s3.profile import SCHEME, Flavor, S3Profile
from gateway.storage.s3.sessions import SessionRequests
from tests.support.location_segments import SEGMENT
from tests.support.servers.storage_routes import LOCAL
from tests.support.servers.storage_servers import recording

ROLE = "acs:ram::1234567890123456:role/lake"
OWNER = Owner(region="cn-hangzhou", account="1234567890123456")
OSS = S3AliyunOss(access_key_id="LTAI", secret_access_key="s3cr3t", external_id="ext-1")
TABLE = Location(SCHEME, "lake", ("base", "ns", "t1"))


def profile(**fields: Any) -> S3Profile:
    given: dict[str, Any] = {
        "bucket": "lake",
        "region": "cn-hangzhou",
        "endpoint": "https://s3.oss-cn-hangzhou.aliyuncs.com",
        "flavor": Flavor.S3_COMPAT,
        "key_prefix": "base",
        "sts_enabled": True,
        "sts_role_arn": ROLE,
    }
    return S3Profile(**(given | fields))


def policy(location: Location = TABLE, level: AccessLevel = AccessLevel.READ) -> str:
    return build_oss_policy(location, level, region=OWNER.region, account=OWNER.account)


# -- policy and proof --------------------------------------------------------------------------------------------------


def test_the_policy_of_a_profile_names_region_account_bucket_and_prefix() -> None:
    downscoping: Any = profile(region="oss-cn-hangzhou").downscoping
    assert json.loads(downscoping.policy(TABLE, AccessLevel.READ)) == {
        "Version": "1",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["oss:GetObject"],
                "Resource": ["acs:oss:oss-cn-hangzhou:1234567890123456:lake/base/ns/t1/*"],
            },
            {
                "Effect": "Allow",
                "Action": ["oss:ListObjects"],
                "Resource": ["acs:oss:oss-cn-hangzhou:1234567890123456:lake"],
                "Condition": {"StringLike": {"oss:Prefix": ["base/ns/t1/*"]}},
            },
        ],
    }


@given(
    st.lists(SEGMENT, min_size=1, max_size=5),
    st.sampled_from(list(AccessLevel)),
    st.lists(st.text(max_size=30), max_size=8),
)
def test_every_accepted_location_is_proven(segments: list[str], level: AccessLevel, others: list[str]) -> None:
    try:
        location = Location(SCHEME, "lake", tuple(segments))
        found = policy(location, level)
    except InvalidLocation:
        return
    assert prove_scope(found, location, level, others, owner=OWNER) == []


@pytest.mark.parametrize("character", "*?$[]{}")
def test_pattern_characters_are_refused(character: str) -> None:
    with pytest.raises(InvalidLocation):
        policy(Location(SCHEME, "lake", ("base", f"t{character}")))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("oss-cn-hangzhou:1234567890123456:lake/base", "*:*:lake/base"),
        ("lake/base/ns/t1/*", "lake/base/ns/t1*"),
        ("lake/base/ns/t1/*", "lake/base/ns/*"),
        ("lake/base/ns/t1/*", "*/base/ns/t1/*"),
        ('["base/ns/t1/*"]', '["base/ns/t1*"]'),
        ('["oss:GetObject"]', '["oss:Get*"]'),
        ('["oss:GetObject"]', '["oss:*"]'),
        ('["oss:ListObjects"]', '["oss:List*"]'),
        ('["oss:GetObject"]', '["oss:PutObject"]'),
        (',"Condition":{"StringLike":{"oss:Prefix":["base/ns/t1/*"]}}', ""),
    ],
)
def test_the_proof_detects_another_reach(before: str, after: str) -> None:
    assert before in policy()
    assert prove_scope(policy().replace(before, after), TABLE, AccessLevel.READ, [], owner=OWNER) != []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"Version":"1"', '"Version":"2012-10-17"'),
        ("StringLike", "StringNotLike"),
        ('"Effect":"Allow"', '"Effect":"Perhaps"'),
        ('"Resource"', '"NotResource"'),
    ],
)
def test_a_policy_with_anything_else_is_not_proven(before: str, after: str) -> None:
    with pytest.raises(UnsupportedOssPolicy):
        evaluate(policy().replace(before, after), "oss:ListObjects", owner=OWNER, bucket="lake", prefix="base/ns/t1/")


def test_a_policy_too_long_for_the_store_is_refused() -> None:
    with pytest.raises(PolicyTooLarge):
        policy(Location(SCHEME, "lake", tuple("x" * 200 for _ in range(5))))


# -- profile -----------------------------------------------------------------------------------------------------------


def test_the_endpoint_shows_the_store_and_clients_put_the_bucket_into_the_host() -> None:
    assert profile().kind is StoreKind.OSS and not profile().escapes_known
    assert profile().client_properties(None, refresh_endpoint=None)["s3.force-virtual-addressing"] == "true"
    assert profile(endpoint="https://aliyuncs.com.evil.org", sts_role_arn=None).kind is StoreKind.COMPATIBLE


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"sts_role_arn": None}, "sts-role-arn"),
        ({"sts_role_arn": "arn:aws:iam::123456789012:role/x"}, "acs:ram"),
        ({"assume_role_arn": ROLE}, "assume-role-arn"),
        ({"path_style_access": True}, "path-style-access"),
        ({"bucket": "la.ke"}, "dots"),
        ({"sts_session_tags": {"a": "b"}}, "sts-session-tags"),
        ({"aws_kms_key_arn": "arn:aws:kms:eu-west-1:123456789012:key/1"}, "aws-kms-key-arn"),
    ],
)
def test_fields_that_do_not_suit_the_store_are_refused(fields: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidStorageProfile, match=word):
        profile(**fields)


def test_the_credential_is_read_and_not_shown() -> None:
    text = (
        b'{"type":"s3","credential-type":"aliyun-oss","access-key-id":"LTAI","secret-access-key":"s3cr3t",'
        b'"external-id":"ext-1"}'
    )
    assert decode_credential(text, rules=STRICTEST) == OSS and "s3cr3t" not in repr(OSS)
    same = S3AccessKey(access_key_id="LTAI", secret_access_key="s3cr3t", external_id="ext-1")
    assert OSS.digest != same.digest


# -- requests ----------------------------------------------------------------------------------------------------------


def test_the_signature_is_that_of_the_documentation() -> None:
    """The example of "Signature method" in the documentation of the RPC interfaces."""
    parameters = {
        "Timestamp": "2016-02-23T12:46:24Z",
        "Format": "XML",
        "AccessKeyId": "testid",
        "Action": "DescribeRegions",
        "SignatureMethod": "HMAC-SHA1",
        "SignatureNonce": "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf",
        "Version": "2014-05-26",
        "SignatureVersion": "1.0",
    }
    assert rpc_signature("GET", parameters, "testsecret") == "OLeaidS1JvxuMvnyHOwuJ+uX5qY="


#: https://www.alibabacloud.com/help/en/ram/developer-reference/api-sts-2015-04-01-assumerole
def answer(seconds: int = 1800) -> str:
    expires = datetime.now(UTC) + timedelta(seconds=seconds)
    fields = {
        "RequestId": "6894B13B-6D71-4EF5-88FA-F32781734A7F",
        "AssumedRoleUser": {"AssumedRoleId": "34458433936495****:ann", "Arn": f"{ROLE}/ann"},
        "Credentials": {
            "SecurityToken": "temp-token",
            "Expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "AccessKeySecret": "temp-secret",
            "AccessKeyId": "STS.temp",
        },
    }
    return json.dumps(fields)


def sessions() -> S3Sessions:
    made = OssSessions(SessionRequests(), on_latency=lambda _seconds, _outcome: None, route=LOCAL)
    return S3Sessions(Sts(), oss=made)


async def make(url: str, text: str | None = None, credential: Any = OSS) -> S3TemporaryCredential:
    found = await sessions().make(
        profile=profile(sts_endpoint=url),
        credential=credential,
        policy=policy() if text is None else text,
        session_name="ann+b=c,d@example.org-0123",
        seconds=1800,
    )
    assert isinstance(found, S3TemporaryCredential)
    return found


async def test_the_request_is_that_of_the_documentation() -> None:
    with recording(lambda _: (200, "application/json", answer())) as (url, seen):
        found = await make(url)
        await make(url)
    assert (found.access_key_id, found.secret_access_key, found.session_token) == (
        "STS.temp",
        "temp-secret",
        "temp-token",
    )
    method, path, headers, body = seen[0]
    assert (method, path) == ("POST", "/")
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    given = dict(parse_qsl(body, strict_parsing=True))
    signature, nonce, moment = given.pop("Signature"), given.pop("SignatureNonce"), given.pop("Timestamp")
    assert given == {
        "Action": "AssumeRole",
        "Version": "2015-04-01",
        "Format": "JSON",
        "AccessKeyId": "LTAI",
        "SignatureMethod": "HMAC-SHA1",
        "SignatureVersion": "1.0",
        "RoleArn": ROLE,
        "RoleSessionName": "ann-b-c-d@example.org-0123",
        "DurationSeconds": "1800",
        "Policy": policy(),
        "ExternalId": "ext-1",
    }
    signed = given | {"SignatureNonce": nonce, "Timestamp": moment}
    assert signature == rpc_signature("POST", signed, "s3cr3t")
    assert abs(datetime.now(UTC) - datetime.strptime(moment, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)) < timedelta(
        minutes=1
    )
    assert nonce != dict(parse_qsl(seen[1][3]))["SignatureNonce"]


async def test_a_session_without_a_policy_is_never_requested() -> None:
    with (
        recording(lambda _: (200, "application/json", answer())) as (url, seen),
        pytest.raises(ValueError, match="policy"),
    ):
        await make(url, " ")
        with pytest.raises(ShortTermCredentialError, match="aliyun-oss"):
            await make(url, credential=S3AccessKey(access_key_id="AK", secret_access_key="x"))
    assert seen == []


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (403, "NoPermission", "refused"),
        (404, "EntityNotExist.Role", "refused"),
        (404, "InvalidAccessKeyId.NotFound", "credential"),
        (400, "SignatureDoesNotMatch", "credential"),
        (400, "MalformedPolicyDocument", "policy"),
        (403, "SomethingNew", "refused"),
        (400, "SomethingNew", "failed"),
    ],
)
async def test_errors_have_a_reason_and_no_text_of_the_store(status: int, code: str, reason: str) -> None:
    text = json.dumps({"Code": code, "Message": "s3cr3t", "RequestId": "1", "HostId": "sts.aliyuncs.com"})
    with (
        recording(lambda _: (status, "application/json", text)) as (url, _),
        pytest.raises(ShortTermCredentialError) as failed,
    ):
        await make(url)
    assert failed.value.reason == reason and "s3cr3t" not in failed.value.message


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"Credentials":{}}', lambda: answer().replace("Expiration", "Expires")]
)
async def test_an_answer_of_another_shape_is_malformed(text: str | Callable[[], str]) -> None:
    shown = text if isinstance(text, str) else text()
    with recording(lambda _: (200, "application/json", shown)) as (url, _), pytest.raises(StorageAnswerMalformed):
        await make(url)


async def test_a_session_that_lives_too_long_is_discarded() -> None:
    with (
        recording(lambda _: (200, "application/json", answer(7200))) as (url, _),
        pytest.raises(ShortTermCredentialError, match="lives longer"),
    ):
        await make(url)


async def test_a_vended_credential_that_assumes_the_role_again_is_detected() -> None:
    vended = S3TemporaryCredential(
        access_key_id="STS.temp",
        secret_access_key="temp-secret",
        session_token="temp-token",
        expires_at=datetime.now(UTC) + timedelta(hours=1),
    )
    with recording(lambda _: (200, "application/json", answer())) as (url, seen), pytest.raises(StorageCheckFailed):
        await sessions().require_confined(profile(sts_endpoint=url), vended)
    given = dict(parse_qsl(seen[0][3]))
    assert given["SecurityToken"] == "temp-token" and "Policy" not in given
    refusal = json.dumps({"Code": "NoPermission"})
    with recording(lambda _: (403, "application/json", refusal)) as (url, _):
        await sessions().require_confined(profile(sts_endpoint=url), vended)
