# SPDX-License-Identifier: Apache-2.0
"""Policy inputs before and after every kind of move, for random policies, tags and sequences, on a real PostgreSQL.

After a move a table has exactly the inputs that it had, and those of its new containers. Releases, which are the only
inputs that make a policy narrower, are never added.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import UUID, uuid4

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.db.policies.policy_inputs import inputs_within
from gateway.db.tables import retired_locations
from gateway.iceberg.identifiers import Namespace
from gateway.obligations.data_policies import BoundPolicy, PolicyInputs
from tests.support.rows.parts import Rows, add_table, resolved_outer
from tests.support.rows.undone_rows import Base, base

__all__ = ["base"]

#: Namespaces with their parents. `other` is in the second warehouse.
_PARENTS = {"outer": None, "inner": "outer", "deep": "inner", "plain": None, "spare": None, "other": None}
_TAGS = ("T", "U")
_POLICIES = ("p", "q", "r")
_LAST, _OLDER = "s3://b/t/metadata/2.json", "s3://b/t/metadata/1.json"
_DOCUMENT = {
    "current-schema-id": 0,
    "schemas": [{"schema-id": 0, "fields": [{"id": 1, "name": "email", "type": "string", "required": False}]}],
}

_places = st.sampled_from(("warehouse", "second", *_PARENTS, "table"))
_attachments = st.lists(
    st.tuples(st.one_of(_places, st.just("column")), st.sampled_from(_TAGS), st.sampled_from((None, "x", "y"))),
    max_size=5,
    unique_by=lambda each: each[:2],
)
_bindings = st.lists(
    st.tuples(st.sampled_from(_POLICIES), st.one_of(_places, st.sampled_from(_TAGS))), max_size=6, unique=True
)
_moves = st.lists(
    st.tuples(
        st.sampled_from(("rename", "move", "register", "register older")),
        st.sampled_from(tuple(_PARENTS)),
    ),
    min_size=1,
    max_size=4,
)


@dataclass
class Lake:
    """The rows of one example: the ids by name, the namespace and the id of the table."""

    rows: Rows
    ids: dict[str, UUID]
    parents: dict[str, str | None]
    at: str
    table: UUID

    def above(self, name: str) -> list[str]:
        """Return the namespaces above one, the nearest first."""
        parent = self.parents[name]
        return [] if parent is None else [parent, *self.above(parent)]

    def containers(self, name: str) -> list[UUID]:
        """Return the ids of the namespace, of those above it and of the warehouse."""
        warehouse = self.rows.warehouses[1 if name == "other" else 0]
        return [*(self.ids[each] for each in (name, *self.above(name))), warehouse]

    def namespace(self, name: str) -> ResolvedNamespace:
        """Return a namespace as a permit has it."""
        warehouse = msgspec.structs.replace(resolved_outer(self.rows).warehouse, id=self.containers(name)[-1])
        above = tuple(self.ids[each] for each in reversed(self.above(name)))
        return ResolvedNamespace(id=self.ids[name], warehouse=warehouse, namespace=Namespace((name,)), ancestors=above)


@dataclass(frozen=True)
class Seen:
    """The inputs of a table, and the effective values of its tags."""

    inputs: PolicyInputs
    values: frozenset[tuple[UUID, int | None, str | None]]

    @property
    def bound(self) -> frozenset[BoundPolicy]:
        return frozenset(self.inputs.bound)


@pytest.mark.threat("LG-DEC-39")
@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(attached=_attachments, bound=_bindings, released=st.booleans(), moves=_moves)
@example(
    attached=[("inner", "T", "x"), ("outer", "T", "y")],
    bound=[("p", "warehouse")],
    released=False,
    moves=[("rename", "plain"), ("register older", "spare"), ("register", "other")],
)
@example(
    attached=[("table", "T", "x")],
    bound=[("p", "table"), ("p", "inner"), ("q", "T")],
    released=True,
    moves=[("rename", "plain"), ("move", "spare"), ("register", "deep")],
)
def test_a_table_has_after_each_move_what_it_had_and_what_is_there(
    base: Base,
    attached: list[tuple[str, str, str | None]],
    bound: list[tuple[str, str]],
    released: bool,
    moves: list[tuple[str, str]],
) -> None:
    async def run(connection: AsyncConnection) -> None:
        lake = await _lake(connection, base.rows, attached, bound, released=released)
        for kind, to in moves:
            await _check(connection, lake, kind, to)

    base.undo(run)


async def _check(connection: AsyncConnection, lake: Lake, kind: str, to: str) -> None:
    """Make one move, unless it is impossible, and compare the inputs before and after."""
    before, there = await _seen(connection, lake.table, lake.containers(lake.at)), lake.containers(to)
    if kind in ("rename", "move"):
        moved = lake.above(lake.at)[0] if kind == "move" and lake.above(lake.at) else lake.at
        if to == "other" or (kind == "move" and moved in (to, *lake.above(to))):
            return
        if kind == "move":
            await _move(connection, lake, moved, to)
        else:
            await _run(
                connection, "update tables set namespace_id = :to where id = :id", to=lake.ids[to], id=lake.table
            )
            lake.at = to
        after = await _seen(connection, lake.table, lake.containers(lake.at))
        added = await _seen(connection, uuid4(), there)
        former = set(before.inputs.former_columns)
        kept = before
    else:
        new = await _registered_again(connection, lake, kind, to)
        after = await _seen(connection, new, there)
        added = await _seen(connection, uuid4(), there)
        former = {*before.inputs.former_columns, (1, "email")}
        kept = before if kind != "register older" else _without_releases(before)
        lake.table, lake.at = new, to
    assert after.bound == kept.bound | _with_releases_of(added.bound, kept)
    assert {tag[:2] for tag in after.values} == {tag[:2] for tag in before.values | added.values}
    assert before.values <= after.values, "the values of its tags stay"
    assert set(after.inputs.former_columns) == former


def _without_releases(seen: Seen) -> Seen:
    bound = tuple(msgspec.structs.replace(each, released=()) for each in seen.inputs.bound)
    return Seen(msgspec.structs.replace(seen.inputs, bound=bound), seen.values)


def _with_releases_of(added: frozenset[BoundPolicy], seen: Seen) -> frozenset[BoundPolicy]:
    """Return policies of new containers, with the releases that the table already has from them."""
    released = {each.policy.id: each.released for each in seen.inputs.bound}
    return frozenset(msgspec.structs.replace(each, released=released.get(each.policy.id, ())) for each in added)


async def _seen(connection: AsyncConnection, table: UUID, containers: list[UUID]) -> Seen:
    found = (await inputs_within(connection, {table: containers}))[table]
    assert found is not None
    statement = "select ref_id, field_id, label from policy_inputs(:table, :containers) where kind = 'tag'"
    rows = (await connection.execute(text(statement), {"table": table, "containers": containers})).all()
    return Seen(found, frozenset((row.ref_id, row.field_id, row.label) for row in rows))


async def _move(connection: AsyncConnection, lake: Lake, moved: str, to: str) -> None:
    lake.parents[moved] = to
    await _run(connection, "update namespaces set parent_id = :to where id = :id", to=lake.ids[to], id=lake.ids[moved])
    for name in lake.parents:
        if name == moved or moved in lake.above(name):
            above = [lake.ids[each] for each in reversed(lake.above(name))]
            await _run(
                connection, "update namespaces set ancestors = :above where id = :id", above=above, id=lake.ids[name]
            )


async def _registered_again(connection: AsyncConnection, lake: Lake, kind: str, to: str) -> UUID:
    """Delete the table, and register its files with a new row. Return its id."""
    await _run(connection, "delete from tables where id = :id", id=lake.table)
    new = uuid4()
    await retired_locations.carry_policies(
        connection,
        to=ObjectKey(ObjectType.TABLE, str(new)),
        namespace=lake.namespace(to),
        file=_OLDER if kind == "register older" else _LAST,
        above=[("s3://b/t", "s3://b/t/")],
    )
    await retired_locations.remove_reused(connection, "s3://b/t", "s3://b/t/")
    await _add_table(connection, lake, new, to)
    return new


async def _lake(
    connection: AsyncConnection,
    rows: Rows,
    attached: list[tuple[str, str, str | None]],
    bound: list[tuple[str, str]],
    *,
    released: bool,
) -> Lake:
    """Insert the rows of an example."""
    ids = {"warehouse": rows.warehouses[0], "second": rows.warehouses[1]}
    ids |= {name: uuid4() for name in (*_PARENTS, *_TAGS, *_POLICIES, "table")}
    lake = Lake(rows, ids, dict(_PARENTS), "deep", ids["table"])
    for name, parent in _PARENTS.items():
        await _run(
            connection,
            "insert into namespaces (id, warehouse_id, parent_id, ancestors, levels, path_key, properties) "
            "values (:id, :warehouse, :parent, :above, array[:name], :name, '{}')",
            id=ids[name],
            warehouse=lake.containers(name)[-1],
            parent=None if parent is None else ids[parent],
            above=[ids[each] for each in reversed(lake.above(name))],
            name=str(ids[name]),
        )
    await _add_table(connection, lake, lake.table, lake.at)
    for name in _TAGS:
        await _run(
            connection,
            "insert into tags (id, project_id, name, name_key, scope, value_kind) "
            "values (:id, :project, :name, :name, '{}', 'free-text')",
            id=ids[name],
            project=rows.project,
            name=name,
        )
    for name in _POLICIES:
        await _run(
            connection,
            "insert into data_policies (id, project_id, name, name_key, definition) "
            "values (:id, :project, :name, :name, cast(:definition as jsonb))",
            id=ids[name],
            project=rows.project,
            name=name,
            definition=json.dumps({"kind": "mask", "action": "replace-with-null", "columns": [{"tag": "T"}]}),
        )
    for place, tag, value in attached:
        await _run(
            connection,
            "insert into tag_attachments (tag_id, warehouse_id, object_type, object_id, field_id, value, attached_by) "
            "values (:tag, :warehouse, :type, :on, :field, :value, 'x')",
            tag=ids[tag],
            warehouse=rows.warehouses[1 if place in ("second", "other") else 0],
            type=_type(place),
            on=ids["table" if place == "column" else place],
            field=1 if place == "column" else None,
            value=value,
        )
    for policy, place in bound:
        await _run(
            connection,
            "insert into data_policy_bindings"
            " (policy_id, object_type, object_id, warehouse_id, recorded_fields, bound_by) "
            "values (:policy, :type, :on, :warehouse, :recorded, 'x')",
            policy=ids[policy],
            type="tag" if place in _TAGS else _type(place),
            on=ids[place],
            warehouse=None if place in _TAGS else rows.warehouses[1 if place in ("second", "other") else 0],
            recorded=[1] if place == "table" else [],
        )
    if released:
        await _run(
            connection,
            "insert into data_policy_releases (policy_id, table_id, field_id, released_by) values (:p, :t, 2, 'x')",
            p=ids["p"],
            t=lake.table,
        )
    return lake


def _type(place: str) -> str:
    types = {"warehouse": "warehouse", "second": "warehouse", "table": "table", "column": "column"}
    return types.get(place, "namespace")


async def _add_table(connection: AsyncConnection, lake: Lake, id: UUID, namespace: str) -> None:
    await add_table(connection, id, lake.containers(namespace)[-1], lake.ids[namespace])
    await _run(
        connection,
        "update tables set location = 's3://b/t', location_key = 's3://b/t/', metadata_location = :file,"
        " metadata = :document where id = :id",
        file=_LAST,
        document=json.dumps(_DOCUMENT).encode(),
        id=id,
    )


async def _run(connection: AsyncConnection, statement: str, **values: object) -> None:
    await connection.execute(text(statement), values)
