# SPDX-License-Identifier: Apache-2.0
"""Find the access requests that a caller may read: its own, and those about which it may decide."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import access_request_not_found
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege, granting
from gateway.access.nouns.relations import Can
from gateway.access.operations.access_request_bodies import AccessRequest, AccessRequestStatus
from gateway.access.operations.access_requests import (
    CreateAccessRequest,
    FindAccessRequestToDeny,
    FindingAccessRequest,
    GetAccessRequest,
    ListAccessRequests,
)
from gateway.access.operations.answers import Opening
from gateway.db.answers.names import CONTAINERS, count_openings
from gateway.db.grants import access_requests
from gateway.db.grants.access_requests import AccessRequestRow
from gateway.features.access_requests.decided import answer_of
from gateway.features.kit import UseCases

Reading = GetAccessRequest | ListAccessRequests | FindingAccessRequest
"""The operations that read requests, and filter them by the rights of the caller."""

Showing = CreateAccessRequest | GetAccessRequest
"""The operations that answer with one request."""


class Deciders(UseCases):
    """The relation of a caller to access requests."""

    async def readable(self, permit: Permit[Reading], rows: Sequence[AccessRequestRow]) -> list[bool]:
        """Return for each request whether the caller made it or may grant one of its privileges on its object.

        A token or role that is limited to a project reads no request of another one.
        """
        actor = permit.actor
        here = [actor.within in (None, row.project_id) for row in rows]
        found = [yes and row.principal == actor.id for row, yes in zip(rows, here, strict=True)]
        for relation, places in _by_relation(rows).items():
            asked = [place for place in places if here[place] and not found[place]]
            answers = await self._door.visible(permit, relation, [rows[place].on for place in asked])
            for place, yes in zip(asked, answers, strict=True):
                found[place] = found[place] or yes
        return found

    async def grantable(
        self, permit: Permit[Showing | FindAccessRequestToDeny], row: AccessRequestRow
    ) -> tuple[Privilege, ...]:
        """Return those privileges of a request that the caller may grant on its object."""
        return tuple(
            [each for each in privileges_of(row) if all(await self._door.visible(permit, granting(each), [row.on]))]
        )

    async def answer(self, permit: Permit[Showing], row: AccessRequestRow) -> AccessRequest:
        """Return a request with what an approval opens too.

        The numbers are counted for callers that see all contents of the object, and for principals that may decide.
        """
        counted = []
        if row.on.type in CONTAINERS:
            sees_whole = all(await self._door.visible(permit, Can.LIST_EVERYTHING, [row.on]))
            counted = [row.on] if sees_whole or await self.grantable(permit, row) else []
        async with self._database.read() as connection:
            openings = await count_openings(connection, [row.on], counted)
        return access_request_answer(row, openings.get(row.on))

    async def find(self, permit: Permit[Reading], id: UUID) -> AccessRequestRow:
        """Return a request that the caller may read. Raises AccessRequestNotFound, as for an absent one."""
        async with self._database.read() as connection:
            row = await access_requests.get(connection, id)
        if row is None or not all(await self.readable(permit, [row])):
            raise access_request_not_found(id)
        return row


def access_request_answer(row: AccessRequestRow, opens: list[Opening] | None = None) -> AccessRequest:
    """Return a recorded request in the form of a response."""
    status = AccessRequestStatus(row.status)
    return answer_of(AccessRequest, row, status=status, duration_seconds=row.duration, opens=opens)


def privileges_of(row: AccessRequestRow) -> tuple[Privilege, ...]:
    """Return the requested privileges. Those that the object's type does not have any more are left out."""
    return tuple(Privilege(each) for each in row.privileges if each in GRANTABLE[row.on.type])


def _by_relation(rows: Sequence[AccessRequestRow]) -> dict[Can, list[int]]:
    """Return the places of the rows by each relation that permits a decision about them."""
    places: dict[Can, list[int]] = {}
    for place, row in enumerate(rows):
        for privilege in privileges_of(row):
            places.setdefault(granting(privilege), []).append(place)
    return places
