# SPDX-License-Identifier: Apache-2.0
"""Use cases of SCIM groups: an identity provider manages its groups and their members.

A group is a role of the project. The role's provider is the identity provider, and its source is the group's
`externalId`, or else the group's name. A group in a token maps to the same role. Members are ordinary grants of
`assignee`. The role has no owner, and no rights until an administrator grants some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from msgspec import UNSET
from uuid_utils.compat import uuid7

from gateway.access.door.permit import Permit
from gateway.access.management_errors import pending_during_outage, require_remaining_admin
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operation import Operation
from gateway.access.operations.scim import (
    CreateScimGroup,
    DeleteScimGroup,
    GetScimGroup,
    ListScimGroups,
    PatchScimGroup,
    ReplaceScimGroup,
)
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Connection, retry_serialization
from gateway.db.grants import grants
from gateway.db.principals import roles, scim_groups, scim_users
from gateway.db.principals.role_nesting import administers_server, is_subject
from gateway.db.principals.scim_groups import GroupMember, GroupRow
from gateway.db.principals.users import guard_last_admin
from gateway.db.tuples import outbox
from gateway.db.tuples.outbox import Pending
from gateway.db.tuples.ownership import record_deleted, record_principal_deleted
from gateway.features.grants.role_guards import refuse_escalation
from gateway.features.kit import Kit, UseCases
from gateway.features.principals.scim_resources import (
    GONE,
    ScimSources,
    finish_deletion,
    found,
    meta_of,
    require_version,
)
from gateway.scim import filters
from gateway.scim.errors import InvalidValue, NoSuchResource, NotUnique, TooMany
from gateway.scim.reading import Group
from gateway.scim.wire import GROUP, ScimGroup, ScimGroupList, ScimMember, listed

MAX_LISTED_MEMBERS = 10_000
_NOT_YET = (
    "The members are removed, but the revocation of the rights they had through the group is not yet complete. The "
    "gateway retries it."
)


@dataclass
class _Written:
    """The pending deliveries of tuples after a change."""

    given: list[Pending] = field(default_factory=list)
    lost: list[Pending] = field(default_factory=list)


class ScimGroups(UseCases):
    """Use cases of the groups of one provider in one project."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._sources = ScimSources(kit.scim_subjects)

    async def list(self, permit: Permit[ListScimGroups]) -> ScimGroupList:
        """Return the groups that match the filter. Raises InvalidFilter, or TooMany if they have too many members."""
        operation = permit.operation
        provider = self._sources.provider_of(permit.actor)
        page = partial(scim_groups.page, provider_id=provider, project_id=_project(permit, operation.project))
        groups = await found(permit, self._database, filters.GROUPS, page)
        inside: dict[UUID, list[GroupMember]] = {}
        if operation.with_members:
            async with self._database.read() as connection:
                inside = await _inside(connection, [row.id for row in groups.rows], limit=MAX_LISTED_MEMBERS)
        resources = [_group_resource(row, inside.get(row.id)) for row in groups.rows]
        return listed(ScimGroupList, resources, total=groups.total, start=groups.start)

    async def get(self, permit: Permit[GetScimGroup]) -> ScimGroup:
        """Return one group. Raises NoSuchResource."""
        operation = permit.operation
        provider = self._sources.provider_of(permit.actor)
        project_id = _project(permit, operation.project)
        async with self._database.read() as connection:
            return await _read(connection, provider, project_id, operation.id, with_members=operation.with_members)

    async def create(self, permit: Permit[CreateScimGroup]) -> ScimGroup:
        """Create a role with these members.

        Raises NotUnique if the project has a role with this name or source. Raises InvalidValue for an unknown member.
        """
        operation = permit.operation
        provider = self._sources.provider_of(permit.actor)
        project_id = _project(permit, operation.project)
        group = operation.group
        name, external_id = group.display_name or "", group.external_id or None
        id = uuid7()
        role = ObjectKey(ObjectType.ROLE, str(id))
        permit.pending_audit.add_details(scim_id=str(id), joined=str(len(group.joining)))
        with _unique():
            async with self._database.change(permit) as connection:
                await roles.create(
                    connection,
                    id=id,
                    project_id=project_id,
                    name=name,
                    description=None,
                    provider_id=provider,
                    source_id=external_id or name,
                )
                await scim_groups.create(connection, role_id=id, provider_id=provider, external_id=external_id)
                users = await _users(connection, provider, group.joining, known=True)
                await grants.grant_to_users(
                    connection, privilege=Privilege.ASSIGNEE, users=users, on=role, by=permit.actor.id
                )
                edge = TupleKey(ObjectKey(ObjectType.PROJECT, project_id), "project", role)
                pending = await outbox.enqueue(connection, [edge, *_keys(users, role)], takes_away=False)
                made = await _read(connection, provider, project_id, id, with_members=True)
        await self._delivery.deliver_or_defer(pending)
        return made

    async def replace(self, permit: Permit[ReplaceScimGroup]) -> ScimGroup:
        """Replace all attributes and members of a group. Raises the errors of `patch`."""
        await self._change(permit)
        provider = self._sources.provider_of(permit.actor)
        async with self._database.read() as connection:
            return await _read(
                connection, provider, permit.operation.project.project_id, permit.operation.id, with_members=True
            )

    async def patch(self, permit: Permit[PatchScimGroup]) -> None:
        """Apply all operations of a patch, or none. Return when the removed members no longer have the rights of the
        group.

        Raises NoSuchResource, VersionChanged, NotUnique or LastServerAdmin. Raises InvalidValue for an unknown member.
        Raises RoleActionForbidden for a new member of a role that holds a higher privilege. Raises RevocationPending if
        a removal is recorded but OpenFGA has not confirmed it yet. A retry returns when the removal is in force.
        """
        await self._change(permit)

    async def delete(self, permit: Permit[DeleteScimGroup]) -> None:
        """Delete the role, the grants on it and the grants to it.

        Raises NoSuchResource, VersionChanged or LastServerAdmin. Raises RevocationPending if OpenFGA has not confirmed
        the deletion yet. A retry raises NoSuchResource once OpenFGA has confirmed it.
        """
        operation = permit.operation
        provider = self._sources.provider_of(permit.actor)
        project_id = _project(permit, operation.project)
        by = permit.actor.id
        role = ObjectKey(ObjectType.ROLE, str(operation.id))
        try:
            with require_remaining_admin():
                async with self._database.change(permit) as connection, guard_last_admin(connection):
                    await _held(connection, provider, project_id, operation)
                    await roles.delete(connection, operation.id)
                    parent = ObjectKey(ObjectType.PROJECT, project_id)
                    pending = await record_deleted(connection, role, parent, above=(), warehouse_id=None, by=by)
                    pending += await record_principal_deleted(connection, Principal(PrincipalType.ROLE, role.id), by=by)
        except NoSuchResource:
            await finish_deletion(permit, self._database, self._delivery, outbox.pending_of_deleted_role, role)
            raise
        with pending_during_outage(GONE):
            await self._delivery.deliver(pending)

    async def _change(self, permit: Permit[ReplaceScimGroup] | Permit[PatchScimGroup]) -> None:
        provider = self._sources.provider_of(permit.actor)
        project_id = _project(permit, permit.operation.project)

        async def attempt() -> _Written:
            with require_remaining_admin(), _unique():
                return await self._write(permit, provider, project_id)

        written = await retry_serialization(attempt)
        if written.lost:
            with pending_during_outage(_NOT_YET):
                await self._delivery.deliver(written.lost)
        await self._delivery.deliver_or_defer(written.given)

    async def _write(
        self, permit: Permit[ReplaceScimGroup] | Permit[PatchScimGroup], provider: str, project_id: str
    ) -> _Written:
        operation = permit.operation
        id, group = operation.id, operation.group
        role = ObjectKey(ObjectType.ROLE, str(id))
        written = _Written()
        async with (
            self._database.change(permit) as connection,
            guard_last_admin(connection, concerned=partial(administers_server, connection, role.id)),
        ):
            await grants.lock_object(connection, role)
            row = await _held(connection, provider, project_id, operation)
            external_id = row.external_id if group.external_id is UNSET else group.external_id
            await self._rename(connection, permit, row, group, external_id)
            before = set(await scim_groups.member_ids(connection, id))
            joining = await _users(connection, provider, group.joining, known=True)
            leaving = await _users(connection, provider, group.remove, known=False)
            after = {*joining} if group.only is not None else (before - {*leaving}) | {*joining}
            joined, left = sorted(after - before), sorted(before - after)
            permit.pending_audit.add_details(joined=str(len(joined)), left=str(len(left)))
            if joined:
                await refuse_escalation(connection, role.id, partial(self._door.visible, permit))
            by = permit.actor.id
            await grants.revoke_from_users(connection, privilege=Privilege.ASSIGNEE, users=left, on=role, by=by)
            await grants.grant_to_users(connection, privilege=Privilege.ASSIGNEE, users=joined, on=role, by=by)
            await scim_groups.changed(connection, id, external_id=external_id)
            # If the role is the subject of a data policy, the policy must restrict new members before the response is
            # sent.
            restricts = await is_subject(connection, Principal(PrincipalType.ROLE, role.id)) if joined else False
            new = await outbox.enqueue(connection, _keys(joined, role), takes_away=restricts)
            written.given = [] if restricts else new
            await outbox.enqueue(connection, _keys(left, role), takes_away=True)
            # Pending revocations of earlier requests are included: a retry after RevocationPending waits for them, too.
            written.lost = await outbox.revocations_on(connection, role)
        return written

    async def _rename(
        self, connection: Connection, permit: Permit[Operation], row: GroupRow, group: Group, external_id: str | None
    ) -> None:
        """Update the name and the source of the group's role, as far as they differ.

        After a change of the source, another group in tokens maps to the role. Raises RoleActionForbidden if the role
        holds a higher privilege that the caller may not grant, as `Roles.update_source` does.
        """
        name = group.display_name or row.name
        if name != row.name:
            await roles.update(connection, row.id, name=name, description=row.description)
        source = external_id or name
        if source == row.source_id:
            return
        await refuse_escalation(connection, str(row.id), partial(self._door.visible, permit))
        await roles.update_source(connection, row.id, provider_id=row.provider_id, source_id=source)


