# SPDX-License-Identifier: Apache-2.0
"""ETags of tables: each identifies a response, and limits how long a client may reuse this response.

A tag is `W/"lg1.<digest>.<issued>.<life>"`. `issued` is the database's clock in milliseconds. `life` is the time in
milliseconds for which the response may be confirmed. Both are hexadecimal; `life` is `-` for a response without
credentials. The digest covers both and everything on which the response depends, so a modified tag matches nothing. It
is not keyed: a client that computes a tag only gets a 304 for a response that it does not have.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from gateway.access.door.permit import Permit
from gateway.access.operation import Operation
from gateway.iceberg.excerpts import SnapshotsMode

#: A response with credentials is confirmed (304) for at most this time after vending, however long the credentials
#: live.
LONGEST_CONFIRMATION = timedelta(hours=1)

_TAG = re.compile(r'(?:W/)?"lg1\.(?P<digest>[0-9a-f]{32})\.(?P<issued>[0-9a-f]{1,12})\.(?P<life>-|[0-9a-f]{1,8})"')
_LISTED = re.compile(r'\s*((?:W/)?"[^"]*")\s*(?:,|$)')
_encoder = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Representation:
    """The values on which a response about a table depends. Equal values mean equal responses.

    `access` is the level of the credentials, or the reason for their absence. `obligations` is the fingerprint of the
    permit's obligations. `restricted` is True if column grants or data policies restrict the caller. `labels` is the
    JSON text of the field `labels` in the response, empty if absent.
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
        """Return the ETag of this response, issued at `now`. `expires_at` is the expiry of its credentials, None if
        absent.
        """
        life = "-"
        if expires_at is not None:
            half = min((expires_at - now) / 2, LONGEST_CONFIRMATION)
            life = f"{max(_milliseconds(half), 0):x}"
        return self._tag(f"{int(now.timestamp() * 1000):x}", life)

    def confirmed(self, known: Sequence[str] | None, now: datetime) -> str | None:
        """Return the first of the client's ETags that is still valid for this response, or None.

        `known` are the tags of `If-None-Match`, None for `*`. A `*` shows neither the age nor the restrictions of the
        client's response. So it confirms only responses without credentials and without restrictions.
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


#: Values of `Representation.access` for responses that never contain credentials.
METADATA_ONLY = "metadata"
CLIENT_MANAGED = "client-managed"
REMOTE_SIGNING = "remote-signing"
"""A value of `Representation.delegation`."""
COMMITTED = "committed"
WITHOUT_CREDENTIALS = frozenset({METADATA_ONLY, CLIENT_MANAGED, COMMITTED})


def commit_etag(permit: Permit[Operation], table_id: UUID | None, metadata_location: str) -> str:
    """Return the ETag of the response to a commit. That response has no storage configuration, so its tag never
    confirms a load with one.
    """
    # The id of a table that this commit creates is unknown here. The name of its metadata file contains a unique UUID.
    return Representation(
        table_id=table_id or UUID(int=0),
        metadata_location=metadata_location,
        snapshots=SnapshotsMode.ALL,
        delegation="",
        principal=permit.actor.id,
        role=permit.actor.acting_as,
        access=COMMITTED,
        profile="",
        obligations=permit.obligations.fingerprint,
    ).tag(permit.resolution.now, None)


def parse_if_none_match(header: str | None) -> tuple[str, ...] | None:
    """Parse an `If-None-Match` header (RFC 9110, 13.1.2). Return its ETags, empty without a header, None for `*`.

    Parsing stops at the first invalid tag: a malformed header confirms nothing.
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
