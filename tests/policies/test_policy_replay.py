# SPDX-License-Identifier: Apache-2.0
"""`lakegate policy diff` replays recorded decisions with the real OPA, and reports which answers change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.cli.common import DIFFERS
from lakegate.local.policy_repository import create_repository

WAREHOUSE = "0195c0de-0000-7000-8000-00000000ffff"
FROZEN = "0195c0de-0000-7000-8000-00000000f0f0"
NIGHT, NOON = "2026-03-04T03:00:00Z", "2026-03-04T12:00:00Z"
CONTRACTOR = "oidc~contractor"
LIMITED = """# METADATA
# title: Limit credentials
# schemas:
#   - input: schema.input
package gateway.guardrails.limited

obligations[index] contains {"max_credential_seconds": SECONDS} if {
	some index, question in input.questions
	question.operation == "vend_credentials"
}
"""
ROLE = "0195c0de-0000-7000-8000-0000000000aa"
ADDRESSES = ("10.0.0.1", "192.0.2.1")
BY_ROLE_AND_FACT = f"""# METADATA
# title: Members of the role must not purge
# schemas:
#   - input: schema.input
package gateway.guardrails.limited

denials[index] contains {{"code": "no_purge", "message": "Do not purge."}} if {{
	some index, question in input.questions
	"{ROLE}" in input.actor.roles
	question.facts.purge
}}
"""
BY_ADDRESS = """# METADATA
# title: No tables outside of the network
# schemas:
#   - input: schema.input
package gateway.guardrails.limited

denials[index] contains {"code": "outside", "message": "Use the network."} if {
	some index, _ in input.questions
	not startswith(input.context.client_address, "10.")
}
"""
BY_HOUR = """# METADATA
# title: No drops at night
# schemas:
#   - input: schema.input
package gateway.guardrails.limited

denials[index] contains {"code": "night", "message": "Drop tables by day."} if {
	some index, question in input.questions
	question.operation == "drop_table"
	[hour, _, _] := time.clock(time.parse_rfc3339_ns(input.context.time))
	hour < 6
}
"""


def run(old: str, new: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["policy", "diff", old, new, *arguments])


def record(operation: str, at: str = NOON, *, user: str = "oidc~ann", table: str = FROZEN) -> dict[str, Any]:
    about = {"type": "table", "id": table, "name": "sales.orders", "warehouse_id": WAREHOUSE}
    inputs: dict[str, Any] = {"name": "orders", "namespace": ["sales"], "warehouse_id": about["warehouse_id"]}
    decision: dict[str, Any] = {
        "operation": operation,
        "outcome": "allowed",
        "determined_by": "both",
        "resources": [about],
    }
    decision |= {"inputs": inputs}
    actor = {"kind": "user", "id": user}
    ids = {"id": str(uuid4()), "format": 1, "at": at, "request_id": str(uuid4())}
    return {**ids, "actor": actor, "decisions": [decision], "inputs": {}}


def log(directory: Path, *records: dict[str, Any]) -> Path:
    file = directory / "records.jsonl"
    file.write_text("\n".join(map(json.dumps, records)) + "\n")
    return file


@pytest.fixture(scope="module")
def freezing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a policy repository that freezes one table."""
    directory = tmp_path_factory.mktemp("freezing")
    create_repository(directory)
    (directory / "policies/policy_data/freeze/data.json").write_text(json.dumps({"tables": [FROZEN]}))
    return directory


def with_guardrail(directory: Path, seconds: int) -> Path:
    file = directory / "policies/gateway/guardrails/limited.rego"
    file.parent.mkdir(parents=True)
    file.write_text(LIMITED.replace("SECONDS", str(seconds)))
    return directory


