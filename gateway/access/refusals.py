# SPDX-License-Identifier: Apache-2.0
"""What a refusal looks like to the caller: absent and invisible are one answer, visible and refused another."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never
from uuid import UUID

from gateway.access import refs
from gateway.access.actor import Actor
from gateway.access.outage import AuditShareFull, AuditUnavailable
from gateway.access.relations import Can
from gateway.iceberg.errors import (
    CatalogError,
    ForbiddenException,
    GenericTableActionForbidden,
    NamespaceActionForbidden,
    NoSuchGenericTableException,
    NoSuchNamespaceException,
    NoSuchTableException,
    NoSuchViewException,
    NoSuchWarehouseException,
    ServiceUnavailableException,
    TableActionForbidden,
    TooManyRequests,
    ViewActionForbidden,
    WarehouseActionForbidden,
)

#: Roles by groups of a token that can count for one question: OpenFGA's limit of contextual tuples.
MAX_GROUP_ROLES = 100


class NotAuthenticated(CatalogError, code=401, type="MissingAuthorizationHeader"):
    """The operation needs a verified token and the request has none."""


class DecisionUnavailable(ServiceUnavailableException, type="AuthorizationBackendError"):
    """A decision engine or the audit is down; nothing was read or changed."""


class DecisionUnavailableBeforeChange(TooManyRequests, type="AuthorizationBackendError"):
    """As DecisionUnavailable, for catalog mutations: clients read 5xx there as "state unknown", 429 as "try again"."""


_MAINTENANCE_SECONDS = 30


class ShareExceeded(TooManyRequests, type="ShareExceeded"):
    """The caller uses its whole share of a worker process (`shares.py`); nothing was done."""


class InMaintenance(ServiceUnavailableException, type="MaintenanceMode"):
    """Read-only maintenance: nothing is changed for a while."""


class InMaintenanceBeforeChange(TooManyRequests, type="MaintenanceMode"):
    """As InMaintenance, for catalog mutations (as DecisionUnavailableBeforeChange)."""


class NotKeptInMaintenance(CatalogError, code=400, type="MaintenanceMode"):
    """As InMaintenance, for what no client shall wait for or send again."""


class ProjectNotFound(CatalogError, code=404):
    """No such project, or none the caller may see."""


class WarehouseNotActive(CatalogError, code=404):
    """The warehouse is deactivated; told to who sees what was asked for."""


class UserNotFound(CatalogError, code=404):
    """No such user, or none the caller may see."""


class RoleNotFound(CatalogError, code=404, type="RoleIdNotFound"):
    """No such role, or none the caller may see."""


class TaskNotFound(CatalogError, code=404):
    """No such task, or none the caller may see."""


class InvalidAssumeRoleId(CatalogError, code=400):
    """The role to act as is none, or none the caller may see."""


class AssumeRoleForbidden(ForbiddenException):
    """The caller is not in the role to act as, or asks for something in another project."""


class ProjectTokenForbidden(ForbiddenException):
    """The caller's token is valid for one project, and what was asked for is about none."""


class DelegationForbidden(ForbiddenException):
    """An engine acts for the caller, and what was asked for is only for callers themselves."""


class TooManyGroups(ForbiddenException):
    """More groups in the caller's token stand for roles here than one question has room for."""


class UserDeactivated(ForbiddenException):
    """The caller, or the engine that acts for them, was deactivated where the company keeps its people."""


class ServerActionForbidden(ForbiddenException):
    """Refused on the server."""


class ProjectActionForbidden(ForbiddenException):
    """Refused on a project."""


class UserActionForbidden(ForbiddenException):
    """Refused on a user."""


class RoleActionForbidden(ForbiddenException):
    """Refused on a role."""


_FORBIDDEN: dict[refs.ObjectType, type[ForbiddenException]] = {
    refs.ObjectType.SERVER: ServerActionForbidden,
    refs.ObjectType.PROJECT: ProjectActionForbidden,
    refs.ObjectType.WAREHOUSE: WarehouseActionForbidden,
    refs.ObjectType.NAMESPACE: NamespaceActionForbidden,
    refs.ObjectType.TABLE: TableActionForbidden,
    refs.ObjectType.VIEW: ViewActionForbidden,
    refs.ObjectType.GENERIC_TABLE: GenericTableActionForbidden,
    refs.ObjectType.USER: UserActionForbidden,
    refs.ObjectType.ROLE: RoleActionForbidden,
}


