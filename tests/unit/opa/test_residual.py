# SPDX-License-Identifier: Apache-2.0
"""The responses of OPA that prove that no guardrail can speak about a caller."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gateway.access.decisions.policy import PolicyActor
from gateway.opa.explanation import Proof, compile_request, proof_in
from tests.support.policies.opa_questions import REPORTED, X, call, fail, text


def query(value: Any = "revision rules.data") -> list[Any]:
    return [{"index": 0, "terms": call("eq", X, text(value))}]


def response(queries: Any = None, events: Any = None, **more: Any) -> bytes:
    found: dict[str, Any] = {"result": {"queries": [query()] if queries is None else queries}}
    return json.dumps({**found, "explanation": [REPORTED] if events is None else events, **more}).encode()


def test_a_proof_names_the_rules_and_the_data() -> None:
    assert proof_in(response()) == Proof("rules", "data")
    assert proof_in(response([query("revision unknown.data")])) == Proof(None, "data")


@pytest.mark.parametrize(
    ("proof", "revision", "agrees"),
    [
        (Proof("r", "d"), "r.d", True),
        (Proof("r", "d"), "s.d", False),
        (Proof("r", "d"), "r.e", False),
        (Proof(None, "d"), "r.d", True),
        (Proof(None, "d"), "r.e", False),
        (Proof(None, "d"), "d", False),
        (Proof("r", "d"), "", False),
    ],
)
def test_a_proof_agrees_with_the_revision_of_its_rules_and_data(proof: Proof, revision: str, agrees: bool) -> None:
    assert proof.is_of(revision) is agrees


@pytest.mark.parametrize(
    "queries",
    [
        [],
        [[]],
        [query(), []],
        [query(), query()],
        [query(), query("entry")],
        [query("entry")],
        [query("revision ")],
        [query("revision .data")],
        [query("revision rules.")],
        [query(5)],
        [query() + query()],
        [[{**query()[0], "negated": True}]],
        [[{**query()[0], "with": []}]],
        [[{**query()[0], "terms": call("neq", X, text("revision rules.data"))}]],
        [[{**query()[0], "terms": call("eq", text("revision rules.data"), X)}]],
        None,
    ],
)
def test_any_other_residue_proves_nothing(queries: Any) -> None:
    body = json.loads(response(queries))
    if queries is None:
        del body["result"]["queries"]
    assert proof_in(json.dumps(body).encode()) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b'{"result": {}}',
        response(result={}),
        response(explanation=None),
        response(metrics={}),
        response(result={"queries": [query()], "support": []}),
        b"[" * 100_000,
        "ü".encode("latin-1"),
    ],
)
def test_a_response_of_another_form_proves_nothing(body: bytes) -> None:
    assert proof_in(body) is None


def test_a_response_without_failed_expressions_proves_nothing() -> None:
    body = json.loads(response())
    del body["explanation"]
    assert proof_in(json.dumps(body).encode()) is None


@pytest.mark.parametrize(
    "terms",
    [
        call("eq", X, X),
        call("neq", X, X),
        call("gt", X, X),
        call("internal.member_2", X, X),
        call("is_boolean", X),
        call("type_name", X, X),
        call("data.gateway.guardrails.one._f", X) and [{"type": "ref", "value": [{"type": "var", "value": "data"}]}, X],
        {"type": "ref", "value": [{"type": "var", "value": "input"}]},
        {"type": "var", "value": "x"},
        {"type": "boolean", "value": False},
    ],
)
def test_failures_that_are_no_errors_are_accepted(terms: Any) -> None:
    assert proof_in(response(events=[fail(terms), REPORTED, fail(terms, negated=True)]))


@pytest.mark.parametrize(
    "terms",
    [
        call("startswith", X, X),
        call("to_number", X),
        call("to_number", text("another")),
        call("count", X, X),
        call("time.parse_rfc3339_ns", X),
        call("internal.print", X),
        call("is_new", X),
        {"type": "call", "value": []},
        {"domain": {}, "body": []},
        {},
        [],
        [X],
        None,
        "eq",
    ],
)
def test_failures_that_may_be_errors_prove_nothing(terms: Any) -> None:
    assert proof_in(response(events=[REPORTED, fail(terms)])) is None


def test_other_events_do_not_count_and_a_failed_body_proves_nothing() -> None:
    other = {**fail(call("to_number", X)), "op": "enter"}
    assert proof_in(response(events=[other, REPORTED, {**REPORTED, "type": "rule", "node": {}}]))
    assert proof_in(response(events=[REPORTED, {**REPORTED, "type": "body"}])) is None
    assert proof_in(response(events=[other])) is None
    assert proof_in(response(events=[{**REPORTED, "op": "enter"}])) is None


def test_the_request_has_the_complete_caller_and_nothing_else() -> None:
    actor = PolicyActor(id="oidc~alice", kind="user", assumed_role="a", roles=("r",), engine="e", asked_by="b")
    sent = json.loads(compile_request(actor))
    assert sent == {
        "query": "data.gateway.residual.speaks[x]",
        "input": {"actor": json.loads(msgspec.json.encode(actor))},
        "unknowns": ["input.context", "input.questions"],
    }
    assert len(sent["input"]["actor"]) == len(PolicyActor.__struct_fields__)
