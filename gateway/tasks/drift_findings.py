# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a tuple of OpenFGA, and what can be done about it. Pure; `gateway/tasks/drift.py` does it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.access.privileges import GRANTABLE
from gateway.access.tuples import Principal, TupleKey
from gateway.fga.stored import StoredTuple, bare
from gateway.fga.wire import FgaTuple


class Kind(StrEnum):
    """What can be wrong with a tuple. The values are in logs, metrics and the audit."""

    UNWANTED = "unwanted"
    """It exists and no row wants it."""
    MISSING = "missing"
    """A row wants it and it does not exist."""
    OTHER_CONDITION = "other_condition"
    """It exists with another condition than the rows want."""
    FOREIGN = "foreign"
    """The model admits it and no row could ever want it, or not in this way: a flag, a wildcard, another parent."""
    EXPIRED = "expired"
    """Its own time is over and no row wants it: it gives nothing to anybody and is only swept away."""
    UNKNOWN = "unknown"
    """This version's model has no such type or relation, so it means nothing to this gateway, and may to a newer."""


class Mended(StrEnum):
    """What was done about it."""

    REMOVED = "removed"
    ADOPTED = "adopted"
    WRITTEN = "written"
    LEFT = "left"
    REVOKED = "revoked"
    SHORTENED = "shortened"


class External(StrEnum):
    """What becomes of a grant that somebody wrote into OpenFGA directly."""

    REMOVE = "remove"
    ADOPT = "adopt"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Finding:
    """One tuple that is not as the rows want it. `stored` is what OpenFGA has, None when it is missing."""

    kind: Kind
    raw: FgaTuple
    key: TupleKey | None
    stored: StoredTuple | None

    @property
    def text(self) -> str:
        """`user relation object`."""
        return f"{self.raw.user} {self.raw.relation} {self.raw.object}"

    @property
    def is_drift(self) -> bool:
        """Whether it changes what anybody may do. What is over gives nothing, and what is unknown means nothing."""
        return self.kind not in (Kind.EXPIRED, Kind.UNKNOWN)

    @property
    def external_grant(self) -> bool:
        """Whether it is a grant that no row knows."""
        return self.kind is Kind.UNWANTED and self._is_grant

    @property
    def lost_grant(self) -> bool:
        """Whether it is a grant that OpenFGA does not have."""
        return self.kind is Kind.MISSING and self._is_grant

    @property
    def ends_at(self) -> datetime | None:
        """When a grant that the rows want otherwise ends in OpenFGA; None for what has no end there, or no proper one,
        and for what is no grant.
        """
        if self.kind is not Kind.OTHER_CONDITION or not self._is_grant or self.stored is None:
            return None
        return self.stored.expires_at if self.stored.plain else None

    @property
    def _is_grant(self) -> bool:
        """Whether it is a grant as people give them; edges, flags and what is derived never are."""
        return (
            self.key is not None
            and isinstance(self.key.subject, Principal)
            and self.key.relation in GRANTABLE.get(self.key.object.type, ())
        )


def finding_of(
    key: TupleKey, stored: StoredTuple | None, is_wanted: bool, expires_at: datetime | None, now: datetime
) -> Finding | None:
    """Return what is wrong with a key, or None. `expires_at`: when the grant ends by the rows; None for no end."""
    if stored is None:
        return Finding(Kind.MISSING, bare(key), key, None) if is_wanted else None
    if is_wanted:
        as_wanted = stored.plain and stored.expires_at == expires_at
        return None if as_wanted else Finding(Kind.OTHER_CONDITION, stored.raw, key, stored)
    over = stored.plain and stored.expires_at is not None and stored.expires_at <= now
    return Finding(Kind.EXPIRED if over else Kind.UNWANTED, stored.raw, key, stored)
