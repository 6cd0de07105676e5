# SPDX-License-Identifier: Apache-2.0
"""Which table properties may be set and removed."""

from __future__ import annotations

import pytest

from gateway.iceberg.errors import FailedToSetProperties, ImmutablePropertyModification, ImmutablePropertyRemoval
from gateway.iceberg.properties import check_removable, check_settable

KEY = "encryption.key-id"


@pytest.mark.parametrize(
    "name",
    [
        "write.metadata.path",
        "write.data.path",
        "write.metadata.compression-codec",
        "write.metadata.previous-versions-max",
        "write.metadata.delete-after-commit.enabled",
        "write.metadata.metrics.default",
        "write.format.default",
        "write.database.path",
    ],
)
def test_what_is_heeded_or_means_something_else_may_be_set(name: str) -> None:
    check_settable({}, {name: "x"})


@pytest.mark.parametrize("name", ["write.metadata.new", "write.metadata", "write.metadata.metrics", "write.data.path2"])
def test_settings_that_nothing_heeds_are_refused_unless_they_are_there_already(name: str) -> None:
    with pytest.raises(FailedToSetProperties, match=name):
        check_settable({}, {"a": "1", name: "x"})
    with pytest.raises(FailedToSetProperties, match=name):
        check_settable({name: "y"}, {name: "x"})
    check_settable({name: "x"}, {name: "x"})


def test_an_encryption_key_is_chosen_once_and_stays() -> None:
    check_settable({}, {KEY: "k"})
    check_settable({KEY: "k"}, {KEY: "k"})
    with pytest.raises(ImmutablePropertyModification, match="cannot be changed"):
        check_settable({KEY: "k"}, {KEY: "l"})
    check_removable({}, [KEY])
    with pytest.raises(ImmutablePropertyRemoval, match="cannot be removed"):
        check_removable({KEY: "k"}, ["a", KEY])
