# SPDX-License-Identifier: Apache-2.0
"""A replay evaluates callers together only if the policies cannot tell them apart: the real OPA answers alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.opa.caller_equivalence import caller_equivalence, merged
from gateway.opa.decider import WireAnswer
from gateway.opa.policy_files import shipped_policies
from gateway.opa.replay_records import Recorded
from gateway.opa.replay_run import deployed, evaluate, policy_data, write_policies
from gateway.opa.syntax import parse
from tests.support.servers.opa_program import opa_program

GUARDRAIL = """package gateway.guardrails.limited

IMPORT

denials[index] contains {"code": "limited", "message": "It is denied."} if {
	some index, question in input.questions
	CONDITION
}

RULE
"""
CALLERS = ("oidc~ann", "oidc~bob", "oidc~cleo", "oidc~named", "oidc~dan-named", "")
NAMED = "oidc~named"
#: Conditions that only compare the id of the caller, with constants.
COMPARED = [
    "input.actor.id in data.policy_data.limited.users",
    "not input.actor.id in data.policy_data.limited.users",
    f'input.actor.id == "{NAMED}"',
    f'"{NAMED}" != input.actor.id',
    f'input.actor["id"] in {{"{NAMED}", "else"}}',
    'data.policy_data.limited.users[_] = input.actor.id; question.operation == "load_table"',
    'question.operation == "drop_table"',
]
#: Conditions that read more than that, each with an import and a further rule.
TOLD_APART = [
    ('startswith(input.actor.id, "oidc~b")', "", ""),
    ("count(input.actor.id) > 8", "", ""),
    ('input.actor.id < "oidc~c"', "", ""),
    ('input.actor.id in {lower("OIDC~ANN")}', "", ""),
    ("input.actor.id in _names", "", '_names := {concat("~", ["oidc", "ann"])}'),
    ("input.actor.id == question.facts.owner", "", ""),
    ("data.policy_data.limited.by_id[input.actor.id]", "", ""),
    ('some id in [input.actor.id]; startswith(id, "oidc~b")', "", ""),
    ('id := input.actor.id; endswith(id, "ann")', "", ""),
    ('some name, value in input.actor; name == "id"; startswith(value, "oidc~b")', "", ""),
    ('object.get(input, ["actor", "id"], "") > "oidc~b"', "", ""),
    ('walk(input, [["actor", "id"], value]); startswith(value, "oidc~b")', "", ""),
    ('some part in ["actor"]; startswith(input[part].id, "oidc~b")', "", ""),
    ('some part in ["id"]; startswith(input.actor[part], "oidc~b")', "", ""),
    ('startswith(caller.id, "oidc~b")', "import input.actor as caller", ""),
    ('startswith(whole.actor.id, "oidc~b")', "import input as whole", ""),
    ('input.actor.id == "oidc~none"', "", 'equal(value, _) := startswith(value, "oidc~b")'),
    ("_listed with data.policy_data.limited.users as [question.facts.owner]", "", f"_listed if {COMPARED[0]}"),
    ("input.actor.id in data.policy_data.computed", "", 'package policy_data\n\ncomputed := {lower("OIDC~ANN")}'),
    ('_user == data.policy_data.limited.users[0]', "", '_user := sprintf("%v", [input.actor.id])'),
]  # fmt: skip
DATA = {"users": [NAMED], "by_id": {"oidc~bob": True}}


def _recorded() -> list[Recorded]:
    found = []
    for caller in CALLERS:
        actor = {"kind": "user", "id": caller, "roles": [], "subject_proven": True, "groups_known": True}
        frame = {"actor": actor, "context": {"request_id": "r", "time": "2026-03-04T12:00:00Z"}}
        for operation in ("load_table", "drop_table"):
            question = {"operation": operation, "resource": {"type": "table"}, "facts": {"owner": "oidc~ann"}}
            found.append(Recorded(json.dumps(frame).encode(), json.dumps(question).encode(), operation, caller))
    return sorted(found, key=lambda each: each.key)


def _answers(directory: Path, condition: str, imported: str, rule: str) -> tuple[list[object], list[object], int]:
    """Return (the answers of callers together, the answers of each caller, number of evaluated questions)."""
    opa = opa_program()
    own, package = ("", rule) if rule.startswith("package") else (rule, "package other")
    text = GUARDRAIL.replace("CONDITION", condition).replace("IMPORT", imported).replace("RULE", own)
    shipped = {
        str(each.relative_to(shipped_policies())): each.read_bytes()
        for each in shipped_policies().rglob("*")
        if each.suffix in (".rego", ".json")
    }
    files = deployed(shipped) | {
        "gateway/guardrails/limited.rego": text.encode(),
        "gateway/guardrails/further.rego": package.encode(),
        "policy_data/limited/data.json": json.dumps(DATA).encode(),
    }
    write_policies(files, directory)
    modules = parse(opa, {name: content for name, content in files.items() if name.endswith(".rego")})
    recorded = _recorded()

    def evaluated(asked: list[Recorded]) -> list[WireAnswer | None]:
        return list(evaluate(opa, directory, asked, exact=True, done=lambda _: None))

    asked, indexes = merged(recorded, caller_equivalence(modules, policy_data(files)))
    together, apart = evaluated(asked), evaluated(recorded)
    return [together[index] for index in indexes], list(apart), len(asked)


@pytest.mark.parametrize("condition", COMPARED)
def test_callers_that_are_only_compared_are_evaluated_together(condition: str, tmp_path: Path) -> None:
    together, apart, evaluated = _answers(tmp_path / "policies", condition, "", "")
    assert together == apart and len({repr(each) for each in apart}) == 2
    assert evaluated == 6, "the named caller, the empty id (a constant of the shipped rules), and one for all others"


@pytest.mark.parametrize(("condition", "imported", "rule"), TOLD_APART)
def test_callers_that_rules_tell_apart_are_evaluated_each(
    condition: str, imported: str, rule: str, tmp_path: Path
) -> None:
    together, apart, evaluated = _answers(tmp_path / "policies", condition, imported, rule)
    assert together == apart
    assert evaluated == len(apart)
