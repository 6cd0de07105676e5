# SPDX-License-Identifier: Apache-2.0
"""What a refusal looks like to the caller: absent and invisible are one answer, visible and refused another."""

from __future__ import annotations

from typing import ClassVar, assert_never

from gateway.access import refs
from gateway.access.actor import Actor
from gateway.iceberg.errors import (
    CatalogError,
    NoSuchNamespaceException,
    NoSuchTableException,
    NoSuchWarehouseException,
)


class NotAuthenticated(CatalogError):
    """The operation needs a verified token and the request has none."""

    type: ClassVar[str] = "MissingAuthorizationHeader"
    code: ClassVar[int] = 401


class DecisionUnavailable(CatalogError):
    """A decision engine or the audit is down; nothing was read or changed."""

    type: ClassVar[str] = "AuthorizationBackendError"
    code: ClassVar[int] = 503


class DecisionUnavailableBeforeChange(CatalogError):
    """As DecisionUnavailable, for catalog mutations: clients read 5xx there as "state unknown", 429 as "try again"."""

    type: ClassVar[str] = "AuthorizationBackendError"
    code: ClassVar[int] = 429


class ProjectNotFound(CatalogError):
    """No such project, or none the caller may see."""

    type: ClassVar[str] = "ProjectNotFound"
    code: ClassVar[int] = 404


class UserNotFound(CatalogError):
    """No such user, or none the caller may see."""

    type: ClassVar[str] = "UserNotFound"
    code: ClassVar[int] = 404


class RoleNotFound(CatalogError):
    """No such role, or none the caller may see."""

    type: ClassVar[str] = "RoleIdNotFound"
    code: ClassVar[int] = 404


class ActionForbidden(CatalogError):
    """The caller sees the object and may not do this to it."""

    type: ClassVar[str] = "ActionForbidden"
    code: ClassVar[int] = 403


class ServerActionForbidden(ActionForbidden):
    """Refused on the server."""

    type: ClassVar[str] = "ServerActionForbidden"


class ProjectActionForbidden(ActionForbidden):
    """Refused on a project."""

    type: ClassVar[str] = "ProjectActionForbidden"


class WarehouseActionForbidden(ActionForbidden):
    """Refused on a warehouse."""

    type: ClassVar[str] = "WarehouseActionForbidden"


class NamespaceActionForbidden(ActionForbidden):
    """Refused on a namespace."""

    type: ClassVar[str] = "NamespaceActionForbidden"


class TableActionForbidden(ActionForbidden):
    """Refused on a table."""

    type: ClassVar[str] = "TableActionForbidden"


class UserActionForbidden(ActionForbidden):
    """Refused on a user."""

    type: ClassVar[str] = "UserActionForbidden"


class RoleActionForbidden(ActionForbidden):
    """Refused on a role."""

    type: ClassVar[str] = "RoleActionForbidden"


_FORBIDDEN: dict[refs.ObjectType, type[ActionForbidden]] = {
    refs.ObjectType.SERVER: ServerActionForbidden,
    refs.ObjectType.PROJECT: ProjectActionForbidden,
    refs.ObjectType.WAREHOUSE: WarehouseActionForbidden,
    refs.ObjectType.NAMESPACE: NamespaceActionForbidden,
    refs.ObjectType.TABLE: TableActionForbidden,
    refs.ObjectType.USER: UserActionForbidden,
    refs.ObjectType.ROLE: RoleActionForbidden,
}


def not_found(ref: refs.Ref) -> CatalogError:
    """The one answer for what does not exist and for what the caller may not see.

    It is made from what the caller wrote alone, so it cannot tell the two apart.
    """
    match ref:
        case refs.TableRef(identifier=identifier):
            return NoSuchTableException(f"Table does not exist: {identifier.dotted}")
        case refs.TableIdRef(table_id=table_id):
            return NoSuchTableException(f"Table does not exist: {table_id}")
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
            return ServerActionForbidden("the server has not been bootstrapped")
        case _:
            assert_never(ref)


def forbidden(actor: Actor, operation: str, ref: refs.Ref | None, reasons: tuple[str, ...]) -> ActionForbidden:
    """The answer for what the caller sees and may not do, with the policies' reasons when they refused it."""
    kind = _FORBIDDEN[ref.type] if ref is not None else ServerActionForbidden
    why = f": {'; '.join(reasons)}" if reasons else ""
    return kind(f"{operation} is not allowed for {actor.id}{why}")


def unavailable(catalog_mutation: bool) -> CatalogError:
    """The answer when nobody can decide: 503, or 429 where clients would take 503 for "state unknown"."""
    message = "The authorization of this request cannot be decided right now. Nothing was changed; try again later."
    return DecisionUnavailableBeforeChange(message) if catalog_mutation else DecisionUnavailable(message)