def _project(permit: Permit[Any], ref: ProjectRef) -> str:
    """Return the project id. Raises NoSuchResource if the project does not exist."""
    if permit.resolution.get(ref) is None:
        raise NoSuchResource("The project of this provisioning token does not exist.")
    return ref.project_id


async def _held(
    connection: Connection,
    provider: str,
    project_id: str,
    operation: ReplaceScimGroup | PatchScimGroup | DeleteScimGroup,
) -> GroupRow:
    row = await scim_groups.hold(connection, provider, project_id, operation.id)
    if row is None:
        raise NoSuchResource("The group with this id does not exist.")
    require_version(row.version, operation.if_match)
    return row


async def _read(connection: Connection, provider: str, project_id: str, id: UUID, *, with_members: bool) -> ScimGroup:
    row = await scim_groups.get(connection, provider, project_id, id)
    if row is None:
        raise NoSuchResource("The group with this id does not exist.")
    inside = await _inside(connection, [id]) if with_members else {}
    return _group_resource(row, inside.get(id))


async def _inside(
    connection: Connection, ids: Sequence[UUID], *, limit: int | None = None
) -> dict[UUID, list[GroupMember]]:
    """Return {group id: members}. Raises TooMany if the groups have more than `limit` members in total: no list
    is cut.
    """
    found = await scim_groups.members(connection, ids, limit=limit)
    if found is None:
        raise TooMany(
            f"These groups have more than {limit} members in total. Request fewer groups with `count`, or send "
            "excludedAttributes=members."
        )
    return found


