# SPDX-License-Identifier: Apache-2.0
"""Error responses of refusals.

An absent object and one that the caller cannot see get the same response. A visible object gets a response that names
the missing right.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.dependency_errors import AuditShareFull, AuditUnavailable
from gateway.access.nouns import refs
from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.relations import Can
from gateway.iceberg.errors import (
    CatalogError,
    ForbiddenException,
    ServiceUnavailableException,
    TooManyRequests,
)

#: Maximum number of roles that the groups of a token give in one check: OpenFGA's limit of contextual tuples.
MAX_GROUP_ROLES = 100


class NotAuthenticated(CatalogError, code=401, type="MissingAuthorizationHeader"):
    """The operation needs a verified token and the request has none."""


class DecisionUnavailable(ServiceUnavailableException, type="AuthorizationBackendError"):
    """A decision engine or the audit is down; nothing was read or changed."""


class DecisionUnavailableBeforeChange(TooManyRequests, type="AuthorizationBackendError"):
    """The same as DecisionUnavailable, for catalog mutations.

    Clients interpret a 5xx response to them as "state unknown", and 429 as "retry".
    """


_MAINTENANCE_SECONDS = 30


class ShareExceeded(TooManyRequests, type="ShareExceeded"):
    """The caller uses its whole share of a worker process (`shares.py`). Nothing was done."""


class Overloaded(TooManyRequests, type="Overloaded"):
    """All principals together sent more requests than a worker process can answer in time. Nothing was done."""


class InMaintenance(ServiceUnavailableException, type="MaintenanceMode"):
    """Read-only maintenance refuses changes."""


class InMaintenanceBeforeChange(TooManyRequests, type="MaintenanceMode"):
    """The same as InMaintenance, for catalog mutations. For the status see DecisionUnavailableBeforeChange."""


class NotKeptInMaintenance(CatalogError, code=400, type="MaintenanceMode"):
    """The same as InMaintenance, for a request that clients must not retry."""


class WarehouseNotActive(CatalogError, code=404):
    """The warehouse is deactivated. Returned only to callers that may see the object."""


class TaskNotFound(CatalogError, code=404):
    """The task does not exist, or the caller may not see it."""


class DenialNotFound(CatalogError, code=404):
    """The denial does not exist, or the caller may not see it."""


class TicketNotFound(CatalogError, code=404):
    """The ticket does not exist, or the caller may not see it."""


class AccessRequestNotFound(CatalogError, code=404):
    """The access request does not exist, or the caller may not see it."""


class BreakGlassNotFound(CatalogError, code=404):
    """The activation does not exist, or the caller may not see it."""


class InvalidAssumeRoleId(CatalogError, code=400):
    """The role to act as does not exist, or the caller may not see it."""


class AssumeRoleForbidden(ForbiddenException):
    """The caller is not a member of the role, or the request is about another project."""


class ProjectTokenForbidden(ForbiddenException):
    """The caller's token is valid in one project only, and the operation is outside of all projects."""


class DelegationForbidden(ForbiddenException):
    """An engine acts for the caller, and engines cannot request this operation for users."""


class TooManyGroups(ForbiddenException):
    """The groups in the caller's token map to more roles here than one check can contain."""


class UserDeactivated(ForbiddenException):
    """The provider's directory (SCIM) deactivated the caller or the engine that acts for it."""


def not_found(ref: refs.Ref) -> CatalogError:
    """Return the common response for absent objects and for those that the caller may not see.

    It depends on the request alone, so it does not show which of the two is the case.
    """
    return CARDS[ref.type].absent(ref.full_name or ref.requested().warehouse_id or "")


def task_not_found(id: UUID) -> TaskNotFound:
    """Return the response for a task that does not exist, or that the caller may not see."""
    return TaskNotFound(f"Task does not exist: {id}")


def denial_not_found(id: UUID) -> DenialNotFound:
    """Return the response for a denial that does not exist, or that the caller may not see."""
    return DenialNotFound(f"Denial does not exist: {id}. Records of denials are written within a second.")


def ticket_not_found(id: UUID) -> TicketNotFound:
    """Return the response for a ticket that does not exist, or that the caller may not see."""
    return TicketNotFound(f"Ticket does not exist: {id}")


def access_request_not_found(id: UUID) -> AccessRequestNotFound:
    """Return the response for an access request that does not exist, or that the caller may not see."""
    return AccessRequestNotFound(f"Access request does not exist: {id}")


def break_glass_not_found(id: UUID) -> BreakGlassNotFound:
    """Return the response for an activation that does not exist, or that the caller may not see."""
    return BreakGlassNotFound(f"Break-glass activation does not exist: {id}")


