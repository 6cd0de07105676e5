# SPDX-License-Identifier: Apache-2.0
"""Statements on the definitions of tags."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import delete as delete_from
from sqlalchemy import func, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import columns_for, fetch_all, fetch_one, fetch_optional
from gateway.db.schema.policies import tags
from gateway.iceberg.identifiers import fold
from gateway.obligations.data_policies import AppliesTo


class TagRow(NamedTuple):
    """A tag definition."""

    id: UUID
    project_id: str
    name: str
    description: str | None
    scope: Sequence[str]
    value_kind: str
    allowed_values: Sequence[str]
    created_at: datetime
    updated_at: datetime | None


_COLUMNS: Final = columns_for(TagRow, tags)


class _Dependent(NamedTuple):
    """A data policy with its tags.

    `tag_ids` maps folded names to ids as JSON; `named` are the names or ids of tags in the definition.
    """

    id: UUID
    tag_ids: str
    bound: bool
    named: Sequence[str | None]


class TagClash(Exception):
    """The change conflicts with existing rows. The transaction cannot continue."""


class NameTaken(TagClash):
    """Another tag of the project has this name, irrespective of letter case."""


class ProjectGone(TagClash):
    """The project does not exist any more."""


class InUse(TagClash):
    """An object has the tag, or a data policy is bound to it."""


def _clash(error: IntegrityError) -> TagClash | None:
    found = str(error.orig)
    kinds = (("name_key_key", NameTaken), ("project_id_fkey", ProjectGone), ("tag_id_fkey", InUse))
    return next((kind(constraint) for constraint, kind in kinds if constraint in found), None)


async def create(
    connection: AsyncConnection,
    *,
    id: UUID,
    project_id: str,
    name: str,
    description: str | None,
    scope: Sequence[str],
    value_kind: str,
    allowed_values: Sequence[str],
) -> TagRow:
    """Insert a tag and return its row. Raises NameTaken and ProjectGone."""
    statement = insert(tags).values(
        id=id,
        project_id=project_id,
        name=name,
        name_key=fold(name),
        description=description,
        scope=list(scope),
        value_kind=value_kind,
        allowed_values=list(allowed_values),
    )
    try:
        row = await fetch_one(connection, TagRow, statement.returning(*_COLUMNS))
    except IntegrityError as error:
        raise (_clash(error) or error) from error
    return row


async def change(
    connection: AsyncConnection,
    id: UUID,
    *,
    name: str,
    description: str | None,
    scope: Sequence[str],
    allowed_values: Sequence[str],
) -> TagRow:
    """Set the fields of a tag that `held` locked. Return its row. Raises NameTaken."""
    statement = (
        update(tags)
        .where(tags.c.id == id)
        .values(
            name=name,
            name_key=fold(name),
            description=description,
            scope=list(scope),
            allowed_values=list(allowed_values),
            updated_at=func.clock_timestamp(),
        )
    )
    try:
        row = await fetch_one(connection, TagRow, statement.returning(*_COLUMNS))
    except IntegrityError as error:
        raise (_clash(error) or error) from error
    return row


async def get(connection: AsyncConnection, id: UUID) -> TagRow | None:
    """Return the row of a tag, or None."""
    return await fetch_optional(connection, TagRow, select(*_COLUMNS).where(tags.c.id == id))


async def held(connection: AsyncConnection, id: UUID, *, shared: bool = False) -> TagRow | None:
    """Return the row of a tag, and lock it until the transaction ends.

    With `shared`, other transactions may also lock it so.
    """
    statement = select(*_COLUMNS).where(tags.c.id == id).with_for_update(read=shared)
    return await fetch_optional(connection, TagRow, statement)


async def page(
    connection: AsyncConnection, project_id: str, *, named: str | None, after: UUID | None, limit: int
) -> Sequence[TagRow]:
    """Return the tags of a project, ordered by id.

    The page starts after the id `after`. `named` selects the tag of this name.
    """
    statement = select(*_COLUMNS).where(tags.c.project_id == project_id).order_by(tags.c.id).limit(limit)
    if after is not None:
        statement = statement.where(tags.c.id > after)
    if named is not None:
        statement = statement.where(tags.c.name_key == fold(named))
    return await fetch_all(connection, TagRow, statement)


# If an object is deleted for good, its attachments stay. This statement deletes such attachments.
_FORGET = text(
    """
    delete from tag_attachments a where a.tag_id = :id and case
        when a.object_type = 'warehouse' then false
        when a.object_type = 'namespace' then not exists (select 1 from namespaces n where n.id = a.object_id)
        else not exists (select 1 from tables t where t.id = a.object_id) end
    """
)
_BOUND = text("select 1 from data_policy_bindings where object_type = 'tag' and object_id = :id limit 1")


_BOUND_POLICIES = text(
    """
    select p.id, p.applies_to from data_policies p join data_policy_bindings b on b.policy_id = p.id
    where b.object_type = 'tag' and b.object_id = :id
    """
)
_DEPENDENT = text(
    """
    select p.id, cast(p.tag_ids as text) as tag_ids, exists (
            select 1 from data_policy_bindings b
            where b.policy_id = p.id and b.object_type = 'tag' and b.object_id = :id) as bound,
        array(select named #>> '{}' from jsonb_path_query(p.definition, '$.**.tag') as named) as named
    from data_policies p
    where p.project_id = :project
    """
)


async def policies_bound_to(connection: AsyncConnection, id: UUID) -> Mapping[str, AppliesTo]:
    """Return the data policies that are bound to a tag: the principals that each applies to, by the policy's id."""
    rows = (await connection.execute(_BOUND_POLICIES, {"id": id})).all()
    return {str(row.id): AppliesTo(row.applies_to) for row in rows}


async def dependent_policies(connection: AsyncConnection, id: UUID, project_id: str, name: str) -> Sequence[UUID]:
    """Return the data policies that depend on a tag: they are bound to it, or their definition refers to it."""
    rows = await fetch_all(connection, _Dependent, _DEPENDENT, {"id": id, "project": project_id})
    return [row.id for row in rows if row.bound or _means(row, str(id), name, by_name_alone=False)]


async def named_by_policy(
    connection: AsyncConnection, id: UUID, project_id: str, name: str, *, by_name_alone: bool = False
) -> bool:
    """Return True if the definition of a data policy of the project refers to the tag.

    With `by_name_alone`, policies that were written after the definition of the tag do not count, because they contain
    its id.
    """
    rows = await fetch_all(connection, _Dependent, _DEPENDENT, {"id": id, "project": project_id})
    return any(_means(row, str(id), name, by_name_alone=by_name_alone) for row in rows)


_tag_ids = msgspec.json.Decoder(dict[str, str]).decode


def _means(row: _Dependent, id: str, name: str, *, by_name_alone: bool) -> bool:
    ids, wanted = _tag_ids(row.tag_ids), {fold(name)} if by_name_alone else {fold(name), id}
    # If the policy contains the id of the tag for a name, the id counts and not the tag's current name.
    meant = {ids.get(fold(each), fold(each)) for each in row.named if each}
    return not wanted.isdisjoint(meant)


async def ids_of_names(connection: AsyncConnection, project_id: str, names: Collection[str]) -> dict[str, str]:
    """Return {folded name: id} for the project's tags with these names, and lock these tags against deletion."""
    keys = [fold(each) for each in names]
    statement = (
        select(tags.c.name_key, tags.c.id)
        .where(tags.c.project_id == project_id, tags.c.name_key.in_(keys))
        .with_for_update(key_share=True, read=True)
    )
    return {row.name_key: str(row.id) for row in (await connection.execute(statement)).all()} if keys else {}


async def names_of(connection: AsyncConnection, ids: Collection[str]) -> dict[str, str]:
    """Return {id: name} for these tags."""
    statement = select(tags.c.id, tags.c.name).where(tags.c.id.in_([UUID(each) for each in ids]))
    return {str(row.id): row.name for row in (await connection.execute(statement)).all()} if ids else {}


async def delete(connection: AsyncConnection, id: UUID) -> None:
    """Delete a tag that `held` locked. Raises InUse.

    Call `ownership.record_deleted` in the same transaction afterwards.
    """
    if (await connection.execute(_BOUND, {"id": id})).one_or_none() is not None:
        raise InUse("bound")
    await connection.execute(_FORGET, {"id": id})
    try:
        await connection.execute(delete_from(tags).where(tags.c.id == id))
    except IntegrityError as error:
        raise (_clash(error) or error) from error
