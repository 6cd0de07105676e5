# SPDX-License-Identifier: Apache-2.0
"""Profiles and credentials of warehouses in Tencent Cloud Object Storage."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gateway.scope.errors import InvalidLocation, InvalidStorageCredential, InvalidStorageProfile
from gateway.scope.profile import STRICTEST, NoVending, StorageProfile
from gateway.storage.registry import decode_credential, decode_profile, encode_credential, parse_location

_KEY = {"type": "cos", "credential-type": "secret-key", "secret-id": "AKIDexample", "secret-key": "s3cret"}


def profile(**more: Any) -> StorageProfile:
    document = {"type": "cos", "bucket": "lake-1250000000", "region": "ap-guangzhou", "key-prefix": "wh"}
    document |= {name.replace("_", "-"): value for name, value in more.items()}
    return decode_profile(json.dumps(document).encode(), rules=STRICTEST)


def test_a_profile_round_trips_and_contains_its_locations() -> None:
    found = profile(key_prefix="wh/")
    assert decode_profile(msgspec.json.encode(found)) == found == profile()
    location = found.parse_location("cosn://lake-1250000000/wh/ns/t")
    assert location == parse_location("cosn://lake-1250000000/wh/ns/t")
    for outside in ("cosn://lake-1250000000/other/t", "cosn://lake-1250000001/wh/t", "s3://lake-1250000000/wh/t"):
        with pytest.raises(InvalidLocation):
            found.parse_location(outside)


def test_no_credentials_are_vended() -> None:
    assert isinstance(profile().downscoping, NoVending)
    assert profile().client_properties(None, refresh_endpoint=None) == {"fs.cosn.bucket.region": "ap-guangzhou"}


@pytest.mark.parametrize("bucket", ["lake", "Lake-1250000000", "-1250000000", "a.b-1250000000", "lake-0250000000"])
def test_another_name_than_of_a_bucket_is_refused(bucket: str) -> None:
    with pytest.raises(InvalidLocation, match="name-appid"):
        profile(bucket=bucket)


@pytest.mark.parametrize("region", ["guangzhou", "ap-guangzhou.example.org", "ap-guangzhou/", "", "a" * 70])
def test_a_region_cannot_name_another_host(region: str) -> None:
    with pytest.raises(InvalidStorageProfile, match="'region'"):
        profile(region=region)


def test_a_bucket_whose_host_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidStorageProfile, match="at most 60 characters"):
        profile(bucket="a" * 30 + "-1250000000")


def test_the_region_and_the_bucket_of_a_warehouse_cannot_change() -> None:
    assert profile().moved(profile(region="ap-beijing", key_prefix="other")) == ["region", "key-prefix"]


def test_a_credential_round_trips_and_shows_no_secret() -> None:
    found = decode_credential(json.dumps(_KEY).encode(), rules=STRICTEST)
    assert decode_credential(encode_credential(found), rules=STRICTEST) == found
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize("changed", [{"secret-key": 1}, {"credential-type": "s3cret"}, {"s3cret": "x"}])
def test_a_refused_credential_is_not_quoted(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidStorageCredential) as refused:
        decode_credential(json.dumps(_KEY | changed).encode(), rules=STRICTEST)
    assert "s3cret" not in str(refused.value)
