# SPDX-License-Identifier: Apache-2.0
"""Patterns of names: their translation to LIKE, their limits, and the namespaces that contain their names."""

from __future__ import annotations

import pytest

from gateway.iceberg.identifiers import MAX_PATTERN_LENGTH, MAX_PATTERN_LEVELS, MAX_STARS, NamePattern, Namespace


@pytest.mark.parametrize(
    ("namespace", "name", "like"),
    [
        (("Sales",), "Customers", "sales\x1fcustomers"),
        (("a", "b*"), "?t_%", "a\x1fb%\x1f_t\\_\\%"),
        (("a",), r"x\*\?\\", "a\x1fx*?\\\\"),
        # "É" composed and decomposed, and a letter that folds to two.
        (("\u00c9",), "E\u0301", "\u00e9\x1f\u00e9"),
        (("stra\u00dfe",), "*", "strasse\x1f%"),
    ],
)
def test_a_pattern_is_folded_and_escaped_for_like(namespace: tuple[str, ...], name: str, like: str) -> None:
    assert NamePattern(namespace, name).like == like


@pytest.mark.parametrize(
    ("namespace", "name", "problem"),
    [
        ((), "t", "namespace"),
        (("a",), "", "must not be empty|Namespace parts cannot be empty"),
        (("",), "t", "empty"),
        (("a\x1fb",), "t", "U\\+001F"),
        (("a",), "t\x00", "U\\+0000"),
        (("a",), r"t\x", "backslash"),
        (("a",), "t\\", "backslash"),
        (("a",), "t" * (MAX_PATTERN_LENGTH + 1), "at most 255 characters"),
        (("a",) * MAX_PATTERN_LEVELS, "t", "levels"),
        (("*",), "*" * MAX_STARS, "times"),
    ],
)
def test_an_invalid_pattern_is_refused_with_its_problem(namespace: tuple[str, ...], name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        NamePattern(namespace, name)


def test_only_levels_above_the_first_wildcard_contain_every_name() -> None:
    assert NamePattern((r"a\*", "B", "c?", "d"), "t").fixed_namespaces == (Namespace(("a*", "B")), Namespace(("a*",)))
    assert NamePattern(("*",), "t").fixed_namespaces == ()
