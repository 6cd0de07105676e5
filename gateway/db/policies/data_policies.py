# SPDX-License-Identifier: Apache-2.0
"""Statements on data policies (row filters and masks) and on their versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import delete as delete_from
from sqlalchemy import func, insert, select
from sqlalchemy import update as update_of
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import columns_for, fetch_all, fetch_one, fetch_optional
from gateway.db.schema.policies import data_policies, data_policy_versions
from gateway.iceberg.identifiers import fold


class DataPolicyRow(NamedTuple):
    """A data policy. `tag_ids` maps the folded names of the tags in its definition to their ids."""

    id: UUID
    project_id: str
    name: str
    description: str | None
    version: int
    definition: Mapping[str, Any]
    tag_ids: Mapping[str, str]
    applies_to: str
    allow_append: bool
    created_at: datetime
    updated_at: datetime | None


class VersionRow(NamedTuple):
    """A version of a data policy."""

    version: int
    document: Mapping[str, Any]
    changed_by: str
    reason: str | None
    changed_at: datetime


_COLUMNS: Final = columns_for(DataPolicyRow, data_policies)


class DataPolicyClash(Exception):
    """The change conflicts with existing rows. The transaction cannot continue."""


class NameTaken(DataPolicyClash):
    """Another data policy of the project has this name, ignoring letter case."""


class ProjectGone(DataPolicyClash):
    """The project does not exist any more."""


@contextmanager
def _clashes() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        text = str(error.orig)
        for constraint, kind in (("name_key_key", NameTaken), ("project_id_fkey", ProjectGone)):
            if constraint in text:
                raise kind(constraint) from error
        raise


async def create(
    connection: AsyncConnection,
    *,
    id: UUID,
    project_id: str,
    document: Mapping[str, Any],
    tag_ids: Mapping[str, str],
    by: str,
) -> DataPolicyRow:
    """Insert a data policy with its first version, and return its row. Raises DataPolicyClash.

    `document` has the columns that each version of the policy contains. `tag_ids` is the result of `tags.ids_of_names`.
    """
    values = {"id": id, "project_id": project_id, "name_key": fold(document["name"]), "tag_ids": tag_ids, **document}
    with _clashes():
        row = await fetch_one(connection, DataPolicyRow, insert(data_policies).values(values).returning(*_COLUMNS))
    await _keep(connection, row, document, by=by, reason=None)
    return row


async def update(
    connection: AsyncConnection,
    id: UUID,
    *,
    document: Mapping[str, Any],
    tag_ids: Mapping[str, str],
    by: str,
    reason: str | None,
) -> DataPolicyRow:
    """Write the next version of a policy that `lock` returned, and return its row. Raises DataPolicyClash."""
    change = (
        update_of(data_policies)
        .where(data_policies.c.id == id)
        .values(
            **document,
            tag_ids=tag_ids,
            name_key=fold(document["name"]),
            version=data_policies.c.version + 1,
            updated_at=func.clock_timestamp(),
        )
    )
    with _clashes():
        row = await fetch_one(connection, DataPolicyRow, change.returning(*_COLUMNS))
    await _keep(connection, row, document, by=by, reason=reason)
    return row


async def _keep(
    connection: AsyncConnection, row: DataPolicyRow, document: Mapping[str, Any], *, by: str, reason: str | None
) -> None:
    await connection.execute(
        insert(data_policy_versions).values(
            policy_id=row.id, version=row.version, document=dict(document), changed_by=by, reason=reason
        )
    )


async def get(connection: AsyncConnection, id: UUID) -> DataPolicyRow | None:
    """Return the row of a data policy, or None."""
    return await fetch_optional(connection, DataPolicyRow, select(*_COLUMNS).where(data_policies.c.id == id))


async def lock(connection: AsyncConnection, id: UUID) -> DataPolicyRow | None:
    """Return the row of a data policy and lock it until the transaction ends. Return None if it does not exist."""
    held = select(*_COLUMNS).where(data_policies.c.id == id).with_for_update()
    return await fetch_optional(connection, DataPolicyRow, held)


async def page(
    connection: AsyncConnection, project_id: str, *, after: UUID | None, limit: int
) -> Sequence[DataPolicyRow]:
    """Return the data policies of a project, ordered by id. The page starts after the id `after`."""
    statement = select(*_COLUMNS).where(data_policies.c.project_id == project_id)
    if after is not None:
        statement = statement.where(data_policies.c.id > after)
    return await fetch_all(connection, DataPolicyRow, statement.order_by(data_policies.c.id).limit(limit))


async def versions(connection: AsyncConnection, id: UUID, *, before: int | None, limit: int) -> Sequence[VersionRow]:
    """Return the versions of a data policy, newest first. The page starts below the version `before`."""
    statement = select(*columns_for(VersionRow, data_policy_versions)).where(data_policy_versions.c.policy_id == id)
    if before is not None:
        statement = statement.where(data_policy_versions.c.version < before)
    return await fetch_all(
        connection, VersionRow, statement.order_by(data_policy_versions.c.version.desc()).limit(limit)
    )


async def delete(connection: AsyncConnection, id: UUID) -> None:
    """Delete a data policy with its bindings. Its versions are kept.

    Call `ownership.record_deleted` in the same transaction afterwards.
    """
    await connection.execute(delete_from(data_policies).where(data_policies.c.id == id))
