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
from gateway.embedded.children import Children
from gateway.embedded.errors import StackError
from gateway.embedded.guardrails import check_guardrails
from gateway.embedded.opa import Opa
from gateway.embedded.secrets import Secrets
from gateway.obligations.guardrails import StatedObligations
from gateway.opa.schema import OUTPUT_MODULE, OUTPUT_SCHEMA_FILE, obligation_types, output_module, output_schema
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
