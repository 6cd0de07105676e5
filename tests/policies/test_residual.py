# SPDX-License-Identifier: Apache-2.0
"""Partial evaluation of the guardrails by a real OPA proves no silence where a guardrail speaks about the caller."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import gateway.access.operations  # noqa: F401 - declares the operations
from gateway.access.nouns.cards import policy_operation_name
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operation import OPERATIONS, UNROUTED
from tests.support.policies.residual_opa import Opa, compare, running
from tests.support.policies.residual_styles import CALLERS, STYLES

RESIDUAL = "gateway/residual.rego"


@pytest.fixture(scope="module")
def residual_opa(opa_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opa]:
    with running(opa_binary, tmp_path_factory.mktemp("residual") / "policies") as opa:
        yield opa


def test_the_shipped_guardrails_are_silent_about_ordinary_callers(residual_opa: Opa) -> None:
    residual_opa.load(STYLES["the caller"])
    assert [caller for caller in CALLERS if residual_opa.proof(caller) is not None] == ["alice", "carol", "dan", "7"]


@pytest.mark.threat("LG-DEC-34")
def test_silence_is_proven_only_where_every_decision_is_a_plain_allow(residual_opa: Opa) -> None:
    found = compare(residual_opa, random.Random(15), each=10)
    assert found.wrong == []
    assert found.missing == []
    assert found.compared > 1000


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_silence_is_proven_correctly_for_a_hundred_thousand_requests(residual_opa: Opa) -> None:
    source, compared = random.Random(), 0
    while compared < 100_000:
        found = compare(residual_opa, source, each=400)
        assert found.wrong == []
        compared += found.compared


_COMPLETE = ("\t_complete(data.gateway.guardrails[name][kind])\n", '\tkind == "none"\n')
_SEEN = ('[name][kind][_]\n\tnot startswith(name, "\\n")\n', "[name][kind][_]\n")
_NEITHER = ('\ttext := _text("any")\n', '\tfalse\n\ttext := _text("any")\n')

#: Mutants of residual.rego: the changes (original, other text), and a style about which silence is then proven wrongly.
#: The rules about the forms of rules also cover most entries, so that some mutants need several changes.
MUTANTS: dict[str, tuple[list[tuple[str, str]], str]] = {
    "a dropped expression is not seen": ([_SEEN, _COMPLETE, _NEITHER], "not of another type"),
    "unknown rules are ignored": ([('substring(rule, 0, 1) != "_"', 'rule == "x"')], "a misspelt rule"),
    "rules of helpers are ignored": (
        [('substring(helper, 0, 1) == "_"', 'helper == "x"')],
        "a helper with a public rule",
    ),
    "the type of steady is ignored": ([("not is_boolean(value)", "is_null(value)")], "steady of another type"),
    "complete rules are ignored": ([_COMPLETE], "a number beside an empty set"),
    "a guardrail without rules is ignored": (
        [_NEITHER],
        "no rule",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_of_the_residual_package_proves_a_wrong_silence(opa_binary: Path, tmp_path: Path, name: str) -> None:
    changes, style = MUTANTS[name]
    with running(opa_binary, tmp_path / "policies", [(RESIDUAL, *change) for change in changes]) as opa:
        assert compare(opa, random.Random(15), 50, [style]).wrong


@pytest.mark.threat("LG-DEC-34")
def test_a_missing_residual_package_proves_nothing(opa_binary: Path, tmp_path: Path) -> None:
    with running(opa_binary, tmp_path / "policies", [(RESIDUAL, "gateway.residual", "gateway.renamed")]) as opa:
        assert [opa.proof(caller) for caller in CALLERS] == [None] * len(CALLERS)


def test_an_unreported_error_proves_nothing(opa_binary: Path, tmp_path: Path) -> None:
    changed = (RESIDUAL, 'to_number("an error that the gateway must see")', "1 == 2")
    with running(opa_binary, tmp_path / "policies", [changed]) as opa:
        assert [opa.proof(caller) for caller in CALLERS] == [None] * len(CALLERS)


def test_a_proof_names_the_revision_of_a_bundle_and_of_the_data(opa_binary: Path, tmp_path: Path) -> None:
    with running(opa_binary, tmp_path / "policies", bundle="7") as opa:
        proof = opa.proof("alice")
        answer = opa.client.post("/v1/data/system/revision/current").raise_for_status().json()
    assert proof is not None
    assert proof.rules is not None
    assert f"{proof.rules}.{proof.data}" == answer["result"]


def test_every_caller_is_asked_about_while_no_answer_lasts(opa_binary: Path, tmp_path: Path) -> None:
    changed = ("policy_data/memory/data.json", '"answers_last_seconds": 1', '"answers_last_seconds": 0')
    with running(opa_binary, tmp_path / "policies", [changed]) as opa:
        assert [opa.proof(caller) for caller in CALLERS] == [None] * len(CALLERS)


def test_every_question_of_the_gateway_is_well_formed(residual_opa: Opa) -> None:
    """Malformed questions are denied by `gateway/questions.rego`, which the residual package does not cover."""
    names = {operation.name() for operation in (*OPERATIONS.values(), *UNROUTED.values())}
    types = set(ObjectType) - {ObjectType.COLUMN}
    names |= {policy_operation_name(type, relation) for type in types for relation in Can}
    questions = [{"operation": name, "resource": {"type": type.value}} for name in names for type in types]
    assert len(questions) > 1000
    sent = {"input": {"questions": [{"operation": "", "resource": {"type": "table"}}, *questions]}}
    answer = residual_opa.client.post("/v1/data/gateway/questions/denials", json=sent).raise_for_status().json()
    assert list(answer["result"]) == ["0"]
