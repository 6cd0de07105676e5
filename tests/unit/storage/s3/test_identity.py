# SPDX-License-Identifier: Apache-2.0
"""The gateway's own identity in AWS: the operator's rules, and the requests to the services that issue its keys.

The servers here answer in the documented form. IAM: "Create a role for OIDC federation"; ECS: "Task IAM role"; EC2:
"Retrieve security credentials from instance metadata"; STS API reference, AssumeRoleWithWebIdentity.
"""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from gateway import settings
from gateway.iceberg.errors import BadRequestException
from gateway.scope.profile import STRICTEST, IdentityRules, StorageRules
from gateway.storage.errors import ShortTermCredentialError, StorageDenied, StorageUnavailable
from gateway.storage.registry import decode_credential
from gateway.storage.s3.aws.identity import SystemIdentity
from gateway.storage.s3.aws.identity_rules import require_own_files, require_sessions
from gateway.storage.s3.aws.sts import Sts
from gateway.storage.s3.credential import S3AccessKey, S3SystemIdentity
from gateway.storage.s3.profile import Flavor, S3Profile
from gateway.storage.s3.stores import S3Stores
from tests.support.servers.storage_servers import Request, recording

ROLE = "arn:aws:iam::123456789012:role/lake"
IDENTITY, WITH_ID = S3SystemIdentity(), S3SystemIdentity(external_id="tenant-1")
KEYS = S3AccessKey(access_key_id="AK", secret_access_key="sec")


def profile(**fields: Any) -> S3Profile:
    return S3Profile(bucket="tenant-bucket", region="eu-west-1", **fields)


# -- rules -------------------------------------------------------------------------------------------------------------


@pytest.mark.threat("LG-POL-13")
def test_a_system_identity_is_refused_in_a_request_unless_enabled() -> None:
    text = b'{"type":"s3","credential-type":"aws-system-identity","external-id":"x1"}'
    with pytest.raises(BadRequestException, match="not enabled"):
        decode_credential(text, rules=STRICTEST)
    with pytest.raises(BadRequestException, match="not enabled"):
        decode_credential(text, rules=StorageRules(identities=(("gcs", IdentityRules(enabled=True)),)))
    enabled = StorageRules(identities=(("s3", IdentityRules(enabled=True)),))
    assert decode_credential(text, rules=enabled) == S3SystemIdentity(external_id="x1")


ENDPOINT = "https://store.example.org"


@pytest.mark.threat("LG-POL-13")
def test_the_identity_is_used_for_nothing_that_the_operator_did_not_allow() -> None:
    """All combinations, compared with the rules in their shortest form."""
    switches = (True, False)
    buckets = {"none": (), "other": ("tenant-bucket2", "tenant"), "this": ("a", "tenant-bucket")}
    similar = ("https://store.example.org.evil", "http://store.example.org", "https://store.example.org:444")
    for enabled, direct, required, listed, endpoints, role, external_id, field in product(
        switches, switches, switches, buckets, ((ENDPOINT,), similar), (None, ROLE), (None, "tenant-1"),
        (None, "endpoint", "sts_endpoint"),
    ):  # fmt: skip
        rules = IdentityRules(
            enabled=enabled,
            direct=direct,
            external_id_required=required,
            stores=buckets[listed],
            endpoints=endpoints,
        )
        made = profile(assume_role_arn=role, **({} if field is None else {field: ENDPOINT}))
        credential = S3SystemIdentity(external_id=external_id)
        if role is None:
            allowed = direct and listed == "this"
        else:
            allowed = listed != "other" and (external_id is not None or not required)
        allowed = allowed and enabled and (field is None or ENDPOINT in endpoints)
        found = True
        try:
            require_own_files(made, credential, rules)
        except StorageDenied:
            found = False
        assert found is allowed, (rules, made, credential)
        try:
            require_sessions(made, credential, role, rules)
        except ShortTermCredentialError as refused:
            assert not allowed and refused.reason == "profile"
        else:
            assert allowed, (rules, made, credential)


def test_the_rules_do_not_apply_to_stored_keys() -> None:
    require_own_files(profile(endpoint=ENDPOINT), KEYS, IdentityRules())
    require_sessions(profile(endpoint=ENDPOINT), KEYS, None, IdentityRules())


@pytest.mark.threat("LG-POL-13")
def test_files_are_refused_before_the_identity_is_read() -> None:
    stores = S3Stores(
        own_role=None, identity=None, identity_rules=IdentityRules(), connect_seconds=1, request_seconds=1
    )
    for made in (profile(), profile(assume_role_arn=ROLE)):
        with pytest.raises(StorageDenied, match="not enabled"):
            stores.store(made, WITH_ID)


