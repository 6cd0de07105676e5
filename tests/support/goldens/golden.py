# SPDX-License-Identifier: Apache-2.0
"""Compute the matrix: every operation for one grant on one level at a time, with the compiled model in OpenFGA.

The tuples are those that the gateway writes for a grant, `traverse` included, and the door decides with the answers.
The policies allow everything, so the result shows the relationship model alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from gateway.access.actor import Actor
from gateway.access.door.permit import Permit
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, column_key
from gateway.access.nouns.server import UserRef
from gateway.access.operation import Audience, Operation
from gateway.access.operations.grants import Assignment
from gateway.access.ports import Pin, Question
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.features.grants import grant_recording
from gateway.fga.client import FgaClient
from gateway.fga.relationships import FgaRelationships, to_wire
from gateway.iceberg.errors import CatalogError
from tests.support.door import world
from tests.support.door.examples import EXAMPLES, Example
from tests.support.door.world import DoorFixture, request_context

YES, NO, ABSENT, UNAUTHENTICATED = "✓", "✗", "404", "401"

#: Levels of grants: above, at and below the objects of the operations.
LEVELS: Sequence[tuple[str, ObjectKey]] = (
    ("server", world.server_row.key),
    ("project", world.project_row.key),
    ("warehouse", world.warehouse_row.key),
    ("outer namespace", world.outer_row.key),
    ("namespace", world.inner_row.key),
    ("table", world.table_row.key),
    ("column", column_key(world.TABLE_ID, world.FIELD_ID)),
    ("view", world.view_row.key),
    ("generic table", world.generic_table_row.key),
    ("role", world.role_row.key),
    ("tag", world.tag_row.key),
)

_PATH = (world.project_row.key, world.warehouse_row.key, world.outer_row.key, world.inner_row.key)

#: The containers above each level, where holders get `traverse`.
ABOVE = {
    "warehouse": _PATH[:1],
    "outer namespace": _PATH[:2],
    "namespace": _PATH[:3],
    "table": _PATH,
    "column": _PATH,
    "view": _PATH,
    "generic table": _PATH,
}

HIERARCHY: Sequence[TupleKey] = (
    TupleKey(world.server_row.key, "server", world.project_row.key),
    TupleKey(world.project_row.key, "project", world.warehouse_row.key),
    TupleKey(world.warehouse_row.key, "parent", world.outer_row.key),
    TupleKey(world.outer_row.key, "parent", world.inner_row.key),
    TupleKey(world.project_row.key, "project", world.role_row.key),
    TupleKey(world.project_row.key, "project", world.tag_row.key),
    TupleKey(world.inner_row.key, "parent", world.table_row.key),
    TupleKey(world.inner_row.key, "parent", world.view_row.key),
    TupleKey(world.inner_row.key, "parent", world.generic_table_row.key),
)


@dataclass(frozen=True)
class Holder:
    """A holder of one grant, or of none."""

    name: str
    actor: Actor
    grants: tuple[TupleKey, ...] = ()


def holders() -> list[Holder]:
    """Return a holder without grants, and one holder for each privilege on each level."""
    found = [Holder("nobody", Actor.user("oidc~nobody"))]
    for level, key in LEVELS:
        for privilege in GRANTABLE[key.type]:
            id = f"oidc~{privilege}-on-{level.replace(' ', '-')}"
            found.append(
                Holder(f"{level}: {privilege}", Actor.user(id), tuple(_written_for(id, privilege, level, key)))
            )
    return found


def _written_for(id: str, privilege: Privilege, level: str, key: ObjectKey) -> Iterable[TupleKey]:
    """Return the tuples that the gateway writes for this grant."""
    return grant_recording.tuple_keys(
        key, ABOVE.get(level, ()), [Assignment(privilege, Principal(PrincipalType.USER, id))]
    )


@dataclass(frozen=True)
class Column:
    """An operation, or with `optional` one of its demands that do not decide admission."""

    example: Example
    optional: int | None = None

    @property
    def operation(self) -> type[Operation]:
        """Return the operation to admit."""
        return type(self.example.operation)

    @property
    def title(self) -> str:
        """Return the column title."""
        if self.optional is None:
            return self.example.label
        return f"{self.example.label}: {self.example.operation.demands()[self.optional].relation.removeprefix('can_')}"


def columns() -> dict[str, list[Column]]:
    """Return the columns of each table, by the type of the operations' target."""
    tables: dict[str, list[Column]] = {}
    for example in EXAMPLES:
        about = str(example.about or "open")
        table = tables.setdefault(about, [])
        table.append(Column(example))
        for index, demand in enumerate(example.operation.demands()):
            if not demand.required:
                table.append(Column(example, index))
    return tables


class Known:
    """Relationships of one actor, loaded from OpenFGA at once."""

    def __init__(self, answers: dict[Question, bool]) -> None:
        self._answers = answers

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        return [self._answers[question] for question in questions]