def forbidden(
    actor: Actor, operation: str, ref: refs.Ref | None, reasons: tuple[str, ...], *, missing: Can | None = None
) -> ForbiddenException:
    """Return the response for a forbidden action on a visible object, with the policies' reasons.

    `missing` is the relation that no grant gives. The caller can also read it from its own permissions.
    """
    type = ref.type if ref is not None else refs.ObjectType.SERVER
    card = CARDS[type]
    # The text names no grants and no other principals, because the caller may not be allowed to read them.
    needed = "" if missing is None else f": it needs `{missing.value}` on the {type.value.replace('_', ' ')}"
    granted = f"{needed}. If a privilege is missing, {card.granted_by} can grant it."
    reason = f": {'; '.join(reasons)}" if reasons else granted
    return card.forbidden(f"{operation} is not allowed for {_principal_text(actor)}{reason}")


def expiring_right(actor: Actor, operation: str, ref: refs.Ref, relation: Can, ends: datetime) -> ForbiddenException:
    """Return the 403 for a change that would last longer than the right by which the caller makes it.

    `ends` is the time at which the caller loses `relation`.
    """
    reason = (
        f"the change has no expiry, but the right {relation} expires at {ends.isoformat()}. Every grant "
        "and role membership behind that right must have no expiry. A principal that may grant them can remove the "
        "expiry, or make the change"
    )
    return forbidden(actor, operation, ref, (reason,))


def restricted(actor: Actor, operation: str) -> ForbiddenException:
    """Return the response to a caller that may read only a part of a table, and for which no enforcer acts.

    It names the remedy, but neither columns nor grantors, and neither policies nor their content.
    """
    return ForbiddenException(
        f"{operation} is not allowed for {_principal_text(actor)}: not all of this table may be read. Query the "
        "table through an engine that has `enforcer` on it, passed its last probe and exchanges your own token: an "
        "engine that only states who you are proves nothing. Otherwise request `select` on the table from a principal "
        "with `manage_grants` on it. If you have that already, a data policy restricts the table: its owner can grant "
        "`exempt`."
    )


def unenforceable(actor: Actor, operation: str, reasons: Sequence[str]) -> ForbiddenException:
    """Return the response to a request with an obligation that nothing enforces. `reasons` name the obligation."""
    return ForbiddenException(
        f"{operation} is not allowed for {_principal_text(actor)}: {'; '.join(reasons)}. Ask the administrator of the "
        "policies for an exemption, or use a copy of the data without the restriction."
    )


def _principal_text(actor: Actor) -> str:
    """Return the name of the principal that lacks a right.

    Below a view with an owner the caller does not learn the owner's name; the audit records it.
    """
    return actor.id if actor.asked_by is None else "the owner of the view through which it is read"


def too_many_groups() -> TooManyGroups:
    """Return the response to a token whose groups map to too many roles."""
    return TooManyGroups(
        f"More than {MAX_GROUP_ROLES} groups of the token are mapped to roles of this server. Configure the identity "
        "provider to send fewer groups, or add the user to the roles directly."
    )


def user_deactivated() -> UserDeactivated:
    """Return the response to every request of a deactivated user."""
    return UserDeactivated(
        "The directory that provisions this server (SCIM) deactivated this user. An administrator of the directory "
        "can activate the user again."
    )


def unavailable(catalog_mutation: bool) -> CatalogError:
    """Return the response for a decision that cannot be made: 503, or 429 for catalog mutations.

    Clients would interpret 503 as "state unknown" there.
    """
    message = "The authorization of this request cannot be decided now. Nothing was changed. Try again later."
    if catalog_mutation:
        return DecisionUnavailableBeforeChange(message)
    return DecisionUnavailable(message)


def audit_unavailable(failed: AuditUnavailable, catalog_mutation: bool) -> CatalogError:
    """Return the response for a record that the audit rejects. It is 429 if the caller's own records fill its share."""
    if isinstance(failed, AuditShareFull):
        return ShareExceeded(
            "Too many audit records of your requests wait to be written. Nothing was done. Retry after 1 s. The "
            "operator can raise LAKEGATE__AUDIT__PRINCIPAL_SHARE."
        )
    return unavailable(catalog_mutation)


def not_kept_in_maintenance(reason: str) -> CatalogError:
    """Return the 400 response of read-only maintenance to a request that must not be retried."""
    return NotKeptInMaintenance(f"This catalog is in read-only maintenance: {reason}.")


def in_maintenance(catalog_mutation: bool) -> CatalogError:
    """Return the response of read-only maintenance: 503, or 429 for catalog mutations.

    Clients would interpret 503 as "state unknown" there.
    """
    message = (
        "The catalog is in read-only maintenance. Nothing was changed. Requests that only read still work; try "
        "again later."
    )
    kind = InMaintenanceBeforeChange if catalog_mutation else InMaintenance
    return kind(message, retry_after_s=_MAINTENANCE_SECONDS)
