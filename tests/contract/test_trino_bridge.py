# SPDX-License-Identifier: Apache-2.0
"""The Trino bridge as deployed: its bundle in a separate OPA, a gateway, OpenFGA, and recorded requests of Trino.

For each user the bridge must return the verdict of the gateway.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.servers.certificates import authority
from tests.support.stack.columns import give
from tests.support.stack.lifecycle import until
from tests.support.stack.role_policies import contractors, make_role, put_in
from tests.support.stack.trino_bridge import ENTRY, KEY, Bridge, bridged, recorded
from tests.support.stack.views import create as create_view
from tests.support.stack.world import Person, World, unique


@pytest.fixture(scope="module")
def bridge(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    """Run the bridge; its service account has `inspector` and `enforcer` on the warehouse."""
    for privilege in ("inspector", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    with bridged(world, tmp_path_factory.mktemp("bridge")) as running:
        yield running
    for privilege in ("inspector", "enforcer"):
        world.revoke(privilege, world.etl, "warehouse", world.warehouse)


@dataclass(frozen=True)
class Site:
    """Namespaces with the objects of the recorded requests, and three users."""

    sales: str
    tmp: str
    owner: Person
    reader: Person
    stranger: Person

    def rename(self, action: Mapping[str, Any]) -> Any:
        """Return the recorded action with the names of these namespaces."""
        text = json.dumps(action)
        for word, name in (("sales", self.sales), ("tmp1", self.tmp), ("tmp2", f"{self.tmp}_2"), ("bob", "carol")):
            text = text.replace(f'"{word}"', f'"{name}"')
        return json.loads(text)

    def people(self) -> tuple[Person, Person, Person]:
        return self.owner, self.reader, self.stranger


@pytest.fixture(scope="module")
def site(world: World) -> Site:
    """Return a site: the owner owns the namespaces, the reader has `select` on one, the stranger has no grants."""
    people = world.steward, world.analyst, world.contractor
    for person in people:
        world.strip(person)
    sales, tmp = world.namespace(unique("sales")), world.namespace(unique("tmp"))
    for name in ("orders", "t1", "t2"):
        world.table(sales, name)
    for name in ("v1", "v2"):
        create_view(world, sales, name)
    world.grant("create", people[0], "warehouse", world.warehouse)
    for namespace in (sales, tmp):
        world.grant("ownership", people[0], "namespace", world.namespace_id(namespace))
    world.grant("select", people[1], "namespace", world.namespace_id(sales))
    return Site(sales, tmp, *people)


#: Verdicts for (owner, reader); the stranger is denied. Other operations are in `FREE`, `LISTS` or `NEVER`.
OUTCOMES = {
    "AccessCatalog": (True, True),
    "AddColumn": (True, False),
    "AlterColumn": (True, False),
    "CreateFunction": (True, False),
    "CreateMaterializedView": (True, False),
    "CreateSchema": (True, False),
    "CreateTable": (True, False),
    "CreateView": (True, False),
    "CreateViewWithSelectFromColumns": (True, False),
    "DeleteFromTable": (True, False),
    "DropColumn": (True, False),
    "DropSchema": (True, False),
    "DropTable": (True, False),
    "DropView": (True, False),
    "ExecuteTableProcedure": (True, False),
    "InsertIntoTable": (True, False),
    "RenameColumn": (True, False),
    "RenameTable": (True, False),
    "RenameView": (True, False),
    "SelectFromColumns": (True, True),
    "SetCatalogSessionProperty": (True, True),
    "SetColumnComment": (True, False),
    "SetSchemaAuthorization": (True, False),
    "SetTableAuthorization": (True, False),
    "SetTableComment": (True, False),
    "SetTableProperties": (True, False),
    "SetViewAuthorization": (True, False),
    "SetViewComment": (True, False),
    "ShowColumns": (True, True),
    "ShowCreateSchema": (True, True),
    "ShowCreateTable": (True, True),
    "ShowFunctions": (True, True),
    "ShowSchemas": (True, True),
    "ShowTables": (True, True),
    "TruncateTable": (True, False),
    "UpdateTableColumns": (True, False),
}
#: Operations that all users may run, including unknown ones.
FREE = {"ExecuteQuery", "SetSystemSessionProperty"}
#: Operations denied to all three users: they neither run Trino nor manage the warehouse, or no user may run them.
NEVER = {
    "CreateCatalog",
    "CreateViewWithExecuteFunction",
    "DropCatalog",
    "DropFunction",
    "ExecuteFunction",
    "ExecuteProcedure",
    "ImpersonateUser",
    "KillQueryOwnedBy",
    "ReadSystemInformation",
    "RenameSchema",
    "ShowCreateFunction",
    "ViewQueryOwnedBy",
    "WriteSystemInformation",
}


def test_each_recorded_request_has_its_expected_outcome_for_every_user(bridge: Bridge, site: Site) -> None:
    requested = [each for each in recorded() if each.endpoint == "allow"]
    assert {each.operation for each in requested} == set(OUTCOMES) | FREE | NEVER
    found, expected = {}, {}
    for each in requested:
        outcome = OUTCOMES.get(each.operation, (each.operation in FREE,) * 2)
        if "location" in json.dumps(each.action):
            outcome = (False, False)
        row = (*outcome, each.operation in FREE)
        expected[each.statement] = row
        action = site.rename(each.action)
        found[each.statement] = tuple(bridge.result("allow", person, action) for person in site.people())
    assert found == expected


def test_lists_filters_and_masks_match_each_reader(bridge: Bridge, site: Site) -> None:
    for each in recorded():
        if each.endpoint == "allow":
            continue
        action = site.rename(each.action)
        results = [bridge.result(ENTRY[each.endpoint], person, action) for person in site.people()]
        if each.operation == "FilterColumns":
            assert results == [[0, 1, 2, 3, 4, 5, 6]] * 2 + [[]]
        elif each.operation == "FilterTables":
            seen = [
                location
                for location, thing in enumerate(action["filterResources"])
                if thing["table"]["tableName"] in ("orders", "t2", "v1", "v2")
            ]
            assert results == [seen, seen, []], each.statement
        elif each.operation == "FilterSchemas":
            # `system` lists a catalog's tables without a check, so only users that see the whole warehouse may use it.
            assert results == [[0, 1, 2], [0, 2], []]
        elif each.operation == "FilterCatalogs":
            assert results == [[0], [0], []]
        elif each.operation == "GetRowFilters":
            assert results == [[], [], [{"expression": "false"}]]
        elif each.operation == "GetColumnMask":
            assert results[:2] == [[], []]
            assert [mask["viewExpression"]["expression"] for mask in results[2]][0] == "CAST(NULL AS bigint)"
            assert len(results[2]) == 7
        else:
            assert each.operation in ("FilterFunctions", "FilterViewQueryOwnedBy")
            assert results == [[], [], []]


def _is_allowed(answer: httpx.Response) -> bool:
    assert answer.status_code in (200, 204, 403, 404), answer.text
    return answer.status_code < 300


#: Sends the gateway request of an operation on a fresh object; returns (resource in Trino's check, response).
Doing = Callable[[World, Site, Person], tuple[dict[str, Any], httpx.Response]]


def _table(site: Site, name: str, **more: Any) -> dict[str, Any]:
    return {"table": {"catalogName": "ice", "schemaName": site.sales, "tableName": name, **more}}


def _load(world: World, site: Site, person: Person) -> tuple[dict[str, Any], httpx.Response]:
    return _table(site, "orders"), person.get(f"{world.root}/namespaces/{site.sales}/tables/orders")


def _read(world: World, site: Site, person: Person) -> tuple[dict[str, Any], httpx.Response]:
    path = f"{world.root}/namespaces/{site.sales}/tables/orders/credentials"
    return _table(site, "orders", columns=[]), person.get(path)


def _comment(world: World, site: Site, person: Person) -> tuple[dict[str, Any], httpx.Response]:
    update = {"action": "set-properties", "updates": {"comment": unique("c")}}
    return _table(site, "t1"), world.commit(person, f"{world.root}/namespaces/{site.sales}/tables/t1", update)


def _drop(world: World, site: Site, person: Person) -> tuple[dict[str, Any], httpx.Response]:
    made = world.table(site.sales)
    return _table(site, made.name), person.delete(made.path)


def _drop_view(world: World, site: Site, person: Person) -> tuple[dict[str, Any], httpx.Response]:
    made = create_view(world, site.sales)
    return _table(site, made["name"]), person.delete(made["path"])


def _create(world: World, site: Site, person: Person) -> tuple[dict[str, Any], httpx.Response]:
    name = unique("made")
    schema = {"type": "struct", "fields": []}
    return _table(site, name), person.post(
        f"{world.root}/namespaces/{site.sales}/tables", {"name": name, "schema": schema}
    )


def _show_tables(world: World, site: Site, person: Person) -> tuple[dict[str, Any], httpx.Response]:
    schema = {"schema": {"catalogName": "ice", "schemaName": site.sales}}
    return schema, person.get(f"{world.root}/namespaces/{site.sales}/tables")


def _show_schemas(world: World, site: Site, person: Person) -> tuple[dict[str, Any], httpx.Response]:
    return {"catalog": {"name": "ice"}}, person.get(f"{world.root}/namespaces")


def _create_schema(world: World, site: Site, person: Person) -> tuple[dict[str, Any], httpx.Response]:
    name = unique("made")
    schema = {"schema": {"catalogName": "ice", "schemaName": name, "properties": {}}}
    return schema, person.post(f"{world.root}/namespaces", {"namespace": [name]})


def _drop_schema(world: World, site: Site, person: Person) -> tuple[dict[str, Any], httpx.Response]:
    name = world.namespace()
    world.grant("modify", site.owner, "namespace", world.namespace_id(name))
    schema = {"schema": {"catalogName": "ice", "schemaName": name}}
    return schema, person.delete(f"{world.root}/namespaces/{name}")


DONE: dict[str, Doing] = {
    "ShowCreateTable": _load,
    "SelectFromColumns": _read,
    "SetTableComment": _comment,
    "AddColumn": _comment,
    "DropTable": _drop,
    "DropView": _drop_view,
    "CreateTable": _create,
    "ShowTables": _show_tables,
    "ShowSchemas": _show_schemas,
    "CreateSchema": _create_schema,
    "DropSchema": _drop_schema,
}


@pytest.mark.parametrize("operation", DONE)
def test_bridge_decisions_equal_the_gateways_for_every_user(
    world: World, bridge: Bridge, site: Site, operation: str
) -> None:
    answers = {}
    for person in site.people():
        # The gateway's request may remove the object, so the bridge gets a check of an equal object.
        resource, answer = DONE[operation](world, site, person)
        twin = resource
        if operation in ("DropTable", "DropView", "DropSchema") and answer.status_code < 300:
            twin, _ = DONE[operation](world, site, world.unauthenticated)
        answers[person.name] = (_is_allowed(answer), bridge.may(person, operation, **twin))
    assert all(gateway == trino for gateway, trino in answers.values()), answers
    assert answers[site.owner.name] == (True, True)
    assert answers[site.stranger.name] == (False, False)


def test_bridge_denies_a_revoked_right_at_the_next_request(world: World, bridge: Bridge, site: Site) -> None:
    table = world.table(site.tmp)
    requested = {"table": {"catalogName": "ice", "schemaName": site.tmp, "tableName": table.name, "columns": []}}
    assert not bridge.may(site.reader, "SelectFromColumns", **requested)
    world.grant("select", site.reader, "table", table.uuid)
    assert bridge.may(site.reader, "SelectFromColumns", **requested)
    world.revoke("select", site.reader, "table", table.uuid)
    assert not bridge.may(site.reader, "SelectFromColumns", **requested)


def test_an_ownerless_view_is_not_read_with_the_rights_of_an_outer_views_owner(
    world: World, bridge: Bridge, site: Site
) -> None:
    plain, lent = create_view(world, site.sales), create_view(world, site.sales)
    owner = {"action": "set-properties", "updates": {"trino.run-as-owner": site.owner.id.removeprefix("oidc~")}}
    changed = site.owner.post(lent["path"], {"updates": [owner]})
    assert changed.status_code == 200, changed.text
    requested = {made["name"]: _table(site, made["name"], columns=["one"]) for made in (plain, lent)}
    for resource in requested.values():
        assert bridge.may(site.owner, "SelectFromColumns", **resource)
    within = {
        name: bridge.may(site.owner, "CreateViewWithSelectFromColumns", **each) for name, each in requested.items()
    }
    assert within == {plain["name"]: False, lent["name"]: True}


def test_guardrail_applies_in_trino(world: World, bridge: Bridge, site: Site) -> None:
    role = make_role(world)
    put_in(world, role, "user", site.reader.id)
    requested = {"table": {"catalogName": "ice", "schemaName": site.sales, "tableName": "orders", "columns": ["id"]}}
    assert bridge.may(site.reader, "SelectFromColumns", **requested)
    with contractors(world, role):
        assert not bridge.may(site.reader, "SelectFromColumns", **requested)
        assert bridge.may(site.owner, "SelectFromColumns", **requested)


def _columns_of(person: Person, bridge: Bridge, site: Site, *names: str) -> bool:
    return bridge.may(person, "SelectFromColumns", **_table(site, "orders", columns=list(names)))


@pytest.fixture
def some(world: World, site: Site) -> Iterator[Person]:
    """Yield a user whose only right is to read the column `id` of orders."""
    world.strip(world.carol)
    orders = world.admin.get(f"{world.root}/namespaces/{site.sales}/tables/orders").json()["metadata"]["table-uuid"]
    assert give(world, orders, "id", world.carol).status_code == 204
    yield world.carol
    world.strip(world.carol)


def test_column_restrictions_are_applied_to_every_bridge_request(
    world: World, bridge: Bridge, site: Site, some: Person
) -> None:
    answers = [_columns_of(some, bridge, site, *names) for names in (["id"], ["word"], ["id", "word"], [])]
    assert answers == [True, False, False, True]
    listed = {
        "operation": "FilterColumns",
        "filterResources": [_table(site, "orders", columns=["word", "id", "$path"])],
    }
    assert bridge.result("batch", some, listed) == [1]
    tables = {"operation": "FilterTables", "filterResources": [_table(site, name) for name in ("orders", "t1", "v1")]}
    assert bridge.result("batch", some, tables) == [0]
    assert bridge.may(some, "ShowColumns", **_table(site, "orders"))
    masked = {
        "operation": "GetColumnMask",
        "filterResources": [
            {"column": {**_table(site, name)["table"], "columnName": column, "columnType": "bigint"}}
            for name, column in (("orders", "id"), ("orders", "word"), ("t1", "id"))
        ],
    }
    null = {"expression": "CAST(NULL AS bigint)"}
    masks = bridge.result("batch_column_masks", some, masked)
    assert masks == [{"index": location, "viewExpression": null} for location in (1, 2)]
    for name, filters in (
        ("orders", []),
        ("orders$files", [{"expression": "false"}]),
        ("t1", [{"expression": "false"}]),
    ):
        requested = {"operation": "GetRowFilters", "resource": _table(site, name)}
        assert bridge.result("row_filters", some, requested) == filters, name


def test_column_grantee_has_no_other_right_in_trino(bridge: Bridge, site: Site, some: Person) -> None:
    may = {
        each.statement
        for each in recorded()
        if each.endpoint == "allow"
        and each.operation not in FREE
        and "QueryOwnedBy" not in each.operation
        and bridge.result("allow", some, site.rename(each.action))
    }
    assert {"select count(*) from ice.sales.orders"} <= may
    reading = {each.statement for each in recorded() if each.operation.startswith(("Access", "Show", "SetCatalog"))}
    reading |= {each.statement for each in recorded() if each.operation == "SelectFromColumns"}
    assert may <= reading, may - reading
    assert not any("$" in statement or "table_changes" in statement or "insert" in statement for statement in may)


def test_former_name_of_another_column_is_not_readable(world: World, bridge: Bridge, site: Site) -> None:
    """Trino reads old snapshots with their own schema, and its check does not name the snapshot."""
    table = world.table(site.tmp)
    world.strip(world.carol)
    fields = [{"id": 1, "name": "WORD", "type": "long", "required": False}]
    fields.append({"id": 2, "name": "other", "type": "string", "required": False})
    changed = world.commit(
        world.admin,
        table.path,
        {"action": "add-schema", "schema": {"type": "struct", "fields": fields}, "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
    )
    assert changed.status_code == 200, changed.text
    requested = {"table": {"catalogName": "ice", "schemaName": site.tmp, "tableName": table.name, "columns": ["word"]}}
    assert give(world, table, "WORD", world.carol).status_code == 204
    assert not bridge.may(world.carol, "SelectFromColumns", **requested), (
        "a former name of another column must not be readable"
    )
    assert give(world, table, "other", world.carol).status_code == 204
    assert bridge.may(world.carol, "SelectFromColumns", **requested), (
        "the name must be readable when all its columns are granted"
    )
    world.strip(world.carol)


@pytest.mark.threat("LG-DEC-20")
def test_bridge_answers_only_the_engine_and_only_decision_paths(bridge: Bridge, site: Site) -> None:
    action = {"operation": "ExecuteQuery"}
    assert bridge.send("allow", site.owner, action).json()["result"] is True
    for key in (None, "other", ""):
        assert bridge.send("allow", site.owner, action, key=key).status_code == 401
    for entry in ("settings/token", "settings", "gateway", "operations/table"):
        answer = bridge.send(entry, site.owner, action)
        assert answer.status_code == 401, entry


def test_decision_log_has_the_audit_id_and_no_secret(world: World, bridge: Bridge, site: Site) -> None:
    requested = {"table": {"catalogName": "ice", "schemaName": site.sales, "tableName": "orders", "columns": ["id"]}}
    assert bridge.may(site.reader, "SelectFromColumns", **requested)
    deadline = time.monotonic() + 60
    ids: list[str] = []
    while not ids and time.monotonic() < deadline:
        time.sleep(0.2)
        text = bridge.log.read_text()
        ids = re.findall(r'"uuid\.rfc4122":\{[^}]*?"([0-9a-f-]{36})"', text)
    assert ids, text[-2000:]
    assert world.etl.token not in text
    assert KEY not in text
    half = "select operation from audit_log where convert_from(record, 'UTF8')::jsonb ->> 'client_request_id' = $1"
    until(lambda: bool(world.sql(half, ids[-1])), "the gateway's audit does not contain the request of the bridge")


def test_bridge_without_inspector_rights_denies(world: World, bridge: Bridge, site: Site) -> None:
    requested = {"table": {"catalogName": "ice", "schemaName": site.sales, "tableName": "orders", "columns": []}}
    world.revoke("inspector", world.etl, "warehouse", world.warehouse)
    try:
        assert not bridge.may(site.owner, "SelectFromColumns", **requested)
    finally:
        world.grant("inspector", world.etl, "warehouse", world.warehouse)
    assert bridge.may(site.owner, "SelectFromColumns", **requested)


def test_bridge_denies_while_the_gateway_is_down(world: World, site: Site, tmp_path: Path) -> None:
    requested = {"table": {"catalogName": "ice", "schemaName": site.sales, "tableName": "orders", "columns": []}}
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with bridged(world, tmp_path, LAKEGATE_BRIDGE_URL=address, LAKEGATE_BRIDGE_TIMEOUT="300ms") as bridge:
            assert not bridge.may(site.owner, "SelectFromColumns", **requested)
            assert bridge.result("row_filters", site.owner, {"operation": "GetRowFilters", "resource": requested}) == [
                {"expression": "false"}
            ]
            tables = {"operation": "FilterTables", "filterResources": [requested]}
            assert bridge.result("batch", site.owner, tables) == []


def test_engine_is_authenticated_by_its_certificate(world: World, bridge: Bridge, site: Site, tmp_path: Path) -> None:
    trusted = authority(tmp_path / "ca")
    trusted.server("127.0.0.1")
    serving = str(trusted.folder / "127.0.0.1.pem")
    action = {"operation": "ExecuteQuery"}

    def known_as(name: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(trusted.file))
        context.load_cert_chain(trusted.client(name))
        return context

    with bridged(
        world,
        tmp_path,
        f"--tls-cert-file={serving}",
        f"--tls-private-key-file={serving}",
        f"--tls-ca-cert-file={trusted.file}",
        "--authentication=tls",
        verify=known_as("trino"),
        LAKEGATE_BRIDGE_ENGINE_SUBJECT="CN=trino",
        LAKEGATE_BRIDGE_ENGINE_KEY="",
    ) as by_certificate:
        assert by_certificate.send("allow", site.owner, action, key=None).json()["result"] is True
        unknown = Bridge(by_certificate.url, by_certificate.log, known_as("somebody"))
        assert unknown.send("allow", site.owner, action, key=None).status_code == 401
        without_certificate = Bridge(
            by_certificate.url, by_certificate.log, ssl.create_default_context(cafile=str(trusted.file))
        )
        with pytest.raises(httpx.TransportError):
            without_certificate.send("allow", site.owner, action, key=None)


def test_bridge_obtains_its_own_token(world: World, bridge: Bridge, site: Site, tmp_path: Path) -> None:
    user = world.ready.users["etl"]
    requested = {"table": {"catalogName": "ice", "schemaName": site.sales, "tableName": "orders", "columns": []}}
    own: dict[str, Any] = {
        "LAKEGATE_BRIDGE_TOKEN": "",
        "LAKEGATE_BRIDGE_TOKEN_ENDPOINT": world.ready.token_endpoint,
        "LAKEGATE_BRIDGE_CLIENT_ID": user.client_id,
        "LAKEGATE_BRIDGE_CLIENT_SECRET": user.client_secret,
    }
    with bridged(world, tmp_path, **own) as fetching:
        assert fetching.may(site.reader, "SelectFromColumns", **requested)
        assert not fetching.may(site.stranger, "SelectFromColumns", **requested)
    with bridged(world, tmp_path, **{**own, "LAKEGATE_BRIDGE_CLIENT_SECRET": "wrong"}) as refused:
        assert not refused.may(site.reader, "SelectFromColumns", **requested)
