# SPDX-License-Identifier: Apache-2.0
"""HDFS storage profiles: allowed directories, locations, and responses of a warehouse in one."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.iceberg.errors import CatalogError
from gateway.scope.errors import (
    InvalidLocation,
    InvalidStorageCredential,
    InvalidStorageProfile,
    StorageTypeNotSupported,
)
from gateway.scope.profile import STRICTEST, StorageRules, longest_life, parse_roots
from gateway.settings import SettingsError, load
from gateway.storage.hdfs.profile import HdfsProfile
from gateway.storage.registry import decode_credential, decode_profile, parse_location, require_same_provider
from gateway.storage.s3.credential import S3AccessKey

RULES = StorageRules(roots=("hdfs://nn:8020/lake", "hdfs://Cluster/data"))

SPECIAL = ["..", ".", "", ".reserved", ".snapshot", "a:b"]


def profile(
    location: Any = "hdfs://nn:8020/lake/dev", more: dict[str, Any] | None = None, *, rules: StorageRules = RULES
) -> HdfsProfile:
    given_ = {"type": "hdfs", "location": location, **(more or {})}
    found = decode_profile(json.dumps(given_).encode(), rules=rules)
    assert isinstance(found, HdfsProfile)
    return found


def test_hdfs_profiles_are_refused_without_allowed_directories() -> None:
    for given_ in ({"location": "hdfs://nn:8020/lake/dev"}, {}, {"location": "hdfs://nn"}):
        with pytest.raises(StorageTypeNotSupported, match="LAKEGATE__STORAGE_HDFS_ROOTS") as refused:
            decode_profile(json.dumps({"type": "hdfs", **given_}).encode(), rules=STRICTEST)
        assert refused.value.code == 400


def test_a_profile_round_trips() -> None:
    layout = {"type": "tabular-only", "tabular": "{name}-{uuid}"}
    found = profile("hdfs://nn:8020/lake/dev/", {"storage-layout": layout})
    assert json.loads(msgspec.json.encode(found)) == {
        "type": "hdfs",
        "location": "hdfs://nn:8020/lake/dev",
        "storage-layout": layout,
    }
    assert decode_profile(msgspec.json.encode(found)) == found
    assert profile(more={"storage-layout": None}) == profile()
    assert profile("hdfs://Cluster/data/dev").endpoints() == {"name-node": "Cluster"}


@pytest.mark.threat("LG-LOC-31")
@pytest.mark.parametrize(
    "location",
    [
        "hdfs://nn:8020/lake", "hdfs://nn:8020/lake/", "hdfs://nn:8020/lake2/dev", "hdfs://nn:8020/", "hdfs://nn:8020",
        "hdfs://nn/lake/dev", "hdfs://nn:9000/lake/dev", "hdfs://NN:8020/lake/dev", "hdfs://nn.:8020/lake/dev",
        "hdfs://other:8020/lake/dev", "hdfs://cluster/data/dev", "hdfs://Cluster:8020/data/dev", "hdfs:///lake/dev",
        "hdfs://user@nn:8020/lake/dev", "hdfs://nn:8020@other/lake/dev", "hdfs://nn:08020/lake/dev", "hdfs:/lake/dev",
        "hdfs://nn:8020/LAKE/dev", "hdfs://nn:8020/lake/../etc", "hdfs://nn:8020/lake/./dev", "hdfs://nn:8020/lake//dev",
        "hdfs://nn:8020/lake/dev//", "hdfs://nn:8020/lake/%2e%2e/x", "hdfs://nn:8020/lake/a:b", "hdfs://nn:8020/lake/a*",
        "hdfs://nn:8020/lake/a b", "hdfs://nn:8020/lake/.snapshot", "hdfs://nn:8020/.reserved/raw/lake/dev",
        "hdfs://nn:8020/lake/" + "a" * 256, "hdfs://nn:8020/lake/" + "a/" * 1600 + "x", "HDFS://nn:8020/lake/dev",
        "webhdfs://nn:8020/lake/dev", "viewfs://nn:8020/lake/dev", "file:///lake/dev", "/lake/dev", "", 5, None,
    ],
)  # fmt: skip
def test_a_location_not_canonically_below_an_allowed_one_is_no_warehouse(location: Any) -> None:
    with pytest.raises(CatalogError) as refused:
        profile(location)
    assert refused.value.code == 400


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(InvalidStorageProfile, match="keytab"):
        profile(more={"keytab": "/etc/gateway.keytab"})


@pytest.mark.threat("LG-LOC-31")
def test_a_stored_profile_is_read_regardless_of_allowed_directories_and_checked_again() -> None:
    stored = msgspec.json.encode(profile())
    assert decode_profile(stored) == profile()
    with pytest.raises(StorageTypeNotSupported):
        decode_profile(stored).check(STRICTEST)
    with pytest.raises(InvalidStorageProfile, match="LAKEGATE__STORAGE_HDFS_ROOTS"):
        decode_profile(stored).check(StorageRules(roots=("hdfs://Cluster/lake",)))


def test_hdfs_profiles_vend_and_accept_no_credential() -> None:
    found = profile()
    assert "with their own identity" in found.downscoping.reason
    assert longest_life(found) == 0
    assert found.client_properties(None, refresh_endpoint="v1/refresh") == {}
    with pytest.raises(InvalidStorageCredential, match="must be 's3'"):
        decode_credential(b'{"type": "hdfs"}', rules=RULES)
    with pytest.raises(InvalidStorageCredential, match="cannot be used with"):
        require_same_provider(found, S3AccessKey(access_key_id="AK", secret_access_key="secret"))
    require_same_provider(found, None)


def test_a_warehouse_stays_at_its_location_and_with_its_provider() -> None:
    found, s3 = profile(), decode_profile(b'{"type":"s3","bucket":"lake","region":"r"}')
    assert found.moved(profile("hdfs://nn:8020/lake/dev/")) == []
    assert found.moved(profile("hdfs://nn:8020/lake/other")) == ["location"]
    assert found.moved(s3) == s3.moved(found) == ["type"]


def test_the_innermost_allowed_directory_is_the_root_of_a_warehouse() -> None:
    rules = StorageRules(roots=("hdfs://nn:8020/lake", "hdfs://nn:8020/lake/dev/team", "hdfs://nn:8020/lake/dev"))
    found = profile("hdfs://nn:8020/lake/dev/wh", rules=rules)
    assert found.root(rules).text == "hdfs://nn:8020/lake/dev"


def test_a_location_is_read_as_hadoop_reads_it_without_decoding() -> None:
    found = profile()
    location = found.parse_location("HDFS://nn:8020/lake/dev/t/")
    assert location == found.parse_location("hdfs://nn:8020/lake/dev/t") == parse_location(location.text)
    assert (location.text, location.overlap_key) == ("hdfs://nn:8020/lake/dev/t", "nn:8020/lake/dev/t/")
    for name in ("a%20b", "a+b", "a=1", "ünï", "a&b;c", "100%"):
        assert found.parse_location(f"hdfs://nn:8020/lake/dev/{name}").segments[-1] == name


@pytest.mark.threat("LG-LOC-31")
@pytest.mark.parametrize(
    "text",
    [
        "hdfs://nn:8020/lake/dev", "hdfs://nn:8020/lake/dev2/t", "hdfs://nn:8020/lake/other/t",
        "hdfs://nn:8020/lake/dev/../other/t", "hdfs://nn:8020/lake/dev//t", "hdfs://nn/lake/dev/t",
        "hdfs:///lake/dev/t", "hdfs:/lake/dev/t", "hdfs://other:8020/lake/dev/t", "hdfs://x@nn:8020/lake/dev/t",
        "hdfs://nn:8020/lake/DEV/t", "hdfs://nn:8020/.reserved/.inodes/16386", "hdfs://nn:8020/lake/dev/.reserved/x",
        "hdfs://nn:8020/lake/dev/.snapshot/s0/t", "hdfs://nn:8020/lake/dev/.Trash/t", "hdfs://nn:8020/lake/dev/.trash",
        "hdfs://nn:8020/lake/dev/a:b", "hdfs://nn:8020/lake/dev/{a,b}", "hdfs://nn:8020/lake/dev/t?x",
        "hdfs://nn:8020/lake/dev/%2e%2e/t", "webhdfs://nn:8020/lake/dev/t", "swebhdfs://nn:8020/lake/dev/t",
        "har://hdfs-nn:8020/lake/dev/t", "s3://nn/lake/dev/t", "hdfs:", "hdfs://",
    ],
)  # fmt: skip
def test_a_location_outside_of_the_warehouse_is_refused(text: str) -> None:
    with pytest.raises(InvalidLocation):
        profile().parse_location(text)


@pytest.mark.threat("LG-LOC-31")
@given(st.lists(st.one_of(st.text(max_size=6), st.sampled_from(SPECIAL)), max_size=4))
@example([".Snapshot", "t"])
def test_no_location_text_escapes_the_warehouse(segments: list[str]) -> None:
    try:
        location = profile().parse_location("hdfs://nn:8020/lake/dev/" + "/".join(segments))
    except InvalidLocation:
        return
    assert location.authority == "nn:8020"
    assert location.segments[:2] == ("lake", "dev") and len(location.segments) > 2
    assert not {"", ".", "..", ".reserved", ".snapshot", ".trash"}.intersection(map(str.lower, location.segments))
    assert not any(":" in segment or "*" in segment for segment in location.segments)


@given(st.text(alphabet="nN:8020./@[]a", min_size=1, max_size=10))
def test_no_other_spelling_of_the_authority_is_in_the_warehouse(authority: str) -> None:
    try:
        location = profile().parse_location(f"hdfs://{authority}/lake/dev/t")
    except InvalidLocation:
        return
    assert location.text == "hdfs://nn:8020/lake/dev/t"


@pytest.mark.parametrize(
    "text",
    [
        "", "/lake", "hdfs:///lake", "hdfs://nn", "hdfs://nn/", "hdfs://nn/lake/", "hdfs://nn//lake", "hdfs://nn/../x",
        "hdfs://u@nn/lake", "hdfs://nn:/lake", "hdfs://nn:0/lake", "hdfs://nn:99999/lake", "hdfs://[::1]:8020/lake",
        "HDFS://nn/lake", "webhdfs://nn/lake", "hdfs://a..b/lake", "hdfs://-nn/lake", "hdfs://n_n/lake",
        "hdfs://nn/a b",
    ],
)  # fmt: skip
def test_a_directory_that_is_not_canonical_is_an_invalid_setting(text: str) -> None:
    with pytest.raises(ValueError, match="canonical location"):
        parse_roots([text], "hdfs")


@pytest.mark.parametrize("other", ["hdfs://nn:8020/b", "hdfs://NN/b", "hdfs://Nn:8020/b"])
def test_two_spellings_of_one_name_node_are_an_invalid_setting(other: str) -> None:
    with pytest.raises(ValueError, match="one spelling"):
        parse_roots(["hdfs://nn/a", other], "hdfs")


def test_settings_list_the_allowed_directories() -> None:
    listed = "hdfs://nn:8020/a,hdfs://nn:8020/b,hdfs://nn:9000/a"
    assert load({"LAKEGATE__STORAGE_HDFS_ROOTS": listed}).storage_rules().roots == tuple(listed.split(","))
    assert load({}).storage_rules().roots == ()
    with pytest.raises(SettingsError, match="LAKEGATE__STORAGE_HDFS_ROOTS: 'hdfs://nn/a/'"):
        load({"LAKEGATE__STORAGE_HDFS_ROOTS": "hdfs://nn/a/"}).storage_rules()
