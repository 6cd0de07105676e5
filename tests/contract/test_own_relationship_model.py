# SPDX-License-Identifier: Apache-2.0
"""An own relationship model from a directory: recorded, activated and rolled back by the commands of an operator."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.common import DIFFERS
from gateway.features.server.model_changes import REQUIRED
from gateway.fga.model import ModelNotReady
from lakegate.local.policy_repository import create_model, create_repository
from lakegate.local.ready import Ready
from tests.support.stack.own_model import connected, known, lakegate
from tests.support.stack.world import World

pytestmark = pytest.mark.servers

RULE = """    define inspects: inspector or can_inspect from project
    define describes: inspects or describe or"""


@pytest.fixture
def shipped(stack: Ready) -> Iterator[str]:
    """Yield the id of the active model; activate it again afterwards."""
    before, _ = known(stack)
    yield before

    async def back() -> None:
        async with connected(stack) as models:
            await models.migrate(by="a test", target=before)

    asyncio.run(back())


@pytest.fixture
def own(tmp_path: Path) -> Path:
    create_model(tmp_path / "own")
    file = tmp_path / "own" / "fga_model" / "warehouse.fga"
    text = file.read_text()
    file.write_text(text.replace("    define describes: describe or", RULE, 1))
    assert file.read_text() != text
    return tmp_path / "own"


@pytest.fixture
def auditor(world: World) -> Iterator[Any]:
    """Yield a user that holds only `inspector` on the warehouse."""
    world.strip(world.contractor)
    world.grant("inspector", world.contractor, "warehouse", world.warehouse)
    yield world.contractor
    world.strip(world.contractor)


def test_diff_on_the_database_names_who_gains_what_and_why(world: World, stack: Ready, own: Path, auditor: Any) -> None:
    done = lakegate(stack, "model", "diff", "active", str(own), "--database", "--format", "json")
    assert done.returncode == DIFFERS, done.stderr
    summary, *rows = map(json.loads, done.stdout.splitlines())
    assert "warehouse#can_list_everything <- warehouse#inspector" in summary["unacknowledged"]
    (row,) = [each for each in rows if {"type": "user", "id": auditor.id} in each["principals"]]
    assert row["object"] == {"type": "warehouse", "id": world.warehouse}
    gained = {each["kind"]: each["gained"] for each in row["changes"]}
    assert "can_list_everything" in gained["warehouse"]
    assert "can_get_metadata" in gained["table"]
    assert not any(each["lost"] for each in row["changes"])
    grant = {"relation": "inspector", "object": row["object"], "principal": {"type": "user", "id": auditor.id}}
    assert all(each["grants"] == [grant] for each in row["because"])
    text = lakegate(stack, "model", "diff", "active", str(own), "--database").stdout
    assert f"user {auditor.id}\n  + can_" in text, text
    assert "  + can_get_metadata on every table below" in text


def test_an_own_model_from_a_directory_decides_after_its_activation(
    world: World, ns: str, stack: Ready, shipped: str, own: Path, auditor: Any
) -> None:
    table = world.table(ns)
    pushed = lakegate(stack, "model", "push", str(own), "--by", "the operator")
    assert pushed.returncode == 0, pushed.stderr
    (model_id,) = re.findall(r"--to (\w+)", pushed.stdout)
    assert model_id != shipped
    assert auditor.get(table.path).status_code == 404, "a recorded model must not decide"
    dry = lakegate(stack, "model", "migrate", "--to", model_id, "--dry-run", "--newest", "5")
    assert f"may now: user {auditor.id}: can_list_everything on warehouse" in dry.stdout, dry.stdout + dry.stderr
    assert lakegate(stack, "model", "migrate", "--to", model_id, "--newest", "1").returncode == 0
    assert auditor.get(table.path).status_code == 200

    async def upgrade() -> str:
        async with connected(stack) as models:
            kept: str = await models.upgrade(by="a test")
        more = {**REQUIRED, "table": {*REQUIRED["table"], "can_do_more"}}
        async with connected(stack, required=more) as later:
            with pytest.raises(ModelNotReady, match=r"own model, based on [\d.]+\. It lacks table#can_do_more"):
                await later.upgrade(by="a test")
        return kept

    assert asyncio.run(upgrade()) == model_id, "an upgrade must not replace an own model"
    assert lakegate(stack, "model", "rollback").returncode == 0
    assert auditor.get(table.path).status_code == 404


def test_an_invalid_own_model_is_refused_with_file_and_line_and_changes_nothing(
    stack: Ready, shipped: str, own: Path
) -> None:
    before = known(stack)
    file = own / "fga_model" / "table.fga"
    file.write_text(file.read_text().replace("define select: [user, ", "define select: [user, user:*, ", 1))
    line = next(at for at, text in enumerate(file.read_text().splitlines(), 1) if "user:*" in text)
    refused = lakegate(stack, "model", "push", str(own))
    assert refused.returncode == 1
    assert f"{file}:{line}: table#select grants to all users" in refused.stderr
    assert known(stack) == before


def test_policy_diff_replays_the_audit_records_of_the_database(
    world: World, ns: str, stack: Ready, tmp_path: Path
) -> None:
    table = world.table(ns)
    assert world.admin.get(table.path).status_code == 200
    own = tmp_path / "policies"
    create_repository(own)
    (own / "policies/gateway/guardrails/freeze.rego").unlink()
    (own / "policies/gateway/guardrails/freeze_test.rego").unlink()
    file = own / "policies/gateway/guardrails/closed.rego"
    file.write_text(CLOSED)
    done = lakegate(stack, "policy", "diff", "packaged", str(own), "--database", "--since", "1h", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (difference,) = found["differences"]
    assert difference["line"] == "deny load_table closed"
    assert difference["count"] >= 1
    back = lakegate(stack, "policy", "diff", str(own), "packaged", "--database", "--since", "1h")
    assert (back.returncode, "allow load_table closed" in back.stderr) == (DIFFERS, True)


def _written(world: World, person: Any, file: Path, *, about: str = "") -> int:
    """Write the audit records of a user to a file, only those with the text `about`; return their number."""
    time.sleep(1)  # records are stored after the answer
    stored = world.sql("select convert_from(record, 'UTF8') as it from audit_log where actor_id = $1", person.id)
    lines = [f"{row['it']}\n" for row in stored if about in row["it"]]
    file.write_text("".join(lines))
    return len(lines)


def test_policy_diff_decides_recorded_decisions_by_two_models_and_policies(
    world: World, ns: str, stack: Ready, own: Path, auditor: Any
) -> None:
    """The refusal is decided again, on the current grants, by models and policies together.

    Only its own record is replayed: other tests of the stack may have left the same difference on another table.
    """
    table = world.table(ns)
    assert auditor.get(table.path).status_code == 404
    file = own.parent / "decisions.jsonl"
    assert _written(world, auditor, file, about=ns) == 1

    def differing(*arguments: str) -> dict[str, Any]:
        done = lakegate(stack, "policy", "diff", *arguments, "--replay", str(file), "--format", "json")
        assert done.returncode in (0, DIFFERS), done.stderr
        found = json.loads(done.stdout)
        return {each["line"]: each for each in found["differences"]} | {"found": found}

    wider = differing("packaged", "packaged", "--models", "active", str(own))
    assert f"user {auditor.id} on table {ns}." in wider["allow load_table can_get_metadata"]["example"]
    assert "allow load_table can_get_metadata" in wider["found"]["unacknowledged"]
    narrower = differing("packaged", "packaged", "--models", str(own), "active")
    assert "deny load_table can_get_metadata" in narrower
    assert narrower["found"]["unacknowledged"] == []
    assert wider["found"]["not_replayable"] == 0
    closed = own / "policies/gateway/guardrails/closed.rego"
    closed.parent.mkdir(parents=True)
    closed.write_text(CLOSED)
    together = differing("packaged", str(own), "--models", "active", str(own))
    assert "allow load_table can_get_metadata" not in together, "the new policies deny what the new model gives"


def test_evaluation_of_recorded_decisions_equals_the_decisions_of_openfga(
    world: World, ns: str, stack: Ready, tmp_path: Path
) -> None:
    """Only a decision from before a grant is decided otherwise."""
    table, person = world.table(ns), world.stranger("reader")
    assert person.get(table.path).status_code == 404
    file = tmp_path / "decisions.jsonl"

    def otherwise() -> tuple[int, int]:
        _written(world, person, file)
        same = ("packaged", "packaged", "--models", "active", "active", "--format", "json")
        done = lakegate(stack, "policy", "diff", *same, "--replay", str(file))
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert (found["differences"], found["by_policies_only"]) == ([], 0)
        return found["decisions"], found["decided_otherwise"]

    before, differ = otherwise()
    hidden = sum(each["outcome"] == "hidden" for line in file.open() for each in json.loads(line)["decisions"])
    assert hidden >= 1 and differ == 0
    world.grant("select", person, "namespace", world.namespace_id(ns))
    assert person.get(table.path).status_code == 200
    assert person.delete(table.path).status_code == 403
    after, differ = otherwise()
    assert after > before and differ == hidden


CLOSED = """# METADATA
# title: Close all tables
# schemas:
#   - input: schema.input
package gateway.guardrails.closed

denials[index] contains {"code": "closed", "message": "All tables are closed."} if {
	some index, question in input.questions
	question.operation == "load_table"
}
"""
