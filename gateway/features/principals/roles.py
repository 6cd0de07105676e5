# SPDX-License-Identifier: Apache-2.0
"""Use cases of roles: records, source systems and lists of members. To add a member is a grant (`grants.py`)."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from uuid_utils.compat import uuid7

from gateway.access.door.permit import Permit
from gateway.access.management_errors import (
    ReservedRoleProvider,
    RoleMembershipDepthExceeded,
    RoleNameAlreadyExists,
    RoleSourceIdConflict,
    RoleSynchronized,
    pending_during_outage,
    require_remaining_admin,
)
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.project import ProjectRef, ResolvedProject
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.role import ResolvedRole, RoleRef
from gateway.access.operations.roles import (
    OWN_PROVIDER,
    SYSTEM_PROVIDER,
    CreateRole,
    DeleteRole,
    GetRole,
    GetRoleMetadata,
    ListAllRoleMemberOf,
    ListAllRoleMembers,
    ListRoleMemberOf,
    ListRoleMembers,
    ListRoles,
    NamedRoleList,
    Role,
    RoleList,
    RoleMemberList,
    RoleMetadata,
    SearchRole,
    UpdateRole,
    UpdateRoleSourceSystem,
)
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Connection
from gateway.db.principals import role_nesting, roles, scim_groups
from gateway.db.principals.role_nesting import MAX_DEPTH, nesting
from gateway.db.principals.roles import RoleRow
from gateway.db.principals.users import guard_last_admin
from gateway.db.tables import search
from gateway.db.tuples.ownership import owner_of_new, record_deleted, record_new_in_project, record_principal_deleted
from gateway.features.grants.role_guards import refuse_escalation, refuse_leaving
from gateway.features.kit import UseCases
from gateway.features.paging import principal
from gateway.features.principals.role_pages import ident_of, members_page, roles_page
from gateway.iceberg.errors import CatalogError

#: Maximum number of results of a search.
MOST_FOUND = 10


class Roles(UseCases):
    """Create, list, search, change and delete the roles of projects, and list their members."""

    async def create(self, permit: Permit[CreateRole]) -> Role:
        """Create a role. The caller becomes its owner.

        Raises RoleNameAlreadyExists, RoleSourceIdConflict, ReservedRoleProvider or RoleMembershipDepthExceeded.
        """
        request = permit.operation.request
        _refuse_reserved(request.provider_id)
        project = permit.row(permit.operation.project, ResolvedProject)
        id = uuid7()
        role = ObjectKey(ObjectType.ROLE, str(id))
        permit.pending_audit.add_details(role_id=str(id))
        try:
            async with self._database.change(permit) as connection:
                row = await roles.create(
                    connection,
                    id=id,
                    project_id=project.id,
                    name=request.name,
                    description=request.description,
                    provider_id=request.provider_id,
                    source_id=request.source_id or str(id),
                )
                await _refuse_depth(connection, role, owner_of_new(permit.actor))
                pending = await record_new_in_project(connection, permit.actor, role, project.key)
        except roles.RoleClash as clash:
            raise _clash_error(clash, permit.operation.project) from clash
        await self._delivery.deliver_or_defer(pending)
        return _wire(row)

    async def list(self, permit: Permit[ListRoles]) -> RoleList:
        """Return the project's roles in order of creation."""
        operation = permit.operation
        page = self._page_of(operation, UUID)
        # Read from the primary: clients look up a role by its source id right after creating it.
        async with self._database.read() as connection:
            rows = await roles.page(
                connection,
                operation.project.project_id,
                ids=operation.ids,
                source_ids=operation.source_ids,
                provider_ids=operation.provider_ids,
                after=page.after,
                limit=page.limit,
            )
        return RoleList(
            roles=[_wire(row) for row in page.rows(rows)],
            next_page_token=page.next_token(rows, lambda row: row.id),
        )

    async def search(self, permit: Permit[SearchRole]) -> RoleList:
        """Return at most MOST_FOUND roles with names similar to the search text, best match first."""
        operation = permit.operation
        search_statement = partial(
            search.roles, project_id=operation.project.project_id, text=operation.text, limit=MOST_FOUND
        )
        rows = await self._reads.run(search_statement)
        return RoleList(roles=[_wire(row) for row in rows])

    async def get(self, permit: Permit[GetRole]) -> Role:
        """Return one role."""
        return _wire(await self._row(permit.operation.role))

    async def metadata(self, permit: Permit[GetRoleMetadata]) -> RoleMetadata:
        """Return the identifying fields of a role: id, name, project, provider and source id."""
        row = await self._row(permit.operation.role)
        return RoleMetadata(
            id=row.id,
            ident=ident_of(row),
            name=row.name,
            project_id=row.project_id,
            provider_id=row.provider_id,
            source_id=row.source_id,
        )

    async def update(self, permit: Permit[UpdateRole]) -> Role:
        """Change the name and description of a role.

        Raises RoleNameAlreadyExists. Raises RoleSynchronized if SCIM manages the role and the request changes its name.
        """
        operation = permit.operation
        request = operation.request
        try:
            async with self._database.change(permit) as connection:
                if request.name != permit.row(operation.role, ResolvedRole).name:
                    await _refuse_synchronized(connection, operation.role)
                row = await roles.update(
                    connection, operation.role.role_id, name=request.name, description=request.description
                )
                if row is None:
                    raise not_found(operation.role)
        except roles.RoleClash as clash:
            raise _clash_error(clash, operation.role) from clash
        return _wire(row)

    async def update_source(self, permit: Permit[UpdateRoleSourceSystem]) -> Role:
        """Change the provider and source of a role, so that another group in tokens maps to it.

        Decisions that depend on the former group and have not taken effect yet are made again. Raises
        RoleSourceIdConflict, ReservedRoleProvider or RoleSynchronized. Raises RoleActionForbidden if the role holds a
        higher privilege that the caller may not grant, or if a data policy restricts the caller through the former
        group.
        """
        operation = permit.operation
        request = operation.request
        _refuse_reserved(request.provider_id)
        try:
            async with self._database.change(permit) as connection:
                await _refuse_synchronized(connection, operation.role)
                may = partial(self._door.visible, permit)
                await refuse_escalation(connection, role_id := str(operation.role.role_id), may)
                async with refuse_leaving(connection, permit.actor, may, remapped=role_id):
                    row = await roles.update_source(
                        connection,
                        operation.role.role_id,
                        provider_id=request.provider_id,
                        source_id=request.source_id,
                    )
                if row is None:
                    raise not_found(operation.role)
        except roles.RoleClash as clash:
            raise _clash_error(clash, operation.role) from clash
        return _wire(row)

    async def delete(self, permit: Permit[DeleteRole]) -> None:
        """Delete a role, the grants on it and the grants to it. Return when all those rights are revoked everywhere.

        Raises LastServerAdmin if no other principal administers the server. Raises RevocationPending if the deletion is
        recorded but OpenFGA has not confirmed it yet. Raises RoleActionForbidden if a data policy restricts the caller
        as a member of the role.
        """
        ref = permit.operation.role
        by = permit.actor.id
        with require_remaining_admin():
            async with (
                self._database.change(permit) as connection,
                guard_last_admin(connection),
                refuse_leaving(connection, permit.actor, partial(self._door.visible, permit)),
            ):
                project = await roles.delete(connection, ref.role_id)
                if project is None:
                    raise not_found(ref)
                gone = ObjectKey(ObjectType.ROLE, str(ref.role_id))
                parent = ObjectKey(ObjectType.PROJECT, project)
                pending = await record_deleted(connection, gone, parent, above=(), warehouse_id=None, by=by)
                pending += await record_principal_deleted(connection, Principal(PrincipalType.ROLE, gone.id), by=by)
        with pending_during_outage(
            "The role is deleted, but the revocation of its grants is not yet complete. The gateway retries it; no "
            "further request is needed."
        ):
            await self._delivery.deliver(pending)

    async def members(self, permit: Permit[ListRoleMembers]) -> RoleMemberList:
        """Return the direct members, ordered by type and id. Owners are implicit members and are not listed."""
        operation = permit.operation
        page = self._page_of(operation, principal)
        async with self._database.read() as connection:
            rows = await roles.members(
                connection,
                operation.role.role_id,
                type=operation.type,
                after=page.after,
                limit=page.limit,
            )
            return await members_page(connection, rows, page, permit.row(operation.role, ResolvedRole).project_id)

    async def member_of(self, permit: Permit[ListRoleMemberOf]) -> NamedRoleList:
        """Return the roles of the same project that have this role as a direct member."""
        operation = permit.operation
        role = permit.row(operation.role, ResolvedRole)
        async with self._database.read() as connection:
            rows = await roles.member_of(connection, PrincipalType.ROLE, str(role.id), project_id=role.project_id)
        return roles_page(rows, operation.page_token, operation.page_size or self._page_size)

    async def all_members(self, permit: Permit[ListAllRoleMembers]) -> RoleMemberList:
        """Return the direct and indirect members, ordered by type and id.

        Members of nested roles are included, because they have the rights of the role too.
        """
        operation = permit.operation
        page = self._page_of(operation, principal)
        async with self._database.read() as connection:
            rows = await role_nesting.all_members(
                connection,
                str(operation.role.role_id),
                type=operation.type,
                after=page.after,
                limit=page.limit,
            )
            return await members_page(connection, rows, page, permit.row(operation.role, ResolvedRole).project_id)

    async def all_member_of(self, permit: Permit[ListAllRoleMemberOf]) -> NamedRoleList:
        """Return the roles of the same project that this role is a direct or indirect member of."""
        operation = permit.operation
        role = permit.row(operation.role, ResolvedRole)
        async with self._database.read() as connection:
            rows = await role_nesting.all_roles_of(
                connection, PrincipalType.ROLE, str(role.id), project_id=role.project_id
            )
        return roles_page(rows, operation.page_token, operation.page_size or self._page_size)

    async def _row(self, ref: RoleRef) -> RoleRow:
        async with self._database.read() as connection:
            row = await roles.get(connection, ref.role_id)
        if row is None:
            raise not_found(ref)
        return row


