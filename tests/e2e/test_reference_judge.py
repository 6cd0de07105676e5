# SPDX-License-Identifier: Apache-2.0
"""A slice of the comparison with the Java library, in seconds. `make reference-agreement-long` makes the whole one."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.reference_judge.exceptions import EXCEPTIONS
from tests.reference_judge.judge import Judge
from tests.reference_judge.run import RESULT, compare_all

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """Return a running Java library."""
    with Judge() as running:
        yield running


def test_the_catalog_accepts_and_stores_what_the_java_library_accepts_and_opens(judge: Judge) -> None:
    tally = compare_all(judge, 5, commits=300, views=80, documents=80)
    assert tally.differences == []
    for kind in ("table commit", "table create", "table read", "view commit", "view create", "view read"):
        assert tally.accepted[kind] > 1, kind
    for kind in ("table commit", "table create", "table read", "view commit"):
        assert tally.refused[kind] > 5, kind


def test_the_recorded_comparison_has_no_difference_and_only_listed_exceptions() -> None:
    recorded = json.loads(RESULT.read_text())
    assert recorded["differences"] == 0
    assert set(recorded["exceptions"]) <= set(EXCEPTIONS)
    asked = {
        kind: recorded["accepted"].get(kind, 0) + recorded["refused"].get(kind, 0) for kind in recorded["accepted"]
    }
    assert asked["table commit"] + asked["table create"] >= 10_000
    assert asked["table read"] >= 1_000
    assert sum(number for kind, number in asked.items() if kind.startswith("view")) >= 1_000
