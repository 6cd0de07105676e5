# SPDX-License-Identifier: Apache-2.0
"""Answering what somebody may do, by the same door that would decide it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from gateway.access.actor import Actor, ActorKind
from gateway.access.door import Door
from gateway.access.operations.checks import CheckPermission
from gateway.access.permit import Permit
from gateway.access.principal_ids import require_fitting
from gateway.access.refs import (
    NamespaceIdRef,
    NamespaceRef,
    ProjectRef,
    Ref,
    ServerRef,
    TableIdRef,
    TableRef,
    ViewIdRef,
    ViewRef,
    WarehouseRef,
)
from gateway.access.relations import Can
from gateway.access.tuples import Principal, PrincipalType
from gateway.access.wire import CheckAnswer, CheckRequest
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.identifiers import Namespace, TableIdentifier


class Checks:
    """`POST /permissions/check`."""

    def __init__(self, *, door: Door) -> None:
        self._door = door

    async def check(self, permit: Permit[CheckPermission]) -> CheckAnswer:
        """Whether the relation holds. What does not exist, or the caller may not see, is simply not allowed."""
        operation = permit.operation
        if operation.principal is None:
            return CheckAnswer(allowed=permit.holds(operation.relation, operation.on))
        row = permit.resolution.get(operation.on)
        if row is None:
            return CheckAnswer(allowed=False)
        answers = await self._door.related(permit, _as_actor(operation.principal), operation.relation, [row.key])
        return CheckAnswer(allowed=answers[0])


def parse_check(request: CheckRequest, *, default_project_id: str | None) -> CheckPermission:
    """The operation behind a request body. Raises 400 naming what is wrong in it."""
    if len(request.operation) != 1:
        raise BadRequestException(f"`operation` names exactly one of {', '.join(_REFS)}.")
    ((kind, fields),) = request.operation.items()
    if kind not in _REFS:
        raise BadRequestException(f"`operation` cannot be about {kind!r}: possible are {', '.join(_REFS)}")
    fields = dict(fields)
    relation = _relation(fields.pop("action", None))
    try:
        ref = _REFS[kind](fields, default_project_id)
    except (KeyError, ValueError, TypeError):
        raise BadRequestException(f"`operation.{kind}` does not name one {kind} by its ids or names.") from None
    if fields:
        raise BadRequestException(f"`operation.{kind}` has unknown fields: {', '.join(sorted(fields))}")
    return CheckPermission(on=ref, relation=relation, principal=_principal(request))


def _principal(request: CheckRequest) -> Principal | None:
    identity = request.identity
    if identity is None:
        return None
    if (identity.user is None) == (identity.role is None):
        raise BadRequestException("`identity` names exactly one of user and role.")
    if identity.role is not None:
        return Principal(PrincipalType.ROLE, str(identity.role))
    return Principal(PrincipalType.USER, require_fitting(identity.user or ""))


def _relation(action: object) -> Can:
    if isinstance(action, dict):
        action = action.get("action")
    if isinstance(action, str):
        for name in (action, f"can_{action}"):
            if name in set(Can):
                return Can(name)
    raise BadRequestException(f"`action` {action!r} is not an action this server decides.")


def _server(fields: dict[str, Any], default: str | None) -> Ref:
    return ServerRef()


def _project(fields: dict[str, Any], default: str | None) -> Ref:
    id = fields.pop("project-id", None) or default
    return ProjectRef(_text(id))


def _warehouse(fields: dict[str, Any], default: str | None) -> Ref:
    return WarehouseRef(UUID(fields.pop("warehouse-id")))


def _namespace(fields: dict[str, Any], default: str | None) -> Ref:
    warehouse = fields.pop("warehouse-id", None)
    if "namespace-id" in fields:
        return NamespaceIdRef(UUID(fields.pop("namespace-id")))
    return NamespaceRef(UUID(warehouse), _levels(fields.pop("namespace")))


def _table(fields: dict[str, Any], default: str | None) -> Ref:
    warehouse = UUID(fields.pop("warehouse-id"))
    if "table-id" in fields:
        return TableIdRef(warehouse, UUID(fields.pop("table-id")))
    return TableRef(warehouse, TableIdentifier(_levels(fields.pop("namespace")), _text(fields.pop("table"))))


def _view(fields: dict[str, Any], default: str | None) -> Ref:
    warehouse = UUID(fields.pop("warehouse-id"))
    if "view-id" in fields:
        return ViewIdRef(warehouse, UUID(fields.pop("view-id")))
    return ViewRef(warehouse, TableIdentifier(_levels(fields.pop("namespace")), _text(fields.pop("view"))))


def _levels(value: object) -> Namespace:
    if not isinstance(value, list):
        raise TypeError("a namespace is a list of names")
    return Namespace(tuple(_text(level) for level in value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a name is text")
    return value


_REFS = {
    "server": _server,
    "project": _project,
    "warehouse": _warehouse,
    "namespace": _namespace,
    "table": _table,
    "view": _view,
}


def _as_actor(principal: Principal) -> Actor:
    if principal.type is PrincipalType.ROLE:
        return Actor(kind=ActorKind.ROLE, id="", assumed_role=UUID(principal.id))
    return Actor.user(principal.id)
