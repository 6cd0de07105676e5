# SPDX-License-Identifier: Apache-2.0
"""Resolution of many references in one request on a real PostgreSQL.

It returns the same rows as one by one, with one statement for each kind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event

from gateway.access.actor import Actor
from gateway.access.nouns import refs
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.resolved import AbsentLocation, ResolvedNamespace
from gateway.access.nouns.role import RoleRef
from gateway.access.nouns.server import ServerRef, UserRef
from gateway.db.engine.database import Database
from gateway.db.resolver.resolver import DatabaseResolver
from gateway.db.resolver.resolver_statements import lookup_of
from gateway.db.resolver.row_mapping import is_in_a_warehouse
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from tests.support.rows.parts import Rows, add_table


@pytest.fixture(params=[True, False], ids=["direct", "sqlalchemy"])
async def database(url: str, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    made = Database(url, pool_size=2, acquire_timeout=30, direct_reads=request.param)
    yield made
    await made.close()


def _all_refs(rows: Rows, generic: UUID) -> list[refs.Ref]:
    """Return at least two references of each kind: existing, missing, and with a parent that is not theirs."""
    first, second = rows.warehouses
    outer, other = Namespace((str(rows.outer),)), Namespace((str(rows.other),))
    requested: list[refs.Ref] = [ServerRef(), ProjectRef(rows.project), ProjectRef("none")]
    for warehouse in (first, second, uuid4()):
        requested += [
            refs.WarehouseRef(warehouse),
            refs.NamespaceRef(warehouse, outer),
            refs.NamespaceRef(warehouse, other),
        ]
        requested += [refs.NamespaceIdRef(rows.outer, warehouse), refs.NamespaceIdRef(rows.other, warehouse)]
        for id in (rows.table, rows.view, generic, uuid4()):
            requested += [refs.TabularRef(refs.Table, warehouse, id), refs.TabularRef(refs.View, warehouse, id)]
            requested += [refs.TabularRef(refs.GenericTable, warehouse, id)]
            for namespace in (outer, Namespace((*outer.levels, str(rows.inner)))):
                identifier = TableIdentifier(namespace, str(id))
                requested += [
                    refs.TabularRef(refs.Table, warehouse, identifier),
                    refs.TabularRef(refs.View, warehouse, identifier),
                ]
                requested += [refs.TabularRef(refs.GenericTable, warehouse, identifier)]
                shouted = TableIdentifier(namespace, str(id).upper())
                requested += [refs.TabularRef(refs.Table, warehouse, shouted)]
    requested += [refs.NamespaceIdRef(rows.inner), refs.NamespaceIdRef(uuid4())]
    requested += [refs.WarehouseNameRef(rows.project, name) for name in ("w0", "W1", "w2")]
    requested += [refs.WarehouseNameRef("none", "w0")]
    requested += [UserRef(user) for user in (*rows.users, "oidc~nobody")]
    requested += [RoleRef(id) for id in (rows.role, rows.role_above, uuid4())]
    return requested


async def test_absent_object_resolves_to_its_existing_ancestors(database: Database) -> None:
    rows = Rows()
    async with database.transaction() as connection:
        await rows.insert(connection)
    resolver, caller = DatabaseResolver(database), Actor.user(rows.users[0])
    [outer] = [
        ref for ref in _all_refs(rows, uuid4()) if isinstance(ref, refs.NamespaceRef) and len(ref.namespace.levels) == 1
    ][:1]
    row = (await resolver.resolve([outer], caller)).rows[outer]
    assert isinstance(row, ResolvedNamespace)
    levels, warehouse = outer.namespace.levels, outer.warehouse_id
    project = row.warehouse.project_id
    cases: list[tuple[refs.Ref, AbsentLocation | None]] = [
        (
            refs.TabularRef(refs.Table, warehouse, TableIdentifier(outer.namespace, "no such")),
            AbsentLocation(project, (row.id,)),
        ),
        (
            refs.TabularRef(refs.View, warehouse, TableIdentifier(Namespace((*levels, "no", "such")), "x")),
            AbsentLocation(project, (row.id,)),
        ),
        (refs.NamespaceRef(warehouse, Namespace((levels[0].upper(), "no such"))), AbsentLocation(project, (row.id,))),
        (refs.NamespaceRef(warehouse, Namespace(("no such",))), AbsentLocation(project, ())),
        (refs.NamespaceRef(uuid4(), Namespace(("no such",))), None),
        (refs.TabularRef(refs.Table, warehouse, uuid4()), AbsentLocation(project, ())),
        (refs.TabularRef(refs.View, warehouse, uuid4(), dropped=True), AbsentLocation(project, ())),
        (refs.TabularRef(refs.Table, uuid4(), uuid4()), None),
        (refs.NamespaceIdRef(uuid4(), warehouse), AbsentLocation(project, ())),
        (refs.NamespaceIdRef(uuid4()), None),
    ]
    for ref, where in cases:
        assert (await resolver.resolve([ref], caller)).absent == ({} if where is None else {ref: where}), ref
    assert (await resolver.resolve([outer], caller)).absent == {}


async def test_batched_references_resolve_like_single_ones_by_kind(
    database: Database,
) -> None:
    rows, generic = Rows(), uuid4()
    async with database.transaction() as connection:
        await rows.insert(connection)
        await add_table(connection, uuid4(), rows.warehouses[0], rows.outer)
        await add_table(connection, generic, rows.warehouses[0], rows.inner, kind="generic_table")
    resolver, caller = DatabaseResolver(database), Actor.user(rows.users[0])
    requested = _all_refs(rows, generic)
    kinds = {lookup_of(ref) for ref in requested}
    assert len(kinds) == 14, "a kind of reference has no test"
    singly: dict[refs.Ref, object] = {}
    would_lie: dict[refs.Ref, AbsentLocation] = {}
    for ref in requested:
        alone = await resolver.resolve([ref], caller)
        singly.update(alone.rows)
        would_lie.update(alone.absent)
    assert {lookup_of(ref) for ref in singly} == kinds
    statements: list[str] = []

    def count(connection: object, cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    event.listen(database._engine.sync_engine, "before_cursor_execute", count)
    found = await resolver.resolve(requested, caller)
    assert found.rows == singly
    # The server is the only reference of its kind and is resolved in another way.
    sent = [each for each in statements if "SELECT" in each and "bootstrapped_at" not in each]
    named = {lookup_of(ref) for ref in requested if is_in_a_warehouse(ref)}
    assert len(sent) == len(kinds) - 1 + len(named), "expected one statement per kind, and one for absent paths"
    assert found.absent == {ref: where for ref, where in would_lie.items() if ref not in singly}
