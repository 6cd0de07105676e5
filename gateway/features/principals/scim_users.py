# SPDX-License-Identifier: Apache-2.0
"""Use cases of SCIM users: an identity provider creates, changes and deactivates its users.

A SCIM user is the gateway's user `<provider>~<subject>`. A setting of the provider names the attribute for the subject.
Requests of inactive users are refused, and their grants are not in force (`db/tuples/desired_tuples.py`). The grants
stay, and are in force again after reactivation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict, replace
from uuid_utils.compat import uuid7

from gateway.access.door.permit import Permit
from gateway.access.management_errors import pending_during_outage, require_remaining_admin
from gateway.access.operations.scim import (
    CreateScimUser,
    DeleteScimUser,
    GetScimConfig,
    GetScimResourceType,
    GetScimSchema,
    GetScimUser,
    ListScimResourceTypes,
    ListScimSchemas,
    ListScimUsers,
    PatchScimUser,
    ReplaceScimUser,
)
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Connection
from gateway.db.principals import scim_users, users
from gateway.db.principals.scim_users import ScimUserRow
from gateway.db.principals.users import guard_last_admin
from gateway.db.tuples import outbox, user_deletion_cleanup
from gateway.db.tuples.outbox import Pending
from gateway.db.tuples.ownership import record_suspended
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
from gateway.scim.errors import NoSuchResource, NotUnique
from gateway.scim.patch import patched_user
from gateway.scim.reading import Described, User
from gateway.scim.wire import USER, ScimEmail, ScimName, ScimUser, ScimUserList, listed

Discovery: TypeAlias = GetScimConfig | ListScimResourceTypes | GetScimResourceType | ListScimSchemas | GetScimSchema


class ScimUsers(UseCases):
    """Use cases of the users of one provider."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._sources = ScimSources(kit.scim_subjects)

    async def describe(self, permit: Permit[Discovery]) -> None:
        """Raise NotProvisioned unless the caller's provider manages users here."""
        self._sources.provider_of(permit.actor)

    async def list(self, permit: Permit[ListScimUsers]) -> ScimUserList:
        """Return the users that match the filter. Raises InvalidFilter."""
        provider = self._sources.provider_of(permit.actor)
        page = partial(scim_users.page, provider_id=provider)
        some = await found(permit, self._database, filters.USERS, page)
        return listed(ScimUserList, [_user_resource(row) for row in some.rows], total=some.total, start=some.start)

    async def get(self, permit: Permit[GetScimUser]) -> ScimUser:
        """Return one user. Raises NoSuchResource."""
        provider = self._sources.provider_of(permit.actor)
        async with self._database.read() as connection:
            row = await scim_users.get(connection, provider, permit.operation.id)
        if row is None:
            raise NoSuchResource("The user with this id does not exist.")
        return _user_resource(row)

    async def create(self, permit: Permit[CreateScimUser]) -> ScimUser:
        """Create a SCIM user. A gateway record with the same id, from an earlier sign-in, is updated.

        Raises NotUnique or InvalidValue. Raises LastServerAdmin if the user is inactive and the only server
        administrator.
        """
        provider = self._sources.provider_of(permit.actor)
        user = _merged(permit.operation.user, True)
        user_id = self._sources.user_id(provider, user)
        id = uuid7()
        permit.pending_audit.add_details(scim_id=str(id), user_id=user_id)
        pending: list[Pending] = []
        with require_remaining_admin(), _unique():
            async with (
                self._database.change(permit) as connection,
                nullcontext() if user.active else guard_last_admin(connection),
            ):
                await users.upsert(connection, **_record(user_id, user), update_if_exists=True)
                row = await scim_users.create(
                    connection, id=id, user_id=user_id, provider_id=provider, values=_values(user)
                )
                if not user.active:
                    await scim_users.hold(connection, provider, id)
                    pending = await record_suspended(connection, user_id, inactive=True)
        await self._deliver_state(user, user_id, pending)
        return _user_resource(row)

    async def replace(self, permit: Permit[ReplaceScimUser]) -> ScimUser:
        """Replace all attributes of a user. Raises the errors of `patch`.

        A request without `active` keeps the current status, so an omitted attribute cannot reactivate a user.
        """
        return await self._change(permit, lambda before: _merged(permit.operation.user, before.active))

    async def patch(self, permit: Permit[PatchScimUser]) -> ScimUser:
        """Apply all operations of a patch to a user, or none.

        Raises NoSuchResource, VersionChanged, NotUnique, LastServerAdmin and the errors of patches. Raises Immutable
        for another subject of an active user. Raises RevocationPending if a deactivation is recorded but OpenFGA has
        not confirmed it yet; the door already rejects the user then.
        """
        return await self._change(permit, lambda before: patched_user(before, permit.operation.patch))

    async def delete(self, permit: Permit[DeleteScimUser]) -> str:
        """Delete the record and every grant to the user. Return the gateway's id of the user.

        Raises NoSuchResource, VersionChanged or LastServerAdmin. Raises RevocationPending if OpenFGA has not confirmed
        the deletion yet. A retry raises NoSuchResource once OpenFGA has confirmed it.
        """
        provider = self._sources.provider_of(permit.actor)
        try:
            with require_remaining_admin():
                async with self._database.change(permit) as connection, guard_last_admin(connection):
                    row = await _held(connection, provider, permit.operation)
                    permit.pending_audit.add_details(user_id=row.user_id)
                    await users.delete(connection, row.user_id)
                    gone = Principal(PrincipalType.USER, row.user_id)
                    pending = await user_deletion_cleanup.record_deletion(connection, gone, by=permit.actor.id)
        except NoSuchResource:
            # The record contained the user id, so the id is unknown now. The deletions of all deleted users of the
            # provider are finished instead.
            await finish_deletion(permit, self._database, self._delivery, outbox.pending_of_deleted_users, provider)
            async with self._database.read() as connection:
                begun = await user_deletion_cleanup.expected_of(connection, provider)
            with pending_during_outage(GONE):
                await user_deletion_cleanup.revoke_created(self._database, self._delivery, begun)
            raise
        with pending_during_outage(GONE):
            await self._delivery.deliver(pending)
            await user_deletion_cleanup.revoke_created(self._database, self._delivery, [gone.id])
        deleted: str = row.user_id
        return deleted

    async def _change(self, permit: Permit[ReplaceScimUser | PatchScimUser], after: Any) -> ScimUser:
        provider = self._sources.provider_of(permit.actor)
        with require_remaining_admin(), _unique():
            # `guard_last_admin` counts the administrators before it locks rows, so before this change can be known.
            async with self._database.change(permit) as connection, guard_last_admin(connection):
                row = await _held(connection, provider, permit.operation)
                user: User = after(_user(row))
                self._sources.require_same(provider, user, row.user_id)
                permit.pending_audit.add_details(user_id=row.user_id, active=str(user.active).lower())
                changed = await scim_users.change(connection, row.id, _values(user))
                await users.upsert(connection, **_record(row.user_id, user), update_if_exists=True)
                pending: list[Pending] = []
                # Also enqueued if the status is unchanged: a retry after RevocationPending waits for the same delivery.
                if not user.active or not row.active:
                    pending = await record_suspended(connection, row.user_id, inactive=not user.active)
        await self._deliver_state(user, row.user_id, pending)
        return _user_resource(changed)

    async def _deliver_state(self, user: User, user_id: str, pending: Sequence[Pending]) -> None:
        """Deliver the tuples that follow from an activation or deactivation. Raises RevocationPending."""
        if user.active:
            await self._delivery.deliver_or_defer(pending)
            return
        with pending_during_outage(
            "The user is deactivated, but the revocation of their rights is not yet complete. The gateway retries it."
        ):
            await self._delivery.deliver(pending)
            await user_deletion_cleanup.suspend_grants(self._database, self._delivery, user_id)