def test_new_denial_is_counted_with_an_example(freezing: Path, tmp_path: Path) -> None:
    records = [record("drop_table"), record("drop_table", NIGHT), record("load_table")]
    records += [record("drop_table", table=str(uuid4()))]
    done = run("packaged", str(freezing), "--replay", str(log(tmp_path, *records)), "--format", "json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    (difference,) = found["differences"]
    assert (difference["line"], difference["count"], difference["widens"]) == ("deny drop_table table_frozen", 2, False)
    assert difference["example"].startswith("user oidc~ann on table sales.orders at 2026-03-04T")
    assert found["decisions"] == 4
    assert found["not_replayable"] == 0


def test_lifted_denial_needs_an_exact_acknowledgement(freezing: Path, tmp_path: Path) -> None:
    file, acknowledged = log(tmp_path, record("drop_table")), tmp_path / "widened.txt"
    arguments = (str(freezing), "packaged", "--replay", str(file))
    done = run(*arguments)
    assert done.exit_code == DIFFERS
    assert "allow drop_table table_frozen: 1 of 1 callers, for example user oidc~ann" in done.stdout
    acknowledged.write_text("# the freeze is over\nallow drop_table table_frozen\n")
    assert run(*arguments, "--acknowledged", str(acknowledged)).exit_code == 0
    acknowledged.write_text("allow drop_table table_frozen\nallow load_table table_frozen\n")
    stale = run(*arguments, "--acknowledged", str(acknowledged))
    assert (stale.exit_code, "stale acknowledgement: allow load_table table_frozen" in stale.stderr) == (DIFFERS, True)


def test_denial_that_depends_on_the_time_is_replayed_at_the_recorded_time(tmp_path: Path) -> None:
    own = tmp_path / "own"
    data = own / "policies/policy_data/contractors/data.json"
    data.parent.mkdir(parents=True)
    hours = {"timezone": "UTC", "weekdays": ["Wednesday"], "from": "08:00", "until": "18:00"}
    data.write_text(json.dumps({"users": [CONTRACTOR], "roles": [], "hours": hours}))
    records = [record("load_table", at, user=user) for at in (NIGHT, NOON) for user in ("oidc~ann", CONTRACTOR)]
    done = run("packaged", str(own), "--replay", str(log(tmp_path, *records)), "--format", "json")
    (difference,) = json.loads(done.stdout)["differences"]
    assert (difference["kind"], difference["count"]) == ("deny", 1), done.stdout
    assert CONTRACTOR in difference["example"] and "03:00" in difference["example"]


def test_callers_evaluated_together_are_told_apart_by_the_time(tmp_path: Path) -> None:
    file = tmp_path / "own/policies/gateway/guardrails/limited.rego"
    file.parent.mkdir(parents=True)
    file.write_text(BY_HOUR)
    records = [record("drop_table", NIGHT, user="oidc~ann"), record("drop_table", NOON, user="oidc~bob")]
    records += [record("load_table", at, user=user) for at in (NIGHT, NOON) for user in ("oidc~cleo", "oidc~dan")]
    done = run("packaged", str(tmp_path / "own"), "--replay", str(log(tmp_path, *records)), "--format", "json")
    found = json.loads(done.stdout)
    (difference,) = found["differences"]
    assert (difference["line"], difference["count"]) == ("deny drop_table night", 1), done.stdout
    assert difference["principals"] == ["oidc~ann"]
    # The time is part of a question only if it decides the answer.
    assert (found["decisions"], found["questions"]) == (6, 4)


def test_longer_credentials_are_weaker_and_shorter_ones_stricter(tmp_path: Path) -> None:
    long, short = (with_guardrail(tmp_path / str(seconds), seconds) for seconds in (3000, 900))
    file = log(tmp_path, record("vend_credentials"))
    weaker = run(str(short), str(long), "--replay", str(file))
    assert weaker.exit_code == DIFFERS, weaker.stderr
    assert weaker.stdout.startswith("weaker vend_credentials max_credential_seconds: 1")
    stricter = run(str(long), str(short), "--replay", str(file))
    assert (stricter.exit_code, stricter.stdout.split(":")[0]) == (
        0,
        "stricter vend_credentials max_credential_seconds",
    )


def test_complete_inputs_of_opa_are_replayed_too(freezing: Path, tmp_path: Path) -> None:
    question = {"operation": "drop_table", "resource": {"type": "table", "id": FROZEN}, "facts": {}}
    actor = {"kind": "user", "id": "oidc~ann", "roles": [], "subject_proven": True, "groups_known": True}
    given = {"actor": actor, "context": {"request_id": "r", "time": NOON}, "questions": [question]}
    file = log(tmp_path, {"decision_id": "d-1", "input": given})
    done = run("packaged", str(freezing), "--replay", str(file))
    assert done.stdout.startswith("deny drop_table table_frozen: 1, for example d-1"), done.stdout + done.stderr


def test_line_that_is_no_record_is_an_error(freezing: Path, tmp_path: Path) -> None:
    done = run("packaged", str(freezing), "--replay", str(log(tmp_path, record("load_table"), {"some": "thing"})))
    assert (done.exit_code, "line 2 is neither an audit record" in done.stderr) == (1, True)
    assert run("packaged", str(freezing)).exit_code == 2


def test_recorded_roles_and_facts_decide(tmp_path: Path) -> None:
    own = tmp_path / "own"
    file = own / "policies/gateway/guardrails/limited.rego"
    file.parent.mkdir(parents=True)
    file.write_text(BY_ROLE_AND_FACT)
    purge, keep, other, old = (record("drop_table") for _ in range(4))
    for each, purged in ((purge, True), (keep, False), (other, True)):
        each["inputs"] = {"roles": [ROLE]} if each is not other else {}
        each["decisions"][0]["inputs"]["facts"] = {"purge": purged}
    del old["inputs"], old["decisions"][0]["inputs"]
    left_out = record("drop_table")
    left_out["decisions"][0]["inputs"] = {"complete": False}
    file = log(tmp_path, purge, keep, other, old, left_out, old)
    done = run("packaged", str(own), "--replay", str(file), "--format", "json")
    found = json.loads(done.stdout)
    assert [(each["line"], each["count"]) for each in found["differences"]] == [("deny drop_table no_purge", 1)]
    assert (found["decisions"], found["questions"], found["not_replayable"]) == (3, 3, 3)


def test_policies_that_read_the_request_id_or_address_tell_equal_records_apart(tmp_path: Path) -> None:
    own = tmp_path / "own"
    file = own / "policies/gateway/guardrails/limited.rego"
    file.parent.mkdir(parents=True)
    file.write_text(BY_ADDRESS)
    records = [record("load_table", at) | {"client_address": address} for at in (NIGHT, NOON) for address in ADDRESSES]
    done = run("packaged", str(own), "--replay", str(log(tmp_path, *records)), "--format", "json")
    found = json.loads(done.stdout)
    assert [(each["line"], each["count"]) for each in found["differences"]] == [("deny load_table outside", 2)]
    assert (found["decisions"], found["questions"]) == (4, 2)
