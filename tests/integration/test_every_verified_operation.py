# SPDX-License-Identifier: Apache-2.0
"""Each operation that verifiers judge is refused if they reject it, and goes through if they approve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import httpx
import pytest

from tests.support.door.verified_changes import JUDGED
from tests.support.load.kills import Killable
from tests.support.stack.approval_site import Site, verified_site
from tests.support.stack.lifecycle import deleted, soft_world, undrop
from tests.support.stack.registrations import ADOPT
from tests.support.stack.world import SCHEMA, Table, World, error_of, unique

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

KINDS: Final = ("commit", "create", "drop", "rename", "restore", "namespace_properties")
TYPES: Final = ("table", "view", "generic_table", "namespace", "warehouse")
UPDATE: Final = {"action": "set-properties", "updates": {"a": "b"}}


@dataclass(frozen=True)
class Scene:
    """One object of each kind in a warehouse that keeps dropped objects."""

    site: Site
    world: World
    ns: str
    table: Table
    view: str
    generic: str
    dropped: str
    file: str

    @property
    def inside(self) -> str:
        """Return the path of the namespace."""
        return f"{self.world.root}/namespaces/{self.ns}"

    @property
    def generics(self) -> str:
        """Return the path of the generic tables."""
        return f"/lakekeeper/v1/{self.world.warehouse}/namespaces/{self.ns}/generic-tables"

    @property
    def management(self) -> str:
        """Return the path of the warehouse."""
        return f"/management/v1/warehouse/{self.world.warehouse}"

    def post(self, path: str, body: object, **more: Any) -> httpx.Response:
        """Send a POST request as the administrator."""
        return self.world.admin.post(path, body, **more)

    def delete(self, path: str) -> httpx.Response:
        """Send a DELETE request as the administrator."""
        return self.world.admin.delete(path)

    def renamed(self, name: str) -> dict[str, object]:
        """Return the body of a rename."""
        source, to = ({"namespace": [self.ns], "name": each} for each in (name, unique("new")))
        return {"source": source, "destination": to}


def _view_body(name: str, ns: str) -> dict[str, object]:
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": [ns],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }
    return {"name": name, "schema": {**SCHEMA, "schema-id": 0}, "view-version": version, "properties": {}}


def _change(scene: Scene, **requirement: str) -> dict[str, object]:
    return {"requirements": [requirement] if requirement else [], "updates": [UPDATE]}


#: A request for each operation. The verifiers reject all of them, so the objects stay as they are.
REQUESTS: Final[dict[str, Callable[[Scene], httpx.Response]]] = {
    "CreateTable": lambda s: s.post(f"{s.inside}/tables", {"name": unique("t"), "schema": SCHEMA}),
    "CommitTable": lambda s: s.post(s.table.path, _change(s)),
    "CommitTableCreation": lambda s: s.post(
        f"{s.inside}/tables/{unique('t')}",
        {
            "requirements": [{"type": "assert-create"}],
            "updates": [
                {"action": "assign-uuid", "uuid": str(uuid4())},
                {"action": "upgrade-format-version", "format-version": 2},
                {"action": "add-schema", "schema": SCHEMA, "last-column-id": 2},
                {"action": "set-current-schema", "schema-id": -1},
                {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
                {"action": "set-default-spec", "spec-id": -1},
                {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
                {"action": "set-default-sort-order", "sort-order-id": -1},
            ],
        },
    ),
    "CommitTransaction": lambda s: s.post(
        f"{s.world.root}/transactions/commit",
        {"table-changes": [{"identifier": {"namespace": [s.ns], "name": s.table.name}, **_change(s)}]},
    ),
    "DropTable": lambda s: s.delete(s.table.path),
    "RenameTable": lambda s: s.post(f"{s.world.root}/tables/rename", s.renamed(s.table.name)),
    "UnregisterTable": lambda s: s.post(f"{s.table.path}/unregister", None),
    "RegisterTable": lambda s: s.post(
        f"{s.inside}/register", {"name": s.table.name, "metadata-location": s.file, "overwrite": True}
    ),
    "AdoptTable": lambda s: s.post(
        f"{s.inside}/register",
        {"name": s.table.name, "metadata-location": s.file, "overwrite": True},
        headers=ADOPT,
    ),
    "CreateView": lambda s: s.post(f"{s.inside}/views", _view_body(unique("v"), s.ns)),
    "CommitView": lambda s: s.post(f"{s.inside}/views/{s.view}", _change(s)),
    "DropView": lambda s: s.delete(f"{s.inside}/views/{s.view}"),
    "RenameView": lambda s: s.post(f"{s.world.root}/views/rename", s.renamed(s.view)),
    "CreateGenericTable": lambda s: s.post(s.generics, {"name": unique("g"), "format": "lance"}),
    "AdoptGenericTable": lambda s: s.post(s.generics, {"name": unique("g"), "format": "lance"}, headers=ADOPT),
    "DropGenericTable": lambda s: s.delete(f"{s.generics}/{s.generic}"),
    "RenameGenericTable": lambda s: s.post(
        f"/lakekeeper/v1/{s.world.warehouse}/generic-tables/rename", s.renamed(s.generic)
    ),
    "UndropTabulars": lambda s: undrop(s.world.admin, s.world, ("table", s.dropped)),
    "CreateNamespace": lambda s: s.post(f"{s.world.root}/namespaces", {"namespace": [unique("ns")]}),
    "DropNamespace": lambda s: s.delete(s.inside),
    "UpdateNamespaceProperties": lambda s: s.post(f"{s.inside}/properties", {"updates": {"a": "b"}}),
    "MoveNamespace": lambda s: s.post(
        f"{s.management}/namespace/{s.world.namespace_id(s.ns)}/move", {"destination": [unique("moved")]}
    ),
    "RenameWarehouse": lambda s: s.post(f"{s.management}/rename", {"new-name": unique("w")}),
    "DeleteWarehouse": lambda s: s.delete(s.management),
}

#: Both register a view from a file of a dropped view, which `of_registration` judges as a table's.
NOT_RUN: Final = {"RegisterView", "AdoptView"}


@pytest.fixture(scope="module")
def site(stopped_gateway: Killable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with verified_site(stopped_gateway, tmp_path_factory.mktemp("operations")) as site:
        yield site


@pytest.fixture(scope="module")
def scene(site: Site) -> Iterator[Scene]:
    world = soft_world(site.world)
    ns, view, generic = world.namespace(), unique("v"), unique("g")
    table, dropped = world.table(ns), world.table(ns)
    assert world.commit(world.admin, table.path, {"action": "set-properties", "updates": {"x": "y"}}).is_success
    scene = Scene(site, world, ns, table, view, generic, "", table.answer["metadata-location"])
    assert scene.post(f"{scene.inside}/views", _view_body(view, ns)).status_code == 200
    assert scene.post(scene.generics, {"name": generic, "format": "lance"}).status_code == 200
    assert world.admin.delete(dropped.path).status_code == 204
    [kept] = [each["id"] for each in deleted(world.admin, world).values() if each["name"] == dropped.name]
    try:
        yield Scene(site, world, ns, table, view, generic, kept, scene.file)
    finally:
        world.close()


def test_each_operation_that_verifiers_judge_has_a_request() -> None:
    assert REQUESTS.keys() | NOT_RUN == JUDGED


@pytest.mark.parametrize("operation", REQUESTS)
def test_rejected_operation_is_refused(scene: Scene, operation: str) -> None:
    rejected = {f"{kind}:{type}": ["rejected", "not now"] for kind in KINDS for type in TYPES}
    with scene.site.answering_all(rejected):
        answer = REQUESTS[operation](scene)
    error = error_of(answer)
    assert (answer.status_code, error["type"]) == (403, "ChangeRejected"), answer.text
    assert "steward: not now" in error["message"]


def test_restoration_waits_and_is_used_once(scene: Scene) -> None:
    admin = scene.world.admin
    one = scene.world.table(scene.ns)
    assert admin.delete(one.path).status_code == 204
    [id] = [each["id"] for each in deleted(admin, scene.world).values() if each["name"] == one.name]
    carol = scene.world.stranger("carol")
    for privilege in ("approve_changes", "describe"):
        scene.world.grant(privilege, carol, "warehouse", scene.world.warehouse)
    with scene.site.answering("restore:table", "pending", "its retention ended"):
        refused = undrop(admin, scene.world, ("table", id))
        assert (refused.status_code, error_of(refused)["type"]) == (403, "ChangePending")
        path = f"{scene.management}/change-tickets"
        [ticket] = [each for each in admin.get(path).json()["change-tickets"] if each["object-id"] == id]
        assert carol.post(f"{path}/{ticket['id']}/approve", {}).status_code == 204
        assert undrop(admin, scene.world, ("table", id)).status_code == 204
        assert admin.get(f"{path}/{ticket['id']}").json()["status"] == "used"
        # A table that is not dropped needs no approval.
        assert undrop(admin, scene.world, ("table", id)).status_code == 204
    assert admin.get(one.path).status_code == 200


def test_approved_deletion_of_a_warehouse_goes_through(site: Site) -> None:
    world = soft_world(site.world)
    carol = world.stranger("carol")
    for privilege in ("approve_changes", "describe"):
        world.grant(privilege, carol, "warehouse", world.warehouse)
    one = f"/management/v1/warehouse/{world.warehouse}"
    try:
        with site.answering("drop:warehouse", "pending", "wait for the audit"):
            refused = world.admin.delete(one)
            assert (refused.status_code, error_of(refused)["type"]) == (403, "ChangePending")
            [ticket] = world.admin.get(f"{one}/change-tickets").json()["change-tickets"]
            assert carol.post(f"{one}/change-tickets/{ticket['id']}/approve", {}).status_code == 204
            assert world.admin.delete(f"{one}?force=true").status_code == 403
            assert world.admin.delete(one).status_code == 204
    finally:
        world.close()
