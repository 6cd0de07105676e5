# SPDX-License-Identifier: Apache-2.0
"""Odd names and the gateway's own identity on a real store (SeaweedFS)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from pyiceberg.io import load_file_io

from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.scope.profile import IdentityRules
from gateway.storage.errors import ShortTermCredentialError, StorageDenied
from gateway.storage.files import Files
from gateway.storage.object_files import ObjectFiles
from gateway.storage.s3.aws.identity import SystemIdentity
from gateway.storage.s3.aws.session_policy import build_session_policy
from gateway.storage.s3.aws.sts import Sts
from gateway.storage.s3.credential import S3SystemIdentity, S3TemporaryCredential
from gateway.storage.s3.profile import SCHEME
from gateway.storage.s3.stores import S3Stores
from tests.store_characters import PROFILES, ROWS, allowed
from tests.support.servers.scoped_store import BUCKET, ROLE, Store, is_allowed, keys_of, store, sts, vend
from tests.support.servers.storage_routes import LOCAL, clients, files_of

__all__ = ["store", "sts"]

pytestmark = [pytest.mark.generated, pytest.mark.integration]

COMPATIBLE = next(profile for profile in PROFILES.values() if profile.endpoint == "https://store.example.org")
ODD = tuple(segment for _, segments in ROWS for segment in segments if allowed(COMPATIBLE, segment))


async def test_vended_keys_reach_exactly_the_files_of_an_oddly_named_table(store: Store, sts: Sts) -> None:
    """The gateway, botocore and PyIceberg name the same object by the text of a location, and no other one."""
    root = store.client("s3", store.credential)
    for segment in ODD:
        table = Location(SCHEME, BUCKET, ("base", "odd", segment))
        name = f"{table.text}/data/{segment}.parquet"
        key = f"base/odd/{segment}/data/{segment}.parquet"
        await files_of().write(store.profile(), store.credential, name, b"x")
        assert [
            each["Key"] for each in root.list_objects_v2(Bucket=BUCKET, Prefix=f"base/odd/{segment}/")["Contents"]
        ] == [key], segment
        vended = await vend(store, sts, AccessLevel.READ_WRITE_DELETE, table)
        client = store.client("s3", keys_of(vended))
        assert client.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"x", segment
        for neighbour in (f"base/odd/{segment}0/f", f"base/odd/x{segment}/f", f"base/odd/{segment}", "base/odd/f"):
            assert not is_allowed(partial(client.put_object, Bucket=BUCKET, Key=neighbour, Body=b"x")), segment
        io = load_file_io(store.profile().client_properties(vended.temporary, refresh_endpoint=None), table.text)
        with io.new_input(name).open() as file:
            assert file.read() == b"x", segment
        with io.new_output(f"{table.text}/metadata/{segment}.json").create() as written:
            written.write(b"y")
        assert root.get_object(Bucket=BUCKET, Key=f"base/odd/{segment}/metadata/{segment}.json")["Body"].read() == b"y"


# -- the gateway's own identity ----------------------------------------------------------------------------------------


@pytest.fixture
def identity(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[SystemIdentity]:
    """The store's administrator as identity of the process, in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", store.credential.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", store.credential.secret_access_key)
    made = SystemIdentity()
    yield made
    made.close()


def _rules(store: Store, **changes: Any) -> IdentityRules:
    given: dict[str, Any] = {"enabled": True, "direct": True, "stores": (BUCKET,), "endpoints": (store.url,)}
    return IdentityRules(**(given | changes))


async def test_the_identity_makes_sessions_that_are_confined(store: Store, identity: SystemIdentity) -> None:
    table = Location(SCHEME, BUCKET, ("base", "identity", "t"))
    sts = Sts(route=LOCAL, identity=identity, identity_rules=_rules(store))
    session: S3TemporaryCredential = await sts.assume(
        profile=store.profile(),
        credential=S3SystemIdentity(external_id="tenant-1"),
        policy=build_session_policy(table, AccessLevel.READ_WRITE, escapes_known=False),
        session_name="ann",
        seconds=900,
    )
    client = store.client("s3", session)
    assert is_allowed(lambda: client.put_object(Bucket=BUCKET, Key="base/identity/t/f", Body=b"x"))
    assert not is_allowed(lambda: client.put_object(Bucket=BUCKET, Key="base/identity/t2/f", Body=b"x"))
    assert not is_allowed(lambda: client.delete_object(Bucket=BUCKET, Key="base/identity/t/f"))
    assert session.access_key_id != store.credential.access_key_id
    sts.close()


async def test_the_identity_reads_and_writes_files_directly_and_with_a_role(
    store: Store, identity: SystemIdentity
) -> None:
    sts = Sts(route=LOCAL, identity=identity, identity_rules=_rules(store))

    def files(**changes: Any) -> Files:
        stores = S3Stores(
            own_role=sts.assume_own_role,
            identity=identity,
            identity_rules=_rules(store, **changes),
            connect_seconds=2,
            request_seconds=15,
            route=LOCAL,
        )
        return Files(clients(files=ObjectFiles(stores, total_seconds=30)))

    own = S3SystemIdentity(external_id="tenant-1")
    for number, profile in enumerate((store.profile(), store.profile(assume_role_arn=ROLE))):
        name = f"s3://{BUCKET}/base/identity/own-{number}"
        await files().write(profile, own, name, b"x")
        assert await files().read(profile, own, name, max_bytes=9) == b"x"
        for changes in ({"enabled": False}, {"stores": ("another",)}, {"endpoints": ()}):
            with pytest.raises(StorageDenied):
                await files(**changes).read(profile, own, name, max_bytes=9)
    with pytest.raises(StorageDenied, match="without a role"):
        await files(direct=False).read(store.profile(), own, f"s3://{BUCKET}/base/identity/own-0", max_bytes=9)
    sts.close()


@pytest.mark.threat("LG-POL-13")
async def test_another_tenant_cannot_use_the_identity_for_a_bucket_that_is_not_listed(
    store: Store, identity: SystemIdentity
) -> None:
    root = store.client("s3", store.credential)
    root.create_bucket(Bucket="operators-own")
    root.put_object(Bucket="operators-own", Key="secret/f", Body=b"x")
    profile = store.profile(bucket="operators-own", key_prefix="secret")
    sts = Sts(route=LOCAL, identity=identity, identity_rules=_rules(store))
    with pytest.raises(ShortTermCredentialError, match="operators-own"):
        await sts.assume(
            profile=profile,
            credential=S3SystemIdentity(external_id="tenant-2"),
            policy=build_session_policy(
                Location(SCHEME, "operators-own", ("secret",)), AccessLevel.READ, escapes_known=False
            ),
            session_name="eve",
            seconds=900,
        )
    sts.close()
