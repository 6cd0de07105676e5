# SPDX-License-Identifier: Apache-2.0
"""Common parts of SCIM users and groups: providers, pages, versions, and repeated deletions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from gateway.access.actor import Actor, managed_provider
from gateway.access.door.permit import Permit
from gateway.access.management_errors import pending_during_outage
from gateway.access.operations.scim import DeleteScimGroup, DeleteScimUser, ListScimGroups, ListScimUsers
from gateway.access.tuples import is_valid_in_tuples
from gateway.db.engine.database import Connection, Database
from gateway.db.pools.rows import RowType
from gateway.db.principals.scim_groups import GroupRow
from gateway.db.principals.scim_users import ScimUserRow
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.tuples.outbox import Pending
from gateway.scim import filters
from gateway.scim.errors import Immutable, InvalidFilter, InvalidValue, NotProvisioned, VersionChanged
from gateway.scim.reading import User
from gateway.scim.wire import Meta

MAX_RESULTS = 200
GONE = (
    "The user or group is deleted, but the revocation of its rights and grants is not yet complete. The gateway "
    "retries it."
)
_MAX_SUBJECT = 127

SubjectT = TypeVar("SubjectT")


@dataclass(frozen=True, slots=True)
class ScimSources:
    """The attribute (`externalId` or `userName`) that identifies users, for each provider with SCIM."""

    subjects: Mapping[str, str]

    def provider_of(self, actor: Actor) -> str:
        """Return the provider that the caller manages users and groups for. Raises NotProvisioned."""
        provider = managed_provider(actor)
        if provider not in self.subjects:
            raise NotProvisioned(
                f"The provider {provider} cannot provision users: the server's setting SCIM_SUBJECT for it is "
                "missing. The operator can set it to the attribute that identifies users."
            )
        return provider

    def user_id(self, provider: str, user: User) -> str:
        """Return the gateway's id of a user. Raises InvalidValue if the identifying attribute cannot be used in
        an id.
        """
        attribute = self.subjects[provider]
        subject = user.external_id if attribute == "externalId" else user.user_name
        if not subject or len(subject) > _MAX_SUBJECT or not is_valid_in_tuples(f"{provider}~{subject}"):
            raise InvalidValue(
                f"{attribute} identifies the user on this server. It must be text of 1 to {_MAX_SUBJECT} characters."
            )
        return f"{provider}~{subject}"

    def require_same(self, provider: str, user: User, user_id: str) -> None:
        """Raise Immutable if an active user would get another id. Raises the errors of `user_id`.

        The id of an inactive user is not checked, because that user cannot sign in. Directories rename users when they
        deactivate them: Entra ID puts the object id before the names of deleted users, in the request that deactivates
        them. A deactivation must not fail for that reason. A reactivated user must have the former id.
        """
        if user.active and self.user_id(provider, user) != user_id:
            attribute, subject = self.subjects[provider], user_id.partition("~")[2]
            raise Immutable(
                f"{attribute} identifies the user on this server and must remain {subject!r} while the user is "
                "active. To change it, deactivate or delete this user and create another one."
            )


_Row = TypeVar("_Row", covariant=True)


class Page(Protocol[_Row]):
    """A query that returns (total number of rows that match the conditions, rows of one page)."""

    async def __call__(
        self, connection: Connection, *, conditions: Mapping[str, Any], offset: int, limit: int
    ) -> tuple[int, Sequence[_Row]]: ...


@dataclass(frozen=True, slots=True)
class Found(Generic[RowType]):
    """The rows of one page, and the total number of rows that match the filter.

    `start` is the 1-based index of the first row of the page.
    """

    total: int
    start: int
    rows: Sequence[RowType]


async def found(
    permit: Permit[ListScimUsers | ListScimGroups], database: Database, known: frozenset[str], page: Page[RowType]
) -> Found[RowType]:
    """Return the requested page. `known` lists the attributes that the filter may use. Raises InvalidFilter."""
    operation = permit.operation
    conditions = _conditions(filters.parse(operation.filter, known))
    start = max(operation.start, 1)
    if conditions is None:
        return Found(0, start, ())
    limit = MAX_RESULTS if operation.count is None else max(0, min(operation.count, MAX_RESULTS))
    async with database.read() as connection:
        total, rows = await page(connection, conditions=conditions, offset=start - 1, limit=limit)
    return Found(total, start, rows)


def _conditions(found: Sequence[filters.Condition]) -> dict[str, Any] | None:
    """Return {attribute: value} of the conditions, with ids as UUIDs. Return None if no row can match.

    Raises InvalidFilter for two conditions on one attribute.
    """
    conditions: dict[str, Any] = {}
    for each in found:
        if each.attribute in conditions:
            raise InvalidFilter(
                f"The filter has two conditions on {each.attribute}; at most one per attribute is allowed."
            )
        conditions[each.attribute] = each.value
    for attribute in ("id", "members"):
        if attribute in conditions:
            try:
                conditions[attribute] = UUID(str(conditions[attribute]))
            except ValueError:
                return None
    return conditions


def meta_of(kind: str, row: ScimUserRow | GroupRow) -> Meta:
    """Return the `meta` attribute of a user or group: location, times and version."""
    return Meta(
        resource_type=kind,
        location=f"/scim/v2/{kind}s/{row.id}",
        created=row.created_at,
        last_modified=row.updated_at,
        version=_etag(row.version),
    )


def _etag(version: int) -> str:
    return f'W/"{version}"'


def require_version(version: int, if_match: str | None) -> None:
    """Raise VersionChanged unless `If-Match` is absent, is `*`, or lists this version."""
    if if_match is None or if_match.strip() == "*":
        return
    if _etag(version) not in [each.strip() for each in if_match.split(",")]:
        raise VersionChanged(
            "The resource was changed and no longer has the version in If-Match. Read the resource again, then "
            "repeat the change."
        )


async def finish_deletion(
    permit: Permit[DeleteScimUser | DeleteScimGroup],
    database: Database,
    delivery: TupleDelivery,
    left: Callable[[Connection, SubjectT], Awaitable[Sequence[Pending]]],
    subject: SubjectT,
) -> None:
    """Deliver the pending revocations of an earlier deletion of `subject`, before the repeated deletion returns 404.

    `left` returns these revocations for `subject`. The 404 thus means that OpenFGA has the deletion as well. Raises
    RevocationPending.
    """
    async with database.read() as connection:
        pending = await left(connection, subject)
    with pending_during_outage(GONE):
        await delivery.deliver(pending)
