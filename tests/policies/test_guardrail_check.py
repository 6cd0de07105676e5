# SPDX-License-Identifier: Apache-2.0
"""Refusal of guardrails with rules that are never read or undefined, by `lakegate policy check` and stack startup."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.obligations.guardrails import StatedObligations
from gateway.opa.schema import OUTPUT_MODULE, OUTPUT_SCHEMA_FILE, obligation_types, output_module, output_schema
from lakegate.local.children import Children
from lakegate.local.decision_engines import Opa
from lakegate.local.errors import StackError
from lakegate.local.policy_checks import check_guardrails
from lakegate.local.ready import Secrets
from tests.policies.conftest import Run

HEAD = "package gateway.guardrails.mine\n\n"
DENIALS = 'denials[index] contains {"code": "c", "message": "m"} if { some index, _ in input.questions; false }\n'
OBLIGATIONS = "obligations[index] contains {} if { some index, _ in input.questions }\n"

VALID = {
    "denials": HEAD + DENIALS,
    "an assigned denial": HEAD
    + 'denials[index] contains d if { some index, _ in input.questions; d := {"code": "c", "message": "m"} }\n',
    "obligations": HEAD
    + OBLIGATIONS.replace("{}", '{"append_only": true, "max_credential_seconds": 900, "hide_operations": {"a"}}', 1),
    "a computed obligation": HEAD + OBLIGATIONS.replace("{}", "_limits", 1) + '_limits := {"no_vending": true}\n',
    "steady": HEAD
    + DENIALS
    + "steady if { not _late }\n\n_late if { input.context.time > data.system.revision.current }\n",
}

INVALID = {
    "a misspelt rule": (DENIALS.replace("denials", "denial") + OBLIGATIONS, "unknown rule denial."),
    "a rule that is undefined": (DENIALS + "limit := 5 if { false }\n", "unknown rule limit."),
    "a public function": (DENIALS + "late(x) if { x }\n", "unknown rule late."),
    "another obligation": (
        OBLIGATIONS.replace("{}", '{"no_vendng": true}', 1),
        "unknown field no_vendng in obligations.",
    ),
    "a text for a switch": (
        OBLIGATIONS.replace("{}", '{"append_only": "true"}', 1),
        "field append_only in obligations is of type string; it must be of type boolean.",
    ),
    "null": (
        OBLIGATIONS.replace("{}", '{"max_credential_seconds": null}', 1),
        "field max_credential_seconds in obligations is of type null; it must be of type number.",
    ),
    "a denial without a message": (DENIALS.replace(', "message": "m"', ""), "missing field message in denials."),
    "an assigned denial with another field": (
        'denials[index] contains d if { some index, _ in input.questions; d := {"code": "c", "text": "m"} }\n',
        "unknown field text in denials.",
    ),
    "a complete rule": ('denials := {0: {{"code": "c", "message": "m"}}} if { false }\n', "denials has another form"),
    "a set": ('denials contains {"code": "c", "message": "m"} if { input.questions }\n', "denials has another form"),
    "an object": (
        'obligations[index] := {"no_vending": true} if { some index, _ in input.questions }\n',
        "another form",
    ),
    "a default": (DENIALS + "default obligations := {}\n", "obligations has another form"),
    "neither": ("steady := true\n", "defines neither denials nor obligations."),
    "a partial steady": (DENIALS + "steady contains true\n", "steady must have the form"),
    "a helper that nothing reads": (DENIALS + "_denials := 5\n", "no rule uses the helper _denials."),
    "a helper that only reads itself": (DENIALS + "_a if { _b }\n\n_b if { not _c }\n", "no rule uses the helper _a."),
    "unknown policy data": (
        DENIALS.replace("false", "data.policy_data.contractor.users"),
        "data.policy_data.contractor does not exist",
    ),
    "an unknown rule elsewhere": (
        DENIALS.replace("false", "data.gateway.guardrails.actors.unknown"),
        "data.gateway.guardrails.actors.unknown is not defined by any policy.",
    ),
}


def _if(condition: str, more: str = "") -> str:
    """Return a guardrail without annotations that denies questions on this condition."""
    return HEAD + DENIALS.replace("_ in", "question in").replace("false", condition) + more


POSSIBLE = {
    "an existing operation": _if('question.operation in {"drop_table", "commit_table"}'),
    "an action that only checks name": _if('question.operation == "read_data_column"'),
    "an existing prefix": _if('startswith(question.operation, "drop_")'),
    "a matching expression": _if('regex.match("^(drop|rename)_", question.operation)'),
    "a glob of existing operations": _if('glob.match("*_table", null, question.operation)'),
    "an existing fact": _if("question.facts.purge == true"),
    "a fact with the name of a type": _if('question.facts.type == "anything"'),
    "a message with another word": _if('question.operation == "drop_table"; _text == "drop_tabel"', '_text := "a"\n'),
}

_UNKNOWN = "operation 'drop_tabel' does not exist, so a condition on it never holds. Did you mean drop_table"
IMPOSSIBLE = {
    "a misspelt field": (
        _if('question.resource.namspace == ["a"]'),
        "mine.rego:3: undefined ref: question.resource.namspace; possible: former_names",
    ),
    "a misspelt fact": (_if("question.facts.purg == true"), "undefined ref: question.facts.purg; possible: abandon"),
    "a misspelt field of the caller": (_if('input.actor.subject == "a"'), "undefined ref: input.actor.subject"),
    "an operation": (_if('question.operation == "drop_tabel"'), _UNKNOWN),
    "an operation on the left": (_if('"drop_tabel" == question.operation'), _UNKNOWN),
    "an operation that is excluded": (_if('question.operation != "drop_tabel"'), _UNKNOWN),
    "one of several operations": (_if('question.operation in {"drop_table", "drop_tabel"}'), _UNKNOWN),
    "an operation in a variable": (_if('name := question.operation; name == "drop_tabel"'), _UNKNOWN),
    "an operation of any question": (_if('input.questions[_].operation == "drop_tabel"'), _UNKNOWN),
    "an operation by name of the field": (_if('question["operation"] == "drop_tabel"'), _UNKNOWN),
    "an operation with a default": (_if('object.get(question, "operation", "") == "drop_tabel"'), _UNKNOWN),
    "an operation in lower case": (_if('lower(question.operation) == "drop_tabel"'), _UNKNOWN),
    "a constant elsewhere": (_if("question.operation in _names", '_names := {"drop_tabel"}\n'), _UNKNOWN),
    "a set of constants": (_if("question.operation in _names", '_names contains "drop_tabel"\n'), _UNKNOWN),
    "a key of an object": (_if("_names[question.operation]", '_names := {"drop_tabel": true}\n'), _UNKNOWN),
    "a constant in a variable": (_if('name := "drop_tabel"; question.operation == name'), _UNKNOWN),
    "an argument": (_if("_drops(question.operation)", '_drops(name) if name == "drop_tabel"\n'), _UNKNOWN),
    "an argument that is a constant": (_if("_drops(question.operation)", '_drops("drop_tabel") := true\n'), _UNKNOWN),
    "a function of the question": (_if("_drops(question)", '_drops(q) if q.operation == "drop_tabel"\n'), _UNKNOWN),
    "a result of a function": (_if('_name(question) == "drop_tabel"', "_name(q) := q.operation\n"), _UNKNOWN),
    "a list of questions": (
        _if('_tables[index].operation == "drop_tabel"', "_tables[i] := q if some i, q in input.questions\n"),
        _UNKNOWN,
    ),
    "a pattern": (_if('some {"operation": "drop_tabel"} in input.questions'), _UNKNOWN),
    "every question": (_if('every q in input.questions { q.operation == "drop_tabel" }'), _UNKNOWN),
    "a comprehension": (_if('count({q | some q in input.questions; q.operation == "drop_tabel"}) > 0'), _UNKNOWN),
    "another branch": (
        _if("_drops(question)", '_drops(q) if q.operation == "drop_table" else if q.operation == "drop_tabel"\n'),
        _UNKNOWN,
    ),
    "a prefix": (_if('startswith(question.operation, "dorp_")'), "no operation matches dorp_ in startswith"),
    "an expression": (_if('regex.match("^dorp_", question.operation)'), "no operation matches ^dorp_ in regex.match"),
    "a glob": (_if('glob.match("*_tabel", null, question.operation)'), "no operation matches *_tabel in glob.match"),
    "a type": (_if('question.resource.type == "tabel"'), "type of resource 'tabel' does not exist"),
    "a type in a variable": (_if('r := question.resource; r.type == "tabel"'), "type of resource 'tabel' does not"),
    "a kind of caller": (_if('input.actor.kind == "service"'), "kind of actor 'service' does not exist"),
}


@pytest.fixture
def binary(opa: Run) -> Path:
    """Return the OPA program."""
    return Path(opa("version").args[0])


@pytest.fixture
def copied(policies: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(policies, tmp_path / "policies"))


def test_the_shipped_guardrails_are_valid(binary: Path, policies: Path) -> None:
    assert check_guardrails(binary, policies) == []


@pytest.mark.parametrize("name", VALID)
def test_a_valid_guardrail_passes(binary: Path, copied: Path, name: str) -> None:
    (copied / "gateway" / "guardrails" / "mine.rego").write_text(VALID[name])
    assert check_guardrails(binary, copied) == []


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_guardrail_is_found(binary: Path, copied: Path, name: str) -> None:
    text, fault = INVALID[name]
    (copied / "gateway" / "guardrails" / "mine.rego").write_text(HEAD + text)
    found = check_guardrails(binary, copied)
    assert any(line.startswith("gateway/guardrails/mine.rego: ") and fault in line for line in found), found


@pytest.fixture(scope="module")
def found(opa_binary: Path, policies: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return the faults of each guardrail of POSSIBLE and IMPOSSIBLE, which are checked together."""
    copy = Path(shutil.copytree(policies / "gateway", tmp_path_factory.mktemp("input") / "gateway"))
    texts = {**POSSIBLE, **{name: text for name, (text, _) in IMPOSSIBLE.items()}}
    places = {}
    for number, (name, text) in enumerate(texts.items()):
        places[name] = f"gateway/guardrails/mine{number}/mine.rego"
        (copy.parent / places[name]).parent.mkdir()
        (copy.parent / places[name]).write_text(text.replace("guardrails.mine", f"guardrails.mine{number}", 1))
    faults = check_guardrails(opa_binary, copy.parent)
    return {name: [fault for fault in faults if fault.startswith(place)] for name, place in places.items()}


