# SPDX-License-Identifier: Apache-2.0
"""Rules of tag definitions and values."""

from __future__ import annotations

import pytest

from gateway.access.management_errors import InvalidTagDefinition, InvalidTagValue, TagScopeNarrowed, TagScopeNotAllowed
from gateway.features.tags.tags import (
    MAX_ALLOWED_VALUES,
    require_in_scope,
    require_name,
    require_value,
    require_values,
    widened,
    with_values,
)


@pytest.mark.parametrize("name", [".pii", "pii.", "a..b", ".", "a. .b", "system", "SYSTEM.x", "lakekeeper.y"])
def test_empty_segments_and_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidTagDefinition):
        require_name(name)


@pytest.mark.parametrize("name", ["pii", "pii.email", "systems", "my.system", "a b"])
def test_other_names_are_accepted_and_refused_below_a_reserved_one(name: str) -> None:
    require_name(name)
    with pytest.raises(InvalidTagDefinition):
        require_name(f"system.{name}")


def test_allowed_values_belong_to_enumerated_tags_alone() -> None:
    assert require_values("enumerated", ("b", "a")) == ("a", "b")
    assert require_values("marker", None) == ()
    for kind, values in (("enumerated", None), ("enumerated", ()), ("marker", ("a",)), ("free-text", ("a",))):
        with pytest.raises(InvalidTagDefinition):
            require_values(kind, values)


def test_values_are_added_and_never_removed() -> None:
    assert with_values("enumerated", ("b",), ("a", "b")) == ("a", "b")
    assert with_values("enumerated", ("b",), None) == ("b",)
    many = tuple(str(number) for number in range(MAX_ALLOWED_VALUES))
    with pytest.raises(InvalidTagDefinition):
        with_values("enumerated", many, ("one more",))
    with pytest.raises(InvalidTagDefinition):
        with_values("enumerated", (), ("a", "a"))


def test_scope_is_only_widened() -> None:
    assert widened(("table",), ("column", "table")) == ("table", "column")
    with pytest.raises(TagScopeNarrowed, match="table"):
        widened(("table", "view"), ("view", "column"))
    require_in_scope("pii", ("table",), "table")
    with pytest.raises(TagScopeNotAllowed, match="its scope is table"):
        require_in_scope("pii", ("table",), "view")


@pytest.mark.parametrize(
    ("kind", "value", "valid"),
    [
        ("marker", None, True),
        ("marker", "x", False),
        ("free-text", "x", True),
        ("free-text", None, False),
        ("enumerated", "High", True),
        ("enumerated", "high", False),
        ("enumerated", None, False),
    ],
)
def test_value_must_fit_the_kind(kind: str, value: str | None, valid: bool) -> None:
    if valid:
        require_value("level", kind, ("High",), value)
        return
    with pytest.raises(InvalidTagValue):
        require_value("level", kind, ("High",), value)