@pytest.mark.threat("LG-POL-13")
@pytest.mark.parametrize("refused", [IDENTITY, WITH_ID])
async def test_no_session_is_requested_for_a_bucket_that_is_not_listed(refused: S3SystemIdentity) -> None:
    def no_session() -> Any:
        raise AssertionError("the identity was read")

    identity = SystemIdentity(new_session=no_session)
    rules = IdentityRules(enabled=True, direct=True, stores=("another",))
    sts = Sts(identity=identity, identity_rules=rules)
    for made in (profile(sts_enabled=True, sts_role_arn=ROLE), profile(assume_role_arn=ROLE)):
        with pytest.raises(ShortTermCredentialError, match="tenant-bucket"):
            await sts.assume(profile=made, credential=refused, policy="{}", session_name="ann", seconds=900)
    with pytest.raises(ShortTermCredentialError):
        await sts.assume_own_role(profile(assume_role_arn=ROLE), refused)
    compatible = profile(flavor=Flavor.S3_COMPAT, endpoint=ENDPOINT, sts_enabled=True)
    with pytest.raises(ShortTermCredentialError, match="endpoint"):
        await sts.assume(profile=compatible, credential=refused, policy="{}", session_name="ann", seconds=900)


def test_settings_become_rules() -> None:
    assert settings.load({}).storage_rules().identity("s3") == IdentityRules()
    found = settings.load(
        {
            "LAKEGATE__ENABLE_AWS_SYSTEM_CREDENTIALS": "true",
            "LAKEGATE__S3_ENABLE_DIRECT_SYSTEM_CREDENTIALS": "true",
            "LAKEGATE__S3_REQUIRE_EXTERNAL_ID_FOR_SYSTEM_CREDENTIALS": "false",
            "LAKEGATE__S3_SYSTEM_CREDENTIALS_BUCKETS": "a,b",
            "LAKEGATE__S3_SYSTEM_CREDENTIALS_ENDPOINTS": "http://10.0.0.1:9000/",
        }
    ).storage_rules()
    assert found.identity("s3") == IdentityRules(
        enabled=True,
        direct=True,
        external_id_required=False,
        stores=("a", "b"),
        endpoints=("http://10.0.0.1:9000",),
    )


# -- services that issue keys ------------------------------------------------------------------------------------------


