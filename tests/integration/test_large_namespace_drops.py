# SPDX-License-Identifier: Apache-2.0
"""A drop of a tree with more relationships than OpenFGA can remove before the request is answered.

Until the removal ends, OpenFGA still holds grants on the dropped tree. They must give no access to the tree, and no
visibility of the objects above it. The same applies when the gateway is killed before or during the removal. The tests
postpone the outbox to prolong this time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support.load.kills import Killable
from tests.support.stack import warehouses
from tests.support.stack.lifecycle import until
from tests.support.stack.world import SCHEMA, Person, World, unique

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(600)]

#: So many readers of each table that the traverse tuples above the tree alone (parent, warehouse, project) exceed the
#: number of tuples of the tree itself that a drop removes before it answers.
_READERS = 170


@pytest.fixture(scope="module")
def world(restarted_gateway: Killable) -> Iterator[World]:
    """Return the stack's users and objects; carol has only the grants of the running test."""
    world = World(restarted_gateway.ready)
    world.strip(world.carol)
    world.sql(
        "insert into users (id, name, user_type, last_updated_with) "
        "select 'oidc~' || name || '-' || number, name, 'human', 'create-endpoint' "
        "from unnest(array['one', 'two']) name, generate_series(0, $1 - 1) number",
        _READERS,
    )
    yield world
    world.close()


@dataclass(frozen=True)
class Tree:
    """Namespaces `top` › `tree` › `deep` of a warehouse, with tables in `deep`. The tests drop `tree` recursively."""

    warehouse: str
    name: str
    namespaces: dict[str, str]
    tables: dict[str, dict[str, Any]]

    @property
    def root(self) -> str:
        return f"/catalog/v1/{self.warehouse}"

    @property
    def path(self) -> str:
        """Return the path of the namespace that is dropped."""
        return f"{self.root}/namespaces/top%1Ftree"

    @property
    def gone(self) -> list[str]:
        """Return the ids of all dropped objects."""
        return [
            self.namespaces["tree"],
            self.namespaces["deep"],
            *(str(each["table-uuid"]) for each in self.tables.values()),
        ]


def _plant(world: World) -> Tree:
    made = warehouses.make(world)
    root, levels, ids = made.root, [], {}
    for name in ("top", "tree", "deep"):
        levels.append(name)
        answer = world.admin.post(f"{root}/namespaces", {"namespace": levels})
        assert answer.status_code == 200, answer.text
        ids[name] = answer.json()["properties"]["namespace_id"]
    tables = {}
    for name in ("one", "two"):
        answer = world.admin.post(f"{root}/namespaces/top%1Ftree%1Fdeep/tables", {"name": name, "schema": SCHEMA})
        assert answer.status_code == 200, answer.text
        tables[name] = answer.json()["metadata"]
        readers = [f"oidc~{name}-{number}" for number in range(_READERS)]
        for start in range(0, _READERS, 85):
            writes = [{"type": "select", "user": reader} for reader in readers[start : start + 85]]
            path = f"/management/v1/permissions/warehouse/{made.id}/table/{tables[name]['table-uuid']}/assignments"
            given = world.admin.post(path, {"writes": writes})
            assert given.status_code == 204, given.text
        given = world.admin.post(path, {"writes": [{"type": "modify", "user": world.carol.id}]})
        assert given.status_code == 204, given.text
    tree = Tree(made.id, made.name, ids, tables)
    until(lambda: world.sql("select 1 from outbox") == [], "the grants were not delivered before the deadline")
    assert world.carol.get(f"{tree.path}%1Fdeep/tables/one").status_code == 200
    return tree


def _put_off(world: World, hours: int = 1) -> None:
    """Postpone the delivery of all rows of the outbox by this number of hours."""
    world.sql("update outbox set not_before = clock_timestamp() + make_interval(hours => $1)", hours)


