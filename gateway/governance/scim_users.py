# SPDX-License-Identifier: Apache-2.0
"""Use cases of SCIM users: a provider's directory says who there is, and who is not to come any more.

A SCIM user is the gateway's user `<provider>~<subject>`; which attribute is the subject is a setting of the provider.
Who is not active is refused at the door and holds nothing that is in force (`db/wanted.py`); the grants stay, and are
in force again when the user is active again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET
from uuid_utils.compat import uuid7

from gateway.access.actor import Actor
from gateway.access.operations.scim import (
    CreateScimUser,
    DeleteScimUser,
    GetScimConfig,
    GetScimUser,
    ListScimResourceTypes,
    ListScimSchemas,
    ListScimUsers,
    PatchScimUser,
    ReplaceScimUser,
)
from gateway.access.permit import Permit
from gateway.access.principal_ids import fits_a_tuple
from gateway.access.provisioning import provider_kept_by
from gateway.access.tuples import Principal, PrincipalType
from gateway.db import scim_users, users
from gateway.db.delivery import TupleDelivery
from gateway.db.drift import move_revisions
from gateway.db.engine import Connection, Database
from gateway.db.outbox import Pending
from gateway.db.ownership import record_held_back, record_principal_gone
from gateway.db.rows import AnyRow
from gateway.db.server_offices import somebody_stays
from gateway.governance.errors import last_admin_kept, pending_when_out
from gateway.scim import filters
from gateway.scim.errors import (
    Immutable,
    InvalidFilter,
    InvalidValue,
    NoSuchResource,
    NotProvisioned,
    NotUnique,
    VersionChanged,
)
from gateway.scim.patch import patched_user
from gateway.scim.reading import Email, User
from gateway.scim.wire import LIST, USER, Meta, ScimEmail, ScimName, ScimUser, ScimUserList

MAX_RESULTS = 200
_MAX_SUBJECT = 127


class _Described(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a user only to be told again."""

    display_name: str | None = None
    formatted: str | None = None
    given_name: str | None = None
    family_name: str | None = None
    emails: tuple[Email, ...] = ()


@dataclass(frozen=True, slots=True)
class ScimSources:
    """Which attribute (`externalId` or `userName`) names the users of each provider that keeps users here."""

    subjects: Mapping[str, str]

    def provider_of(self, actor: Actor) -> str:
        """The provider whose users and groups the caller keeps. Raises NotProvisioned."""
        provider = provider_kept_by(actor)
        if provider not in self.subjects:
            raise NotProvisioned(
                f"The provider {provider} keeps nobody here: its setting SCIM_SUBJECT does not say which attribute "
                "names its users."
            )
        return provider

    def user_id(self, provider: str, user: User) -> str:
        """The gateway's id of a user. Raises InvalidValue."""
        attribute = self.subjects[provider]
        subject = user.external_id if attribute == "externalId" else user.user_name
        if subject is None or len(subject) > _MAX_SUBJECT or not fits_a_tuple(f"{provider}~{subject}"):
            raise InvalidValue(f"{attribute} names the user here: it is text of 1 to {_MAX_SUBJECT} characters.")
        return f"{provider}~{subject}"


