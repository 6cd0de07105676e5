# SPDX-License-Identifier: Apache-2.0
"""The numbers of requests to PostgreSQL, OpenFGA and OPA by operation equal those in `docs/performance.md`, on the real
servers.

The tests read the table of that page, so neither can change without the other.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import asyncpg
import httpx
import pytest

from lakegate.local.ready import Ready
from tests.house import FRAMES
from tests.support.rows.metered import Cost, Metered, metered
from tests.support.stack.exchanging import EXCHANGE, JWT
from tests.support.stack.opa_always_asked import last, opa_always_asked

__all__ = ["opa_always_asked"]


pytestmark = pytest.mark.generated

_PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
_CALLS = _PAGE.read_text().partition("\n## How to measure\n")[0]
"""The part of the page that lists calls. The tables behind it have times."""
_ROW = re.compile(r"^\| (?P<operation>[^|]+?) \| (?P<numbers>[-0-9| ]+) \|$", re.MULTILINE)
_DOCUMENT = re.compile(r"\btables\.metadata\b")
_IN_PART = "some columns: "
_PLAIN = {"X-Iceberg-Access-Delegation": "client-managed"}
_SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
_ACTIONS = ("read_data", "write_data", "drop", "commit", "rename")
_KEY = "00000000-0000-4000-8000-00000{n}"
_SET = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"n": "{n}"}}]}


@dataclass(frozen=True)
class Request:
    """One request. `{n}` is a different number for each use."""

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] | None = None


@dataclass(frozen=True)
class RequestTargets:
    """The objects that the requests name."""

    prefix: str
    table_id: str

    def requests(self) -> dict[str, Request]:
        """Return the requests by the name of their row in the page."""
        catalog = f"/catalog/v1/{self.prefix}"
        tables = f"{catalog}/namespaces/cost/tables"
        grants = f"/management/v1/permissions/warehouse/{self.prefix}/table/{self.table_id}/assignments"
        search = f"/management/v1/warehouse/{self.prefix}/search-tabular"
        about = {"warehouse-id": self.prefix, "table-id": self.table_id}
        checks = [{"operation": {"table": {**about, "action": action}}} for action in _ACTIONS]
        bob = [{"type": "select", "user": "oidc~bob"}]
        return {
            "config": Request("GET", "/catalog/v1/config?warehouse=demo"),
            "list namespaces": Request("GET", f"{catalog}/namespaces"),
            "load namespace": Request("GET", f"{catalog}/namespaces/cost"),
            "namespace exists": Request("HEAD", f"{catalog}/namespaces/cost"),
            "list tables": Request("GET", tables),
            "table exists": Request("HEAD", f"{tables}/table"),
            "loadTable, no credentials": Request("GET", f"{tables}/table", headers=_PLAIN),
            "loadTable, vended": Request("GET", f"{tables}/table"),
            "load credentials": Request("GET", f"{tables}/table/credentials"),
            "read grants of a table": Request("GET", grants),
            "actions of a table": Request(
                "GET", f"/management/v1/warehouse/{self.prefix}/table/{self.table_id}/actions"
            ),
            "search for tables": Request("POST", search, {"search": "table"}),
            "batch-check of 5": Request("POST", "/management/v1/action/batch-check", {"checks": checks}),
            "create namespace": Request("POST", f"{catalog}/namespaces", {"namespace": ["made{n}"]}),
            "update namespace properties": Request(
                "POST", f"{catalog}/namespaces/cost/properties", {"updates": {"n": "{n}"}}
            ),
            "create table": Request("POST", tables, {"name": "made{n}", "schema": _SCHEMA}, _PLAIN),
            "commit": Request("POST", f"{tables}/table", _SET),
            "commit, with an idempotency key": Request("POST", f"{tables}/table", _SET, {"Idempotency-Key": _KEY}),
            "drop table": Request("DELETE", f"{tables}/dropped{{n}}"),
            "grant": Request("POST", grants, {"writes": bob}),
            "revoke": Request("POST", grants, {"deletes": bob}),
        }


@pytest.fixture(scope="module")
def targets(stack: Ready) -> RequestTargets:
    """Create a namespace with the tables of the requests."""
    headers = {"Authorization": f"Bearer {stack.users['admin'].token}"}
    with httpx.Client(base_url=stack.catalog_uri, headers=headers, trust_env=False, timeout=60) as client:
        prefix = client.get("/v1/config?warehouse=demo").raise_for_status().json()["defaults"]["prefix"]
        client.post(f"/v1/{prefix}/namespaces", json={"namespace": ["cost"]}).raise_for_status()
        tables = f"/v1/{prefix}/namespaces/cost/tables"
        for name in ("table", *(f"dropped{n}" for n in range(6))):
            client.post(tables, json={"name": name, "schema": _SCHEMA}, headers=_PLAIN).raise_for_status()
        listed = client.get(f"{tables}?returnUuids=true").raise_for_status().json()
    names = [each["name"] for each in listed["identifiers"]]
    return RequestTargets(prefix, listed["table-uuids"][names.index("table")])


@pytest.fixture
def opa_lasting(stack: Ready) -> Iterator[None]:
    """Let OPA's decisions be cacheable for ten minutes; undo it after the test."""
    last(stack, 600)
    yield
    last(stack, 1)