@pytest.mark.parametrize("name", POSSIBLE)
def test_a_condition_that_can_hold_passes(found: dict[str, list[str]], name: str) -> None:
    assert found[name] == []


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_condition_that_can_never_hold_is_found_without_an_annotation(found: dict[str, list[str]], name: str) -> None:
    assert any(IMPOSSIBLE[name][1] in fault for fault in found[name]), found[name]


@pytest.mark.parametrize(
    "package",
    [
        "gateway.guardrail.mine",
        "gateway.guardrails.deep.mine",
        "gateway.guardrails.deep._mine",
        "gateway.guardrails",
    ],
)
def test_a_package_in_the_wrong_place_is_found(binary: Path, copied: Path, package: str) -> None:
    text = DENIALS if package.count(".") < 3 else DENIALS + "# deep\n"
    (copied / "gateway" / "guardrails" / "mine.rego").write_text(f"package {package}\n\n{text}")
    assert any(package in line for line in check_guardrails(binary, copied))


def test_a_package_with_a_leading_underscore_denies_on_a_request(opa: Run, copied: Path, tmp_path: Path) -> None:
    guardrails = copied / "gateway" / "guardrails"
    (guardrails / "mine.rego").write_text(HEAD + DENIALS)
    (tmp_path / "in.json").write_text('{"questions": [{"operation": "load_table", "resource": {"type": "table"}}]}')

    def messages() -> list[str]:
        options = [
            "--format=raw",
            "--strict-builtin-errors",
            "--ignore=schemas",
            "--ignore=trino",
            "--ignore=*_test.rego",
        ]
        query = "[reason.message | some reason in data.gateway.decisions.decisions[0].reasons]"
        done = opa("eval", *options, "--data", copied, "--input", tmp_path / "in.json", query)
        assert done.returncode == 0, done.stdout + done.stderr
        return [message for message in msgspec.json.decode(done.stdout, type=list[str]) if "mine" in message]

    assert messages() == []
    (guardrails / "hidden.rego").write_text(f"package gateway.guardrails.mine._deny\n\n{DENIALS}")
    [message] = messages()
    assert "gateway.guardrails.mine is invalid: _deny has the rule denials" in message


