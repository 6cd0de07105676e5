# SPDX-License-Identifier: Apache-2.0
"""Lists of grants: on an object, of a principal, ended grants, and the privileges that the caller may grant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from gateway.access.decisions.hypothetical_evaluation import HypotheticalCheck
from gateway.access.delegate_grants import ActsFor, limits_of
from gateway.access.door.permit import Permit
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.cards import CARDS, GRANTABLE
from gateway.access.nouns.privileges import Privilege, granting
from gateway.access.nouns.refs import ObjectKey, ObjectType, Ref, field_of, table_of
from gateway.access.nouns.relations import Can
from gateway.access.nouns.server import ServerRef
from gateway.access.operation import Operation
from gateway.access.operations.grant_lists import (
    ListAllPrivileges,
    ListColumnGrantHistory,
    ListColumnGrants,
    ListGrantHistory,
    ListGrants,
    ListPrincipalGrants,
    ListPrivileges,
    ListTableColumnGrants,
)
from gateway.access.operations.grants import (
    AllPrivileges,
    EndedGrant,
    Grant,
    GrantablePrivilege,
    GrantablePrivileges,
    GrantedOn,
    GrantHistory,
    GrantList,
    PrivilegeInfo,
)
from gateway.access.principals import actor_of, own_principal, principal_answer
from gateway.access.tuples import PrincipalType
from gateway.db.engine.database import Connection
from gateway.db.engine.object_locations import ObjectLocation, object_locations
from gateway.db.grants import grant_lists, grants
from gateway.db.grants.grant_ends import GrantRow
from gateway.db.grants.grants import HistoryRow
from gateway.db.tables.excerpts import excerpts_of
from gateway.features.grants.columns import known_columns, object_of
from gateway.features.kit import UseCases
from gateway.features.paging import Page, number

_KNOWN = frozenset(Privilege)

_AT_A_TIME: Final = 16
"""Number of tables whose columns are read at once. The excerpt of a wide table takes a megabyte."""


class GrantLists(UseCases):
    """Pages of grants with grantor, times, reason and expiry."""

    async def on_object(self, permit: Permit[ListGrants | ListColumnGrants]) -> GrantList:
        """Return the live grants on one object, oldest first. Equal grants of several grantors are separate entries."""
        operation = permit.operation
        row = _row(permit, operation.on)
        page = self._page_of(operation, UUID)
        async with self._database.read() as connection:
            key = (await object_of(connection, operation, row, dropped=True)).key
            found = await grants.on_object(connection, key, of=operation.principal, after=page.after, limit=page.limit)
            where = await whereabouts(connection, [key])
        return _grant_list(found, where, page)

    async def on_columns(self, permit: Permit[ListTableColumnGrants]) -> GrantList:
        """Return the live grants on all columns of a table, oldest first. Equal grants of several grantors are separate
        entries.
        """
        operation = permit.operation
        page = self._page_of(operation, UUID)
        async with self._database.read() as connection:
            found = await grant_lists.granted_on(
                connection,
                operation.on.id,
                of=operation.principal,
                after=page.after,
                limit=page.limit,
            )
            where = await whereabouts(connection, [_object(row) for row in found])
        return _grant_list(found, where, page)

    async def of_principal(self, permit: Permit[ListPrincipalGrants]) -> GrantList:
        """Return the direct grants of a principal in the project and on the server, oldest first.

        Server grants of another user are included only if the caller may read the server's assignments.
        """
        operation = permit.operation
        about = operation.principal or own_principal(permit.actor)
        page = self._page_of(operation, UUID)
        async with self._database.read() as connection:
            found = await grants.of_principal(
                connection,
                about,
                project_id=operation.project.project_id,
                after=page.after,
                limit=page.limit,
            )
            where = await whereabouts(connection, [_object(row) for row in found])
        other = operation.principal is not None and about.type is PrincipalType.USER
        servers = not other or permit.holds(Can.READ_ASSIGNMENTS, ServerRef())
        return _grant_list(found, where, page, servers=servers)

    async def history(self, permit: Permit[ListGrantHistory | ListColumnGrantHistory]) -> GrantHistory:
        """Return the ended grants on one object, most recent end first."""
        operation = permit.operation
        row = _row(permit, operation.on)
        page = self._page_of(operation, number(18))
        async with self._database.read() as connection:
            key = (await object_of(connection, operation, row, dropped=True)).key
            where = await whereabouts(connection, [key])
        read = partial(grants.history, on=key, principal=operation.principal, after=page.after, limit=page.limit)
        found = await self._reads.run(read)
        return GrantHistory(
            grants=[
                EndedGrant(
                    privilege=row.privilege,
                    principal=principal_answer(row.principal_type, row.principal_id),
                    resource=resource_of(_object(row), where),
                    created_at=row.granted_at,
                    granted_by=row.granted_by,
                    reason=row.reason,
                    expires_at=row.expires_at,
                    acts_for=limits_of_row(row),
                    ended_at=row.ended_at,
                    ended_by=row.ended_by,
                    ended_because=row.ended_because,
                )
                for row in page.rows(found)
            ],
            next_page_token=page.next_token(found, lambda row: row.id),
        )

    async def all_privileges(self, permit: Permit[ListAllPrivileges]) -> AllPrivileges:
        """Return the privileges by object type. Types without privileges are left out."""
        return AllPrivileges(
            privileges={
                CARDS[type].in_bodies: [PrivilegeInfo.of(privilege, type) for privilege in privileges]
                for type, privileges in GRANTABLE.items()
                if privileges
            }
        )

    async def grantable(self, permit: Permit[ListPrivileges]) -> GrantablePrivileges:
        """Return the privileges of the object type, each with whether the principal may grant it."""
        operation = permit.operation
        on = operation.on
        actor = permit.actor if operation.principal is None else actor_of(operation.principal)
        privileges = GRANTABLE[on.type]
        hypothetical = [HypotheticalCheck(actor, granting(privilege), on) for privilege in privileges]
        answers = await self._door.hypothetical_checks.evaluate(permit, hypothetical)
        return GrantablePrivileges(
            privileges=[
                GrantablePrivilege(allowed=allowed, privilege=PrivilegeInfo.of(privilege, on.type))
                for privilege, allowed in zip(privileges, answers, strict=True)
            ]
        )


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The containers of the objects in a list of grants, and the names of the columns among these objects."""

    object_locations: Mapping[ObjectKey, ObjectLocation]
    columns: Mapping[ObjectKey, tuple[str | None, bool]]
    """(name, is_current), as returned by `Columns.name_of`."""