def _later() -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Remove every identity from the environment."""
    import os

    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "BOTO_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    return monkeypatch


async def test_keys_of_a_web_identity_file(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("header.payload.signature")

    def answer(_: Request) -> tuple[int, str, str]:
        namespace = "https://sts.amazonaws.com/doc/2011-06-15/"
        keys = (
            "<Credentials><AccessKeyId>ASIAWEB</AccessKeyId><SecretAccessKey>sec</SecretAccessKey>"
            f"<SessionToken>tok</SessionToken><Expiration>{_later()}</Expiration></Credentials>"
        )
        result = f"<AssumeRoleWithWebIdentityResult>{keys}</AssumeRoleWithWebIdentityResult>"
        start = f'<AssumeRoleWithWebIdentityResponse xmlns="{namespace}">'
        return 200, "text/xml", f"{start}{result}</AssumeRoleWithWebIdentityResponse>"

    with recording(answer) as (url, seen):
        environment.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
        environment.setenv("AWS_ROLE_ARN", ROLE)
        environment.setenv("AWS_ROLE_SESSION_NAME", "gateway")
        environment.setenv("AWS_ENDPOINT_URL_STS", url)
        identity = SystemIdentity()
        keys = await identity.keys()
        assert (keys.access_key_id, keys.secret_access_key, keys.session_token) == ("ASIAWEB", "sec", "tok")
        assert "sec" not in repr(keys)
        await identity.keys()
    assert len(seen) == 1, "the keys are kept until they are refreshed"
    method, path, headers, body = seen[0]
    assert (method, path) == ("POST", "/") and "authorization" not in headers
    assert dict(parse_qsl(body)) == {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": ROLE,
        "RoleSessionName": "gateway",
        "WebIdentityToken": "header.payload.signature",
    }


async def test_keys_of_a_container(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    token = tmp_path / "container-token"
    token.write_text("container-secret")

    def answer(_: Request) -> tuple[int, str, str]:
        keys = {"AccessKeyId": "ASIACON", "SecretAccessKey": "sec", "Token": "tok", "Expiration": _later()}
        return 200, "application/json", json.dumps(keys)

    with recording(answer) as (url, seen):
        environment.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{url}/v1/credentials")
        environment.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
        assert (await SystemIdentity().keys()).access_key_id == "ASIACON"
    ((method, path, headers, _),) = seen
    assert (method, path, headers["authorization"]) == ("GET", "/v1/credentials", "container-secret")


async def test_keys_of_an_instance(environment: pytest.MonkeyPatch) -> None:
    def answer(request: Request) -> tuple[int, str, str]:
        method, path, headers, _ = request
        if method == "PUT":
            return 200, "text/plain", "metadata-token"
        if headers.get("x-aws-ec2-metadata-token") != "metadata-token":
            return 401, "text/plain", ""
        if path == "/latest/meta-data/iam/security-credentials/":
            return 200, "text/plain", "gateway-role"
        keys = {
            "Code": "Success", "AccessKeyId": "ASIAINS", "SecretAccessKey": "sec", "Token": "tok",
            "Expiration": _later(),
        }  # fmt: skip
        return 200, "application/json", json.dumps(keys)

    with recording(answer) as (url, seen):
        environment.delenv("AWS_EC2_METADATA_DISABLED")
        environment.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url)
        assert (await SystemIdentity().keys()).access_key_id == "ASIAINS"
    assert [(method, path) for method, path, _, _ in seen] == [
        ("PUT", "/latest/api/token"),
        ("GET", "/latest/meta-data/iam/security-credentials/"),
        ("GET", "/latest/meta-data/iam/security-credentials/gateway-role"),
    ]


async def test_an_absent_identity_is_looked_for_again(environment: pytest.MonkeyPatch) -> None:
    identity = SystemIdentity()
    with pytest.raises(StorageDenied, match="no identity"):
        await identity.keys()
    environment.setenv("AWS_ACCESS_KEY_ID", "AKENV")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "sec")
    assert (await identity.keys()).access_key_id == "AKENV"


async def test_a_hanging_service_is_an_outage(environment: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def hanging() -> Any:
        ended.wait(30)

    identity = SystemIdentity(new_session=hanging, total_seconds=0.1)
    with pytest.raises(StorageUnavailable, match="did not answer in time"):
        await identity.keys()
    ended.set()
    identity.close()


async def test_a_session_is_made_with_the_keys_of_the_identity(environment: pytest.MonkeyPatch) -> None:
    """The request is signed with the identity's keys and has the external id and the policy."""

    def answer(_: Request) -> tuple[int, str, str]:
        keys = (
            "<Credentials><AccessKeyId>ASIAVEND</AccessKeyId><SecretAccessKey>sec</SecretAccessKey>"
            f"<SessionToken>tok</SessionToken><Expiration>{_later()}</Expiration></Credentials>"
        )
        return (
            200,
            "text/xml",
            '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
            f"<AssumeRoleResult>{keys}</AssumeRoleResult></AssumeRoleResponse>",
        )

    from tests.support.servers.storage_routes import LOCAL

    environment.setenv("AWS_ACCESS_KEY_ID", "AKENV")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "sec")
    with recording(answer) as (url, seen):
        rules = IdentityRules(enabled=True, endpoints=(url,))
        sts = Sts(identity=SystemIdentity(), identity_rules=rules, route=LOCAL)
        made = profile(sts_enabled=True, sts_role_arn=ROLE, sts_endpoint=url)
        session = await sts.assume(profile=made, credential=WITH_ID, policy="{P}", session_name="ann", seconds=3600)
        with pytest.raises(ShortTermCredentialError, match="external id"):
            await sts.assume(profile=made, credential=IDENTITY, policy="{P}", session_name="ann", seconds=3600)
    assert session.access_key_id == "ASIAVEND"
    ((_, _, headers, body),) = seen
    assert "Credential=AKENV/" in headers["authorization"]
    assert dict(parse_qsl(body)) == {
        "Action": "AssumeRole",
        "Version": "2011-06-15",
        "RoleArn": ROLE,
        "RoleSessionName": "ann",
        "DurationSeconds": "3600",
        "ExternalId": "tenant-1",
        "Policy": "{P}",
    }


async def test_without_an_identity_botocore_does_not_look_for_one(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_ACCESS_KEY_ID", "AKENV")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "sec")
    sts = Sts(identity_rules=IdentityRules(enabled=True))
    with pytest.raises(ShortTermCredentialError, match="no identity"):
        await sts.assume(
            profile=profile(sts_enabled=True, sts_role_arn=ROLE),
            credential=WITH_ID,
            policy="{P}",
            session_name="ann",
            seconds=3600,
        )