async def _users(connection: Connection, provider: str, ids: Iterable[str], *, known: bool) -> list[str]:
    """Return the gateway's user ids for these SCIM ids of the provider's users.

    If `known` is set, raises InvalidValue for an id without a user. Otherwise such ids are left out.
    """
    parsed_ids = {each: _uuid(each) for each in ids}
    found = await scim_users.ids_of(connection, provider, [id for id in parsed_ids.values() if id is not None])
    missing = [each for each, id in parsed_ids.items() if id not in found]
    if known and missing:
        raise InvalidValue(
            f"{len(missing)} of the members are not users of this provider on this server. Provision these users "
            "first. Nothing was changed."
        )
    return sorted(found.values())


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _keys(users: Iterable[str], role: ObjectKey) -> list[TupleKey]:
    return [TupleKey(Principal(PrincipalType.USER, user), Privilege.ASSIGNEE.value, role) for user in users]


@contextmanager
def _unique() -> Iterator[None]:
    """Convert name and source clashes of roles to NotUnique, and a deleted project to NoSuchResource."""
    try:
        yield
    except roles.ProjectGone as gone:
        raise NoSuchResource("The project of this provisioning token does not exist.") from gone
    except roles.RoleClash as clash:
        raise NotUnique(
            "A role with this displayName (letter case is ignored) or with this id at the provider already exists "
            "in the project."
        ) from (clash)


def _group_resource(row: GroupRow, inside: Sequence[GroupMember] | None) -> ScimGroup:
    return ScimGroup(
        schemas=(GROUP,),
        id=str(row.id),
        meta=meta_of("Group", row),
        display_name=row.name,
        external_id=UNSET if row.external_id is None else row.external_id,
        members=UNSET
        if not inside
        else tuple(
            ScimMember(value=str(each.id), ref=f"/scim/v2/Users/{each.id}", display=each.user_name, type="User")
            for each in inside
        ),
    )