def published() -> dict[str, list[int]]:
    """Return the numbers of each row: statements, transactions, OpenFGA checks and writes, OPA requests."""
    found = {}
    for row in _ROW.finditer(_CALLS):
        numbers = [cell.strip() for cell in row["numbers"].split("|")]
        if all(cell.isdigit() for cell in numbers) and not row["operation"].startswith(_IN_PART):
            found[row["operation"].strip()] = [int(cell) for cell in numbers]
    return found


async def _send(gateway: Metered, token: str, requested: Request, n: int) -> Cost:
    body = None if requested.body is None else _numbered(requested.body, n)
    response, cost = await gateway.send(
        requested.method,
        requested.path.replace("{n}", str(n)),
        token,
        body=body,
        headers=_numbered(requested.headers, n),
    )
    assert response.is_success, f"{requested.method} {requested.path}: {response.status_code} {response.text}"
    return cost


def _numbered(value: Any, n: int) -> Any:
    match value:
        case str():
            return value.replace("{n}", f"{n}{uuid4().hex[:6]}")
        case dict():
            return {key: _numbered(each, n) for key, each in value.items()}
        case list():
            return [_numbered(each, n) for each in value]
        case _:
            return value


async def _survey(
    stack: Ready, targets: RequestTargets, *, with_cache: bool, numbers: Iterable[int], **settings: str
) -> dict[str, Cost]:
    """Return the cost of each request when it was last sent, in a separate gateway."""
    token = stack.users["admin"].token
    costs = {}
    async with metered(stack, **settings) as gateway:
        for n in numbers:
            for name, requested in targets.requests().items():
                if not with_cache:
                    costs[name] = await _send(gateway, token, requested, n)
                elif requested.method in ("GET", "HEAD"):
                    costs[name] = await _cached(partial(_send, gateway, token, requested, n))
    return costs


async def _cached(send: Callable[[], Awaitable[Cost]]) -> Cost:
    """Return the cost of a repeated request. OPA's cached decisions are not used while the policies' revision is more
    than a second old, as after a start or on a stalled machine; then the request is sent again.
    """
    for _ in range(40):
        cost = await send()
        if not cost.opa:
            break
        await asyncio.sleep(0.25)
    return cost


def test_operation_without_cached_decision_has_its_documented_cost(
    stack: Ready, targets: RequestTargets, opa_always_asked: None
) -> None:
    forgetful = {"MEMORY__ALLOW_SECONDS": "0", "MEMORY__CREDENTIALS": "0", "MEMORY__SILENT_CALLERS": "0"}
    costs = asyncio.run(_survey(stack, targets, with_cache=False, numbers=(0, 1), **forgetful))
    measured = {
        name: [
            len(cost.statements),
            cost.transactions,
            cost.openfga["batch-check"],
            cost.openfga["write"],
            cost.opa,
        ]
        for name, cost in costs.items()
    }
    assert measured == {name: numbers[:5] for name, numbers in published().items()}


