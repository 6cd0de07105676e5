# SPDX-License-Identifier: Apache-2.0
"""Random sequences of renames, drops and creations by a restricted principal, on a real PostgreSQL.

The gateway refuses each change that `losses_of` returns a loss for. After each permitted one, a name has at least the
masked columns that its last object had there, as the resolution of masks computes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.engine import vacated_names
from gateway.db.engine.policy_loss import losses_of
from gateway.db.policies import data_policy_bindings
from gateway.db.policies.data_policy_bindings import name_id
from gateway.db.policies.policy_inputs import inputs_within
from gateway.iceberg.identifiers import NamePattern
from gateway.obligations.binding_columns import TableColumns
from gateway.obligations.data_policies import Mask
from gateway.obligations.projections import columns_of
from tests.support.rows.parts import Rows
from tests.support.rows.undone_rows import Base, Undone, base

__all__ = ["base"]

_PATHS, _NAMES = ("a", "b", "c"), ("t", "u")
_DOCUMENT = {
    "current-schema-id": 0,
    "schemas": [
        {
            "schema-id": 0,
            "fields": [
                {"id": 1, "name": "email", "type": "string", "required": False},
                {"id": 2, "name": "nick", "type": "string", "required": False},
            ],
        }
    ],
}
_COLUMNS = columns_of(json.dumps(_DOCUMENT).encode())
_DEFINITIONS = {"named": [{"name": "email"}], "tagged": [{"tag": "T"}], "open": []}
_PLACES = ("warehouse", "a", "b", "a.t", "b.t", "b.u")

_KINDS = ("create", "create", "rename", "rename", "drop", "delete", "undrop", "move", "remove", "make", "view", "bind")

_attachments = st.lists(
    st.tuples(st.sampled_from((*_PLACES, "a.t/1", "b.t/2")), st.sampled_from("TU")), max_size=4, unique=True
)
_bindings = st.lists(
    st.tuples(
        st.sampled_from(tuple(_DEFINITIONS)), st.sampled_from((*_PLACES, "T", "U", "name a.t", "name *.t", "name b.*"))
    ),
    min_size=1,
    max_size=4,
    unique=True,
)
_steps = st.lists(
    st.tuples(
        st.sampled_from(_KINDS),
        st.integers(0, 5),
        st.sampled_from(_PATHS),
        st.sampled_from(_NAMES),
    ),
    min_size=5,
    max_size=14,
)


@dataclass
class Lake:
    """The ids of one example by name, and what is masked by name: of its object, or of the last one that it had."""

    connection: AsyncConnection
    rows: Rows
    ids: dict[str, UUID] = field(default_factory=dict)
    masked: dict[tuple[str, str], frozenset[tuple[str, int]]] = field(default_factory=dict)
    outcomes: list[str] = field(default_factory=list)

    @property
    def warehouse(self) -> UUID:
        return self.rows.warehouses[0]

    async def run(self, statement: str, **values: object) -> list[Mapping[str, object]]:
        found = await self.connection.execute(text(statement), values)
        return [dict(row) for row in found.mappings()] if found.returns_rows else []


@pytest.mark.threat("LG-DEC-43")
@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(attached=_attachments, bound=_bindings, released=st.booleans(), steps=_steps)
@example(
    attached=[("a.t/1", "T")],
    bound=[("tagged", "warehouse")],
    released=False,
    steps=[("drop", 0, "a", "t"), ("create", 0, "a", "t"), ("rename", 1, "a", "t")],
)
@example(
    attached=[],
    bound=[("named", "a")],
    released=False,
    steps=[("remove", 0, "a", "t"), ("make", 0, "a", "t"), ("create", 0, "a", "t"), ("move", 1, "a", "t")],
)
@example(
    attached=[],
    bound=[("named", "a.t"), ("named", "b.t")],
    released=True,
    steps=[("delete", 0, "a", "t"), ("rename", 1, "a", "t"), ("undrop", 0, "a", "t")],
)
@example(
    attached=[],
    bound=[("named", "a.t")],
    released=False,
    steps=[("move", 0, "c", "t"), ("make", 0, "a", "t"), ("create", 0, "a", "t")],
)
@example(
    attached=[],
    bound=[("named", "b.t")],
    released=False,
    steps=[("drop", 1, "b", "t"), ("move", 0, "c", "t"), ("remove", 0, "b", "t"), ("move", 0, "b", "t")],
)
def test_a_name_keeps_the_masks_of_its_last_object_through_each_permitted_change(
    base: Base,
    attached: list[tuple[str, str]],
    bound: list[tuple[str, str]],
    released: bool,
    steps: list[tuple[str, int, str, str]],
) -> None:
    outcomes: list[str] = []

    async def run(connection: AsyncConnection) -> None:
        lake = Lake(connection, base.rows, outcomes=outcomes)
        await _fill(lake, attached, bound, released=released)
        lake.masked = await _masked(lake)
        for step in steps:
            await _take_step(lake, *step)

    base.undo(run)
    for each in outcomes:
        event(each)


async def _take_step(lake: Lake, kind: str, number: int, path: str, name: str) -> None:
    """Make one change, unless it is impossible or refused, and compare each name with its last object."""
    with suppress(Undone, IntegrityError):
        async with lake.connection.begin_nested():
            await _change(lake, kind, number, path, name)
            losses = losses_of(await vacated_names.taken(lake.connection))
            lake.outcomes.append(f"{kind} {'refused' if losses else 'permitted'}")
            if losses:
                raise Undone
            await vacated_names.settle(lake.connection, ())
            now = await _masked(lake)
            for at, fields in now.items():
                assert lake.masked.get(at, frozenset()) <= fields, (kind, number, path, name, at)
            lake.masked |= now


async def _change(lake: Lake, kind: str, number: int, path: str, name: str) -> None:
    state = "not null" if kind == "undrop" else "null"
    statement = f"select id from tables where name_key in ('t', 'u') and kind = 'table' and deleted_at is {state}"
    tables = await lake.run(f"{statement} order by created_at")
    chosen = tables[number % len(tables)]["id"] if tables else None
    spaces = {str(row["path_key"]): row["id"] for row in await lake.run("select path_key, id from namespaces")}
    match kind:
        case "create" | "view" if path in spaces:
            await _add(lake, uuid4(), path, name, kind="view" if kind == "view" else "table")
        case "drop":
            await lake.run("delete from tables where id = :id", id=chosen)
        case "delete" | "undrop":
            at = "clock_timestamp()" if kind == "delete" else "null"
            await lake.run(f"update tables set deleted_at = {at} where id = :id", id=chosen)
        case "rename" if path in spaces:
            values = {"ns": spaces[path], "name": name, "id": chosen}
            await lake.run(
                "update tables set namespace_id = :ns, name_key = :name, name = :name where id = :id", **values
            )
        case "move":
            source = sorted(set(spaces) & set(_PATHS))[number % len(set(spaces) & set(_PATHS))]
            statement = "update namespaces set path_key = :to, levels = array[:to] where id = :id"
            await lake.run(statement, to=path, id=spaces[source])
        case "remove" if path in spaces and len(set(spaces) & set(_PATHS)) > 1:
            await lake.run("delete from tables where namespace_id = :id", id=spaces[path])
            await lake.run("delete from namespaces where id = :id", id=spaces[path])
        case "make":
            await _add_namespace(lake, path)
        case "bind" if chosen is not None:
            # A manager of a policy can bind it at any time.
            await _bind(lake, tuple(_DEFINITIONS)[number % 3], "table", UUID(str(chosen)))


async def _masked(lake: Lake) -> dict[tuple[str, str], frozenset[tuple[str, int]]]:
    """Return the masked columns, with their policies, of each name with a table."""
    rows = await lake.run(
        "select t.id, t.name_key, n.path_key, n.id as space from tables t join namespaces n on n.id = t.namespace_id"
        " where t.kind = 'table' and t.deleted_at is null and n.path_key = any(:paths)",
        paths=list(_PATHS),
    )
    places = {row["id"]: [row["space"], lake.warehouse] for row in rows}
    inputs = await inputs_within(lake.connection, places) if rows else {}  # type: ignore[arg-type]
    found = {}
    for row in rows:
        known = inputs[row["id"]]  # type: ignore[index]
        assert known is not None
        masked = set()
        for one in known.bound:
            assert isinstance(one.policy.definition, Mask)
            exact, whole = TableColumns(_COLUMNS, known).masked(one.policy.definition, one, [])
            masked |= {(one.policy.id, id) for id in exact | whole}
        found[str(row["path_key"]), str(row["name_key"])] = frozenset(masked)
    return found


async def _fill(lake: Lake, attached: list[tuple[str, str]], bound: list[tuple[str, str]], *, released: bool) -> None:
    """Insert the rows of an example."""
    lake.ids["warehouse"] = lake.warehouse
    for path in "ab":
        await _add_namespace(lake, path)
    for at in ("a.t", "b.t", "b.u"):
        lake.ids[at] = uuid4()
        await _add(lake, lake.ids[at], *at.split("."))
    for tag in "TU":
        lake.ids[tag] = uuid4()
        await lake.run(
            "insert into tags (id, project_id, name, name_key, scope, value_kind)"
            " values (:id, :project, :name, lower(:name), '{}', 'marker')",
            id=lake.ids[tag],
            project=lake.rows.project,
            name=tag,
        )
    for name, columns in _DEFINITIONS.items():
        lake.ids[name] = uuid4()
        await lake.run(
            "insert into data_policies (id, project_id, name, name_key, definition)"
            " values (:id, :project, :name, :name, cast(:definition as jsonb))",
            id=lake.ids[name],
            project=lake.rows.project,
            name=name,
            definition=json.dumps({"kind": "mask", "action": "replace-with-null", "columns": columns}),
        )
    for place, tag in attached:
        at, _, column = place.partition("/")
        await lake.run(
            "insert into tag_attachments (tag_id, warehouse_id, object_type, object_id, field_id, column_name,"
            " attached_by) values (:tag, :warehouse, :type, :on, :field, :column, 'x')",
            tag=lake.ids[tag],
            warehouse=lake.warehouse,
            type="column" if column else _type(at),
            on=lake.ids[at],
            field=int(column) if column else None,
            column={"": None, "1": "email", "2": "nick"}[column],
        )
    for policy, place in bound:
        if place.startswith("name "):
            pattern = NamePattern(*_parts(place.removeprefix("name ")))
            names = [(lake.warehouse, pattern)]
            await data_policy_bindings.bind_names(lake.connection, lake.ids[policy], names, by="x")
            lake.ids[place] = name_id(lake.warehouse, pattern)
        else:
            await _bind(lake, policy, "tag" if place in "TU" else _type(place), lake.ids[place])
    if released:
        await lake.run(
            "insert into data_policy_releases (policy_id, table_id, field_id, released_by) values (:p, :t, 1, 'x')",
            p=lake.ids["named"],
            t=lake.ids["b.t"],
        )


def _parts(name: str) -> tuple[tuple[str, ...], str]:
    *namespace, last = name.split(".")
    return tuple(namespace), last


def _type(place: str) -> str:
    return "warehouse" if place == "warehouse" else "table" if "." in place else "namespace"


async def _bind(lake: Lake, policy: str, type: str, on: UUID) -> None:
    await lake.run(
        "insert into data_policy_bindings (policy_id, object_type, object_id, warehouse_id, recorded_fields, bound_by)"
        " values (:policy, :type, :on, :warehouse, :recorded, 'x') on conflict do nothing",
        policy=lake.ids[policy],
        type=type,
        on=on,
        warehouse=None if type == "tag" else lake.warehouse,
        recorded=[1] if type == "table" and policy == "named" else [],
    )


async def _add_namespace(lake: Lake, path: str) -> None:
    lake.ids[path] = uuid4()
    await lake.run(
        "insert into namespaces (id, warehouse_id, ancestors, levels, path_key, properties)"
        " values (:id, :warehouse, '{}', array[:path], :path, '{}')",
        id=lake.ids[path],
        warehouse=lake.warehouse,
        path=path,
    )


async def _add(lake: Lake, id: UUID, path: str, name: str, *, kind: str = "table") -> None:
    """Insert a table as the creation does: with its final name."""
    (space,) = await lake.run("select id from namespaces where path_key = :path", path=path)
    await lake.run(
        "insert into tables (id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, location_key,"
        " metadata) values (:id, :warehouse, :namespace, :kind, :name, :name, :id, :location, :location, :metadata)",
        id=id,
        warehouse=lake.warehouse,
        namespace=space["id"],
        kind=kind,
        name=name,
        location=str(id),
        metadata=json.dumps(_DOCUMENT).encode(),
    )
