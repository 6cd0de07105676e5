# SPDX-License-Identifier: Apache-2.0
"""List the grants of `delegate`, by which engines may act for the caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from gateway.access.decisions.delegation import without_role
from gateway.access.delegate_grants import ActsFor, DelegateHolder, DelegateScope, OwnDelegate, OwnDelegates
from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operations.users import ListOwnDelegates
from gateway.access.tuples import PrincipalType
from gateway.db.grants import grant_lists
from gateway.db.grants.grant_lists import NamedDelegateRow
from gateway.features.kit import UseCases

#: Maximum rows of one read.
_MOST_READ: Final = 1000


@dataclass(frozen=True, slots=True)
class _Included:
    """A recorded grant whose limits include the caller, and these limits."""

    row: NamedDelegateRow
    limits: ActsFor

    @property
    def on(self) -> ObjectKey:
        """The project or warehouse of the grant."""
        return ObjectKey(ObjectType(self.row.object_type), self.row.object_id)

    @property
    def scopes(self) -> tuple[ObjectKey, ...]:
        """The objects whose administrators the grant can exclude: its own object, and the project of that."""
        return tuple(dict.fromkeys((self.on, ObjectKey(ObjectType.PROJECT, self.row.project_id))))


class Delegates(UseCases):
    """Use case of `GET /whoami/delegates`."""

    async def of_caller(self, permit: Permit[ListOwnDelegates]) -> OwnDelegates:
        """Return the live grants that include the caller, on projects and warehouses that the caller can see.

        Rows are read until the page is full. So neither the length of a page nor its token reveals a grant that the
        caller cannot see. Raises DecisionUnavailable during an outage.
        """
        operation = permit.operation
        page = self._page_of(operation, UUID)
        after, most = page.after, min(page.limit, _MOST_READ)
        found: list[_Included] = []
        while len(found) < page.limit:
            async with self._database.read() as connection:
                rows = await grant_lists.all_grants(connection, project_id=permit.actor.within, after=after, limit=most)
            found += await self._shown(permit, rows)
            if len(rows) < most:
                break
            after, most = rows[-1].id, min(4 * most, _MOST_READ)
        shown = page.rows(found)
        readable = await self._readable_roles(permit, shown)
        return OwnDelegates(
            delegates=[_answer(each, readable) for each in shown],
            next_page_token=page.next_token(found, lambda each: each.row.id),
        )

    async def _shown(self, permit: Permit[ListOwnDelegates], rows: Sequence[NamedDelegateRow]) -> list[_Included]:
        """Return the grants that include the caller and are on visible objects. A grant that excludes administrators is
        left out if the caller is one.
        """
        user, roles = permit.actor.id, permit.resolution.caller_roles
        named = [
            _Included(row, limits)
            for row in rows
            if (limits := grant_lists.grant_of(row).limits_for(user, roles)) is not None
        ]
        places = list(dict.fromkeys(each.on for each in named))
        answers = await self._door.visible(permit, Can.INCLUDE_IN_LIST, places)
        visible = {place for place, yes in zip(places, answers, strict=True) if yes}
        seen = [each for each in named if each.on in visible]
        administered = await self._administered(permit, seen)
        return [each for each in seen if each.limits.administrators or administered.isdisjoint(each.scopes)]

    async def _administered(self, permit: Permit[ListOwnDelegates], seen: Sequence[_Included]) -> set[ObjectKey]:
        """Return the objects of which the user is an administrator, even if the caller currently acts as a role."""
        scopes = dict.fromkeys(key for each in seen if not each.limits.administrators for key in each.scopes)
        return await self._door.hypothetical_checks.administered(permit, without_role(permit.actor), list(scopes))

    async def _readable_roles(self, permit: Permit[ListOwnDelegates], page: Sequence[_Included]) -> set[str]:
        """Return the ids of the roles in `page` that hold a grant and whose names the caller may read."""
        ids = {each.row.principal_id: None for each in page if each.row.principal_type == PrincipalType.ROLE}
        keys = [ObjectKey(ObjectType.ROLE, id) for id in ids]
        answers = await self._door.visible(permit, Can.READ_METADATA, keys)
        return {key.id for key, yes in zip(keys, answers, strict=True) if yes}


def _answer(each: _Included, readable: set[str]) -> OwnDelegate:
    row = each.row
    if row.principal_type == PrincipalType.ROLE:
        name = row.holder_name if row.principal_id in readable else None
        holder = DelegateHolder(role=UUID(row.principal_id), name=name)
    else:
        holder = DelegateHolder(user=row.principal_id, name=row.holder_name)
    return OwnDelegate(
        holder=holder,
        resource=DelegateScope(
            type="warehouse" if row.object_type == ObjectType.WAREHOUSE else "project",
            name=row.object_name,
            project_id=row.project_id,
            warehouse_id=row.object_id if row.object_type == ObjectType.WAREHOUSE else None,
        ),
        acts_for=each.limits,
        created_at=row.granted_at,
        expires_at=row.expires_at,
    )