def test_only_loads_and_changes_of_tables_read_metadata_documents(stack: Ready, targets: RequestTargets) -> None:
    """A load whose document is cached reads none either."""
    costs = asyncio.run(_survey(stack, targets, with_cache=False, numbers=(4, 5)))
    reading = {name for name, cost in costs.items() if any(_DOCUMENT.search(each) for each in cost.statements)}
    assert not reading & {
        "config",
        "list namespaces",
        "load namespace",
        "namespace exists",
        "list tables",
        "table exists",
        "loadTable, no credentials",
        "loadTable, vended",
        "load credentials",
        "read grants of a table",
        "actions of a table",
        "search for tables",
        "batch-check of 5",
    }


@pytest.fixture
def tasks_of_others(stack: Ready, targets: RequestTargets) -> Iterator[str]:
    """Create a table with a task, in a namespace with 400 other tables whose tasks are newer; return the table's id."""
    headers = {"Authorization": f"Bearer {stack.users['admin'].token}"}
    with httpx.Client(base_url=stack.catalog_uri, headers=headers, trust_env=False, timeout=60) as client:
        tables = f"/v1/{targets.prefix}/namespaces/cost/tables"
        name = f"steered{uuid4().hex[:6]}"
        made = client.post(tables, json={"name": name, "schema": _SCHEMA}, headers=_PLAIN).raise_for_status().json()
    id = str(made["metadata"]["table-uuid"])

    async def change(*statements: str) -> None:
        connection = await asyncpg.connect(stack.postgres)
        for statement in statements:
            await connection.execute(statement, id)
        await connection.close()

    task = (
        "insert into tasks (id, queue, warehouse_id, entity_type, entity_id, payload, scheduled_for, created_at) "
        "select gen_random_uuid(), 'soft_deletion', warehouse_id, kind, id, '{}', now() + interval '1 day', "
    )
    others = "select id from tables where location like 'others of ' || $1::text || '%'"
    asyncio.run(
        change(
            f"{task} now() - interval '1 hour' from tables where id = $1::text::uuid",
            "insert into tables (id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, "
            "location_key, metadata) select gen_random_uuid(), warehouse_id, namespace_id, kind, n.name, n.name, "
            "gen_random_uuid(), n.name, n.name, '{}' from tables, "
            "(select 'others of ' || $1::text || number as name from generate_series(1, 400) number) n "
            "where id = $1::text::uuid",
            f"{task} now() from tables where id in ({others})",
        )
    )
    yield id
    asyncio.run(
        change(f"delete from tasks where entity_id in ({others})", f"delete from tables where id in ({others})")
    )


def test_task_list_cost_depends_on_grants_and_not_on_tasks(
    stack: Ready, targets: RequestTargets, tasks_of_others: str
) -> None:
    reader, admin = stack.users["contractor"], stack.users["admin"].token
    grants = f"/management/v1/permissions/warehouse/{targets.prefix}/table/{tasks_of_others}/assignments"
    given = [{"type": "describe", "user": reader.id}]

    async def send() -> tuple[httpx.Response, Cost]:
        async with metered(stack, MEMORY__ALLOW_SECONDS="0") as gateway:
            granted, _ = await gateway.send("POST", grants, admin, body={"writes": given})
            assert granted.status_code == 204, granted.text
            path = f"/management/v1/warehouse/{targets.prefix}/task/list"
            requested = await gateway.send("POST", path, reader.token, body={"queue-name": ["soft_deletion"]})
            await gateway.send("POST", grants, admin, body={"deletes": given})
            return requested

    answer, cost = asyncio.run(send())
    assert answer.status_code == 200, answer.text
    assert [each["entity"]["table-id"] for each in answer.json()["tasks"]] == [tasks_of_others]
    assert answer.json()["next-page-token"] is None
    assert (cost.openfga["batch-check"], cost.opa) == (2, 1), (
        "expected one check for the warehouse and one for the table"
    )