def _waiting(world: World, tree: Tree) -> tuple[int, int]:
    """Return (outbox rows about objects of the tree, outbox rows about objects above it)."""
    [row] = world.sql(
        "select count(*) filter (where object_id = any($1::text[])) as inside, "
        "count(*) filter (where object_id <> all($1::text[])) as above from outbox",
        tree.gone,
    )
    return row["inside"], row["above"]


def _ways(tree: Tree, person: Person) -> dict[str, httpx.Response]:
    """Send every request that could reach an object of the tree, by name and by id; return the answers."""
    deep = f"{tree.path}%1Fdeep"
    found = {
        "namespace": person.get(tree.path),
        "namespace exists": person.head(deep),
        "children": person.get(f"{tree.root}/namespaces?parent=top%1Ftree"),
        "tables": person.get(f"{deep}/tables"),
        "views": person.get(f"{deep}/views"),
        "create": person.post(f"{deep}/tables", {"name": unique("t"), "schema": SCHEMA}),
    }
    for name, table in tree.tables.items():
        path, id = f"{deep}/tables/{name}", table["table-uuid"]
        management = f"/management/v1/warehouse/{tree.warehouse}/table/{id}"
        sign = {"region": "local", "method": "GET", "uri": f"{table['location']}/metadata/x", "headers": {}}
        update = {"action": "set-properties", "updates": {"a": "b"}}
        found |= {
            f"load {name}": person.get(path),
            f"exists {name}": person.head(path),
            f"keys {name}": person.get(f"{path}/credentials"),
            f"commit {name}": person.post(path, {"requirements": [], "updates": [update]}),
            f"drop {name}": person.delete(path),
            f"sign {name}": person.post(f"/catalog/v1/signer/{tree.warehouse}/tabular-id/{id}/v1/aws/s3/sign", sign),
            f"actions {name}": person.get(f"{management}/actions"),
            f"protection {name}": person.get(f"{management}/protection"),
            f"undrop {name}": person.post(
                f"/management/v1/warehouse/{tree.warehouse}/deleted-tabulars/undrop",
                {"targets": [{"type": "table", "id": id}]},
            ),
        }
    for name in ("tree", "deep"):
        id = tree.namespaces[name]
        found[f"actions {name}"] = person.get(f"/management/v1/warehouse/{tree.warehouse}/namespace/{id}/actions")
    return found


def _require_unreachable(world: World, tree: Tree) -> None:
    """Check that no request reaches the tree, for its former writer and for the administrator, who owned it."""
    for person in (world.carol, world.admin):
        reached = {
            way: answer.status_code
            for way, answer in _ways(tree, person).items()
            # The protocol has no 404 for signatures.
            if answer.status_code != (400 if way.startswith("sign") else 404)
        }
        assert reached == {}, person
    checks = [
        {
            "identity": {"user": world.carol.id},
            "operation": {"table": {"warehouse-id": tree.warehouse, **named, "action": action}},
        }
        for table in tree.tables.values()
        for named in ({"table-id": table["table-uuid"]}, {"namespace": ["top", "tree", "deep"], "table": "one"})
        for action in ("get_metadata", "read_data", "write_data", "undrop")
    ]
    answered = world.admin.post("/management/v1/action/batch-check", {"checks": checks})
    assert answered.status_code == 200, answered.text
    assert [each["allowed"] for each in answered.json()["results"]] == [False] * len(checks)
    for text in ("one", tree.tables["one"]["table-uuid"]):
        hits = world.admin.post(f"/management/v1/warehouse/{tree.warehouse}/search-tabular", {"search": text})
        assert hits.json()["tabulars"] == []


def _require_no_way_to_it(world: World, tree: Tree) -> None:
    """Check that a user whose only grants were in the tree no longer sees any object above it."""
    for path in (
        f"/catalog/v1/config?warehouse={tree.name}",
        f"{tree.root}/namespaces",
        f"{tree.root}/namespaces/top",
        f"{tree.root}/namespaces?parent=top",
        f"/management/v1/warehouse/{tree.warehouse}",
        f"/management/v1/warehouse/{tree.warehouse}/deleted-tabulars",
    ):
        assert world.carol.get(path).status_code == 404, path
    listed = world.carol.get("/management/v1/warehouse")
    assert listed.status_code == 404 or tree.warehouse not in listed.text


