# SPDX-License-Identifier: Apache-2.0
"""Use cases of user records, which contain ids, names and email addresses of known users. A record gives no right."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gateway.access.actor import Actor
from gateway.access.door.permit import Permit
from gateway.access.management_errors import (
    UserRestricted,
    UserSynchronized,
    pending_during_outage,
    require_remaining_admin,
)
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.server import ResolvedUser, UserNotFound
from gateway.access.operations.roles import NamedRoleList
from gateway.access.operations.users import (
    DeleteSelf,
    DeleteUser,
    FoundUser,
    FoundUsers,
    GetUser,
    ListAllOwnRoles,
    ListAllUserRoles,
    ListOwnRoles,
    ListUserRoles,
    ListUsers,
    ProvisionUser,
    RegisterSelf,
    SearchUser,
    UpdateSelf,
    UpdateUser,
    User,
    UserList,
    WhoAmI,
    WhoAmIAnswer,
)
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Connection
from gateway.db.principals import role_nesting, roles, scim_users, users
from gateway.db.principals.roles import RoleRow
from gateway.db.principals.users import UserRow, guard_last_admin
from gateway.db.tables import search
from gateway.db.tuples import user_deletion_cleanup
from gateway.features.kit import UseCases
from gateway.features.principals.role_pages import roles_page
from gateway.features.principals.roles import MOST_FOUND


class Users(UseCases):
    """Register, read, search, change and delete user records."""

    async def whoami(self, permit: Permit[WhoAmI]) -> WhoAmIAnswer:
        """Return the caller's record. Raises UserNotFound if the caller has none yet."""
        async with self._database.read() as connection:
            row = await users.get(connection, permit.actor.id)
        if row is None:
            raise UserNotFound(f"User does not exist: {permit.actor.id}")
        found = _wire(row)
        return WhoAmIAnswer(
            id=found.id,
            name=found.name,
            email=found.email,
            user_type=found.user_type,
            created_at=found.created_at,
            updated_at=found.updated_at,
            last_updated_with=found.last_updated_with,
            is_instance_admin=permit.actor.instance_admin,
        )

    async def known(self, permit: Permit[WhoAmI]) -> bool:
        """Return whether the caller has a record."""
        async with self._database.read() as connection:
            return await users.get(connection, permit.actor.id) is not None

    async def register(self, permit: Permit[RegisterSelf]) -> tuple[User, bool]:
        """Create the caller's record if it does not exist. Return (record, True if it was created).

        The stored email address is the one that the caller's identity provider verified. An address in the request is
        not stored.
        """
        operation = permit.operation
        actor = permit.actor
        async with self._database.change(permit) as connection:
            row, created = await users.upsert(
                connection,
                id=actor.id,
                profile=own_profile(actor, operation.display_name, operation.user_type),
                address=None,
                by=operation.by,
                update_if_exists=operation.update_if_exists,
            )
            row = await _with_address(connection, actor, row)
            permit.pending_audit.add_details(created=str(created).lower())
        return _wire(row), created

    async def provision(self, permit: Permit[ProvisionUser]) -> tuple[User, bool]:
        """Create a user's record before the first sign-in. Return (record, True if it was created)."""
        operation = permit.operation
        async with self._database.change(permit) as connection:
            row, created = await users.upsert(
                connection,
                id=operation.user_id,
                profile=users.Profile(
                    name=operation.display_name,
                    user_type=operation.user_type,
                    fallback_name=_nameless(operation.user_id),
                ),
                address=users.Address(email=operation.email, verified=False),
                by="create-endpoint",
                update_if_exists=operation.update_if_exists,
            )
            permit.pending_audit.add_details(created=str(created).lower())
        return _wire(row), created

    async def get(self, permit: Permit[GetUser]) -> User:
        """Return one record. Raises UserNotFound."""
        row = permit.resolution.get(permit.operation.user)
        if not isinstance(row, ResolvedUser):
            raise UserNotFound(f"User does not exist: {permit.operation.user.user_id}")
        return _wire(row)

    async def search(self, permit: Permit[SearchUser]) -> FoundUsers:
        """Return at most MOST_FOUND users with similar names, email addresses or ids, best match first.

        Addresses are included only if they are verified.
        """
        rows = await self._reads.run(partial(search.users, text=permit.operation.text, limit=MOST_FOUND))
        return FoundUsers(
            users=[
                FoundUser(id=row.id, name=row.name, user_type=row.user_type, email=row.verified_email) for row in rows
            ]
        )

    async def update(self, permit: Permit[UpdateSelf | UpdateUser]) -> User:
        """Change the name and type of a user. For a user other than the caller, also change the email address. Raises
        UserNotFound.

        The caller's own address is the one that the identity provider verified. An address in the request is not
        stored.
        """
        operation = permit.operation
        address = None
        if isinstance(operation, UpdateUser):
            address = users.Address(email=operation.email, verified=False)
        async with self._database.change(permit) as connection:
            row = await users.update(
                connection,
                operation.user.user_id,
                name=operation.display_name,
                address=address,
                user_type=operation.user_type,
                by="update-endpoint",
            )
            if row is None:
                raise not_found(operation.user)
            if isinstance(operation, UpdateSelf):
                row = await _with_address(connection, permit.actor, row)
        return _wire(row)

    async def delete(self, permit: Permit[DeleteSelf | DeleteUser]) -> None:
        """Delete the record and every grant to the user. Return when all those rights are revoked everywhere.

        A user that returns with the same id has no rights. A retry after an outage completes the deletion. Raises
        UserNotFound if there is neither a record nor a pending cleanup. Raises LastServerAdmin for the last server
        administrator. Raises UserSynchronized for a user that SCIM manages: without the record, a deactivation would be
        lost and later SCIM requests would not find the user. Raises UserRestricted if a subject of a data policy
        deletes itself: it could return, and the groups in its token could let it read without the policy. Raises
        RevocationPending if the deletion is recorded but OpenFGA has not confirmed it yet.
        """
        ref = permit.operation.user
        user = Principal(PrincipalType.USER, ref.user_id)
        with require_remaining_admin():
            async with self._database.change(permit) as connection, guard_last_admin(connection):
                if await scim_users.is_provisioned(connection, ref.user_id):
                    raise UserSynchronized("A directory (SCIM) manages this user. Delete the user in the directory.")
                if isinstance(permit.operation, DeleteSelf) and await role_nesting.is_subject(connection, user):
                    raise UserRestricted(
                        "A data policy applies to you or to one of your roles. Your deletion would end that, so a "
                        "server administrator has to delete you."
                    )
                known = await users.delete(connection, ref.user_id)
                begun = await user_deletion_cleanup.expected(connection, ref.user_id)
                pending = await user_deletion_cleanup.record_deletion(connection, user, by=permit.actor.id)
                if not (known or begun or pending):
                    raise not_found(ref)
        with pending_during_outage(
            "The user is deleted, but the revocation of their rights is not yet complete. The gateway retries it; "
            "no further request is needed."
        ):
            await self._delivery.deliver(pending)
            await user_deletion_cleanup.revoke_created(self._database, self._delivery, [user.id])

    async def roles(self, permit: Permit[ListOwnRoles | ListUserRoles]) -> NamedRoleList:
        """Return the roles that are assigned to the user directly: in all projects, or in the one to which the caller's
        token is limited.

        For the caller itself, roles of groups in the token are included. The groups of other users are unknown.
        """
        ref = permit.operation.user
        by_group = permit.actor.group_roles if isinstance(permit.operation, ListOwnRoles) else ()
        if permit.resolution.get(ref) is None:
            raise not_found(ref)
        async with self._database.read() as connection:
            rows = await roles.member_of(
                connection, PrincipalType.USER, ref.user_id, project_id=permit.actor.within, by_group=by_group
            )
        return self._page_of_roles(permit.operation, rows)

    async def all_roles(self, permit: Permit[ListAllOwnRoles | ListAllUserRoles]) -> NamedRoleList:
        """Return all roles of the user in all projects: assigned, nested and owned ones.

        For the caller itself, roles of groups in the token are included.
        """
        ref = permit.operation.user
        if permit.resolution.get(ref) is None:
            raise not_found(ref)
        async with self._database.read() as connection:
            if isinstance(permit.operation, ListAllOwnRoles):
                rows = await roles.named(connection, permit.resolution.caller_roles, project_id=None)
            else:
                rows = await role_nesting.all_roles_of(connection, PrincipalType.USER, ref.user_id)
        return self._page_of_roles(permit.operation, rows)

    def _page_of_roles(
        self, operation: ListOwnRoles | ListUserRoles | ListAllOwnRoles | ListAllUserRoles, rows: Sequence[RoleRow]
    ) -> NamedRoleList:
        """Return a page of a user's roles. Return all roles to a client that does not request pages.

        Such clients do not expect a `next-page-token` in this list.
        """
        pages = operation.page_token is not None or operation.page_size is not None
        size = min(operation.page_size or self._page_size, self._page_size) if pages else len(rows)
        return roles_page(rows, operation.page_token, size)

    async def list(self, permit: Permit[ListUsers]) -> UserList:
        """Return a page of users, ordered by id."""
        operation = permit.operation
        page = self._page_of(operation, str)
        find = partial(users.page, name_contains=operation.name_contains, after=page.after, limit=page.limit)
        rows = await self._reads.run(find)
        return UserList(
            users=[_wire(row) for row in page.rows(rows)],
            next_page_token=page.next_token(rows, lambda row: row.id),
        )


async def _with_address(connection: Connection, actor: Actor, row: UserRow) -> UserRow:
    """Store the verified email address in the caller's token, if there is one. Return the caller's row."""
    if actor.email is None:
        return row
    await users.verify_address(connection, actor.id, actor.email)
    return await users.get(connection, actor.id) or row


def own_profile(actor: Actor, name: str | None, user_type: str | None) -> users.Profile:
    """Return the caller's profile. Values in the request take precedence over those in the token.

    The type in the token is a guess, so it is only the fallback.
    """
    return users.Profile(
        name=name or actor.name,
        user_type=user_type,
        fallback_name=_nameless(actor.id),
        fallback_type="application" if actor.application else "human",
    )


def _nameless(user_id: str) -> str:
    """Return a name for a user for which no source gives a name. It contains the subject."""
    return f"Nameless App with ID {user_id.partition('~')[2]}"


def _wire(row: UserRow | ResolvedUser) -> User:
    return User(
        id=row.id,
        name=row.name,
        email=row.email,
        user_type=row.user_type,
        created_at=row.created_at,
        updated_at=row.updated_at,
        last_updated_with=row.last_updated_with,
    )