def test_a_test_package_evaluated_as_a_guardrail_is_found(binary: Path, copied: Path) -> None:
    (copied / "gateway" / "guardrails" / "mine_test.rego").write_text(
        "package gateway.guardrails.mine_test\n\ntest_a if true\n"
    )
    [fault] = check_guardrails(binary, copied)
    assert "gateway_test.guardrails" in fault


def test_a_file_that_cannot_be_parsed_is_an_error(binary: Path, copied: Path) -> None:
    (copied / "gateway" / "guardrails" / "mine.rego").write_text("package mine\n\nx := {\n")
    with pytest.raises(StackError, match="cannot read"):
        check_guardrails(binary, copied)


def test_the_command_refuses_an_invalid_guardrail(binary: Path, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEGATE__EMBEDDED__OPA_BIN", str(binary))
    monkeypatch.setenv("LAKEGATE__POLICY_COMPLETE", "true")
    assert CliRunner().invoke(main, ["policy", "check", "--policies", str(copied)]).exit_code == 0
    text = HEAD + DENIALS.replace("denials", "denial").replace("{ some", "{\n\tsome").replace("; false }", "\n}")
    (copied / "gateway" / "guardrails" / "mine.rego").write_text(text)
    done = CliRunner().invoke(main, ["policy", "check", "--policies", str(copied)])
    assert done.exit_code == 1
    assert "unknown rule denial" in done.output


def test_invalid_policies_produce_no_bundle(
    binary: Path, copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEGATE__EMBEDDED__OPA_BIN", str(binary))
    monkeypatch.setenv("LAKEGATE__POLICY_COMPLETE", "true")
    (copied / "gateway" / "guardrails" / "mine.rego").write_text(HEAD + "steady := true\n")
    done = CliRunner().invoke(main, ["policy", "bundle", "--directory", str(copied), "-o", str(tmp_path / "b.tar.gz")])
    assert done.exit_code == 1
    assert "no bundle was written" in done.output
    assert not (tmp_path / "b.tar.gz").exists()


async def test_the_stack_does_not_start_with_an_invalid_guardrail(binary: Path, copied: Path, tmp_path: Path) -> None:
    (copied / "gateway" / "guardrails" / "mine.rego").write_text(HEAD + "steady := true\n")
    opa = Opa(binary, copied, 1, Mock(spec=Secrets))
    with pytest.raises(StackError, match="neither denials nor obligations"):
        await opa.start(Mock(spec=Children))


def test_the_committed_output_schema_is_current() -> None:
    assert OUTPUT_SCHEMA_FILE.read_text(encoding="utf-8") == output_schema(), "run `python -m gateway.opa.schema`"
    assert OUTPUT_MODULE.read_text(encoding="utf-8") == output_module(), "run `python -m gateway.opa.schema`"


def test_every_obligation_is_in_the_output_schema() -> None:
    assert obligation_types().keys() == {field.name for field in msgspec.structs.fields(StatedObligations)}
