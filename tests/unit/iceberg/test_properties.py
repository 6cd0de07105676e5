# SPDX-License-Identifier: Apache-2.0
"""Table properties that may be set and removed."""

from __future__ import annotations

import pytest

from gateway.iceberg.errors import (
    BadRequestException,
    FailedToSetProperties,
    ImmutablePropertyModification,
    ImmutablePropertyRemoval,
    UnsupportedCompressionCodec,
)
from gateway.iceberg.properties import (
    DELETE_AFTER_COMMIT,
    DROP_DIALECT_ALLOWED,
    GC_ENABLED,
    HISTORY_SIZE,
    PREVIOUS_VERSIONS_MAX,
    check_removable,
    check_settable,
    check_settable_on_view,
    flag,
    previous_versions_kept,
    view_versions_kept,
)

KEY = "encryption.key-id"


@pytest.mark.parametrize(
    "name",
    [
        "write.metadata.path",
        "write.data.path",
        "write.metadata.metrics.default",
        "write.format.default",
        "write.database.path",
    ],
)
def test_supported_and_unrelated_properties_may_be_set_on_tables(name: str) -> None:
    check_settable({}, {name: "x"})
    with pytest.raises(FailedToSetProperties, match="write.metadata.new"):
        check_settable({}, {name: "x", "write.metadata.new": "x"})


@pytest.mark.parametrize("name", ["write.metadata.new", "write.metadata", "write.metadata.metrics", "write.data.path2"])
def test_unsupported_properties_are_refused_unless_already_set(name: str) -> None:
    with pytest.raises(FailedToSetProperties, match=name):
        check_settable({}, {"a": "1", name: "x"})
    with pytest.raises(FailedToSetProperties, match=name):
        check_settable({name: "y"}, {name: "x"})
    check_settable({name: "x"}, {name: "x"})


def test_the_encryption_key_of_a_table_cannot_change() -> None:
    check_settable({}, {KEY: "k"})
    check_settable({KEY: "k"}, {KEY: "k"})
    with pytest.raises(ImmutablePropertyModification, match="Cannot modify immutable property"):
        check_settable({KEY: "k"}, {KEY: "l"})
    check_removable({}, [KEY])
    with pytest.raises(ImmutablePropertyRemoval, match="Cannot remove immutable property"):
        check_removable({KEY: "k"}, ["a", KEY])


_NO_COUNTS = ["-1", "-2147483648", "+1", "1.5", "1e3", "", " 1", "1_0", "many", "2147483648", "9" * 5000, "\u0663"]


@pytest.mark.parametrize("value", _NO_COUNTS)
@pytest.mark.parametrize("name", [PREVIOUS_VERSIONS_MAX, "commit.retry.num-retries", "commit.retry.total-timeout-ms"])
def test_a_count_is_digits_that_fit_32_bits(name: str, value: str) -> None:
    with pytest.raises(BadRequestException, match=f"{name} must have non-negative integer value"):
        check_settable({}, {name: value})
    check_settable({name: value}, {name: value})
    check_settable({}, {name: "0"})
    check_settable({}, {name: "2147483647"})


@pytest.mark.parametrize("value", ["yes", "1", "", "fals", "truefalse", "\u1e6drue"])
def test_a_flag_is_true_or_false(value: str) -> None:
    for name in (GC_ENABLED, DELETE_AFTER_COMMIT):
        with pytest.raises(BadRequestException, match=f"{name} must be true or false"):
            check_settable({}, {name: value})
        check_settable({}, {name: "FALSE"})
    with pytest.raises(BadRequestException, match=f"{DROP_DIALECT_ALLOWED} must be true or false"):
        check_settable_on_view({}, {DROP_DIALECT_ALLOWED: value})


def test_an_unsupported_codec_is_refused_before_any_write() -> None:
    for check in (check_settable, check_settable_on_view):
        with pytest.raises(UnsupportedCompressionCodec):
            check({}, {"write.metadata.compression-codec": "lz4"})
        check({}, {"write.metadata.compression-codec": "GZIP"})


@pytest.mark.parametrize("value", [*_NO_COUNTS, "0"])
def test_a_view_keeps_at_least_one_version(value: str) -> None:
    with pytest.raises(BadRequestException, match=f"{HISTORY_SIZE} must be positive but was"):
        check_settable_on_view({}, {HISTORY_SIZE: value})


def test_invalid_properties_of_a_registered_file_get_the_safer_value() -> None:
    assert previous_versions_kept({}) == previous_versions_kept({PREVIOUS_VERSIONS_MAX: "-3"}) == 100
    assert previous_versions_kept({PREVIOUS_VERSIONS_MAX: "0"}) == 1
    assert view_versions_kept({HISTORY_SIZE: "many"}) == view_versions_kept({HISTORY_SIZE: "0"}) == 10
    assert flag({}, GC_ENABLED, default=True)
    assert not flag({GC_ENABLED: "flase"}, GC_ENABLED, default=True), "an invalid flag must give the safer value"