class ScimUsers:
    """The users of one provider."""

    def __init__(self, *, database: Database, delivery: TupleDelivery, sources: ScimSources) -> None:
        self._database = database
        self._delivery = delivery
        self._sources = sources

    async def describe(self, permit: Permit[GetScimConfig | ListScimResourceTypes | ListScimSchemas]) -> None:
        """Nothing but whether the caller's provider keeps anybody here. Raises NotProvisioned."""
        self._sources.provider_of(permit.actor)

    async def list(self, permit: Permit[ListScimUsers]) -> ScimUserList:
        """The users that the filter takes. Raises InvalidFilter."""
        operation = permit.operation
        provider = self._sources.provider_of(permit.actor)
        conditions = conditions_of(filters.parse(operation.filter, filters.USERS))
        rows: Sequence[AnyRow] = ()
        total, start = 0, max(operation.start, 1)
        if conditions is not None:
            async with self._database.read() as connection:
                total, rows = await scim_users.page(
                    connection, provider, conditions, offset=start - 1, limit=page_size(operation.count)
                )
        found = tuple(told(row) for row in rows)
        return ScimUserList(
            schemas=(LIST,), total_results=total, start_index=start, items_per_page=len(found), resources=found
        )

    async def get(self, permit: Permit[GetScimUser]) -> ScimUser:
        """One user. Raises NoSuchResource."""
        provider = self._sources.provider_of(permit.actor)
        async with self._database.read() as connection:
            row = await scim_users.get(connection, provider, permit.operation.id)
        if row is None:
            raise NoSuchResource("There is no such user.")
        return told(row)

    async def create(self, permit: Permit[CreateScimUser]) -> ScimUser:
        """A user, whose record may be there already: who came before the directory told of them is known by the same
        id. Raises NotUnique, InvalidValue, and LastServerAdmin for an inactive one who alone can manage the server.
        """
        provider = self._sources.provider_of(permit.actor)
        user = permit.operation.user
        user_id = self._sources.user_id(provider, user)
        id = uuid7()
        permit.trail.tell(scim_id=str(id), user_id=user_id)
        pending: list[Pending] = []
        with last_admin_kept(), _unique():
            async with (
                self._database.change(permit) as connection,
                nullcontext() if user.active else somebody_stays(connection),
            ):
                await users.upsert(connection, **_record(user_id, user), update_if_exists=True)
                row = await scim_users.create(
                    connection, id=id, user_id=user_id, provider_id=provider, values=_values(user)
                )
                if not user.active:
                    await scim_users.hold(connection, provider, id)
                    pending = await record_held_back(connection, user_id, inactive=True)
        await self._in_force(user, pending, changed=not user.active)
        return told(row)

    async def replace(self, permit: Permit[ReplaceScimUser], if_match: str | None) -> ScimUser:
        """All that is kept of a user. Raises as `patch`."""
        return await self._change(permit, lambda before: permit.operation.user, if_match)

    async def patch(self, permit: Permit[PatchScimUser], if_match: str | None) -> ScimUser:
        """Some of what is kept of a user, all operations or none.

        Raises NoSuchResource, VersionChanged, NotUnique, Immutable for another subject, LastServerAdmin, and the errors
        of patches. Raises RevocationPending when a deactivation is recorded but OpenFGA has not confirmed it yet; the
        door refuses the user already.
        """
        return await self._change(permit, lambda before: patched_user(before, permit.operation.patch), if_match)

    async def delete(self, permit: Permit[DeleteScimUser], if_match: str | None) -> str:
        """The record with every grant to the user, as a user's deletion does; the gateway's id of the user.

        Raises NoSuchResource, VersionChanged, LastServerAdmin, and RevocationPending when OpenFGA has not confirmed it
        yet.
        """
        provider = self._sources.provider_of(permit.actor)
        with last_admin_kept():
            async with self._database.change(permit) as connection, somebody_stays(connection):
                row = await _held(connection, provider, permit.operation.id, if_match)
                permit.trail.tell(user_id=row.user_id)
                await users.delete(connection, row.user_id)
                gone = Principal(PrincipalType.USER, row.user_id)
                pending = await record_principal_gone(connection, gone, by=permit.actor.id)
        with pending_when_out("The user is deleted; what they were given is not yet taken away everywhere."):
            await self._delivery.deliver(pending)
        deleted: str = row.user_id
        return deleted

    async def _change(
        self, permit: Permit[ReplaceScimUser | PatchScimUser], after: Any, if_match: str | None
    ) -> ScimUser:
        provider = self._sources.provider_of(permit.actor)
        with last_admin_kept(), _unique():
            # An office is counted before rows are locked (`somebody_stays`), so before it is known what changes.
            async with self._database.change(permit) as connection, somebody_stays(connection):
                row = await _held(connection, provider, permit.operation.id, if_match)
                user: User = after(_user(row))
                if self._sources.user_id(provider, user) != row.user_id:
                    raise Immutable("This attribute names the user here; delete the user and make the other one.")
                permit.trail.tell(user_id=row.user_id, active=str(user.active).lower())
                changed = await scim_users.change(connection, row.id, _values(user))
                await users.upsert(connection, **_record(row.user_id, user), update_if_exists=True)
                pending: list[Pending] = []
                # Made so again where it is so already: who repeats this after RevocationPending waits for the same.
                if not user.active or not row.active:
                    pending = await record_held_back(connection, row.user_id, inactive=not user.active)
        await self._in_force(user, pending, changed=user.active != row.active)
        return told(changed)

    async def _in_force(self, user: User, pending: Sequence[Pending], *, changed: bool) -> None:
        """Deliver what an activation or deactivation means. Raises RevocationPending."""
        if user.active:
            await self._delivery.deliver_or_leave(pending)
            return
        if changed:
            # Afterwards: the change itself stands on the revisions as they were when it was allowed.
            async with self._database.transaction() as connection:
                await move_revisions(connection, within=(), server_too=True)
        with pending_when_out("The user is deactivated; what they hold is not yet taken away everywhere."):
            await self._delivery.deliver(pending)


