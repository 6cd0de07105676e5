# SPDX-License-Identifier: Apache-2.0
"""Cached restrictions: equal inputs are computed once, and any other input is computed anew."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.access.nouns.resolved import Excerpt
from gateway.access.restrictions import bound_restrictions
from gateway.access.restrictions.bound_restrictions import BoundRestrictions, PolicyVerdict
from gateway.obligations.binding import restrictions_of
from gateway.obligations.data_policies import (
    Attribute,
    AttributeSource,
    BoundPolicy,
    ColumnReference,
    CompareTest,
    DataPolicy,
    InTest,
    PolicyInputs,
    PrincipalAttributes,
    RowFilter,
)
from lakegate.restrictions.predicates import Comparison


def excerpt(kind: str = "string", location: str = "m1", columns: int = 1) -> Excerpt:
    fields = [{"id": n, "name": f"c{n}", "type": kind, "required": False} for n in range(1, columns + 1)]
    document = {"current-schema-id": 0, "schemas": [{"schema-id": 0, "fields": fields}]}
    return Excerpt(location, json.dumps(document).encode())


def equals(value: str | float | Attribute) -> tuple[BoundPolicy, ...]:
    definition = RowFilter(CompareTest(Comparison.EQ, ColumnReference(name="c1"), value))
    return (BoundPolicy(policy=DataPolicy(id="p", version=1, definition=definition)),)


ME = Attribute(AttributeSource.PRINCIPAL)
ALICE, BOB = PrincipalAttributes(principal="alice"), PrincipalAttributes(principal="bob")
VERDICT = PolicyVerdict("t", inexpressible=True)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of the computations."""
    found: list[Any] = []

    def counted(*given: Any) -> Any:
        found.append(given)
        return restrictions_of(*given)

    monkeypatch.setattr(bound_restrictions, "restrictions_of", counted)
    return found


async def test_equal_questions_are_computed_once(computed: list[Any]) -> None:
    bound, policies = BoundRestrictions(), equals(ME)
    inputs = PolicyInputs(bound=policies)
    first = await bound.bind(VERDICT, policies, inputs, ALICE, excerpt())
    assert await bound.bind(VERDICT, policies, inputs, ALICE, excerpt()) == first
    assert len(computed) == 1
    assert first.restrictions is not None
    assert not first.inexpressible


async def test_each_input_selects_its_own_restrictions(computed: list[Any]) -> None:
    """Otherwise a user would see the rows of another one, or those of a former policy or schema."""
    bound = BoundRestrictions()
    given: list[tuple[tuple[BoundPolicy, ...], PrincipalAttributes, Excerpt, str]] = [
        (equals(ME), ALICE, excerpt(), "t"),
        (equals(ME), BOB, excerpt(), "t"),
        (equals("x"), ALICE, excerpt(), "t"),
        (equals("x"), ALICE, excerpt(location="m2"), "t"),
        (equals("x"), ALICE, excerpt("int"), "t"),
        (equals("x"), ALICE, excerpt(), "u"),
        # Equal in Python.
        (equals(1), ALICE, excerpt("long"), "t"),
        (equals(True), ALICE, excerpt("long"), "t"),
        (equals(1.0), ALICE, excerpt("long"), "t"),
    ]
    for _ in range(2):
        for policies, attributes, document, id in given:
            inputs = PolicyInputs(bound=policies)
            alone = await BoundRestrictions().bind(PolicyVerdict(id), policies, inputs, attributes, document)
            assert await bound.bind(PolicyVerdict(id), policies, inputs, attributes, document) == alone
    assert len(computed) == 3 * len(given), "each was computed twice alone, and once together"


async def test_a_table_without_expressible_restrictions_stays_inexpressible_each_time(computed: list[Any]) -> None:
    bound, broken = BoundRestrictions(), Excerpt("m", b"{}")
    for _ in range(2):
        verdict = await bound.bind(VERDICT, equals("x"), PolicyInputs(), ALICE, broken)
        assert verdict.inexpressible
        assert verdict.problems
        assert verdict.restrictions is None


async def test_long_documents_are_not_cached_and_the_oldest_entries_leave(
    computed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache is limited by the size of documents, as a document may have many megabytes."""
    small = len(excerpt().text)
    monkeypatch.setattr(bound_restrictions, "_CACHED", 7 * small)
    bound, policies = BoundRestrictions(), equals("x")
    for document, expected in ((excerpt(columns=100), 1), (excerpt(columns=100), 2), (excerpt(), 3), (excerpt(), 3)):
        await bound.bind(VERDICT, policies, PolicyInputs(), ALICE, document)
        assert len(computed) == expected
    for at in ("m2", "m3", "m1"):
        await bound.bind(VERDICT, policies, PolicyInputs(), ALICE, excerpt(location=at))
    assert len(computed) == 6


async def test_restrictions_with_many_values_are_not_all_cached(
    computed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mapping table gives a principal thousands of values. Those of all principals would fill the memory."""
    monkeypatch.setattr(bound_restrictions, "_CACHED", 30_000)
    bound, among = BoundRestrictions(), InTest(ColumnReference(name="c1"), Attribute(AttributeSource.MAPPING, "m"))
    policies = (BoundPolicy(policy=DataPolicy(id="p", version=1, definition=RowFilter(among))),)
    values = tuple(f"value {number}" for number in range(1000))
    for _ in range(2):
        for user in ("alice", "bob", "carl"):
            attributes = PrincipalAttributes(principal=user, mappings=(("m", values),))
            found = await bound.bind(VERDICT, policies, PolicyInputs(bound=policies), attributes, excerpt())
            assert found.restrictions is not None
    assert len(computed) == 6, "two of the three fit, and the oldest one leaves"