async def _held(
    connection: Connection, provider: str, operation: ReplaceScimUser | PatchScimUser | DeleteScimUser
) -> ScimUserRow:
    row = await scim_users.hold(connection, provider, operation.id)
    if row is None:
        raise NoSuchResource("The user with this id does not exist.")
    require_version(row.version, operation.if_match)
    return row


@contextmanager
def _unique() -> Iterator[None]:
    """Context manager. Convert UserTaken to NotUnique."""
    try:
        yield
    except scim_users.UserTaken as taken:
        raise NotUnique(
            "A user with this userName (letter case is ignored) or this id already exists for this provider."
        ) from taken


def _merged(user: User, active: bool | None) -> User:
    """Return the user of a request, with the status `active` if the request has none."""
    return user if user.active is not None else replace(user, active=active)


def _record(user_id: str, user: User) -> dict[str, Any]:
    return {
        "id": user_id,
        "profile": users.Profile(name=user.shown, user_type="human"),
        "address": users.Address(email=user.address, verified=True),
        "by": "scim",
    }


def _values(user: User) -> dict[str, Any]:
    return scim_users.values_of(
        user_name=user.user_name,
        external_id=user.external_id,
        active=bool(user.active),
        document=msgspec.json.encode(msgspec.convert(user, Described, from_attributes=True)),
    )


def _user(row: ScimUserRow) -> User:
    described = msgspec.json.decode(bytes(row.document), type=Described)
    return User(user_name=row.user_name, external_id=row.external_id, active=row.active, **asdict(described))


def _user_resource(row: ScimUserRow) -> ScimUser:
    """Return a user row as a SCIM resource."""
    user = _user(row)
    name = ScimName(
        formatted=user.formatted or UNSET,
        given_name=user.given_name or UNSET,
        family_name=user.family_name or UNSET,
    )
    return ScimUser(
        schemas=(USER,),
        id=str(row.id),
        meta=meta_of("User", row),
        user_name=user.user_name,
        external_id=UNSET if user.external_id is None else user.external_id,
        active=row.active,
        display_name=user.display_name or UNSET,
        name=UNSET if name == ScimName() else name,
        emails=tuple(
            ScimEmail(value=each.value, primary=each.primary, type=UNSET if each.type is None else each.type)
            for each in user.emails
        )
        or UNSET,
    )