def page_size(count: int | None) -> int:
    """How many resources a page may hold."""
    return MAX_RESULTS if count is None else max(0, min(count, MAX_RESULTS))


def conditions_of(found: Sequence[filters.Condition]) -> dict[str, Any] | None:
    """Conditions by attribute, ids as UUIDs; None when nothing can meet them. Raises InvalidFilter for two about one
    attribute.
    """
    conditions: dict[str, Any] = {}
    for each in found:
        if each.attribute in conditions:
            raise InvalidFilter(f"The filter has two conditions on {each.attribute}.")
        conditions[each.attribute] = each.value
    for attribute in ("id", "members"):
        if attribute in conditions:
            try:
                conditions[attribute] = UUID(str(conditions[attribute]))
            except ValueError:
                return None
    return conditions


def etag_of(version: int) -> str:
    """`meta.version` and ETag of a resource."""
    return f'W/"{version}"'


def require_version(version: int, if_match: str | None) -> None:
    """Raise VersionChanged unless `If-Match` is not given, `*`, or names this version."""
    if if_match is None or if_match.strip() == "*":
        return
    if etag_of(version) not in [each.strip() for each in if_match.split(",")]:
        raise VersionChanged("The resource is in another version by now; read it again.")


async def _held(connection: Connection, provider: str, id: UUID, if_match: str | None) -> AnyRow:
    row = await scim_users.hold(connection, provider, id)
    if row is None:
        raise NoSuchResource("There is no such user.")
    require_version(row.version, if_match)
    return row


class _unique:
    """Tells a user who is there already as NotUnique."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, scim_users.UserTaken):
            raise NotUnique(
                "Another user of this provider has this userName, in whatever letter case, or id."
            ) from error


def _record(user_id: str, user: User) -> dict[str, Any]:
    return {
        "id": user_id,
        "name": user.shown,
        "email": user.address,
        "user_type": "human",
        "by": "scim",
    }


def _values(user: User) -> dict[str, Any]:
    described = _Described(
        display_name=user.display_name,
        formatted=user.formatted,
        given_name=user.given_name,
        family_name=user.family_name,
        emails=user.emails,
    )
    return scim_users.values_of(
        user_name=user.user_name,
        external_id=user.external_id,
        active=user.active,
        document=msgspec.json.encode(described),
    )


def _user(row: AnyRow) -> User:
    described = msgspec.json.decode(bytes(row.document), type=_Described)
    return User(
        user_name=row.user_name,
        external_id=row.external_id,
        active=row.active,
        display_name=described.display_name,
        formatted=described.formatted,
        given_name=described.given_name,
        family_name=described.family_name,
        emails=described.emails,
    )


def told(row: AnyRow) -> ScimUser:
    """A user as SCIM tells it."""
    user = _user(row)
    name = ScimName(
        formatted=user.formatted or UNSET,
        given_name=user.given_name or UNSET,
        family_name=user.family_name or UNSET,
    )
    return ScimUser(
        schemas=(USER,),
        id=str(row.id),
        meta=Meta(
            resource_type="User",
            location=f"/scim/v2/Users/{row.id}",
            created=row.created_at,
            last_modified=row.updated_at,
            version=etag_of(row.version),
        ),
        user_name=user.user_name,
        external_id=UNSET if user.external_id is None else user.external_id,
        active=user.active,
        display_name=user.display_name or UNSET,
        name=UNSET if name == ScimName() else name,
        emails=tuple(
            ScimEmail(value=each.value, primary=each.primary, type=UNSET if each.type is None else each.type)
            for each in user.emails
        )
        or UNSET,
    )
