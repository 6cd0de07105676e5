# SPDX-License-Identifier: Apache-2.0
"""Find the access requests that a caller may read: its own, and those about which it may decide."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import compress
from uuid import UUID

import msgspec

from gateway.access.door.permit import Permit
from gateway.access.management_errors import BundleForbidden
from gateway.access.nouns.authz_errors import access_request_not_found
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege, granting
from gateway.access.nouns.relations import Can
from gateway.access.operations.access_request_bodies import (
    AccessRequest,
    AccessRequestStatus,
    RequestedItem,
    TriedAccessRequest,
    TriedPrivilege,
)
from gateway.access.operations.access_requests import (
    CreateAccessRequest,
    FindAccessRequestToDeny,
    FindingAccessRequest,
    GetAccessRequest,
    ListAccessRequests,
    TryAccessRequest,
)
from gateway.access.operations.answer_lists import WhoCanAnswer
from gateway.access.operations.answers import Opening
from gateway.db.answers.names import CONTAINERS, count_openings
from gateway.db.grants import access_requests
from gateway.db.grants.access_requests import AccessRequestRow
from gateway.features.access_requests.decided import answer_of
from gateway.features.kit import UseCases

Reading = CreateAccessRequest | TryAccessRequest | GetAccessRequest | ListAccessRequests | FindingAccessRequest
"""The operations that read requests, and filter them by the rights of the caller."""

Showing = CreateAccessRequest | TryAccessRequest | GetAccessRequest
"""The operations that answer with requests and what they open."""


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
        rows = [row]
        if row.bundle is not None:
            async with self._database.read() as connection:
                rows = await access_requests.bundled(connection, row.bundle)
            readable = await self.readable(permit, rows)
            rows = [each for each, yes in zip(rows, readable, strict=True) if yes or each.id == row.id]
        answers = await self.answers(permit, rows)
        items = None if row.bundle is None else [_item(each) for each in answers]
        return msgspec.structs.replace(next(each for each in answers if each.id == row.id), items=items)

    async def answers(self, permit: Permit[Showing], rows: Sequence[AccessRequestRow]) -> list[AccessRequest]:
        """Return requests with what an approval of each opens too, as `answer` does."""
        counted = [each.on for each in rows if await self._may_know_contents(permit, each)]
        async with self._database.read() as connection:
            openings = await count_openings(connection, [each.on for each in rows], counted)
        return [access_request_answer(each, openings.get(each.on)) for each in rows]

    async def _may_know_contents(self, permit: Permit[Showing], row: AccessRequestRow) -> bool:
        if row.on.type not in CONTAINERS:
            return False
        sees_whole = all(await self._door.visible(permit, Can.LIST_EVERYTHING, [row.on]))
        return sees_whole or bool(await self.grantable(permit, row))

    async def find(self, permit: Permit[GetAccessRequest], id: UUID) -> AccessRequestRow:
        """Return the request with this id, or the first readable one of the bundle with this id.

        Raises AccessRequestNotFound if there is none, as for an absent one.
        """
        _, found = await self._find(permit, id)
        return found[0]

    async def find_all(
        self, permit: Permit[FindingAccessRequest], id: UUID, selected: Collection[UUID] | None = None
    ) -> list[AccessRequestRow]:
        """Return the request with this id, or all requests of the bundle with this id, in the order of their locks.

        `selected` are the ids of the requests to return. Raises AccessRequestNotFound if the caller may read none, or
        not a selected one. Raises BundleForbidden if it may not read all, and none is selected.
        """
        rows, found = await self._find(permit, id)
        if selected is not None:
            for each in selected:
                if each not in {row.id for row in found}:
                    raise access_request_not_found(each)
            found = [row for row in found if row.id in selected]
        elif len(found) < len(rows):
            raise BundleForbidden(
                f"You may not decide about all requests of {id}. `GET` this address for those that you may decide "
                "about, and decide about each by its own id."
            )
        return in_lock_order(found)

    async def _find(
        self, permit: Permit[Reading], id: UUID
    ) -> tuple[Sequence[AccessRequestRow], list[AccessRequestRow]]:
        """Return (the rows of the request or bundle, those that the caller may read)."""
        async with self._database.read() as connection:
            rows = await access_requests.bundled(connection, id)
        found = list(compress(rows, await self.readable(permit, rows)))
        if not found:
            raise access_request_not_found(id)
        return rows, found


def in_lock_order(rows: Sequence[AccessRequestRow]) -> list[AccessRequestRow]:
    """Return the rows in the order in which all transactions lock them: by their objects, as changes of grants do."""
    return sorted(rows, key=lambda row: str(row.on))


def with_first_status(rows: Sequence[AccessRequestRow], *statuses: AccessRequestStatus) -> Sequence[AccessRequestRow]:
    """Return the rows with the first of the statuses that any row has, all rows if none has one."""
    by_status = ([row for row in rows if row.status == status] for status in statuses)
    return next((some for some in by_status if some), rows)


def access_request_answer(row: AccessRequestRow, opens: list[Opening] | None = None) -> AccessRequest:
    """Return a recorded request in the form of a response."""
    given = {"status": AccessRequestStatus(row.status), "duration_seconds": row.duration, "opens": opens}
    return answer_of(AccessRequest, row, items=None, **given)


def with_deciders(tried: TriedAccessRequest, answers: Sequence[WhoCanAnswer], caller: str) -> TriedAccessRequest:
    """Return a dry run with the principals that decide about each privilege, without the caller.

    `answers` belong to the privileges whose deciders the caller may know, in their order.
    """
    left = iter(answers)

    def named(privilege: TriedPrivilege) -> TriedPrivilege:
        if privilege.deciders is None:
            return privilege
        found = next(left)
        others = [row.principal for row in found.rows if row.principal.user != caller]
        return msgspec.structs.replace(privilege, deciders=others, more=found.next_page_token is not None)

    items = [
        msgspec.structs.replace(item, privileges=[named(each) for each in item.privileges]) for item in tried.items
    ]
    return msgspec.structs.replace(tried, items=items)


def _item(answer: AccessRequest) -> RequestedItem:
    return RequestedItem(**{name: getattr(answer, name) for name in RequestedItem.__struct_fields__})


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
