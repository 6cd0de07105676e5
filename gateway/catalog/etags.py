# SPDX-License-Identifier: Apache-2.0
"""Entity tags of tables: what makes two answers the same, and for how long a client may keep one.

A tag is `W/"lg1.<digest>.<issued>.<life>"`: `issued` is the database's clock in milliseconds, `life` the milliseconds
for which the answer may be confirmed, both in hexadecimal, `-` for an answer without credentials. The digest covers all
three and everything the answer depends on, so a tag that somebody changed matches nothing. A client that computed tags
itself would only confirm to itself what it has not got.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from gateway.access.operation import Operation
from gateway.access.permit import Permit
from gateway.iceberg.referenced import SnapshotsMode
from gateway.iceberg.wire import LoadTableResult

#: No credential is confirmed for longer than this after it was handed out, however long it lives.
LONGEST_CONFIRMATION = timedelta(hours=1)

_TAG = re.compile(r'(?:W/)?"lg1\.(?P<digest>[0-9a-f]{32})\.(?P<issued>[0-9a-f]{1,12})\.(?P<life>-|[0-9a-f]{1,8})"')
_LISTED = re.compile(r'\s*((?:W/)?"[^"]*")\s*(?:,|$)')
_encoder = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Representation:
    """What an answer about a table depends on: two callers, or two moments, with the same values get the same answer.

    `access` is the level of the credentials, or why there are none; `obligations` the fingerprint of what the answer
    was allowed under. `restricted` says that some columns are to be held back. `labels` is the text of that member of
    the answer, empty while there is none.
    """

    table_id: UUID
    metadata_location: str
    snapshots: SnapshotsMode
    delegation: str
    principal: str
    role: str
    access: str
    profile: str
    obligations: bytes
    restricted: bool = False
    labels: bytes = b""

    def tag(self, now: datetime, expires_at: datetime | None) -> str:
        """The tag of this answer, given now; `expires_at` of its credentials, None when it has none."""
        life = "-"
        if expires_at is not None:
            half = min((expires_at - now) / 2, LONGEST_CONFIRMATION)
            life = f"{max(_milliseconds(half), 0):x}"
        return self._tag(f"{int(now.timestamp() * 1000):x}", life)

    def confirmed(self, known: Sequence[str] | None, now: datetime) -> str | None:
        """The tag among the client's that still stands for this answer, or None.

        `known` are the tags of `If-None-Match`, None for `*`. A `*` says nothing of the age of what the client has, so
        it confirms only answers that do not age: those without credentials. Nor does it say what the client was told
        to hold back, so it confirms no answer that tells that.
        """
        if known is None:
            ages = self.access not in WITHOUT_CREDENTIALS
            return None if ages or self.restricted else self.tag(now, None)
        for given in known:
            found = _TAG.fullmatch(given)
            if found is None or given.removeprefix("W/") != self._tag(found["issued"], found["life"]).removeprefix(
                "W/"
            ):
                continue
            age = int(now.timestamp() * 1000) - int(found["issued"], 16)
            if found["life"] == "-" or 0 <= age < int(found["life"], 16):
                return given
        return None

    def _tag(self, issued: str, life: str) -> str:
        parts = tuple(getattr(self, name) for name in self.__slots__)
        digest = hashlib.sha256(_encoder.encode((*parts, issued, life))).hexdigest()[:32]
        return f'W/"lg1.{digest}.{issued}.{life}"'


#: Values of `Representation.access` for answers that hold no credentials whatever the circumstances.
METADATA_ONLY = "metadata"
CLIENT_MANAGED = "client-managed"
COMMITTED = "committed"
WITHOUT_CREDENTIALS = frozenset({METADATA_ONLY, CLIENT_MANAGED, COMMITTED})


@dataclass(frozen=True, slots=True)
class Tagged:
    """An answer with its tag; `body` None says that what the client has is still right (304)."""

    etag: str
    body: LoadTableResult | None


def of_commit(permit: Permit[Operation], table_id: UUID | None, metadata_location: str) -> str:
    """The tag of a commit's answer. It holds no storage configuration, so it never confirms a load that would."""
    # A commit that creates does not tell the table's id; its metadata file has a UUID of its own.
    return Representation(
        table_id=table_id or UUID(int=0),
        metadata_location=metadata_location,
        snapshots=SnapshotsMode.ALL,
        delegation="",
        principal=permit.actor.id,
        role=permit.actor.guise,
        access=COMMITTED,
        profile="",
        obligations=permit.obligations.fingerprint,
    ).tag(permit.resolution.now, None)


def parse_if_none_match(header: str | None) -> tuple[str, ...] | None:
    """The tags of an `If-None-Match` header (RFC 9110, 13.1.2), empty without one, None for `*`.

    What is no tag ends the list: a header that cannot be understood confirms nothing.
    """
    if header is None:
        return ()
    if header.strip() == "*":
        return None
    tags, at = [], 0
    while found := _LISTED.match(header, at):
        tags.append(found[1])
        at = found.end()
    return tuple(tags)


def _milliseconds(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)