async def whereabouts(connection: Connection, keys: Sequence[ObjectKey]) -> Whereabouts:
    """Return the containers of these objects, and the names of the columns among them."""
    hypothetical: dict[UUID, list[ObjectKey]] = {}
    for key in keys:
        if key.type is ObjectType.COLUMN:
            hypothetical.setdefault(UUID(table_of(key).id), []).append(key)
    ids = list(hypothetical)
    known: dict[ObjectKey, tuple[str | None, bool]] = {}
    for first in range(0, len(ids), _AT_A_TIME):
        excerpts = await excerpts_of(connection, ids[first : first + _AT_A_TIME])
        for id, excerpt in excerpts.items():
            columns_there = known_columns(excerpt)
            known |= {key: columns_there.name_of(field_of(key)) for key in hypothetical[id]}
    return Whereabouts(await object_locations(connection, keys), known)


def _grant_list(rows: Sequence[GrantRow], where: Whereabouts, page: Page[UUID], *, servers: bool = True) -> GrantList:
    return GrantList(
        grants=[
            Grant(
                privilege=row.privilege,
                principal=principal_answer(row.principal_type, row.principal_id),
                resource=resource_of(_object(row), where),
                created_at=row.granted_at,
                granted_by=row.granted_by,
                recognized=row.privilege in _KNOWN,
                reason=row.reason,
                expires_at=row.expires_at,
                acts_for=limits_of_row(row),
            )
            for row in page.rows(rows)
            if servers or row.object_type != ObjectType.SERVER
        ],
        next_page_token=page.next_token(rows, lambda row: row.id),
    )


def limits_of_row(row: GrantRow | HistoryRow) -> ActsFor | None:
    """Return the limits of a grant of `delegate`. None for other privileges, and for limits that a later version
    wrote.
    """
    return limits_of(row.acts_for) if row.privilege == Privilege.DELEGATE else None


def _object(row: Any) -> ObjectKey:
    return ObjectKey(ObjectType(row.object_type), row.object_id)


def resource_of(key: ObjectKey, where: Whereabouts) -> GrantedOn:
    """Return the object in the form of a response."""
    object_location = where.object_locations.get(key, ObjectLocation())
    if key.type is ObjectType.COLUMN:
        table = table_of(key)
        name, there = where.columns.get(key, (None, False))
        return GrantedOn(
            type=CARDS[key.type].in_bodies,
            project_id=object_location.project_id,
            warehouse_id=object_location.warehouse_id,
            table_id=table.id,
            column=name,
            field_id=field_of(key),
            dropped=not there,
        )
    card = CARDS[key.type]
    # If the object is a project or a warehouse, the next line sets the same id again.
    own: dict[str, Any] = dict.fromkeys(card.id_members, key.id)
    own |= {"project_id": object_location.project_id, "warehouse_id": object_location.warehouse_id}
    return GrantedOn(type=card.in_bodies, **own)


def _row(permit: Permit[Operation], ref: Ref) -> Resolved:
    row = permit.resolution.get(ref)
    if row is None:
        raise LookupError(f"{type(permit.operation).__name__} was not admitted on {ref!r}")
    return row
