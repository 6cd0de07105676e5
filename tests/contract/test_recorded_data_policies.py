# SPDX-License-Identifier: Apache-2.0
"""`lakegate policy diff --data-policies`: recorded reads of tables, decided by new definitions of data policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.common import DIFFERS
from lakegate.local.ready import Ready
from tests.support.stack.columns import wide
from tests.support.stack.data_policies import FILTER, MASK, change, loads, make, target
from tests.support.stack.own_model import lakegate
from tests.support.stack.world import World

pytestmark = pytest.mark.servers

CARDS: dict[str, Any] = {"type": "in", "column": {"name": "card"}, "values": ["a", "b"]}
FEWER = {"kind": "row-filter", "test": {**CARDS, "values": ["a"]}}
ALL_ROWS = {"kind": "row-filter", "test": {"type": "constant", "value": True}}
OF_CLAIM: dict[str, Any] = {
    "kind": "row-filter",
    "test": {
        "type": "compare",
        "operator": "eq",
        "column": {"name": "card"},
        "value": {"type": "attribute", "source": "claim", "name": "card"},
    },
}


def test_new_definitions_are_compared_for_the_callers_of_recorded_reads(
    world: World, ns: str, stack: Ready, tmp_path: Path
) -> None:
    """The reads of the last seconds are part of it. An exempt caller is not, and a lifted filter is wider."""
    filtered, masked, table = make(world, FILTER), make(world, MASK), wide(world, ns)
    person, exempt = world.stranger("reader"), world.stranger("exempt")
    for each in (person, exempt):
        world.grant("select", each, "table", table.uuid)
    for policy in (filtered, masked):
        assert change(world, policy, add=[target(world, table)]).status_code == 204
        world.grant("exempt", exempt, "data-policy", policy["id"])
    assert (loads(person, table), loads(exempt, table)) == (403, 200)
    project = world.sql(f"select name from projects where id = '{world.project}'")[0]["name"]

    def compared(first: dict[str, Any], second: dict[str, Any]) -> tuple[int, dict[str, list[str]]]:
        stated = [{"name": filtered["name"], "definition": first}, {"name": masked["name"], "definition": second}]
        file = tmp_path / "new.yaml"
        file.write_text(json.dumps({"projects": [{"name": project, "data-policies": stated}]}))
        recent = ("--database", "--since", "10m", "--data-policies", str(file), "--format", "json")
        done = lakegate(stack, "policy", "diff", "packaged", "packaged", *recent)
        assert done.returncode in (0, DIFFERS), done.stderr
        found = json.loads(done.stdout)["differences"]
        return done.returncode, {
            each["line"]: each["principals"] for each in found if each["operation"] == "load_table"
        }

    one = f"data-policy={filtered['name']}"
    both = " ".join(f"data-policy={name}" for name in sorted((filtered["name"], masked["name"])))
    assert compared(FILTER, MASK) == (0, {})
    assert compared(FEWER, MASK) == (0, {f"stricter load_table {one} rows": [person.id]})
    wider = compared(ALL_ROWS, {**MASK, "columns": [{"name": "card"}]})
    assert wider == (DIFFERS, {f"weaker load_table {both} rows column=card column=name": [person.id]})
    assert compared(OF_CLAIM, MASK) == (DIFFERS, {f"weaker load_table {one} claims": [person.id]})