def _require_settled(world: World, gateway: Killable, tree: Tree) -> None:
    """Wait until the outbox is empty; then check that OpenFGA holds no tuple that the rows do not require."""
    _put_off(world, 0)
    until(lambda: world.sql("select 1 from outbox") == [], "the outbox was not delivered before the deadline", 120)
    for id, kind in zip(tree.gone, ("namespace", "namespace", "table", "table"), strict=True):
        assert world.tuples(f"{kind}:{id}") == set()
    _require_unreachable(world, tree)
    _require_no_way_to_it(world, tree)
    compared = gateway.run("authz", "reconcile", "--dry-run")
    assert compared.returncode == 0, compared.stdout


def test_dropped_large_tree_is_unreachable_before_openfga_is_updated(world: World, restarted_gateway: Killable) -> None:
    tree = _plant(world)
    assert world.admin.delete(f"{tree.path}?recursive=true").status_code == 204
    _put_off(world)
    inside, above = _waiting(world, tree)
    assert inside > 300, "the namespace is too small, so the test proves nothing"
    assert above == 0, "all traverse tuples above the namespace must be deleted before the response"
    one = tree.tables["one"]["table-uuid"]
    assert world.tuples(f"table:{one}") != set(), (
        "OpenFGA has no tuple of the table any more, so the test proves nothing"
    )
    _require_unreachable(world, tree)
    _require_no_way_to_it(world, tree)
    for levels in (["top", "tree"], ["top", "tree", "deep"]):
        assert world.admin.post(f"{tree.root}/namespaces", {"namespace": levels}).status_code == 200
    again = world.admin.post(f"{tree.path}%1Fdeep/tables", {"name": "one", "schema": SCHEMA})
    assert again.status_code == 200, again.text
    assert world.carol.get(f"{tree.path}%1Fdeep/tables/one").status_code == 404, (
        "a recreated table must not inherit grants"
    )
    assert world.admin.delete(f"{tree.path}?recursive=true").status_code == 204
    _require_settled(world, restarted_gateway, tree)


def _dies_in_its_drop(world: World, gateway: Killable, tree: Tree, delivered: bool) -> bool:
    """Kill the gateway during the drop; return True if most tuples of the tree are still to be removed."""

    def drop() -> None:
        try:
            world.admin.delete(f"{tree.path}?recursive=true")
        except httpx.TransportError:
            return

    dropping = threading.Thread(target=drop)
    dropping.start()
    deadline, most = time.monotonic() + 60, 0
    while time.monotonic() < deadline:
        waiting = sum(_waiting(world, tree))
        most = max(most, waiting)
        if most and (not delivered or waiting < most):
            break
    gateway.kill()
    dropping.join(70)
    assert not dropping.is_alive()
    _put_off(world)
    return sum(_waiting(world, tree)) > 300


@pytest.mark.parametrize(
    "delivered",
    [
        pytest.param(False, id="before the first deletion", marks=pytest.mark.long),
        pytest.param(True, id="after some deletions"),
    ],
)
def test_dropped_large_tree_is_unreachable_after_a_gateway_crash(
    world: World, restarted_gateway: Killable, delivered: bool
) -> None:
    for _ in range(3):
        tree = _plant(world)
        if _dies_in_its_drop(world, restarted_gateway, tree, delivered):
            break
        restarted_gateway.start()  # the machine stalled in between: try with another tree
    else:
        raise AssertionError("the gateway was killed too late, so the test proves nothing")
    restarted_gateway.start()
    _require_unreachable(world, tree)
    _require_settled(world, restarted_gateway, tree)
