# SPDX-License-Identifier: Apache-2.0
"""Local storage profiles: allowed directories, and responses of a warehouse in one."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.iceberg.errors import CatalogError
from gateway.scope.errors import (
    InvalidLocation,
    InvalidStorageCredential,
    InvalidStorageProfile,
    StorageTypeNotSupported,
)
from gateway.scope.profile import STRICTEST, NoVending, StorageProfile, StorageRules, longest_life, parse_directories
from gateway.storage.registry import decode_credential, decode_profile, parse_location, require_same_provider
from gateway.storage.s3.credential import S3AccessKey

RULES = StorageRules(directories=("/srv/lake", "/data"))


def profile(directory: Any = "/srv/lake/dev", more: dict[str, Any] | None = None) -> StorageProfile:
    return decode_profile(json.dumps({"type": "local", "directory": directory, **(more or {})}).encode(), rules=RULES)


def test_local_profiles_are_refused_without_allowed_directories() -> None:
    for given_ in ({"directory": "/srv/lake/dev"}, {}, {"directory": "/"}):
        with pytest.raises(StorageTypeNotSupported, match="LAKEGATE__STORAGE_LOCAL_DIRECTORIES") as refused:
            decode_profile(json.dumps({"type": "local", **given_}).encode(), rules=STRICTEST)
        assert refused.value.code == 400


def test_error_messages_list_local_as_a_type_only_if_allowed() -> None:
    for rules, words in ((STRICTEST, "must be 's3'(?!.* or 'local')"), (RULES, "must be 's3'.* or 'local'$")):
        with pytest.raises(InvalidStorageProfile, match=words):
            decode_profile(b'{"type": "other"}', rules=rules)
    for rules, words in ((STRICTEST, "Supported types: s3(?!.*, local)"), (RULES, "Supported types: s3.*, local$")):
        with pytest.raises(StorageTypeNotSupported, match=words):
            decode_profile(b'{"type": "onelake"}', rules=rules)


def test_a_profile_round_trips() -> None:
    layout = {"type": "tabular-only", "tabular": "{name}-{uuid}"}
    found = profile("/srv/lake/dev/", {"storage-layout": layout})
    assert json.loads(msgspec.json.encode(found)) == {
        "type": "local",
        "directory": "/srv/lake/dev",
        "storage-layout": layout,
    }
    assert decode_profile(msgspec.json.encode(found)) == found
    assert profile(more={"storage-layout": None}) == profile()


@pytest.mark.parametrize(
    "directory",
    [
        "/srv/lake", "/srv/lake/", "/srv/lake2/dev", "/srv/lak", "/srv", "/", "", "srv/lake/dev", "/etc",
        "/SRV/LAKE/dev", "/srv/lake/../../etc", "/srv/lake/dev/..", "/srv/lake/./dev", "/srv/lake//dev",
        "//srv/lake/dev", "/srv/lake/dev//",
        "/srv/lake/%2e%2e/x", "/srv/lake/a b", "/srv/lake/a\nb", "/srv/lake/a\\b", "/srv/lake/\x00", "file:///srv/lake/dev",
        "/srv/lake/a?b", "/srv/lake/" + "x/" * 2000 + "x", 5, None, ["/srv/lake/dev"],
    ],
)  # fmt: skip
def test_a_directory_not_canonically_below_an_allowed_one_is_refused(directory: Any) -> None:
    with pytest.raises(CatalogError) as refused:
        profile(directory)
    assert refused.value.code == 400


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(InvalidStorageProfile, match="key-prefix"):
        profile(more={"key-prefix": "a"})


def test_a_stored_profile_is_read_regardless_of_allowed_directories() -> None:
    stored = msgspec.json.encode(profile())
    assert decode_profile(stored) == profile()
    with pytest.raises(StorageTypeNotSupported):
        decode_profile(stored).check(STRICTEST)
    with pytest.raises(InvalidStorageProfile, match="LAKEGATE__STORAGE_LOCAL_DIRECTORIES"):
        decode_profile(stored).check(StorageRules(directories=("/data",)))


def test_local_profiles_vend_and_accept_no_credential() -> None:
    found = profile()
    assert isinstance(found.downscoping, NoVending) and longest_life(found) == 0
    assert found.client_properties(None, refresh_endpoint="v1/refresh") == {}
    with pytest.raises(InvalidStorageCredential, match="must be 's3'"):
        decode_credential(b'{"type": "local"}', rules=RULES)
    with pytest.raises(InvalidStorageCredential, match="cannot be used with"):
        require_same_provider(found, S3AccessKey(access_key_id="AK", secret_access_key="secret"))
    require_same_provider(found, None)


def test_a_warehouse_stays_in_its_directory_and_with_its_provider() -> None:
    found, other = profile(), profile("/srv/lake/other")
    s3 = decode_profile(b'{"type":"s3","bucket":"lake","region":"r"}')
    assert found.moved(profile("/srv/lake/dev/")) == []
    assert found.moved(other) == ["directory"]
    assert found.moved(s3) == s3.moved(found) == ["type"]


def test_file_locations_with_one_two_or_three_slashes_are_equal() -> None:
    found = profile()
    location = found.parse_location("file:///srv/lake/dev/t")
    assert location == found.parse_location("file:/srv/lake/dev/t/") == found.parse_location("FILE:///srv/lake/dev/t")
    assert location == parse_location(location.text)
    assert (location.text, location.overlap_key) == ("file:///srv/lake/dev/t", "/srv/lake/dev/t/")
    assert found.parse_location("file:///srv/lake/dev/a*${x}[1]").segments[-1] == "a*${x}[1]"


@pytest.mark.parametrize(
    "text",
    [
        "file:///srv/lake/dev", "file:///srv/lake/dev2/t", "file:///srv/lake/other/t", "file:///srv/lake/dev/../other/t",
        "file:///srv/lake/dev//t", "file://srv/lake/dev/t", "file://localhost/srv/lake/dev/t", "file:srv/lake/dev/t",
        "file:////srv/lake/dev/t", "/srv/lake/dev/t", "s3://srv/lake/dev/t", "s3:///srv/lake/dev/t", "hdfs:///srv/lake/dev/t",
        "file:///srv/lake/dev/%2e%2e/t", "file:///srv/lake/dev/t?x", "file:///srv/lake/DEV/t", "file:", "file:///",
    ],
)  # fmt: skip
def test_a_location_outside_of_the_directory_is_refused(text: str) -> None:
    with pytest.raises(InvalidLocation):
        profile().parse_location(text)


@given(st.lists(st.text(max_size=6), max_size=4))
def test_no_location_text_escapes_the_directory(segments: list[str]) -> None:
    try:
        location = profile().parse_location("file:///srv/lake/dev/" + "/".join(segments))
    except InvalidLocation:
        return
    assert location.segments[:3] == ("srv", "lake", "dev") and len(location.segments) > 3
    assert not {"", ".", ".."}.intersection(location.segments)


@pytest.mark.parametrize("text", ["", "lake", "./lake", "/", "/srv/", "/srv//lake", "/srv/../lake", "//srv", "/a b"])
def test_a_non_canonical_path_is_an_invalid_setting(text: str) -> None:
    with pytest.raises(ValueError, match="canonical path"):
        parse_directories([text])
    assert parse_directories(["/srv/lake", "/data"]) == ("/srv/lake", "/data")