async def _refuse_depth(connection: Connection, role: ObjectKey, owner: Principal) -> None:
    """Raise RoleMembershipDepthExceeded if the new role would nest roles too deeply because another role owns it.

    An owning role is a member of the role it owns. A new role has no members yet, so there can be no cycle.
    """
    if owner.type is not PrincipalType.ROLE:
        return
    found = await nesting(connection, role.id, [owner.id])
    if found.depth > MAX_DEPTH:
        raise RoleMembershipDepthExceeded(
            f"Roles would be nested {found.depth} levels deep; at most {MAX_DEPTH} are allowed. Choose a user as "
            "owner, or a role that is nested less."
        )


async def _refuse_synchronized(connection: Connection, ref: RoleRef) -> None:
    """Raise RoleSynchronized if SCIM manages the role.

    Its next synchronization would undo the change, or would not find the role.
    """
    if await scim_groups.is_provisioned(connection, ref.role_id):
        raise RoleSynchronized(
            "A directory (SCIM) manages the name, source and members of this role. Change the group in the directory."
        )


def _refuse_reserved(provider: str) -> None:
    if provider == SYSTEM_PROVIDER:
        raise ReservedRoleProvider(
            f"The role provider {SYSTEM_PROVIDER} is reserved for the server. Use the provider {OWN_PROVIDER}."
        )


def _clash_error(clash: roles.RoleClash, about: RoleRef | ProjectRef) -> CatalogError:
    match clash:
        case roles.NameTaken():
            return RoleNameAlreadyExists("A role with this name already exists in the project. Choose another name.")
        case roles.SourceTaken():
            return RoleSourceIdConflict("A role with this provider and source id already exists in the project.")
        case _:
            return not_found(about)


def _wire(row: RoleRow) -> Role:
    return Role(
        id=row.id,
        ident=ident_of(row),
        name=row.name,
        project_id=row.project_id,
        provider_id=row.provider_id,
        source_id=row.source_id,
        created_at=row.created_at,
        description=row.description,
        updated_at=row.updated_at,
    )
