# SPDX-License-Identifier: Apache-2.0
"""The wire form of OPA's answers has the fields of the gateway's own types."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from gateway.access.decisions.policy import PolicyAnswer, PolicyAnswers
from gateway.obligations.guardrails import StatedObligations, understood
from gateway.obligations.kinds import AppendOnly, ColumnMasks, CredentialLife, HiddenOperations, NoVending, RowFilters
from gateway.obligations.merging import Obligations
from gateway.opa.decider import WireAnswer, WireAnswers


@pytest.mark.parametrize(("wire", "own"), [(WireAnswer, PolicyAnswer), (WireAnswers, PolicyAnswers)])
def test_the_wire_types_have_the_fields_of_the_gateways_own_types(
    wire: type[msgspec.Struct], own: type[msgspec.Struct]
) -> None:
    assert [each.name for each in msgspec.structs.fields(wire)] == [each.name for each in msgspec.structs.fields(own)]


def test_every_guardrail_obligation_reaches_the_door() -> None:
    given = {
        "max_credential_seconds": 0,
        "no_vending": True,
        "append_only": True,
        "hide_operations": ["a"],
        "row_filters": [{"value": "EU", "operator": "eq", "column": {"name": "region"}, "type": "compare"}],
        "column_masks": ["email: sha-256-global", {"column": "a: b", "action": "mask-alphanum"}],
    }
    assert set(given) == {each.name for each in msgspec.structs.fields(StatedObligations)}
    received = understood(msgspec.convert(given, StatedObligations))
    assert received == Obligations.of(
        CredentialLife(0),
        NoVending(),
        AppendOnly(),
        HiddenOperations(frozenset({"a"})),
        RowFilters(frozenset({'{"type":"compare","operator":"eq","column":{"name":"region"},"value":"EU"}'})),
        ColumnMasks(frozenset({"email: sha-256-global", "a: b: mask-alphanum"})),
    )
    assert understood(StatedObligations()) == Obligations()


def test_answers_are_valid_until_the_stated_time_and_may_state_none() -> None:
    until = datetime(2026, 1, 2, tzinfo=UTC)
    stated = WireAnswers(decisions=(), valid_until=until, revision="7").understood()
    assert stated == PolicyAnswers(decisions=(), valid_until=until, revision="7")
    assert WireAnswers(decisions=()).understood() == PolicyAnswers(decisions=(), valid_until=None, revision=None)


@pytest.mark.parametrize("given", [{"no_vending": False}, {"hide_operations": []}, {"row_filters": []}])
def test_an_empty_obligation_is_dropped(given: dict[str, object]) -> None:
    assert understood(msgspec.convert(given, StatedObligations)) == Obligations()


@pytest.mark.parametrize(
    "test",
    [
        {"type": "between"},
        {"type": "constant", "value": "true"},
        {"type": "is-null", "column": {"name": "a", "tag": "b"}},
        {"type": "is-null", "column": {"name": "a"}, "else": 1},
        {"type": "not", "operand": {"type": "is-null", "column": {"tag": "pii"}}},
    ],
)
def test_an_invalid_row_filter_is_an_invalid_answer(test: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"Invalid|Expected|either|unknown field|invalid at"):
        understood(msgspec.convert({"row_filters": [test]}, StatedObligations))


@pytest.mark.parametrize("mask", ["email", "email: blur", ": sha-256-global"])
def test_an_unknown_mask_action_is_an_invalid_answer(mask: str) -> None:
    with pytest.raises(ValueError, match="must have the form '<column>: <action>'"):
        understood(msgspec.convert({"column_masks": [mask]}, StatedObligations))


def test_an_invalid_obligation_denies_its_own_question_only() -> None:
    """The schema of guardrails describes the outermost test, so OPA lets an invalid inner test pass."""
    bad = {"row_filters": [{"type": "not", "operand": {"type": "matches", "column": {"name": "id"}}}]}
    deep = {"row_filters": [{"type": "not", "operand": {"type": "has-role", "role": "r"}}]}
    given: list[object] = [
        {"allow": True, "reasons": [], "obligations": each} for each in (bad, {"no_vending": True}, deep)
    ]
    first, second, third = msgspec.convert({"decisions": given}, WireAnswers).understood().decisions
    for denied in (first, third):
        assert not denied.allow
        assert denied.obligations == Obligations()
        assert [reason.code for reason in denied.reasons] == ["guardrail_invalid"]
    assert "matches" in first.reasons[0].message
    assert second.allow
    assert second.reasons == ()
