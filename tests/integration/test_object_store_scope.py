# SPDX-License-Identifier: Apache-2.0
"""Vended credentials on a real store that enforces session policies (SeaweedFS), and the evaluator against that store.

The store is hardened: only the gateway's user may assume the role, and the filer's port requires signed requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

import msgspec
import pytest
from botocore.exceptions import ClientError
from pyiceberg.io import load_file_io

from gateway.features.credentials.storage_validation import CheckStatus, ValidationReport, validate_warehouse_storage
from gateway.scope.credential import AccessLevel
from gateway.scope.errors import InvalidLocation
from gateway.scope.location import Location
from gateway.scope.profile import STORED, STRICTEST
from gateway.storage.errors import (
    FileExists,
    FileMissing,
    FileTooLarge,
    ShortTermCredentialError,
    StorageDenied,
    StorageUnavailable,
)
from gateway.storage.s3.aws.proof import Dialect, evaluate
from gateway.storage.s3.aws.session_policy import build_session_policy
from gateway.storage.s3.aws.sts import Sts
from gateway.storage.s3.credential import S3TemporaryCredential
from gateway.storage.s3.profile import SCHEME, S3Profile
from gateway.vending.vendor import BelowCredentialFloor, LocationOutsideWarehouse, NoCredentials, Vended, Vendor
from tests.support.servers.scoped_store import (
    BUCKET,
    OPEN_ROLE,
    ROLE,
    SESSION,
    TABLE,
    Store,
    allow_statement,
    can_delete,
    can_list,
    is_allowed,
    keys_of,
    store,
    sts,
    vend,
)
from tests.support.servers.storage_routes import LOCAL, clients, files_of, object_files

__all__ = ["store", "sts"]


pytestmark = [pytest.mark.generated, pytest.mark.integration]


INSIDE = ("base/ns/t1/data/f.parquet", "base/ns/t1/metadata/v1.json", "base/ns/t1/a/b/c/d")
OUTSIDE = (
    "base/ns/t10/f",
    "base/ns/t1_x/f",
    "base/ns/t1./f",
    "base/ns/t1",
    "base/ns/t1-x",
    "base/ns/f",
    "base/f",
    "f",
    "base/ns/t2/f",
    "ns/t1/f",
    "other/base/ns/t1/f",
    "base/ns/t/f",
    "x/base/ns/t1/data/f.parquet",
)


@pytest.fixture
def objects(store: Store) -> None:
    root = store.client("s3", store.credential)
    # This store is a file system, so the folder `base/ns/t1` cannot also be a file: it is requested, but not created.
    for key in (*INSIDE, *OUTSIDE):
        if key not in {"base/ns/t1"}:
            root.put_object(Bucket=BUCKET, Key=key, Body=b"x")


# -- limits of vended credentials --------------------------------------------------------------------------------------


@pytest.mark.threat("LG-LOC-01")
@pytest.mark.parametrize("level", list(AccessLevel))
async def test_vended_key_allows_its_level_inside_the_location_only(
    store: Store, sts: Sts, objects: None, level: AccessLevel
) -> None:
    vended = await vend(store, sts, level)
    client = store.client("s3", keys_of(vended))
    for key in INSIDE:
        assert is_allowed(partial(client.get_object, Bucket=BUCKET, Key=key))
        writes = level is not AccessLevel.READ
        assert is_allowed(partial(client.put_object, Bucket=BUCKET, Key=key, Body=b"y")) is writes
        assert can_delete(client, key) is (level is AccessLevel.READ_WRITE_DELETE)
    assert can_list(client, "base/ns/t1/")
    for key in OUTSIDE:
        assert not is_allowed(partial(client.get_object, Bucket=BUCKET, Key=key)), key
        assert not is_allowed(partial(client.put_object, Bucket=BUCKET, Key=key, Body=b"y")), key
        assert not can_delete(client, key), key


@pytest.mark.threat("LG-LOC-01")
async def test_siblings_and_the_prefix_without_a_slash_cannot_be_listed(store: Store, sts: Sts, objects: None) -> None:
    client = store.client("s3", keys_of(await vend(store, sts, AccessLevel.READ_WRITE_DELETE)))
    for prefix in (
        None,
        "",
        "base",
        "base/",
        "base/ns",
        "base/ns/",
        "base/ns/t",
        "base/ns/t1",
        "base/ns/t10/",
        "base/ns/t2/",
    ):
        assert not can_list(client, prefix), prefix
    assert can_list(client, "base/ns/t1/data")


@pytest.mark.threat("LG-LOC-12")
async def test_traversal_out_of_the_prefix_is_refused(store: Store, sts: Sts, objects: None) -> None:
    client = store.client("s3", keys_of(await vend(store, sts, AccessLevel.READ_WRITE_DELETE)))
    for key in ("base/ns/t1/../t2/f", "base/ns/t1/%2e%2e/t2/f", "base/ns/t1/..%2ft2/f", "base/ns/t1/./../t2/f"):
        with pytest.raises(ClientError) as refused:
            client.get_object(Bucket=BUCKET, Key=key)
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] in {400, 403, 404}
        with contextlib.suppress(ClientError):
            client.put_object(Bucket=BUCKET, Key=key, Body=b"escaped")
    body = store.client("s3", store.credential).get_object(Bucket=BUCKET, Key="base/ns/t2/f")["Body"].read()
    assert body == b"x"


async def test_copying_a_foreign_object_into_the_table_is_refused(store: Store, sts: Sts, objects: None) -> None:
    client = store.client("s3", keys_of(await vend(store, sts, AccessLevel.READ_WRITE_DELETE)))
    source = {"Bucket": BUCKET, "Key": "base/ns/t2/f"}
    assert not is_allowed(lambda: client.copy_object(Bucket=BUCKET, Key="base/ns/t1/stolen", CopySource=source))


async def test_a_multipart_upload_works_inside_and_not_outside(store: Store, sts: Sts) -> None:
    client = store.client("s3", keys_of(await vend(store, sts, AccessLevel.READ_WRITE)))
    made = client.create_multipart_upload(Bucket=BUCKET, Key="base/ns/t1/big")
    part = client.upload_part(Bucket=BUCKET, Key="base/ns/t1/big", UploadId=made["UploadId"], PartNumber=1, Body=b"z")
    assert client.list_parts(Bucket=BUCKET, Key="base/ns/t1/big", UploadId=made["UploadId"])["Parts"]
    client.complete_multipart_upload(
        Bucket=BUCKET,
        Key="base/ns/t1/big",
        UploadId=made["UploadId"],
        MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]},
    )
    assert not is_allowed(lambda: client.create_multipart_upload(Bucket=BUCKET, Key="base/ns/t10/big"))


async def test_multi_object_delete_keeps_outside_objects(store: Store, sts: Sts, objects: None) -> None:
    client = store.client("s3", keys_of(await vend(store, sts, AccessLevel.READ_WRITE_DELETE)))
    expected = {"Objects": [{"Key": "base/ns/t1/data/f.parquet"}, {"Key": "base/ns/t2/f"}]}
    with contextlib.suppress(ClientError):
        client.delete_objects(Bucket=BUCKET, Delete=expected)
    assert store.client("s3", store.credential).head_object(Bucket=BUCKET, Key="base/ns/t2/f")


# -- LG-LOC-22: the control plane ---------------------------------------------------------------------------------


@pytest.mark.threat("LG-LOC-22")
async def test_vended_key_lists_no_buckets(store: Store, sts: Sts) -> None:
    client = store.client("s3", keys_of(await vend(store, sts, AccessLevel.READ_WRITE_DELETE)))
    try:
        buckets = client.list_buckets()["Buckets"]
    except ClientError:
        buckets = []
    assert buckets == []


_BUCKET_CALLS: dict[str, Callable[[Any], Any]] = {
    "create bucket": lambda s3: s3.create_bucket(Bucket="another"),
    "delete bucket": lambda s3: s3.delete_bucket(Bucket=BUCKET),
    "get policy": lambda s3: s3.get_bucket_policy(Bucket=BUCKET),
    "put policy": lambda s3: s3.put_bucket_policy(
        Bucket=BUCKET, Policy=json.dumps(allow_statement(["s3:*"], Resource="*", Principal="*"))
    ),
    "put acl": lambda s3: s3.put_bucket_acl(Bucket=BUCKET, ACL="public-read-write"),
    "put cors": lambda s3: s3.put_bucket_cors(
        Bucket=BUCKET, CORSConfiguration={"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}]}
    ),
    "put versioning": lambda s3: s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"}),
    "put lifecycle": lambda s3: s3.put_bucket_lifecycle_configuration(
        Bucket=BUCKET,
        LifecycleConfiguration={
            "Rules": [{"ID": "x", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}]
        },
    ),
    "list uploads": lambda s3: s3.list_multipart_uploads(Bucket=BUCKET),
    "list versions": lambda s3: s3.list_object_versions(Bucket=BUCKET),
    "tag foreign object": lambda s3: s3.put_object_tagging(
        Bucket=BUCKET, Key="base/ns/t2/f", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]}
    ),
}


@pytest.mark.threat("LG-LOC-22")
@pytest.mark.parametrize("call", _BUCKET_CALLS)
async def test_a_vended_key_cannot_use_the_control_plane(store: Store, sts: Sts, objects: None, call: str) -> None:
    client = store.client("s3", keys_of(await vend(store, sts, AccessLevel.READ_WRITE_DELETE)))
    with pytest.raises(ClientError) as refused:
        _BUCKET_CALLS[call](client)
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] in {400, 403, 404, 405, 501}


_IDENTITY_CALLS: dict[str, tuple[Literal["iam", "sts"], Callable[[Any], Any]]] = {
    "assume the role again": ("sts", lambda c: c.assume_role(RoleArn=ROLE, RoleSessionName="again")),
    "session token": ("sts", lambda c: c.get_session_token()),
    "federation token": ("sts", lambda c: c.get_federation_token(Name="again")),
    "access key": ("iam", lambda c: c.create_access_key(UserName="gateway")),
    "user": ("iam", lambda c: c.create_user(UserName="mallory")),
    "user policy": (
        "iam",
        lambda c: c.put_user_policy(
            UserName="gateway", PolicyName="p", PolicyDocument=json.dumps(allow_statement(["s3:*"], Resource="*"))
        ),
    ),
}


@pytest.mark.threat("LG-LOC-22")
@pytest.mark.parametrize("call", _IDENTITY_CALLS)
async def test_a_vended_key_cannot_make_another_identity(store: Store, sts: Sts, call: str) -> None:
    service, attempt = _IDENTITY_CALLS[call]
    vended = await vend(store, sts, AccessLevel.READ_WRITE_DELETE)
    with pytest.raises(ClientError) as refused:
        attempt(store.client(service, keys_of(vended)))
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] in {400, 403, 404, 405, 501}


def test_filer_port_refuses_unsigned_requests(store: Store, objects: None) -> None:
    for method in ("GET", "PUT"):
        request = urllib.request.Request(
            f"http://127.0.0.1:{store.filer_port}/buckets/{BUCKET}/base/ns/t2/f",
            method=method,
            data=b"x" if method == "PUT" else None,
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)  # noqa: S310 - loopback
        assert refused.value.code in {401, 403, 404, 405}


# -- the evaluator against the store ---------------------------------------------------------------------------------

_OBJECTS = f"arn:aws:s3:::{BUCKET}"
_POLICIES: dict[str, str] = {
    **{f"built {level}": build_session_policy(TABLE, level, escapes_known=False) for level in AccessLevel},
    "prefix without slash": json.dumps(allow_statement(["s3:GetObject"], Resource=f"{_OBJECTS}/base/ns/t1*")),
    "one character": json.dumps(allow_statement(["s3:GetObject"], Resource=f"{_OBJECTS}/base/ns/t?/*")),
    "other letter case": json.dumps(allow_statement(["s3:GetObject"], Resource=f"{_OBJECTS}/BASE/ns/T1/*")),
    "action pattern": json.dumps(allow_statement(["s3:Get*"], Resource=f"{_OBJECTS}/base/ns/t1/*")),
    "a range": json.dumps(allow_statement(["s3:GetObject"], Resource=f"{_OBJECTS}/base/ns/t[12]/*")),
    "a variable": json.dumps(allow_statement(["s3:GetObject"], Resource=f"{_OBJECTS}/base/ns/${{s3:prefix}}/*")),
    "escape of a star": json.dumps(allow_statement(["s3:GetObject"], Resource=f"{_OBJECTS}/base/ns/t${{*}}/*")),
    "list by equality": json.dumps(
        allow_statement(["s3:ListBucket"], Resource=_OBJECTS, Condition={"StringEquals": {"s3:prefix": "base/ns/t1/"}})
    ),
    "list the bare prefix": json.dumps(
        allow_statement(["s3:ListBucket"], Resource=_OBJECTS, Condition={"StringLike": {"s3:prefix": "base/ns/t1*"}})
    ),
    "unknown condition key": json.dumps(
        allow_statement(["s3:GetObject"], Resource=f"{_OBJECTS}/*", Condition={"StringEquals": {"s3:nonsense": "x"}})
    ),
    "deny wins": json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"{_OBJECTS}/base/*"},
                {"Effect": "Deny", "Action": "s3:GetObject", "Resource": f"{_OBJECTS}/base/ns/t10/*"},
            ],
        }
    ),
}
_KEYS = (*INSIDE[:1], *OUTSIDE[:5], "base/ns/T1/f", "BASE/NS/T1/f", "base/ns/t*/f")
_PREFIXES = ("base/ns/t1/", "base/ns/t1/data", "base/ns/t1", "base/ns/t10/", "base/ns/T1/", "base/", None)


@pytest.mark.parametrize("name", _POLICIES)
async def test_the_evaluator_and_the_store_agree(store: Store, sts: Sts, objects: None, name: str) -> None:
    policy = _POLICIES[name]
    keys = await sts.assume(
        profile=store.profile(), credential=store.credential, policy=policy, session_name="agree", seconds=900
    )
    client = store.client("s3", keys)
    expected: dict[str, bool] = {}
    seen: dict[str, bool] = {}

    def compare(label: str, action: str, attempt: Callable[[], Any], key: str | None, context: dict[str, str]) -> None:
        seen[label] = is_allowed(attempt)
        expected[label] = evaluate(policy, action, bucket=BUCKET, key=key, context=context, dialect=Dialect.CASE_BLIND)

    for key in _KEYS:
        location = {"Bucket": BUCKET, "Key": key}
        compare(f"get {key}", "s3:GetObject", partial(client.get_object, **location), key, {})
        if key != "base/ns/t1":  # a folder in this store: writing a file there fails for another reason
            compare(f"put {key}", "s3:PutObject", partial(client.put_object, **location, Body=b"x"), key, {})
            compare(f"delete {key}", "s3:DeleteObject", partial(client.delete_object, **location), key, {})
    for prefix in _PREFIXES:
        given = {} if prefix is None else {"Prefix": prefix}
        context = {} if prefix is None else {"s3:prefix": prefix}
        send = partial(client.list_objects_v2, Bucket=BUCKET, **given)
        compare(f"list {prefix}", "s3:ListBucket", send, None, context)
    assert seen == expected


# -- clients with the vended properties --------------------------------------------------------------------------------


async def test_pyiceberg_with_vended_properties_works_inside_the_location_only(
    store: Store, sts: Sts, objects: None
) -> None:
    vended = await vend(store, sts, AccessLevel.READ_WRITE_DELETE)
    properties = store.profile().client_properties(vended.temporary, refresh_endpoint=None)

    def use() -> None:
        file_io = load_file_io({**properties, "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"})
        inside = f"{vended.prefix}data/{secrets.token_hex(4)}.bin"
        with file_io.new_output(inside).create() as stream:
            stream.write(b"rows")
        with file_io.new_input(inside).open() as stream:
            assert stream.read() == b"rows"
        file_io.delete(inside)
        for outside in (f"s3://{BUCKET}/base/ns/t2/f", f"s3://{BUCKET}/base/ns/t10/f"):
            with pytest.raises(OSError), file_io.new_input(outside).open() as stream:
                stream.read()

    await asyncio.to_thread(use)


# -- sts -------------------------------------------------------------------------------------------------------------


async def test_credential_lifetime_is_the_shorter_limit(store: Store, sts: Sts) -> None:
    vendor, now = Vendor(clients(sts)), datetime.now(UTC)
    for requested, profile_seconds, life in ((900, 3600, 900), (43200, 1000, 1000)):
        vended = await vendor.vend(
            profile=store.profile(sts_token_validity_seconds=profile_seconds),
            profile_version="1",
            credential=store.credential,
            location=TABLE,
            level=AccessLevel.READ,
            seconds=requested,
            session=SESSION,
        )
        assert isinstance(vended, Vended)
        assert abs(vended.expires_at - now - timedelta(seconds=life)) < timedelta(seconds=20)


async def test_wrong_secret_gives_a_specific_error_without_store_details(store: Store, sts: Sts) -> None:
    wrong = msgspec.structs.replace(store.credential, secret_access_key="not-the-secret-one")
    with pytest.raises(ShortTermCredentialError) as failed:
        await sts.assume(
            profile=store.profile(), credential=wrong, policy=_POLICIES["deny wins"], session_name="ab", seconds=900
        )
    for text in (str(failed.value), repr(failed.value)):
        assert "not-the-secret-one" not in text and store.credential.access_key_id not in text and "arn:" not in text
    assert failed.value.__cause__ is None and failed.value.__suppress_context__ or failed.value.__context__ is None


async def test_callback_receives_the_outcome_of_each_call(store: Store) -> None:
    messages: list[str] = []
    sts = Sts(route=LOCAL, on_latency=lambda seconds, outcome: messages.append(outcome) if seconds >= 0 else None)
    await vend(store, sts, AccessLevel.READ)
    with pytest.raises(ShortTermCredentialError):
        await vend(store, sts, AccessLevel.READ, sts_role_arn="arn:aws:iam::000000000000:role/Missing")
    sts.close()
    assert messages[0] == "ok" and messages[1] != "ok" and len(messages) == 2


# -- files -----------------------------------------------------------------------------------------------------------


async def test_files_are_written_once_read_listed_and_deleted(store: Store) -> None:
    files, profile, keys = files_of(), store.profile(), store.credential
    location = Location(SCHEME, BUCKET, ("base", "files", "é &'\"+~".replace(" ", "")))
    text = location.child("a%20b.json").text
    await files.write(profile, keys, text, b"one")
    with pytest.raises(FileExists):
        await files.write(profile, keys, text, b"two")
    assert await files.read(profile, keys, text, max_bytes=3) == b"one"
    with pytest.raises(FileTooLarge):
        await files.read(profile, keys, text, max_bytes=2)
    assert not await files.is_empty(profile, keys, location)
    listed = await files.list_keys(profile, keys, location, 10)
    assert listed == [location.key_prefix + "a%20b.json"]
    await files.delete_below(profile, keys, location, listed)
    assert await files.is_empty(profile, keys, location)
    with pytest.raises(FileMissing):
        await files.read(profile, keys, text, max_bytes=3)


async def test_sibling_with_a_common_prefix_does_not_make_a_location_nonempty(store: Store, objects: None) -> None:
    empty = Location(SCHEME, BUCKET, ("base", "ns", "t"))
    await files_of().delete(store.profile(), store.credential, ["s3://warehouse/base/ns/t/f"])
    assert await files_of().is_empty(store.profile(), store.credential, empty)


async def test_the_environment_cannot_redirect_or_unsign_a_request(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "stranger")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    sts = Sts(route=LOCAL)
    await files_of().write(store.profile(), store.credential, f"s3://{BUCKET}/base/env/{secrets.token_hex(4)}", b"x")
    await vend(store, sts, AccessLevel.READ)
    sts.close()


async def test_gateway_file_access_uses_the_configured_role(store: Store, sts: Sts) -> None:
    profile = store.profile(assume_role_arn=ROLE)
    requested: list[str] = []

    async def own(profile: S3Profile, credential: Any) -> S3TemporaryCredential:
        requested.append(str(profile.assume_role_arn))
        return await sts.assume_own_role(profile, credential)

    files = files_of(own_role=own)
    text = f"s3://{BUCKET}/base/own/{secrets.token_hex(4)}"
    await files.write(profile, store.credential, text, b"x")
    assert await files.read(profile, store.credential, text, max_bytes=9) == b"x"
    assert requested == [ROLE]  # once: the session is reused
    with pytest.raises(StorageDenied):
        await files_of().read(profile, store.credential, text, max_bytes=9)


async def test_foreign_list_and_delete_with_a_vended_key_are_access_denied(
    store: Store, sts: Sts, objects: None
) -> None:
    keys, files, profile = (await vend(store, sts, AccessLevel.READ)).temporary, files_of(), store.profile()
    with pytest.raises(StorageDenied):
        await files.list_keys(profile, keys, profile.base_location(), 1)
    with pytest.raises(StorageDenied):
        await files.delete(profile, keys, [f"s3://{BUCKET}/base/ns/t1/data/f.parquet"])


async def test_store_outage_is_unavailable_and_not_a_missing_file(store: Store) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        profile = store.profile(endpoint=f"http://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(StorageUnavailable) as failed:
            await files_of(total_seconds=5).read(profile, store.credential, f"s3://{BUCKET}/base/x", max_bytes=9)
    assert "127.0.0.1" not in str(failed.value)


# -- validation ------------------------------------------------------------------------------------------------------


def _statuses(report: ValidationReport) -> dict[str, str]:
    return {check.name: str(check.status) for check in report.checks}


async def _validate(store: Store, sts: Sts, profile: S3Profile | None = None, **more: Any) -> ValidationReport:
    files = object_files(own_role=sts.assume_own_role, total_seconds=60)
    report = await validate_warehouse_storage(
        profile or store.profile(), store.credential, clients=clients(sts, files), **({"rules": STORED} | more)
    )
    left = (
        store.client("s3", store.credential)
        .list_objects_v2(Bucket=BUCKET, Prefix="base/lakegate-check-")
        .get("Contents", [])
    )
    assert left == []
    return report


async def test_store_enforcing_session_policies_is_valid_and_left_clean(store: Store, sts: Sts) -> None:
    report = await _validate(store, sts)
    assert [check for check in report.checks if check.status is not CheckStatus.PASSED] == []
    assert report.valid
    names = [check.name for check in report.checks]
    assert names[1:5] == [
        "storage-client-initialized",
        "lakekeeper-read-write",
        "vended-credentials-issued",
        "vended-credentials-read-write",
    ]
    assert names[-1] == "cleanup"


async def test_without_sts_the_session_policy_checks_are_skipped_with_a_reason(store: Store, sts: Sts) -> None:
    report = await _validate(store, sts, store.profile(sts_enabled=False))
    assert report.valid
    skipped = [check for check in report.checks if check.status is CheckStatus.SKIPPED]
    assert len(skipped) == 6 and all("sts-enabled" in str(check.reason) for check in skipped)


async def test_publicly_assumable_role_is_refused(store: Store, sts: Sts) -> None:
    report = await _validate(store, sts, store.profile(sts_role_arn=OPEN_ROLE))
    assert not report.valid
    assert _statuses(report)["vended-credentials-no-role-assumption"] == "failed"


class _IgnoresPolicy(Sts):
    """A store that accepts the session policy and ignores it."""

    async def assume(self, *, policy: str, **rest: Any) -> S3TemporaryCredential:
        wide = json.dumps(allow_statement(["s3:*"], Resource=[_OBJECTS, f"{_OBJECTS}/*"]))
        return await super().assume(policy=wide, **rest)


class _IgnoresSlash(Sts):
    """A store that matches the prefix as text, so that a sibling with the same prefix is accessible."""

    async def assume(self, *, policy: str, **rest: Any) -> S3TemporaryCredential:
        return await super().assume(policy=policy.replace("/*", "*"), **rest)


class _IgnoresActions(Sts):
    """A store that checks the location only, not the action."""

    async def assume(self, *, policy: str, **rest: Any) -> S3TemporaryCredential:
        read, full = (
            build_session_policy(TABLE, level, escapes_known=False)
            for level in (AccessLevel.READ, AccessLevel.READ_WRITE_DELETE)
        )
        few, all_of_them = (
            json.dumps(json.loads(p)["Statement"][0]["Action"], separators=(",", ":")) for p in (read, full)
        )
        return await super().assume(policy=policy.replace(few, all_of_them), **rest)


class _IgnoresListCondition(Sts):
    """A store that ignores the condition on the prefix of a listing."""

    async def assume(self, *, policy: str, **rest: Any) -> S3TemporaryCredential:
        document = json.loads(policy)
        for statement in document["Statement"]:
            statement.pop("Condition", None)
        return await super().assume(policy=json.dumps(document), **rest)


@pytest.mark.threat("LG-POL-08")
@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (_IgnoresPolicy, "vended-credentials-scope-enforced"),
        (_IgnoresPolicy, "vended-credentials-policy-enforced"),
        (_IgnoresSlash, "vended-credentials-scope-enforced"),
        (_IgnoresActions, "vended-credentials-policy-enforced"),
        (_IgnoresListCondition, "vended-credentials-scope-enforced"),
    ],
)
async def test_a_store_that_ignores_part_of_the_session_policy_is_refused(
    store: Store, kind: type[Sts], check: str
) -> None:
    sts = kind(route=LOCAL)
    report = await _validate(store, sts)
    sts.close()
    assert not report.valid
    assert _statuses(report)[check] == "failed"


async def test_wrong_keys_fail_early_and_skip_the_rest(store: Store, sts: Sts) -> None:
    wrong = msgspec.structs.replace(store.credential, secret_access_key="wrong")
    report = await validate_warehouse_storage(
        store.profile(), wrong, clients=clients(sts, object_files(total_seconds=60)), rules=STORED
    )
    statuses = _statuses(report)
    assert statuses["storage-client-initialized"] == "failed" and not report.valid
    assert statuses["vended-credentials-scope-enforced"] == statuses["cleanup"] == "skipped"


@pytest.mark.threat("LG-DEC-05")
async def test_an_inner_address_is_refused_before_anything_is_sent(store: Store, sts: Sts) -> None:
    port = store.url.rpartition(":")[2]
    report = await _validate(store, sts, store.profile(endpoint=f"http://localhost:{port}"), rules=STRICTEST)
    assert _statuses(report)["storage-address-allowed"] == "failed"
    assert _statuses(report)["storage-client-initialized"] == "skipped"


async def test_timed_out_validation_fails_and_cleans_up(store: Store) -> None:
    class Slow(Sts):
        async def assume(self, **rest: Any) -> S3TemporaryCredential:
            await asyncio.sleep(30)
            raise AssertionError("this function must not be called")

    sts = Slow(route=LOCAL)
    report = await _validate(store, sts, total_seconds=8)
    sts.close()
    assert not report.valid
    assert _statuses(report)["vended-credentials-issued"] == "failed" and _statuses(report)["cleanup"] == "passed"


# -- requests that the gateway refuses without calling the store -------------------------------------------------------


class _UncalledSts(Sts):
    async def assume(self, **rest: Any) -> S3TemporaryCredential:
        raise AssertionError("the store must receive no request")


@pytest.mark.threat("LG-LOC-19")
async def test_a_table_outside_of_a_narrowed_warehouse_gets_no_credentials(store: Store) -> None:
    with pytest.raises(LocationOutsideWarehouse):
        await vend(store, _UncalledSts(), AccessLevel.READ, key_prefix="base/other")
    with pytest.raises(LocationOutsideWarehouse):
        await vend(store, _UncalledSts(), AccessLevel.READ, key_prefix="base/ns/t1")


@pytest.mark.threat("LG-POL-01")
async def test_a_pattern_character_is_refused_where_it_cannot_be_escaped(store: Store) -> None:
    location = Location(SCHEME, BUCKET, ("base", "t*"))
    with pytest.raises(InvalidLocation):
        await vend(store, _UncalledSts(), AccessLevel.READ, location)


async def test_lifetime_below_the_minimum_or_missing_sts_gives_no_credential(store: Store) -> None:
    send: dict[str, Any] = {
        "profile_version": "1",
        "credential": store.credential,
        "location": TABLE,
        "level": AccessLevel.READ,
        "session": SESSION,
    }
    vendor = Vendor(clients(_UncalledSts()))
    with pytest.raises(BelowCredentialFloor):
        await vendor.vend(profile=store.profile(), seconds=899, **send)
    assert isinstance(await vendor.vend(profile=store.profile(sts_enabled=False), seconds=3600, **send), NoCredentials)
