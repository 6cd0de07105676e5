# SPDX-License-Identifier: Apache-2.0
"""Statements on relationship models of OpenFGA: the recorded ones, the active one, and the tuples that the next one
needs.

A row of PostgreSQL selects the active model; the order of models in OpenFGA has no effect. So a new model is written
without replacing the old one, is used only after the switch, and can be rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database
from gateway.db.grants.grant_ends import GrantRow
from gateway.db.grants.grants import tuple_of
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import columns_for, fetch_all, fetch_optional
from gateway.db.schema.changes import model_steps, model_switches, outbox, relationship_models
from gateway.db.schema.grants import grants
from gateway.db.schema.warehouses import server
from gateway.db.tuples.outbox import Pending

_ONE_SWITCH_AT_A_TIME = 0x1A4E0006


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """A model in OpenFGA's store. `content_hash` is `gateway.fga.compiled.content_hash` of its content."""

    model_id: str
    store_id: str
    version: str
    content_hash: str
    recorded_at: datetime
    recorded_by: str


@dataclass(frozen=True, slots=True)
class ActiveModel:
    """The model that checks use since `switched_at`, and its predecessor (None for the first model)."""

    model_id: str
    store_id: str
    version: str
    content_hash: str
    previous_id: str | None
    switched_at: datetime
    switched_by: str


@dataclass(frozen=True, slots=True)
class StepProgress:
    """The progress of a step that migrates tuples: it is done, or done up to `cursor`."""

    cursor: str | None
    done: bool


class SwitchedMeanwhile(Exception):
    """Another process switched models after this switch was prepared."""


_ACTIVE = DirectRead(
    select(
        model_switches.c.model_id,
        relationship_models.c.store_id,
        relationship_models.c.version,
        relationship_models.c.content_hash,
        model_switches.c.previous_id,
        model_switches.c.switched_at,
        model_switches.c.switched_by,
    )
    .join(relationship_models, relationship_models.c.model_id == model_switches.c.model_id)
    .order_by(model_switches.c.id.desc())
    .limit(1),
    ActiveModel,
)


async def active_model(connection: AsyncConnection) -> ActiveModel | None:
    """Return the model that checks use. Return None before the first `lakegate migrate`."""
    return await fetch_optional(connection, ActiveModel, _ACTIVE.statement)


async def read_active_model(database: Database) -> ActiveModel | None:
    """Return the result of `active_model`. Raises DatabaseUnavailable."""
    rows = await database.read_all(_ACTIVE, {})
    return rows[0] if rows else None


async def record(
    connection: AsyncConnection, *, model_id: str, store_id: str, version: str, content_hash: str, by: str
) -> bool:
    """Record a model that was written to OpenFGA. If it is already recorded, change nothing and return False."""
    values = {"model_id": model_id, "store_id": store_id, "version": version, "content_hash": content_hash}
    result = await connection.execute(
        upsert(relationship_models).values(**values, recorded_by=by).on_conflict_do_nothing(index_elements=["model_id"])
    )
    return result.rowcount == 1


async def recorded(connection: AsyncConnection) -> Sequence[RecordedModel]:
    """Return all recorded models, newest first."""
    statement = select(*columns_for(RecordedModel, relationship_models))
    return await fetch_all(connection, RecordedModel, statement.order_by(relationship_models.c.recorded_at.desc()))


async def switch(connection: AsyncConnection, *, to: str, expected: str | None, by: str) -> None:
    """Let checks use the model `to` from the end of this transaction on.

    The server's revision changes, so no cached decision of the old model is used again. Raises SwitchedMeanwhile unless
    `expected` is the active model (None: there is none yet).
    """
    await connection.execute(select(func.pg_advisory_xact_lock(_ONE_SWITCH_AT_A_TIME)))
    serving = await active_model(connection)
    if (serving.model_id if serving else None) != expected:
        raise SwitchedMeanwhile(
            f"the active model is now {serving.model_id if serving else None}, not {expected}; run the command again"
        )
    await connection.execute(insert(model_switches).values(model_id=to, previous_id=expected, switched_by=by))
    await connection.execute(update(server).values(revision=uuid7()))


async def step_progress(connection: AsyncConnection, model_id: str, step: str) -> StepProgress:
    """Return the progress of a step in the migration to a model."""
    statement = select(model_steps).where(model_steps.c.model_id == model_id, model_steps.c.step == step)
    row = (await connection.execute(statement)).one_or_none()
    return StepProgress(None, False) if row is None else StepProgress(row.cursor, row.done_at is not None)


async def advance_step(connection: AsyncConnection, model_id: str, step: str, cursor: str | None) -> None:
    """Record that a step is done up to `cursor`, or completely if it is None."""
    done = func.clock_timestamp() if cursor is None else None
    values = {"cursor": cursor, "done_at": done}
    await connection.execute(
        upsert(model_steps)
        .values(model_id=model_id, step=step, **values)
        .on_conflict_do_update(index_elements=["model_id", "step"], set_=values)
    )


async def undelivered(connection: AsyncConnection, pending: Sequence[Pending]) -> int:
    """Return the number of these keys that are still in the outbox, because OpenFGA refused them or they are not
    settled.
    """
    statement = select(func.count()).select_from(outbox).where(outbox.c.id.in_([row.id for row in pending]))
    return int((await connection.execute(statement)).scalar_one())


async def newest_holders(
    connection: AsyncConnection, *, limit: int
) -> tuple[datetime, Sequence[tuple[Principal, ObjectKey]]]:
    """Return (the time of the database, the principals and objects of the newest live grants)."""
    live = grants.c.expires_at.is_(None) | (grants.c.expires_at > func.clock_timestamp())
    statement = select(*columns_for(GrantRow, grants)).where(live).order_by(grants.c.id.desc()).limit(limit)
    holders = [
        (
            Principal(PrincipalType(row.principal_type), row.principal_id),
            ObjectKey(ObjectType(row.object_type), row.object_id),
        )
        for row in await connection.execute(statement)
    ]
    now: datetime = (await connection.execute(select(func.clock_timestamp()))).scalar_one()
    return now, list(dict.fromkeys(holders))


async def storage_managers(
    connection: AsyncConnection, after: str | None, limit: int
) -> tuple[Sequence[TupleKey], str | None]:
    """Return up to `limit` tuple keys of `manage_storage` grants, and the cursor of the next page.

    `after` is the cursor of the page before, None for the first; the returned cursor is None after the last page.
    """
    statement = select(*columns_for(GrantRow, grants)).where(
        grants.c.object_type == ObjectType.WAREHOUSE.value, grants.c.privilege == Privilege.MANAGE_STORAGE.value
    )
    if after is not None:
        statement = statement.where(grants.c.id > UUID(after))
    rows = await fetch_all(connection, GrantRow, statement.order_by(grants.c.id).limit(limit))
    return [tuple_of(row) for row in rows], str(rows[-1].id) if len(rows) == limit else None
