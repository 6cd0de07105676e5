# SPDX-License-Identifier: Apache-2.0
"""The records of a governed copy in its properties and snapshots, and the decisions that follow from them. Pure."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import msgspec

from lakegate.restrictions.actions import Projection, without_salt
from lakegate.restrictions.types import NestedField
from lakegate.spark.catalog_client import NO_NAMESPACE, NO_TABLE, Metadata, Snapshot
from lakegate.spark.config import CopyConfig, OnBehalfOf
from lakegate.spark.errors import GovernedReadRefused, RequestRefused
from lakegate.spark.governed import GovernedTable
from lakegate.spark.restrictions import Restrictions

_FORM: Final = 1
"""The version of the compilers. A higher one rewrites all copies."""
_PREFIX: Final = "lakegate.copy."
SOURCE_ID, SOURCE, READER = f"{_PREFIX}source-table-id", f"{_PREFIX}source", f"{_PREFIX}reader"
SOURCE_SNAPSHOT, FINGERPRINT = f"{_PREFIX}source-snapshot", f"{_PREFIX}fingerprint"
PREVIOUS: Final = f"{_PREFIX}previous"
"""The snapshot of the copy that an append continues; `none` in a snapshot that replaces the whole copy."""
NONE: Final = "none"
REWRITING: Final = f"{_PREFIX}rewriting"
"""A property that a copy has from the beginning of a rewrite until the files before it are deleted."""
_KEEPS_ROWS: Final = frozenset({"append", "replace"})
#: Errors by which the gateway says that this user or role may not read the table: it is absent or invisible, the action
#: is forbidden, the user is deactivated, or the user may not act as the role. Errors about the service, its trust as an
#: engine (`ForbiddenException`: not all of the table may be read through it) and outages have other types.
_ACCESS_ENDED: Final = frozenset(
    {
        NO_TABLE,
        NO_NAMESPACE,
        "NoSuchWarehouseException",
        "TableActionForbidden",
        "NamespaceActionForbidden",
        "WarehouseActionForbidden",
        "UserDeactivated",
        "AssumeRoleForbidden",
        "InvalidAssumeRoleId",
    }
)


class _Claims(msgspec.Struct):
    iss: str = ""
    sub: str = ""


def fingerprint(table: GovernedTable, user: OnBehalfOf) -> str:
    """Return a digest of everything that determines the copy of a snapshot. Equal digests give equal copies."""
    parts = (
        _FORM,
        table.metadata.table_uuid,
        table.metadata.schema.fields,
        table.restrictions.canonical(),
        reader_of(user),
    )
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def empty_fingerprint(config: CopyConfig) -> str:
    """Return the fingerprint of a copy whose reader may not read the source any more."""
    parts = (_FORM, "empty", config.source, reader_of(config.on_behalf_of))
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def access_ended(refused: RequestRefused) -> bool:
    """Return True if the refusal of a load for the reader says that the reader may not read the table."""
    return refused.kind in _ACCESS_ENDED


def reader_of(user: OnBehalfOf) -> str:
    """Return the principal of the copy as text: the role, the user's name, or the issuer and subject of a token."""
    if user.role is not None:
        return f"role:{user.role}"
    return f"user:{user.user}" if user.user else f"token:{_subject(user.token or '')}"


def _subject(token: str) -> str:
    """Return issuer and subject of a JWT, which the gateway has verified; an empty text for other tokens."""
    try:
        payload = token.split(".")[1]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=_Claims)
    except (IndexError, ValueError):
        return ""
    return f"{claims.iss}~{claims.sub}"


def check_target(copy: Metadata, source: Metadata | None, config: CopyConfig) -> None:
    """Raise `GovernedReadRefused` unless the existing target is a copy of this source for this reader.

    The source is the same if its id or its name is: a table that replaced the source under its name replaces the rows.
    `source` is None if the reader may not load it. The readers of a copy keep their grants. The rows of another
    principal would be shown to them.
    """
    same = source is not None and copy.properties.get(SOURCE_ID) == source.table_uuid
    if not same and copy.properties.get(SOURCE) != config.source:
        raise GovernedReadRefused(f"{config.target} exists and is no copy of {config.source}; choose another target")
    if copy.properties.get(READER) != reader_of(config.on_behalf_of):
        raise GovernedReadRefused(
            f"{config.target} is a copy for another user or role, whose readers keep their grants; choose another "
            "target, or drop the copy"
        )


def storable(restrictions: Restrictions, fields: tuple[NestedField, ...]) -> Restrictions:
    """Return the restrictions for stored rows, which have no salt of one query."""
    required = {each.id for each in fields if each.required}
    masks = tuple(
        Projection(each.field_id, without_salt(each.action, required=each.field_id in required))
        for each in restrictions.masks
    )
    return Restrictions(row_filter=restrictions.row_filter, masks=masks)


def continued(copy: Metadata, mark: str) -> Snapshot | None:
    """Return the snapshot of the copy whose rows are the current ones, None if the copy must be rewritten.

    Snapshots of maintenance (`replace`) are skipped, because they keep the rows. The result is None if another writer
    changed the copy, if two runs appended at the same time, or if the fingerprint is not `mark`.
    """
    newest = _without_maintenance(copy, copy.current())
    if newest is None or newest.summary.get(FINGERPRINT) != mark:
        return None
    previous = newest.summary.get(PREVIOUS)
    if previous == NONE:
        return newest
    before = _without_maintenance(copy, copy.snapshot(newest.parent_snapshot_id))
    return newest if before is not None and previous == str(before.snapshot_id) else None


def _without_maintenance(table: Metadata, snapshot: Snapshot | None) -> Snapshot | None:
    while snapshot is not None and snapshot.operation == "replace" and FINGERPRINT not in snapshot.summary:
        snapshot = table.snapshot(snapshot.parent_snapshot_id)
    return snapshot


def appended_since(source: Metadata, snapshot_id: str | None) -> Snapshot | None:
    """Return the snapshot with this id if all later snapshots of the source, up to the current one, only append."""
    snapshot = source.current()
    while snapshot is not None and str(snapshot.snapshot_id) != snapshot_id:
        if snapshot.operation not in _KEEPS_ROWS:
            return None
        snapshot = source.snapshot(snapshot.parent_snapshot_id)
    return snapshot


def outdated(copy: Metadata) -> list[int]:
    """Return the ids of all snapshots of the copy that are older than its last rewrite, or beside it."""
    kept: set[int] = set()
    snapshot = copy.current()
    while snapshot is not None:
        kept.add(snapshot.snapshot_id)
        if snapshot.summary.get(PREVIOUS) == NONE:
            break
        snapshot = copy.snapshot(snapshot.parent_snapshot_id)
    return [each.snapshot_id for each in copy.snapshots if each.snapshot_id not in kept]
