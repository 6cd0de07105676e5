# SPDX-License-Identifier: Apache-2.0
"""The common part of access requests and break-glass: a user makes a row, and another principal decides about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeVar
from uuid import UUID

from uuid_utils.compat import uuid7

from gateway.access.bodies import Answer
from gateway.access.door.list_visibility import holders_of
from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import warehouse_of
from gateway.access.operation import Operation
from gateway.access.operations.access_requests import ListAccessRequests
from gateway.access.operations.break_glass import ListBreakGlass
from gateway.access.principals import principal_answer
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Connection
from gateway.db.grants.decided_rows import DecidedRow, NewRow, Row, Selection
from gateway.features.access_requests.requested_objects import name_of, object_answer
from gateway.features.answers.confirmation import deciding
from gateway.features.kit import Kit, UseCases
from gateway.features.paging import Paged, place_of, unpacked, visible_page
from gateway.fga.sufficient_grants import grants_that_give

AnswerType = TypeVar("AnswerType", bound=Answer)

_PAGE = 100


class DecidedLists(UseCases):
    """Lists of rows. `relations` are those on an object that let a principal decide about a row, or review it."""

    def __init__(self, kit: Kit, relations: Collection[Can]) -> None:
        super().__init__(kit)
        self._relations = [each.value for each in relations]
        self._known: tuple[str, frozenset[tuple[str, str]] | None] | None = None

    async def page(
        self,
        permit: Permit[ListAccessRequests | ListBreakGlass],
        request: Paged,
        read: Callable[[Connection, Selection], Awaitable[Sequence[Row]]],
        readable: Callable[[Sequence[Row]], Awaitable[Sequence[bool]]],
        *,
        own: bool | None = None,
    ) -> tuple[list[Row], str | None]:
        """Return (the rows of a page, the token of the next page or None).

        `own` selects the rows of the caller, or those of other users. Raises InvalidPaginationToken.
        """
        actor, giving = permit.actor, await self._deciding()

        async def fetch(after: UUID | None, limit: int) -> Sequence[Row]:
            selection = Selection(
                user=actor.id,
                holders=holders_of(actor, permit.resolution),
                deciding=giving,
                project_id=actor.within,
                own=own,
                after=after,
                limit=limit,
            )
            async with self._database.read() as connection:
                return await read(connection, selection)

        return await visible_page(
            fetch,
            readable,
            lambda row: row.id,
            after=place_of(request.page_token, lambda token: unpacked(token, UUID)),
            page_size=min(request.page_size or _PAGE, self._page_size),
        )

    async def _deciding(self) -> frozenset[tuple[str, str]] | None:
        """Return the grants that can let a principal decide in the current model."""
        with deciding():
            model = await self._answer_engines.checks.model()
        if self._known is None or self._known[0] != model.id:
            self._known = model.id, grants_that_give(model.parsed, self._relations)
        return self._known[1]


def new_row(permit: Permit[Operation], on: Ref, privileges: Collection[str], reason: str) -> NewRow:
    """Return a row of the caller for an admitted object. Raises the error for an absent object."""
    row = permit.resolution.get(on)
    if row is None or row.in_project is None:
        raise not_found(on)
    warehouse = warehouse_of(row)
    return NewRow(
        id=uuid7(),
        principal=permit.actor.id,
        project_id=row.in_project,
        warehouse_id=None if warehouse is None else warehouse.id,
        on=row.key,
        name=name_of(row),
        privileges=sorted(privileges),
        reason=reason,
    )


def answer_of(kind: type[AnswerType], row: DecidedRow, **members: object) -> AnswerType:
    """Return a row in the form of a response. `members` are those that the row has by another name or type."""
    given = {
        "principal": principal_answer(PrincipalType.USER, row.principal),
        "object": object_answer(row.on, row.project_id, row.warehouse_id),
        **members,
    }
    stored = {name: getattr(row, name) for name in kind.__struct_fields__ if name not in given}
    return kind(**stored, **given)


def user_of(row: DecidedRow | NewRow) -> Principal:
    """Return the user that made the row."""
    return Principal(PrincipalType.USER, row.principal)
