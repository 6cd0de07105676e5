# SPDX-License-Identifier: Apache-2.0
"""Search the audit log for auditors. Each page reads a limited number of records, however few of them are selected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

import msgspec

from gateway.access.audit.audit_record import AuditRecord
from gateway.access.door.permit import Permit
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import Ref, WarehouseRef
from gateway.access.nouns.server import ServerRef
from gateway.access.operation import OPERATIONS, UNROUTED
from gateway.access.operations.audit import (
    DEFAULT_RECORDS,
    MAX_RECORDS,
    AuditEntry,
    AuditFilters,
    AuditPage,
    AuditRange,
    AuditSelection,
    Moment,
    SearchAudit,
)
from gateway.audit.refused_logins import OPERATION as REFUSED_LOGIN
from gateway.db.audit import audit_search
from gateway.db.audit.audit_search import AuditScan, FoundRecord
from gateway.db.engine.database import Connection
from gateway.db.warehouses import warehouses
from gateway.db.warehouses.read_pool import ReadPool
from gateway.features.audit.audit_view import AuditPlace, entry_of, parts_of, text_part
from gateway.features.kit import UseCases
from gateway.features.paging import packed, token_place, unpacked
from gateway.iceberg.errors import BadRequestException

DAY: Final = timedelta(days=1)
LONGEST: Final = timedelta(days=366)
BUDGET: Final = 50_000
"""The number of records that one page of a filtered search reads at most."""

_DECODED: Final = 5
"""The budget is divided by this if the database cannot compare the place, so that all records are decoded here."""
_NEXT_RECORDS: Final = 1000
"""The number of records of a further read, if the first records have less entries than the page."""

_AROUND: Final = timedelta(hours=1)
"""The time before and after the time in the id of a request, in which its records are searched."""
_FIRST_YEAR, _LAST_YEAR = 1970, 9000

_records: Final = msgspec.json.Decoder(AuditRecord)
Place = tuple[datetime, UUID]


@dataclass(frozen=True, slots=True)
class FoundPage:
    """The entries of a page, the place of its last record if more may follow, and the number of unreadable records."""

    entries: list[AuditEntry]
    last: Place | None
    unreadable: int


class AuditSearches(UseCases):
    """The use case that searches the audit log."""

    async def search(self, permit: Permit[SearchAudit]) -> AuditPage:
        """Return a page of the audit log. Raises InvalidPaginationToken."""
        operation = permit.operation
        selection, size = operation.selection, min(operation.page_size or DEFAULT_RECORDS, MAX_RECORDS)
        before = None if operation.page_token is None else token_place(operation.page_token, _position).before
        place = await audit_place(self._reads, operation.on)
        found = await self._reads.run(partial(read_page, selection=selection, place=place, before=before, size=size))
        last = found.last
        return AuditPage(
            records=found.entries,
            since=selection.since,
            until=selection.until,
            searched_since=selection.since if last is None else last[0],
            next_page_token=None if last is None else packed((selection.since, selection.until, *last)),
            unreadable=found.unreadable,
        )


async def audit_place(reads: ReadPool, on: Ref) -> AuditPlace:
    """Return the place of a question about the audit log, with the warehouses there. Raises DatabaseUnavailable."""
    match on:
        case WarehouseRef(warehouse_id=id):
            return AuditPlace(warehouses=frozenset({str(id)}))
        case ProjectRef(project_id=id):
            rows = await reads.run(partial(warehouses.of_project, project_id=id, active=(True, False)))
            return AuditPlace(project_id=id, warehouses=frozenset(str(row.id) for row in rows))
        case _:
            return AuditPlace()


class _Position(msgspec.Struct, array_like=True, frozen=True):
    """The content of a page token: the time range of the search, and the place of the last record of the page."""

    since: Moment
    until: Moment
    at: Moment
    id: UUID

    @property
    def before(self) -> Place:
        return self.at, self.id


def _position(token: str) -> _Position:
    position = unpacked(token, _Position)
    if not all(_FIRST_YEAR <= each.year <= _LAST_YEAR for each in (position.since, position.until, position.at)):
        raise ValueError("no token has such a time")
    return position


async def read_page(
    connection: Connection,
    *,
    selection: AuditSelection,
    place: AuditPlace,
    before: Place | None,
    size: int,
    budget: int = BUDGET,
) -> FoundPage:
    """Return up to `size` entries below the place `before`. A search that omits records reads at most about `budget`.

    The database finds more records than the auditor reads. Only entries fill a page and determine its end, because
    the end would otherwise tell whether a filter meets the hidden part of a record.
    """
    scan = AuditScan(
        since=selection.since,
        until=selection.until,
        actor=selection.actor,
        before=before,
        parts=parts_of(selection, place),
        text=None if selection.text is None else text_part(selection.text),
    )
    bounded = scan
    if scan.is_filtered or not place.is_server:
        most = budget if scan.is_filtered else max(1, budget // _DECODED)
        bounded = await audit_search.within_budget(connection, scan, most=most)
    found: list[tuple[AuditEntry | None, Place]] = []
    limit = size + 1
    while True:
        rows = await audit_search.search(connection, replace(bounded, before=before), limit=limit)
        found.extend(_read(rows, selection, place))
        if len(found) > size:
            return _page(found[:size], found[size - 1][1])
        if len(rows) < limit:
            return _page(found, (bounded.since, UUID(int=0)) if bounded.since > scan.since else None)
        before, limit = (rows[-1].at, rows[-1].id), max(limit, _NEXT_RECORDS)


def _read(
    rows: Sequence[FoundRecord], selection: AuditSelection, place: AuditPlace
) -> Iterator[tuple[AuditEntry | None, Place]]:
    """Yield each entry with its place, and None for an unreadable record."""
    for row in rows:
        try:
            entry = entry_of(_records.decode(row.record), place, selection, row.block)
        except msgspec.MsgspecError:
            # Only the reader of all records may know that it exists.
            if place.is_server:
                yield None, (row.at, row.id)
            continue
        if entry is not None:
            yield entry, (row.at, row.id)


def _page(found: Sequence[tuple[AuditEntry | None, Place]], last: Place | None) -> FoundPage:
    entries = [entry for entry, _ in found if entry is not None]
    return FoundPage(entries, last, unreadable=len(found) - len(entries))


def place_of(filters: AuditRange) -> Ref:
    """Return the server, project or warehouse of a request. Raise 400 if it has two of them."""
    if filters.warehouse_id is not None and filters.project_id is not None:
        raise BadRequestException("`warehouse-id` and `project-id` are not possible together. Send one of them.")
    if filters.warehouse_id is not None:
        return WarehouseRef(filters.warehouse_id)
    return ServerRef() if filters.project_id is None else ProjectRef(filters.project_id)


def selection_of(filters: AuditRange, page_token: str | None = None, *, longest: timedelta = LONGEST) -> AuditSelection:
    """Return what a request selects. A page token keeps the time range of the first page.

    Raise 400 for an unknown operation or a time range that is empty or too long, and InvalidPaginationToken.
    """
    _require_known(filters.operations)
    if page_token is None:
        since, until = _range_of(filters)
    else:
        position = token_place(page_token, _position)
        since, until = position.since, position.until
    if not (since.year >= _FIRST_YEAR and until.year <= _LAST_YEAR and timedelta() < until - since <= longest):
        raise BadRequestException(f"`since` must be before `until`, and at most {longest.days} days before it.")
    more = filters if isinstance(filters, AuditFilters) else AuditFilters()
    return AuditSelection(
        since=since,
        until=until,
        actor=filters.actor,
        operations=tuple(filters.operations),
        outcomes=tuple(filters.outcomes),
        object=more.object,
        below=more.below,
        request_id=more.request_id,
        text=more.text,
    )


def _range_of(filters: AuditRange) -> tuple[datetime, datetime]:
    id = filters.request_id if isinstance(filters, AuditFilters) else None
    made = None if id is None else _time_of_id(id)
    if made is not None and filters.since is None and filters.until is None:
        return made - _AROUND, made + _AROUND
    for given in (filters.since, filters.until):
        # Checked before the conversion to UTC and the subtraction, which overflow in the years 1 and 9999.
        if given is not None and not _FIRST_YEAR < given.year < _LAST_YEAR:
            raise BadRequestException(
                f"`since` and `until` must be in the years {_FIRST_YEAR + 1} to {_LAST_YEAR - 1}."
            )
    until = datetime.now(UTC) if filters.until is None else filters.until.astimezone(UTC)
    return until - DAY if filters.since is None else filters.since.astimezone(UTC), until


def _time_of_id(id: str) -> datetime | None:
    """Return the time in an id of version 7, as records and requests have; None for other ids."""
    try:
        parsed = UUID(id)
        if parsed.version != 7:
            return None
        made = datetime.fromtimestamp((parsed.int >> 80) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return made if _FIRST_YEAR < made.year < _LAST_YEAR else None


def _require_known(names: Sequence[str]) -> None:
    known = {each.name() for each in (*OPERATIONS.values(), *UNROUTED.values())} | {REFUSED_LOGIN}
    for name in names:
        if name not in known:
            raise BadRequestException(
                f"There is no operation {name}. Operations have the names that audit records have, such as load_table."
            )
