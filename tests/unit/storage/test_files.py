# SPDX-License-Identifier: Apache-2.0
"""Requests that the file adapter refuses before it contacts a store."""

from typing import Any

import msgspec
import pytest

from gateway.scope.errors import InvalidLocation
from gateway.scope.location import Location
from gateway.scope.profile import IdentityRules
from gateway.storage.errors import StorageDenied
from gateway.storage.files import Files
from gateway.storage.object_files import MAX_STORES
from gateway.storage.s3.credential import S3AccessKey, S3SystemIdentity
from gateway.storage.s3.profile import SCHEME, Flavor, S3Profile
from gateway.storage.s3.stores import S3Stores, address
from tests.support.servers.storage_routes import clients

PROFILE = S3Profile(bucket="warehouse", region="eu-west-1", key_prefix="base")
KEYS = S3AccessKey(access_key_id="AK", secret_access_key="s3cr3t")


class Untouched:
    """A client that fails the test on any request to a store."""

    async def _unexpected_call(self, *_: Any) -> Any:
        raise AssertionError("the store must receive no request")

    put = get = delete = list = _unexpected_call


def silent() -> Files:
    return Files(clients(files=Untouched()))


@pytest.mark.threat("LG-LOC-21")
@pytest.mark.parametrize(
    "text",
    [
        "s3://warehouse/other/x", "s3://warehouse/base0/x", "s3://elsewhere/base/x", "s3://warehouse/base/../x",
        "file:///etc/passwd", "http://169.254.169.254/base/x", "s3://warehouse/base/*", "s3://warehouse@evil/base/x",
        "https://warehouse.s3.amazonaws.com/base/x", "/base/x", "base/x",
    ],
)  # fmt: skip
async def test_only_files_below_the_base_are_touched(text: str) -> None:
    profile = msgspec.structs.replace(PROFILE, endpoint="http://127.0.0.1:1")
    for attempt in (
        silent().read(profile, KEYS, text, max_bytes=1),
        silent().write(profile, KEYS, text, b""),
        silent().delete(profile, KEYS, [text]),
    ):
        with pytest.raises(InvalidLocation):
            await attempt


@pytest.mark.threat("LG-LOC-25")
async def test_one_key_outside_of_the_location_fails_the_whole_deletion() -> None:
    table = Location(SCHEME, "warehouse", ("base", "t"))
    for foreign in ("base/t0/x", "base/t", "x"):
        with pytest.raises(InvalidLocation):
            await silent().delete_below(PROFILE, KEYS, table, ["base/t/x", foreign])
    with pytest.raises(InvalidLocation):
        await silent().delete_below(PROFILE, KEYS, Location(SCHEME, "warehouse", ("other",)), [])


def stores(**more: Any) -> S3Stores:
    given: dict[str, Any] = {"own_role": None, "identity": None, "identity_rules": IdentityRules()}
    return S3Stores(**(given | {"connect_seconds": 1, "request_seconds": 1} | more))


def test_clients_are_kept_per_profile_and_credential_and_bounded() -> None:
    kept = stores()
    first = kept.store(PROFILE, KEYS)
    assert kept.store(PROFILE, KEYS) is first
    assert kept.store(msgspec.structs.replace(PROFILE, region="eu-west-2"), KEYS) is not first
    assert kept.store(PROFILE, msgspec.structs.replace(KEYS, secret_access_key="rotated")) is not first
    for number in range(MAX_STORES):
        kept.store(PROFILE, S3AccessKey(access_key_id=f"A{number}", secret_access_key="x"))
    assert len(kept._cached) == MAX_STORES
    assert kept.store(PROFILE, KEYS) is not first


def test_an_identity_or_role_that_is_not_enabled_is_never_replaced_by_another() -> None:
    with pytest.raises(StorageDenied):
        stores().store(PROFILE, S3SystemIdentity())
    role = msgspec.structs.replace(PROFILE, assume_role_arn="arn:aws:iam::123456789012:role/own")
    with pytest.raises(StorageDenied):
        stores().store(role, KEYS)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("https://warehouse.s3.eu-west-1.amazonaws.com", True)),
        ({"path_style_access": True}, ("https://s3.eu-west-1.amazonaws.com", False)),
        ({"bucket": "a.b.c"}, ("https://s3.eu-west-1.amazonaws.com", False)),
        ({"region": "cn-north-1"}, ("https://warehouse.s3.cn-north-1.amazonaws.com.cn", True)),
        ({"endpoint": "http://127.0.0.1:9", "path_style_access": True}, ("http://127.0.0.1:9", False)),
        ({"endpoint": "http://store:9", "flavor": Flavor.S3_COMPAT}, ("http://warehouse.store:9", True)),
    ],
)
def test_bucket_addresses_follow_the_configured_style(changes: dict[str, Any], expected: tuple[str, bool]) -> None:
    assert address(msgspec.structs.replace(PROFILE, **changes)) == expected
