# SPDX-License-Identifier: Apache-2.0
"""Statements that search the audit log, newest records first.

The time, and the actor if it is given, are found by an index. The other filters compare parts of the stored JSON, so a
search reads a limited number of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    Select,
    String,
    and_,
    collate,
    func,
    literal,
    literal_column,
    or_,
    select,
    tuple_,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import fetch_all
from gateway.db.schema.audit import audit_block_records, audit_log

_ORDER: Final = (audit_log.c.at.desc(), audit_log.c.id.desc())


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditScan:
    """The records to read: from `since` until before `until`, below the place `before` in the order of (time, id).

    A record has one part of each entry of `parts`, as bytes of its JSON. `text` is a part in lower case, compared
    without regard to the case of ASCII letters.
    """

    since: datetime
    until: datetime
    actor: str | None
    before: tuple[datetime, UUID] | None
    parts: Sequence[Sequence[bytes]] = ()
    text: bytes | None = None

    @property
    def is_filtered(self) -> bool:
        """Return True if no index finds the records."""
        return bool(self.parts) or self.text is not None


class FoundRecord(NamedTuple):
    """A record, and the number of the block that seals it."""

    id: UUID
    at: datetime
    record: bytes
    block: int | None


async def search(connection: AsyncConnection, scan: AuditScan, *, limit: int) -> Sequence[FoundRecord]:
    """Return up to `limit` records, newest first."""
    block = (
        select(audit_block_records.c.block)
        .where(audit_block_records.c.record_id == audit_log.c.id)
        .scalar_subquery()
        .label("block")
    )
    columns = (audit_log.c.id, audit_log.c.at, audit_log.c.record, block)
    statement = select(*columns).where(_by_index(scan), *_by_content(scan)).order_by(*_ORDER).limit(limit)
    return await fetch_all(connection, FoundRecord, statement)


async def within_budget(connection: AsyncConnection, scan: AuditScan, *, most: int) -> AuditScan:
    """Return the scan, with a later `since` if it would read more than about `most` records.

    Records of one time are never divided.
    """
    last: Select[Any] = select(audit_log.c.at).where(_by_index(scan)).order_by(audit_log.c.at.desc())
    since = (await connection.execute(last.offset(most).limit(1))).scalar_one_or_none()
    return scan if since is None else replace(scan, since=since)


class RecordCount(NamedTuple):
    """The number of records of an hour or day by operation and outcome."""

    at: datetime
    operation: str
    outcome: str
    records: int


async def counts(
    connection: AsyncConnection,
    scan: AuditScan,
    *,
    interval: str,
    operations: Sequence[str],
    outcomes: Sequence[str],
    limit: int,
) -> Sequence[RecordCount]:
    """Return up to `limit` numbers of records, oldest first. `interval` is `hour` or `day`, in UTC.

    Without `operations` or `outcomes` all of them are counted.
    """
    at = func.date_trunc(interval, audit_log.c.at, "UTC").label("at")
    columns = (at, audit_log.c.operation, audit_log.c.outcome, func.count().label("records"))
    statement = select(*columns).where(_by_index(scan), *_by_content(scan))
    if operations:
        statement = statement.where(audit_log.c.operation.in_(operations))
    if outcomes:
        statement = statement.where(audit_log.c.outcome.in_(outcomes))
    grouped = statement.group_by(literal_column("1"), literal_column("2"), literal_column("3"))
    ordered = grouped.order_by(literal_column("1"), literal_column("2"), literal_column("3"))
    return await fetch_all(connection, RecordCount, ordered.limit(limit))


def _by_index(scan: AuditScan) -> ColumnElement[bool]:
    terms = [audit_log.c.at >= scan.since, audit_log.c.at < scan.until]
    if scan.actor is not None:
        terms.append(audit_log.c.actor_id == scan.actor)
    if scan.before is not None:
        at, id = scan.before
        terms.append(audit_log.c.at <= at)
        terms.append(tuple_(audit_log.c.at, audit_log.c.id) < tuple_(literal(at), literal(id)))
    return and_(*terms)


def _by_content(scan: AuditScan) -> list[ColumnElement[bool]]:
    terms = [
        or_(*(func.position(literal(part, LargeBinary).op("IN")(audit_log.c.record)) > 0 for part in parts))
        for parts in scan.parts
    ]
    if scan.text is not None:
        content = func.lower(collate(func.convert_from(audit_log.c.record, "UTF8", type_=String), "C"))
        terms.append(func.strpos(content, scan.text.decode()) > 0)
    return terms