def test_a_list_of_names_equals_a_list_of_rows(
    stack: Ready, targets: RequestTargets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list without ids is one value of names, unless there are too many; a list with ids is always read as rows."""
    tables = f"/catalog/v1/{targets.prefix}/namespaces/cost/tables"
    token = stack.users["admin"].token

    async def send() -> list[list[Any]]:
        found = []
        async with metered(stack) as gateway:
            for name in ('quo"te', "comma, {brace}", "NULL", "Ünicode"):
                body = {"name": name, "schema": _SCHEMA}
                created, _ = await gateway.send("POST", tables, token, body=body, headers=_PLAIN)
                assert created.status_code == 200, created.text
            for most, path in ((10_000, tables), (3, tables), (10_000, f"{tables}?returnUuids=true")):
                monkeypatch.setattr("gateway.features.contents.lists._MOST_NAMES", most)
                listed, _ = await gateway.send("GET", path, token)
                assert listed.status_code == 200, listed.text
                found.append(listed.json()["identifiers"])
            for each in found[0]:
                if each["name"] in ('quo"te', "comma, {brace}", "NULL", "Ünicode"):
                    await gateway.send("DELETE", f"{tables}/{quote(each['name'], safe='')}", token)
        return found

    names, rows, with_ids = asyncio.run(send())
    assert names == rows == with_ids
    assert {"namespace": ["cost"], "name": "NULL"} in names


@pytest.mark.parametrize("what", ["table", "namespace"])
def test_absent_and_invisible_objects_have_the_same_cost(
    stack: Ready, targets: RequestTargets, opa_lasting: None, what: str
) -> None:
    """Also when the request is repeated, so that nothing cached distinguishes them."""
    catalog = f"/catalog/v1/{targets.prefix}/namespaces"
    there, gone = {
        "table": (f"{catalog}/cost/tables/table", f"{catalog}/cost/tables/none"),
        "namespace": (f"{catalog}/cost", f"{catalog}/gone"),
    }[what]

    async def costs(path: str) -> list[tuple[int, int, int]]:
        async with metered(stack, MEMORY__SILENT_CALLERS="0") as gateway:

            async def send() -> Cost:
                response, cost = await gateway.send("GET", path, stack.users["contractor"].token, headers=_PLAIN)
                assert response.status_code == 404, response.text
                return cost

            found = [await send(), await _cached(send), await _cached(send)]
        return [(len(cost.statements), cost.openfga["batch-check"], cost.opa) for cost in found]

    assert asyncio.run(costs(there)) == asyncio.run(costs(gone))


def test_load_through_an_engine_costs_one_more_check(stack: Ready, targets: RequestTargets, opa_lasting: None) -> None:
    """The extra check is `delegate`, sent concurrently with the other one. With both results cached, none is sent."""
    engine, user = stack.users["etl"], stack.users["admin"]
    grants = f"/management/v1/permissions/warehouse/{targets.prefix}/assignments"
    given = [{"type": "delegate", "user": engine.id, "acts-for": {"administrators": True}}]
    table = targets.requests()["loadTable, no credentials"]

    async def send() -> tuple[list[Cost], list[int]]:
        # Otherwise the grant below confirms the administrator's own grant, which then answers the load.
        async with metered(stack, MEMORY__CONFIRM_GRANTS="false") as gateway:
            granted, _ = await gateway.send("POST", grants, user.token, body={"writes": given})
            assert granted.status_code == 204, granted.text
            with httpx.Client(trust_env=False, timeout=30) as client:
                exchanged = client.post(
                    f"{stack.catalog_uri}/v1/oauth/tokens",
                    data={"grant_type": EXCHANGE, "subject_token_type": JWT, "subject_token": user.token},
                    headers={"Authorization": f"Bearer {engine.token}"},
                ).raise_for_status()
            token = exchanged.json()["access_token"]
            costs = [
                await _send(gateway, token, table, 4),
                await _cached(partial(_send, gateway, token, table, 5)),
            ]
            await gateway.send("POST", grants, user.token, body={"deletes": given})
            taken, _ = await gateway.send("GET", table.path, token, headers=_PLAIN)
            return costs, [taken.status_code]

    (first, second), after = asyncio.run(send())
    assert (first.openfga["batch-check"], first.opa) == (2, 1)
    assert (second.openfga["batch-check"], second.opa) == (0, 0)
    # Each process reads the signing keys of exchanged tokens once a second, independent of the request.
    others = [[each for each in cost.statements if "signing_keys" not in each] for cost in (first, second)]
    assert [len(each) for each in others] == [3, 2], "expected statements for both revisions and one for the document"
    assert after == [404]


#: Functions of the gateway from the ASGI call to the driver of PostgreSQL, for the most frequent request.
MOST_FRAMES = 9


def test_a_load_passes_few_functions_between_the_socket_and_the_database(
    stack: Ready, targets: RequestTargets, record_property: Callable[[str, object], None]
) -> None:
    """Each function on this path makes the code harder to follow and adds time to every request."""

    async def survey() -> list[Cost]:
        async with metered(stack) as gateway:
            token = stack.users["admin"].token
            requested = (targets.requests()[name] for name in ("loadTable, no credentials", "loadTable, vended"))
            return [await _send(gateway, token, each, 0) for each in requested]

    costs = asyncio.run(survey())
    longest = sorted(costs, key=lambda cost: len(cost.frames))[-1]
    record_property(FRAMES, " > ".join(longest.frames))
    for cost in costs:
        assert cost.frames[0].startswith("RawPath"), "the first frame must be RawPath"
        assert len(cost.frames) <= MOST_FRAMES, "\n".join(cost.frames)


def test_column_restricted_read_has_its_documented_cost(
    stack: Ready, targets: RequestTargets, opa_always_asked: None
) -> None:
    """The caller has a grant on one column; the engine is a trusted `enforcer` that hides the other columns."""
    engine, admin, reader = stack.users["etl"], stack.users["admin"], stack.users["contractor"]
    rights = f"/management/v1/permissions/warehouse/{targets.prefix}/assignments"
    column = f"/management/v1/warehouse/{targets.prefix}/table/{targets.table_id}/columns/a/grants"
    # Limits would cost two more questions to OpenFGA for each request.
    unlimited = {"type": "delegate", "user": engine.id, "acts-for": {"administrators": True}}
    trusted = [unlimited, {"type": "enforcer", "user": engine.id}]
    select = [{"privilege": "select", "principal": {"user": reader.id}}]
    about = {"table": {"warehouse-id": targets.prefix, "table-id": targets.table_id, "action": "read_columns"}}
    requests = {
        "loadTable, no credentials": targets.requests()["loadTable, no credentials"],
        "loadTable, vended": targets.requests()["loadTable, vended"],
        "batch-check of 5 tables": Request(
            "POST", "/management/v1/action/batch-check", {"checks": [{"operation": about}] * 5}
        ),
    }

    async def survey(**settings: str) -> dict[str, Cost]:
        async with metered(stack, **settings) as gateway:
            for path, body in ((rights, {"writes": trusted}), (column, {"writes": select})):
                given, _ = await gateway.send("POST", path, admin.token, body=body)
                assert given.status_code in (204, 409), given.text
            with httpx.Client(trust_env=False, timeout=30) as client:
                exchanged = client.post(
                    f"{stack.catalog_uri}/v1/oauth/tokens",
                    data={"grant_type": EXCHANGE, "subject_token_type": JWT, "subject_token": reader.token},
                    headers={"Authorization": f"Bearer {engine.token}"},
                ).raise_for_status()
            costs = {}
            for n in range(2):
                for name, requested in requests.items():
                    token = reader.token if name.startswith("batch") else exchanged.json()["access_token"]
                    costs[name] = await _send(gateway, token, requested, n)
            return costs

    always = {"MEMORY__SILENT_CALLERS": "0"}
    forgetful = asyncio.run(survey(MEMORY__ALLOW_SECONDS="0", MEMORY__CREDENTIALS="0", **always))
    with_cache = asyncio.run(survey())
    measured = {
        name: [
            len([each for each in cost.statements if "signing_keys" not in each]),
            cost.openfga["batch-check"],
            cost.opa,
            with_cache[name].openfga["batch-check"],
        ]
        for name, cost in forgetful.items()
    }
    rows = {row["operation"]: row["numbers"] for row in _ROW.finditer(_CALLS)}
    assert measured == {
        name.removeprefix(_IN_PART): [int(cell) for cell in numbers.split("|")]
        for name, numbers in rows.items()
        if name.startswith(_IN_PART)
    }


def test_many_column_grants_need_one_list_request(stack: Ready, targets: RequestTargets) -> None:
    """One list request replaces the three batches of 50 that single checks of 120 columns would need."""
    engine, admin, reader = stack.users["etl"], stack.users["admin"], stack.users["contractor"]
    count = 120
    fields = [{"id": at, "name": f"c{at}", "type": "long", "required": False} for at in range(1, count + 1)]
    body = {"name": f"wide{uuid4().hex[:6]}", "schema": {"type": "struct", "fields": fields}}
    tables = f"/catalog/v1/{targets.prefix}/namespaces/cost/tables"
    rights = f"/management/v1/permissions/warehouse/{targets.prefix}/assignments"
    select = [{"privilege": "select", "principal": {"user": reader.id}}]

    async def send() -> list[tuple[list[int], Counter[str]]]:
        async with metered(stack, MEMORY__ALLOW_SECONDS="0") as gateway:

            async def change(path: str, body: Any) -> None:
                changed, _ = await gateway.send("POST", path, admin.token, body=body)
                assert changed.status_code in (204, 409), changed.text

            made, _ = await gateway.send("POST", tables, admin.token, body=body, headers=_PLAIN)
            columns = f"/management/v1/warehouse/{targets.prefix}/table/{made.json()['metadata']['table-uuid']}/columns"
            unlimited = {"type": "delegate", "user": engine.id, "acts-for": {"administrators": True}}
            for given in (unlimited, {"type": "enforcer", "user": engine.id}):
                await change(rights, {"writes": [given]})
            for each in fields:
                await change(f"{columns}/{each['name']}/grants", {"writes": select})
            exchanged = httpx.post(
                f"{stack.catalog_uri}/v1/oauth/tokens",
                data={"grant_type": EXCHANGE, "subject_token_type": JWT, "subject_token": reader.token},
                headers={"Authorization": f"Bearer {engine.token}"},
                trust_env=False,
            ).raise_for_status()
            found = []
            for taken in (None, 7):
                if taken is not None:
                    await change(f"{columns}/c{taken}/grants", {"deletes": select})
                path = f"{tables}/{body['name']}"
                loaded, cost = await gateway.send("GET", path, exchanged.json()["access_token"], headers=_PLAIN)
                assert loaded.status_code == 200, loaded.text
                held = loaded.json().get("read-restrictions", {}).get("required-column-projections", [])
                found.append(([each["field-id"] for each in held], cost.openfga))
            return found

    all_of_them, but_one = asyncio.run(send())
    calls = {"batch-check": 3, "streamed-list-objects": 1}
    # The relationship model is read once in a process.
    assert (all_of_them[0], {name: all_of_them[1][name] for name in calls}) == ([], calls)
    assert (but_one[0], dict(but_one[1])) == ([7], calls)


def test_vended_load_with_everything_cached_needs_one_statement_and_no_call(
    stack: Ready, targets: RequestTargets, opa_lasting: None
) -> None:
    """The statement is name resolution, which reads the revisions. The store is not called: the keys are the same."""
    admin, table = stack.users["admin"].token, targets.requests()["loadTable, vended"]

    async def send() -> tuple[list[Any], Cost]:
        async with metered(stack) as gateway:
            await _cached(partial(_send, gateway, admin, table, 6))
            await _cached(partial(_send, gateway, admin, table, 7))
            answers = [await gateway.send(table.method, table.path, admin) for _ in range(2)]
            return [answer.json()["storage-credentials"] for answer, _ in answers], answers[-1][1]

    (first, second), cost = asyncio.run(send())
    assert first == second and first[0]["config"]["s3.session-token"]
    assert (len(cost.statements), cost.transactions, cost.opa, dict(cost.openfga)) == (1, 0, 0, {})
    assert "revision" in cost.statements[0]


def test_read_with_a_cached_decision_calls_neither_openfga_nor_opa(
    stack: Ready, targets: RequestTargets, opa_lasting: None
) -> None:
    costs = asyncio.run(_survey(stack, targets, with_cache=True, numbers=(2, 3)))
    measured = {name: [len(cost.statements), cost.openfga["batch-check"], cost.opa] for name, cost in costs.items()}
    # Pages of lists, and the properties of a namespace.
    two = {"list namespaces": 2, "load namespace": 2, "list tables": 2, "read grants of a table": 2}
    assert measured == {name: [two.get(name, 1), 0, 0] for name in costs}
