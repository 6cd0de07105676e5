# SPDX-License-Identifier: Apache-2.0
"""Tags, mapping tables and data policies of `lakegate apply` against a running gateway."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.stack.apply_desk import CHANGES, Desk, full_content, warehouse_id
from tests.support.stack.columns import WIDE
from tests.support.stack.exchanging import acting
from tests.support.stack.warehouses import profile
from tests.support.stack.world import World, unique

pytestmark = pytest.mark.servers

MASK = {"kind": "mask", "action": "mask-alphanum", "columns": [{"name": "name"}]}
REGIONS = {"type": "attribute", "source": "mapping", "name": "regions"}
FILTER = {
    "kind": "row-filter",
    "test": {
        "type": "or",
        "operands": [
            {"type": "in", "column": {"name": "card"}, "values": REGIONS},
            {"type": "has-role", "role": "leads"},
        ],
    },
}


@pytest.fixture
def desk(world: World, tmp_path: Path) -> Desk:
    """Return a file for a project that exists with the table `orders`, which its first member of a role may read."""
    content = full_content(world, world.stranger("reader"), world.stranger("writer"))
    desk = Desk(world, tmp_path / "shop.yaml", content)
    desk.applied()
    _make_table(desk, "orders")
    return desk


def _make_table(desk: Desk, name: str, namespace: str = "sales") -> None:
    path = f"/catalog/v1/{warehouse_id(desk)}/namespaces/{namespace}/tables"
    made = desk.world.admin.post(path, {"name": name, "schema": WIDE})
    assert made.status_code == 200, made.text


def _with_policies(desk: Desk) -> None:
    """Add tags, a mapping table and policies to the file, and a principal for which the reads are restricted."""
    reader = desk.project["roles"][0]["members"][0]["user"]
    desk.project["tag-definitions"] = [
        {"name": "PII.Email", "scope": ["table", "column"], "value-kind": "marker"},
        {
            "name": "sensitivity",
            "description": "who may see it",
            "scope": ["namespace", "table"],
            "value-kind": "enumerated",
            "allowed-values": ["public", "internal"],
            "grants": [{"privilege": "apply", "role": "analysts"}],
        },
    ]
    desk.project["mapping-tables"] = [
        {
            "name": "Regions",
            "entries": [{"user": reader, "values": ["eu", "uk"]}, {"role": "analysts", "values": ["us"]}],
        }
    ]
    desk.project["data-policies"] = [
        {
            "name": "Mask names",
            "description": "hide them",
            "definition": MASK,
            "bindings": [{"warehouse": "main", "namespace": "sales", "table": "orders"}],
            "grants": [{"privilege": "exempt", "role": "leads", "reason": "audit"}],
        },
        {
            "name": "regions",
            "definition": FILTER,
            "applies-to": "subjects",
            "bindings": [
                {"warehouse": "main", "namespace": "sales", "name": "orders*"},
                {"warehouse": "main", "namespace": "sales"},
                {"warehouse": "main"},
            ],
            "grants": [{"privilege": "subject", "role": "analysts"}],
        },
        {
            "name": "by tag",
            "definition": {"kind": "mask", "action": "replace-with-null"},
            "allow-append": True,
            "bindings": [{"tag": "pii.email"}],
        },
    ]
    desk.namespace["tags"] = {"sensitivity": "internal"}
    desk.namespace["tables"] = [{"name": "orders", "tags": {}, "columns": {"address": {"tags": {"pii.email": None}}}}]


def test_a_file_restricts_a_table_and_a_second_run_changes_nothing(desk: Desk, world: World) -> None:
    _with_policies(desk)
    done = desk.apply("--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning: the policy restricts you too" in done.stderr, "the creator of the project is no exception"
    assert f"+ binding of data-policy {desk.project['id']}/mask names to table {desk.project['id']}/main" in done.stdout
    assert desk.agrees("--prune", "--prune-containers")
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", warehouse_id(desk))
    path = f"/catalog/v1/{warehouse_id(desk)}/namespaces/sales/tables/orders"
    [reader] = [each for each in world._met if each.id == desk.project["roles"][0]["members"][0]["user"]]
    assert reader.get(path).status_code == 403
    loaded = acting(world, world.etl, reader).get(path)
    assert loaded.status_code == 200, loaded.text
    found = loaded.json()["read-restrictions"]
    projections = {each["field-id"]: each["action"] for each in found["required-column-projections"]}
    assert projections == {2: "mask-alphanum", 4: "replace-with-null"}
    assert {"eu", "uk", "us"} <= set(yaml.safe_dump(found["required-row-filter"]).split())


def test_an_export_applies_to_nothing_and_makes_the_same_in_another_project(desk: Desk, world: World) -> None:
    """Ids of one project in the file would reach no object of the other one, and its tables would be readable."""
    _with_policies(desk)
    desk.applied()
    exported = desk.run("export", "--project", desk.project["id"], "--with-mappings")
    assert exported.returncode == 0, exported.stderr
    copy = Desk(world, desk.file.with_name("copy.yaml"), yaml.safe_load(exported.stdout))
    planned = copy.apply("--plan", "--prune", "--prune-containers")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    members = ("tag-definitions", "mapping-tables", "data-policies")
    stated = {member: copy.project[member] for member in members}
    copy.project.update(id=unique("copy").replace("_", "-"), name=unique("Copy"))
    copy.warehouse.update(storage=profile(world), credential=desk.warehouse["credential"])
    tables = copy.namespace.pop("tables")
    policies = copy.project.pop("data-policies")
    copy.applied()
    _make_table(copy, "orders")
    copy.namespace["tables"] = tables
    copy.project["data-policies"] = policies
    copy.applied()
    assert copy.agrees("--prune")
    again = yaml.safe_load(copy.run("export", "--project", copy.project["id"], "--with-mappings").stdout)
    assert {member: again["projects"][0][member] for member in members} == stated
    without = yaml.safe_load(copy.run("export", "--project", copy.project["id"]).stdout)
    assert [list(each) for each in without["projects"][0]["mapping-tables"]] == [["name"]]


def test_changes_are_shown_and_removals_follow_the_lists_of_the_file(desk: Desk) -> None:
    _with_policies(desk)
    desk.applied()
    tags, tables, policies = (desk.project[each] for each in ("tag-definitions", "mapping-tables", "data-policies"))
    tags[1]["allowed-values"] = [f"v{number}" for number in range(230)] + ["internal", "public"]
    tags[1]["scope"] = ["namespace", "table", "view"]
    desk.namespace["tags"]["sensitivity"] = "v229"
    tables[0]["entries"] = [{"role": "analysts", "values": ["us", "ca"]}]
    policies[0]["definition"] = {**MASK, "action": "show-first-4"}
    policies[0]["bindings"] = [{"warehouse": "main", "namespace": "sales"}]
    policies[1]["name"] = "REGIONS"
    del policies[2], desk.namespace["tables"]
    planned = desk.apply("--plan")
    assert planned.returncode == CHANGES
    assert "values: (1 values) -> (2 values)" in planned.stdout
    assert 'name: "regions" -> "REGIONS"' in planned.stdout
    assert '"mask-alphanum"' in planned.stdout and '"show-first-4"' in planned.stdout
    assert "0 to remove" in planned.stdout
    output = desk.applied("--prune")
    done = [line.removeprefix("done: ") for line in output.splitlines() if line.startswith("done: ")]
    shop = desk.project["id"]
    assert f"- data-policy {shop}/by tag" in done
    assert f"- binding of data-policy {shop}/mask names to table {shop}/main/sales/orders" in done
    assert done.index(f"- binding of data-policy {shop}/by tag to tag {shop}/pii.email") < done.index(
        f"- data-policy {shop}/by tag"
    )
    assert desk.agrees("--prune")
    # The column that carries the tag is not in the file.
    del tags[0]
    assert "tag " in (stays := desk.apply("--plan", "--prune").stdout) and "stays: objects carry it" in stays
    tags[0]["allowed-values"] = ["public"]
    refused = desk.apply("--yes")
    assert refused.returncode == 1
    assert "`allowed-values` can only be extended" in refused.stderr


def test_absent_objects_and_invalid_definitions_are_reported_before_any_change(desk: Desk) -> None:
    _with_policies(desk)
    policies = desk.project["data-policies"]
    policies[0]["bindings"].append({"warehouse": "main", "namespace": "sales", "table": "absent"})
    policies[2]["bindings"].append({"tag": "absent"})
    refused = desk.apply("--yes")
    assert refused.returncode == 1
    assert f"tag {desk.project['id']}/absent, table {desk.project['id']}/main/sales/absent" in refused.stderr
    assert "apply does not create them" in refused.stderr
    policies[0]["definition"] = {"kind": "row-filter", "test": {"type": "not", "operand": FILTER["test"]}}
    assert "data-policies[0].definition.test" in desk.apply("--yes").stderr
