# SPDX-License-Identifier: Apache-2.0
"""`lakegate init policies`, and `lakegate policy check | test | bundle` on the repository that it creates."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from gateway.cli import main
from lakegate.local.toolchain import OPA
from tests.support.docs_commands import commands


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    done = run("init", "policies", str(tmp_path / "new"))
    assert done.exit_code == 0, done.output
    return tmp_path / "new"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_a_new_repository_passes_its_checks_and_tests_and_builds_a_bundle(repository: Path, tmp_path: Path) -> None:
    assert run("policy", "check", str(repository)).output == ""
    tested = run("policy", "test", str(repository))
    assert (tested.exit_code, "PASS: 4/4" in tested.output) == (0, True), tested.output
    built = run(
        "policy", "bundle", "--for", "gateway", "--directory", str(repository), "-o", str(tmp_path / "b.tar.gz")
    )
    assert built.exit_code == 0, built.output


def test_an_existing_directory_is_not_overwritten(repository: Path) -> None:
    guardrail = repository / "policies" / "gateway" / "guardrails" / "freeze.rego"
    guardrail.write_text("# mine\n")
    done = run("init", "policies", str(repository))
    assert (done.exit_code, "is not an empty directory" in done.output) == (1, True)
    assert guardrail.read_text() == "# mine\n"


def test_an_empty_checkout_can_be_filled(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert run("init", "policies", str(tmp_path)).exit_code == 0


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("question.operation in", "question.opertion in", "freeze.rego:18: rego_type_error: undefined ref"),
        ("denial := {", "denial := {{", "freeze.rego:"),
        ('"code": "table_frozen"', '"cod": "table_frozen"', "freeze.rego: unknown field cod in denials."),
        (
            "data.policy_data.freeze.tables\n\tdenial",
            "data.policy_data.other.tables\n\tdenial",
            "policy_data/other/data",
        ),
        ("\tsome index, _ in", "    some index, _ in", "freeze.rego: the file is not formatted; run `opa fmt -w`"),
    ],
)
def test_a_fault_is_reported_with_the_file_of_the_repository(
    repository: Path, right: str, wrong: str, fault: str
) -> None:
    file = repository / "policies" / "gateway" / "guardrails" / "freeze.rego"
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong, 1))
    done = run("policy", "check", str(repository))
    assert done.exit_code == 1
    assert fault in done.output
    assert f"{repository}/policies/gateway/guardrails/freeze.rego" in done.output


@pytest.mark.parametrize("call", ["opa.runtime().env.LAKEGATE_OPA_OPERATOR_TOKEN", 'opa["runtime"]().env.PATH'])
def test_a_guardrail_cannot_read_the_environment_of_opa(repository: Path, call: str) -> None:
    """The environment contains OPA's tokens, and a message reaches the caller of the denied request."""
    guardrail = repository / "policies" / "gateway" / "guardrails" / "freeze.rego"
    text = guardrail.read_text()
    changed = re.sub(r'"message": "This table[^"]*"', lambda _: f'"message": sprintf("%v", [{call}])', text)
    assert changed != text
    guardrail.write_text(changed)
    done = run("policy", "check", str(repository))
    assert done.exit_code == 1
    assert f"{guardrail}: a rule calls opa.runtime, which policies of a repository cannot call" in done.output


def test_a_failed_test_and_missing_tests_are_errors(repository: Path) -> None:
    guardrails = repository / "policies" / "gateway" / "guardrails"
    text = (guardrails / "freeze.rego").read_text()
    (guardrails / "freeze.rego").write_text(text.replace('"drop_table", ', ""))
    failed = run("policy", "test", str(repository))
    assert failed.exit_code == 1
    assert f"{guardrails}/freeze_test.rego:" in failed.output
    (guardrails / "freeze_test.rego").unlink()
    missing = run("policy", "test", str(repository))
    assert (missing.exit_code, "contains no tests" in missing.output) == (1, True)


def test_invalid_policy_data_is_reported_with_its_line(repository: Path) -> None:
    file = repository / "policies" / "policy_data" / "freeze" / "data.json"
    file.write_text('{\n  "tables": [,]\n}\n')
    done = run("policy", "check", str(repository))
    assert (done.exit_code, f"{file}:2: the file is not valid JSON" in done.output) == (1, True), done.output


def test_the_workflow_runs_existing_commands_with_few_rights_and_a_time_limit(repository: Path) -> None:
    workflow = yaml.safe_load((repository / ".github" / "workflows" / "policies.yaml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert job["timeout-minutes"] <= 30
    scripts = [step["run"] for step in job["steps"] if "run" in step]
    used = [words for script in scripts for words in commands(script) if words[0] == "lakegate"]
    assert [words[2] for words in used] == ["check", "test", "diff", "bundle"]
    for words in used:
        shown = run(*words[1:3], "--help").output
        assert all(word in shown for word in words if word.startswith("--")), words
    assert any(f"/{OPA.version}/" in script for script in scripts)
    assert "${{" not in "".join(scripts), "a value in a script could run as code"
    uses = [step["uses"] for step in job["steps"] if "uses" in step]
    assert all("@v" in each for each in uses)


def test_the_policy_data_is_empty_and_valid(repository: Path) -> None:
    assert json.loads((repository / "policies" / "policy_data" / "freeze" / "data.json").read_text()) == {"tables": []}
