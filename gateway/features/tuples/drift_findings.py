# SPDX-License-Identifier: Apache-2.0
"""Kinds of drift (differences between OpenFGA and the rows), their repairs, and the events of repaired grants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.access.events.change_event import FurtherChanges, FurtherEvent
from gateway.access.events.unrequested_events import ChangedGrant
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege
from gateway.access.tuples import Principal, TupleKey
from gateway.db.engine.database import Connection
from gateway.db.tuples.desired_tuples import Containers, containers_of
from gateway.db.tuples.ownership import project_above
from gateway.db.warehouses import drift
from gateway.fga.relationships import StoredTuple, bare
from gateway.fga.wire import FgaTuple


class Kind(StrEnum):
    """Kinds of findings. The values are used in logs, metrics and the audit."""

    UNWANTED = "unwanted"
    """The tuple exists and no row requires it."""
    MISSING = "missing"
    """A row requires the tuple and it does not exist."""
    OTHER_CONDITION = "other_condition"
    """The tuple exists with another condition than the rows require."""
    FOREIGN = "foreign"
    """The model allows the tuple, but no row can require it in this form: a flag, a wildcard, another parent."""
    EXPIRED = "expired"
    """No row requires the tuple and its expiry is in the past. It grants nothing and is only cleaned up."""
    UNKNOWN = "unknown"
    """This version's model has no such type or relation. The tuple has no effect here; a newer version may use it."""


class RepairAction(StrEnum):
    """The action that was taken on a finding."""

    REMOVED = "removed"
    ADOPTED = "adopted"
    WRITTEN = "written"
    LEFT = "left"
    REVOKED = "revoked"
    SHORTENED = "shortened"


class External(StrEnum):
    """The configured action on a grant that another client wrote directly into OpenFGA."""

    REMOVE = "remove"
    ADOPT = "adopt"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Finding:
    """A tuple that differs from the rows. `stored` is the tuple in OpenFGA, None if it is missing."""

    kind: Kind
    raw: FgaTuple
    key: TupleKey | None
    stored: StoredTuple | None

    @property
    def text(self) -> str:
        """The tuple as `user relation object`."""
        return f"{self.raw.user} {self.raw.relation} {self.raw.object}"

    @property
    def is_drift(self) -> bool:
        """Return True if the tuple can change a decision. Expired and unknown tuples cannot."""
        return self.kind not in (Kind.EXPIRED, Kind.UNKNOWN)

    @property
    def external_grant(self) -> bool:
        """Return True for a grant that is in OpenFGA and has no row."""
        return self.kind is Kind.UNWANTED and self._is_grant

    @property
    def lost_grant(self) -> bool:
        """Return True for a grant that has a row and is missing in OpenFGA."""
        return self.kind is Kind.MISSING and self._is_grant

    @property
    def ends_at(self) -> datetime | None:
        """The expiry in OpenFGA of a grant whose condition there differs from the rows. None if it has no expiry or an
        unknown condition there, and for other tuples.
        """
        if self.kind is not Kind.OTHER_CONDITION or not self._is_grant or self.stored is None:
            return None
        return self.stored.expires_at if self.stored.plain else None

    @property
    def _is_grant(self) -> bool:
        """Return True for a grant that the API can create. Parent tuples, flags and derived tuples are not."""
        return (
            self.key is not None
            and isinstance(self.key.subject, Principal)
            and self.key.relation in GRANTABLE.get(self.key.object.type, ())
        )


def finding_of(
    key: TupleKey, stored: StoredTuple | None, is_desired: bool, expires_at: datetime | None, now: datetime
) -> Finding | None:
    """Return the finding about a key, or None if it is correct. `expires_at` is the grant's expiry in the rows, None if
    it has none.
    """
    if stored is None:
        return Finding(Kind.MISSING, bare(key), key, None) if is_desired else None
    if is_desired:
        as_desired = stored.plain and stored.expires_at == expires_at
        return None if as_desired else Finding(Kind.OTHER_CONDITION, stored.raw, key, stored)
    over = stored.plain and stored.expires_at is not None and stored.expires_at <= now
    return Finding(Kind.EXPIRED if over else Kind.UNWANTED, stored.raw, key, stored)


async def announced_repairs(
    connection: Connection, verified: Sequence[tuple[Finding, RepairAction]]
) -> FurtherChanges | None:
    """Return the events about the grants that these repairs changed; None if they changed no grant."""
    changed = [
        (finding, finding.key, action)
        for finding, action in verified
        if finding.key is not None and action in (RepairAction.ADOPTED, RepairAction.REVOKED, RepairAction.SHORTENED)
    ]
    if not changed:
        return None
    places = await containers_of(connection, [key.object for _, key, _ in changed])
    now = await drift.now(connection)
    return FurtherChanges([_event(finding, key, action, places[key.object], now) for finding, key, action in changed])


def _event(finding: Finding, key: TupleKey, action: RepairAction, place: Containers, now: datetime) -> FurtherEvent:
    if not isinstance(key.subject, Principal):
        raise TypeError(f"the tuple {finding.text} is no grant")
    grant = ChangedGrant(
        privilege=Privilege(key.relation),
        principal=key.subject,
        on=key.object,
        project_id=project_above(key.object, place.above),
        warehouse_id=place.warehouse_id,
    )
    until = None if finding.stored is None else finding.stored.expires_at
    ended = action is RepairAction.REVOKED or (until is not None and until <= now)
    return grant.removed() if ended else grant.added(until=until)