def not_found(ref: refs.Ref) -> CatalogError:
    """The one answer for what does not exist and for what the caller may not see.

    It is made from what the caller wrote alone, so it cannot tell the two apart.
    """
    match ref:
        case refs.TableRef() | refs.TableIdRef() | refs.KeptTableRef():
            named = ref.identifier.dotted if isinstance(ref, refs.TableRef) else ref.table_id
            return NoSuchTableException(f"Table does not exist: {named}")
        case refs.ViewRef() | refs.ViewIdRef() | refs.KeptViewRef():
            named = ref.identifier.dotted if isinstance(ref, refs.ViewRef) else ref.view_id
            return NoSuchViewException(f"View does not exist: {named}")
        case refs.GenericTableRef() | refs.GenericTableIdRef() | refs.KeptGenericTableRef():
            named = ref.identifier.dotted if isinstance(ref, refs.GenericTableRef) else ref.generic_table_id
            return NoSuchGenericTableException(f"Generic table does not exist: {named}")
        case refs.NamespaceRef(namespace=namespace):
            return NoSuchNamespaceException(f"Namespace does not exist: {namespace.dotted}")
        case refs.NamespaceIdRef(namespace_id=namespace_id):
            return NoSuchNamespaceException(f"Namespace does not exist: {namespace_id}")
        case refs.WarehouseRef(warehouse_id=warehouse_id):
            return NoSuchWarehouseException(f"Warehouse does not exist: {warehouse_id}")
        case refs.WarehouseNameRef(name=name):
            return NoSuchWarehouseException(f"Warehouse does not exist: {name}")
        case refs.ProjectRef(project_id=project_id):
            return ProjectNotFound(f"Project does not exist: {project_id}")
        case refs.UserRef(user_id=user_id):
            return UserNotFound(f"User does not exist: {user_id}")
        case refs.RoleRef(role_id=role_id):
            return RoleNotFound(f"Role does not exist: {role_id}")
        case refs.ServerRef():
            return ServerActionForbidden("the server has not been bootstrapped, or the token is for one project only")
        case _:
            assert_never(ref)


def no_task(id: UUID) -> TaskNotFound:
    """The answer for a task that there is not, and for one that the caller may not see."""
    return TaskNotFound(f"Task does not exist: {id}")


def forbidden(actor: Actor, operation: str, ref: refs.Ref | None, reasons: tuple[str, ...]) -> ForbiddenException:
    """The answer for what the caller sees and may not do, with the policies' reasons when they refused it."""
    kind = _FORBIDDEN[ref.type] if ref is not None else ServerActionForbidden
    why = f": {'; '.join(reasons)}" if reasons else ""
    return kind(f"{operation} is not allowed for {_who(actor)}{why}")


def right_ends(actor: Actor, operation: str, ref: refs.Ref, relation: Can, ends: datetime) -> ForbiddenException:
    """Return the 403 for a change that outlives the right it rests on; `ends` is when the caller loses `relation`."""
    reason = (
        f"it changes rights for good, and {relation} ends at {ends.isoformat()}. It takes a grant, and a membership of "
        "roles, without an end; principals with manage_grants can give one, or do it themselves"
    )
    return forbidden(actor, operation, ref, (reason,))


def restricted(actor: Actor, operation: str) -> ForbiddenException:
    """The answer to who may read some columns of a table and comes without an engine that holds back the others. It
    tells the way out, and of the policy nothing: not which columns, and not who granted them.
    """
    return ForbiddenException(
        f"{operation} is not allowed for {_who(actor)}: not all of this table may be read. Query it through an engine "
        "that acts for you and is related to the warehouse as `enforcer`, or ask for `select` on the table."
    )


def _who(actor: Actor) -> str:
    """Who lacks something, as callers are told. Below a view with an owner they are not told who that is: further in
    they need not be allowed to know. The audit names them.
    """
    return actor.id if actor.asked_by is None else "the owner of the view that it is read through"


def too_many_groups() -> TooManyGroups:
    """The answer to a token with too many groups that stand for roles where something is asked for."""
    return TooManyGroups(
        f"More than {MAX_GROUP_ROLES} groups in the token stand for roles here. Have the provider send fewer groups, "
        "or put the user into the roles."
    )


def user_deactivated() -> UserDeactivated:
    """The answer to whoever was deactivated, whatever they ask for."""
    return UserDeactivated(
        "This user was deactivated by the company's directory (SCIM). Who keeps it there can activate the user again."
    )


def unavailable(catalog_mutation: bool) -> CatalogError:
    """The answer when nobody can decide: 503, or 429 where clients would take 503 for "state unknown"."""
    message = "The authorization of this request cannot be decided right now. Nothing was changed; try again later."
    if catalog_mutation:
        return DecisionUnavailableBeforeChange(message)
    return DecisionUnavailable(message)


def audit_unavailable(failed: AuditUnavailable, catalog_mutation: bool) -> CatalogError:
    """Return the answer for a record that the audit does not take: 429 if the caller alone filled its share."""
    if isinstance(failed, AuditShareFull):
        return ShareExceeded(
            "Your share of audit records that wait to be written is in use. Nothing was done. Retry after 1 s; the "
            "operator can raise LAKEGATE__AUDIT__PRINCIPAL_SHARE."
        )
    return unavailable(catalog_mutation)


def not_kept_in_maintenance(why: str) -> CatalogError:
    """The answer of read-only maintenance to what is worth nothing later; no client tries a 400 again."""
    return NotKeptInMaintenance(f"This catalog is in read-only maintenance: {why}.")


def in_maintenance(catalog_mutation: bool) -> CatalogError:
    """The answer of read-only maintenance: 503, or 429 where clients would take 503 for "state unknown"."""
    message = "The catalog is in read-only maintenance. Nothing was changed; reading goes on, try again later."
    kind = InMaintenanceBeforeChange if catalog_mutation else InMaintenance
    return kind(message, retry_after_s=_MAINTENANCE_SECONDS)