async def compute(client: FgaClient) -> dict[str, dict[str, list[str]]]:
    """Return table to holder to cells, in the order of `columns`; all tuples are written to the store of the client."""
    principals = holders()
    tuples = [to_wire(key) for key in (*HIERARCHY, *(key for holder in principals for key in holder.grants))]
    for start in range(0, len(tuples), 100):
        await client.write(tuples[start : start + 100])
    relationships = FgaRelationships(client)
    questions = await _questions()
    tables = columns()
    rows: dict[str, dict[str, list[str]]] = {table: {} for table in tables}
    computed: dict[tuple[bool, ...], dict[str, list[str]]] = {}
    for holder in principals:
        answers = tuple(await relationships.check(holder.actor, questions, now=world.NOW))
        if answers not in computed:
            known = Known(dict(zip(questions, answers, strict=True)))
            computed[answers] = {table: await _cells(holder.actor, known, heads) for table, heads in tables.items()}
        for table, cells in computed[answers].items():
            rows[table][holder.name] = cells
    for table, heads in tables.items():
        rows[table]["no token"] = await _cells(Actor.anonymous(), Known({}), heads)
    return rows


async def _questions() -> list[Question]:
    """Return all checks that the door sends for the examples."""
    door_fixture = DoorFixture()
    await asyncio.gather(*(door_fixture.door.admit(request_context(), example.operation) for example in EXAMPLES))
    return list(dict.fromkeys(question for requested in door_fixture.judge.calls for question in requested))


async def _cells(actor: Actor, known: Known, heads: Sequence[Column]) -> list[str]:
    door_fixture = DoorFixture()
    door_fixture.judge.check = known.check  # type: ignore[method-assign]  # the same port, answered from memory
    door = door_fixture.door
    permit: Permit[Operation] | None = None
    cells = []
    for column in heads:
        operation = column.example.operation
        if column.optional is not None:
            # The columns of an operation are adjacent, so the permit is that of the column before.
            demand = operation.demands()[column.optional]
            cells.append(YES if permit is not None and permit.holds(demand.relation, demand.on) else NO)
            continue
        try:
            permit = await door.admit(request_context(actor), _own(operation, actor))
            cells.append(YES)
        except CatalogError as refused:
            permit = None
            cells.append({400: ABSENT, 401: UNAUTHENTICATED, 403: NO, 404: ABSENT}[refused.code])
    return cells


def _own(operation: Operation, actor: Actor) -> Operation:
    """Return an operation that is open for the caller itself, with the caller as its target."""
    if not operation.is_open(Audience.SELF) or operation.target_user() is None:
        return operation
    own: Operation = replace(cast(Any, operation), user=UserRef(actor.id))
    return own


def render(rows: dict[str, dict[str, list[str]]]) -> str:
    """Return the matrix as Markdown: a table for each type; holders equal to one without grants are listed below."""
    parts = [_HEAD]
    for table, heads in columns().items():
        without_rights = [
            name for name, cells in rows[table].items() if cells == rows[table]["nobody"] and name != "nobody"
        ]
        shown = ["no token", *(name for name in rows[table] if name != "no token" and name not in without_rights)]
        alike = _alike(heads, [rows[table][name] for name in shown])
        parts.append(f"\n## {table}\n\n")
        parts.append(f"| held | {' | '.join(', '.join(titles) for titles, _ in alike)} |\n")
        parts.append(f"|--|{'--|' * len(alike)}\n")
        for index, name in enumerate(shown):
            parts.append(f"| {name} | {' | '.join(column[index] for _, column in alike)} |\n")
        if without_rights:
            parts.append(f"\nLike nobody: {_grouped(without_rights)}.\n")
        parts.append(f"\nOperations: {', '.join(dict.fromkeys(head.operation.__name__ for head in heads))}.\n")
    return "".join(parts)


def _alike(heads: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[tuple[list[str], tuple[str, ...]]]:
    """Return (titles, cells) of the columns, with equal cells grouped: such columns need the same right."""
    found: dict[tuple[str, ...], list[str]] = {}
    for index, head in enumerate(heads):
        titles = found.setdefault(tuple(row[index] for row in rows), [])
        if head.title not in titles:
            titles.append(head.title)
    return [(titles, cells) for cells, titles in found.items()]


def _grouped(names: Sequence[str]) -> str:
    levels: dict[str, list[str]] = {}
    for name in names:
        level, _, privilege = name.partition(": ")
        levels.setdefault(level, []).append(privilege)
    return "; ".join(f"{level} {', '.join(held)}".strip() for level, held in levels.items())


_HEAD = """\
# Who may do what

Made by `python -m pytest tests/access/test_lock_6_matrix.py --update-goldens`; a test compares it. Do not edit it: read
its differences.

Each row is a person who holds exactly one grant, on a level of: server - project - warehouse - outer namespace -
namespace - table (or one column of it), view or generic table, and a role of the project. Each column is an operation
on the thing of that level (the namespace is the inner one). ✓ is done, ✗ is refused with 403, 404 is answered as if
there were nothing (400 for signatures), 401 needs a token. Operations that fare alike share a column. A title with a
colon is a right that only decides how the operation is done. The policies of OPA, which can only take away, allow
everything here.
"""
