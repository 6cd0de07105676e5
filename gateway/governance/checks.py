# SPDX-License-Identifier: Apache-2.0
"""Answering what somebody may do, by the same door that would decide it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.demand import Fact, Facts
from gateway.access.door import Door
from gateway.access.operations.checks import BatchCheck, Check, CheckPermission, hub_of
from gateway.access.passages import runs_as
from gateway.access.permit import Permit
from gateway.access.refs import (
    GenericTableIdRef,
    GenericTableRef,
    NamespaceIdRef,
    NamespaceRef,
    ObjectType,
    ProjectRef,
    Ref,
    RoleRef,
    ServerRef,
    TableIdRef,
    TableRef,
    ViewIdRef,
    ViewRef,
    WarehouseRef,
)
from gateway.access.refusals import not_found
from gateway.access.relations import VISIBLE_BY, Can
from gateway.access.resolved import Excerpt, Resolution, ResolvedTable, ResolvedView
from gateway.access.suppositions import Supposition
from gateway.access.wire_rights import (
    MAX_CHECKS,
    BatchCheckAnswer,
    BatchCheckRequest,
    CheckAnswer,
    CheckRequest,
    CheckResult,
    Identity,
)
from gateway.governance.errors import CannotInspectPermissions, TooManyChecks
from gateway.governance.hidden_checks import asked_first, hidden
from gateway.governance.principals import actor_of, principal_of, unless_own
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.obligations.columns import Inexpressible, columns_of

#: Principals in one batch. Each costs a look-up of their roles and a call to each engine, so this bounds the cost of a
#: request; the checks themselves are bounded by MAX_CHECKS.
MAX_PRINCIPALS = 100


class Checks:
    """`POST /permissions/check` and `POST /action/batch-check`."""

    def __init__(self, *, door: Door) -> None:
        self._door = door

    async def check(self, permit: Permit[CheckPermission]) -> CheckAnswer:
        """Whether both engines would say yes. What does not exist is simply not allowed."""
        check = permit.operation.check
        (allowed,) = await self._door.inquiries.would(permit, [_supposed(check, permit.actor, permit.resolution)])
        allowed = allowed and check.on not in await self._ownerless(permit, [check])
        if not allowed and check.relation is Can.READ_COLUMNS:
            (fields,) = await self._door.inquiries.readable_columns(permit, [(_about(check, permit.actor), check.on)])
            row = permit.resolution.get(check.on)
            ids = [row.id] if fields and isinstance(row, ResolvedTable) else []
            async for _, excerpt in self._door.inquiries.excerpts(ids):
                allowed = bool(_names(excerpt, fields))
        return CheckAnswer(allowed=allowed)

    async def batch(self, permit: Permit[BatchCheck]) -> BatchCheckAnswer:
        """One answer per check, in order.

        About somebody else only on objects whose assignments the caller may read, else CannotInspectPermissions. An
        object the caller does not see is as one that does not exist: not allowed, or with `error-on-not-found` the
        refusal of an absent one; who asks learns nothing from it.

        An inspector (and so a delegate) is told about anybody, seeing the object or not. Where the caller is none,
        nothing is allowed; CannotInspectPermissions when that is so everywhere, because then it was set up wrongly.
        """
        operation = permit.operation
        if operation.delegated and not _inspects_somewhere(permit):
            raise CannotInspectPermissions(
                "Delegated checks are answered to who holds `inspector` or `delegate` where they lie."
            )
        told = [self._may_be_told(permit, check) for check in operation.checks]
        seen_whole = await self._seen_whole(permit, told)
        supposed = [_supposed(check, permit.actor, permit.resolution) for check in operation.checks]
        left = [index for index, tell in enumerate(told) if tell and index not in seen_whole]
        unseen = await self._unseen(permit, supposed, left)
        left = [index for index in left if index not in unseen]
        asked = [supposed[index] for index in left]
        answers = dict(zip(left, await self._door.inquiries.would(permit, asked), strict=True))
        columns = await self._columns(permit, [index for index in left if not answers[index]])
        allowed = [
            index in seen_whole or answers.get(index, False) or index in columns
            for index in range(len(operation.checks))
        ]
        ownerless = await self._ownerless(permit, list(compress(operation.checks, allowed)))
        return BatchCheckAnswer(
            results=[
                CheckResult(
                    allowed=allowed[index] and not (check.runs_as_owner and check.on in ownerless),
                    id=check.id,
                    columns=columns.get(index),
                )
                for index, check in enumerate(operation.checks)
            ]
        )

    async def _columns(self, permit: Permit[BatchCheck], refused: Sequence[int]) -> dict[int, list[str]]:
        """Of the checks on reading columns that are not a yes for all: those that are one for some, which by their
        names, in the order of the schema. A table whose columns cannot be told, or are none of these, is not among
        them.
        """
        checks = permit.operation.checks
        asked = [index for index in refused if checks[index].relation is Can.READ_COLUMNS]
        if not asked:
            return {}
        about = [(_about(checks[index], permit.actor), checks[index].on) for index in asked]
        readable = dict(zip(asked, await self._door.inquiries.readable_columns(permit, about), strict=True))
        by_table: dict[UUID, list[int]] = {}
        for index, fields in readable.items():
            if fields and isinstance(row := permit.resolution.get(checks[index].on), ResolvedTable):
                by_table.setdefault(row.id, []).append(index)
        found: dict[int, list[str]] = {}
        async for id, excerpt in self._door.inquiries.excerpts(list(by_table)):
            named = {index: _names(excerpt, readable[index]) for index in by_table[id]}
            found |= {index: names for index, names in named.items() if names}
        return found

    async def _unseen(
        self, permit: Permit[BatchCheck], supposed: Sequence[Supposition], left: Sequence[int]
    ) -> frozenset[int]:
        """Of the checks about the caller, those on objects that the caller does not see (`hidden_checks`)."""
        checks = permit.operation.checks
        own = {at: (supposed[at].relation, supposed[at].on) for at in left if checks[at].principal is None}
        first = asked_first(own)
        answers = await self._door.inquiries.holds(permit, first) if first else []
        return hidden(own, first, answers)

    async def _ownerless(
        self, permit: Permit[CheckPermission] | Permit[BatchCheck], allowed: Sequence[Check]
    ) -> set[Ref]:
        """Return the views of the allowed checks that need an owner and have none. Their properties are read here."""
        asked = {check.on for check in allowed if check.runs_as_owner}
        ids = {ref: row.id for ref in asked if isinstance(row := permit.resolution.get(ref), ResolvedView)}
        owned = {id async for id, excerpt in self._door.inquiries.excerpts(list(ids.values())) if runs_as(excerpt)}
        return {ref for ref in asked if ids.get(ref) not in owned}

    async def _seen_whole(self, permit: Permit[BatchCheck], told: Sequence[bool]) -> frozenset[int]:
        """The checks of long lists that need not be asked, because whoever they are about sees everything in that
        namespace: as a list does it (section 5 of the design, "Lists"), which asks policies about the list and not
        about its rows.
        """
        whole: list[list[int]] = []
        asked = []
        for (principal, namespace), indexes in permit.operation.lists().items():
            some = [index for index in indexes if told[index]]
            if some:
                whole.append([index for index in some if _there(permit, permit.operation.checks[index])])
                about = permit.actor if principal is None else actor_of(principal)
                asked.append(Supposition(about, Can.LIST_EVERYTHING, namespace))
        answers = await self._door.inquiries.would(permit, asked) if asked else []
        return frozenset(index for there, yes in zip(whole, answers, strict=True) if yes for index in there)

    @staticmethod
    def _may_be_told(permit: Permit[BatchCheck], check: Check) -> bool:
        """Whether the check has an answer. Raises CannotInspectPermissions and the 404 of `error-on-not-found`."""
        if permit.operation.delegated and check.principal is not None:
            hub = hub_of(check.on)
            return hub is not None and permit.holds(Can.INSPECT, hub)
        strict = permit.operation.error_on_not_found
        if check.principal is None and not strict:
            # What is not there is asked about as what is: the time of an answer tells of neither.
            return True
        there = _there(permit, check)
        if there and check.principal is not None and permit.holds(Can.READ_ASSIGNMENTS, check.on):
            return True
        visible_by = VISIBLE_BY.get(check.on.type)
        asked_to_see = check.principal is not None or strict
        seen = there and (not asked_to_see or visible_by is None or permit.holds(visible_by, check.on))
        if not seen and strict:
            raise not_found(check.on)
        if seen and check.principal is not None:
            raise CannotInspectPermissions(
                f"Rights of {check.principal.id} on this {check.on.type} are told to who may read its assignments."
            )
        return seen


def _supposed(check: Check, caller: Actor, resolution: Resolution) -> Supposition:
    """About what there is of the things the check may mean; about the first when there is none of them. Who reads all
    of a table reads every column, so that is asked first.
    """
    on = next((each for each in check.may_mean if resolution.get(each) is not None), check.on)
    relation = Can.READ_DATA if check.relation is Can.READ_COLUMNS else check.relation
    return Supposition(_about(check, caller), relation, on, check.facts)


def _about(check: Check, caller: Actor) -> Actor:
    return caller if check.principal is None else actor_of(check.principal)


def _names(excerpt: Excerpt, fields: frozenset[int]) -> list[str]:
    """The names of these columns in the current schema of the table, but for those that once were another's."""
    try:
        return columns_of(excerpt.text).readable_by_name(fields)
    except Inexpressible:
        return []


def _there(permit: Permit[BatchCheck], check: Check) -> bool:
    return any(permit.resolution.get(each) is not None for each in check.may_mean)


def _inspects_somewhere(permit: Permit[BatchCheck]) -> bool:
    """Whether the caller may be told of anybody; also when nobody else is asked about."""
    hubs = {hub_of(check.on) for check in permit.operation.checks if check.principal is not None}
    return not hubs or any(hub is not None and permit.holds(Can.INSPECT, hub) for hub in hubs)


def parse_check(request: CheckRequest, *, caller: Actor, default_project_id: str | None) -> CheckPermission:
    """The operation behind a request body. Raises 400 naming what is wrong in it."""
    check = _check(request.operation, request.identity, None, caller, default_project_id)
    if check.or_on is not None:
        raise BadRequestException("`tabular` is asked in a batch.")
    return CheckPermission(check)


def parse_batch(request: BatchCheckRequest, *, caller: Actor, default_project_id: str | None) -> BatchCheck:
    """The operation behind a batch. Raises 400 naming what is wrong in it, and TooManyChecks."""
    if len(request.checks) > MAX_CHECKS:
        raise TooManyChecks(f"{len(request.checks)} checks; one request may hold {MAX_CHECKS}.")
    checks = tuple(
        _check(each.operation, each.identity, each.id, caller, default_project_id) for each in request.checks
    )
    if len({check.principal for check in checks}) > MAX_PRINCIPALS:
        raise TooManyChecks(f"One request may ask about {MAX_PRINCIPALS} principals.")
    return BatchCheck(checks, request.error_on_not_found, request.delegated)


def _check(
    operation: dict[str, dict[str, Any]],
    identity: Identity | None,
    id: str | None,
    caller: Actor,
    default_project_id: str | None,
) -> Check:
    if len(operation) != 1:
        raise BadRequestException(f"`operation` names exactly one of {', '.join(_REFS)}.")
    ((kind, fields),) = operation.items()
    if kind not in _REFS:
        raise BadRequestException(f"`operation` cannot be about {kind!r}: possible are {', '.join(_REFS)}")
    fields = dict(fields)
    relation, facts = _action(fields.pop("action", None))
    runs_as_owner = fields.pop("runs-as-owner", False) if kind == "view" else False
    if not isinstance(runs_as_owner, bool):
        raise BadRequestException("`operation.view.runs-as-owner` is true or false.")
    try:
        other = _view({**fields, "view": fields["name"]}, None) if kind == _TABULAR else None
        ref = _REFS[kind](fields, default_project_id)
    except (KeyError, ValueError, TypeError, AttributeError):
        raise BadRequestException(f"`operation.{kind}` does not name one {kind} by its ids or names.") from None
    if fields:
        raise BadRequestException(f"`operation.{kind}` has unknown fields: {', '.join(sorted(fields))}")
    principal = None if identity is None else unless_own(principal_of(identity), caller)
    named = _named(ref.type, relation, facts)
    return Check(ref, relation, principal, named, id=id, or_on=other, runs_as_owner=runs_as_owner)


def _action(action: object) -> tuple[Can, Facts]:
    """(the relation, what policies are told): `"drop"` or `{"action": "drop", "purge": true}`."""
    context: dict[str, Any] = {}
    if isinstance(action, dict):
        context = {key: value for key, value in action.items() if key != "action"}
        action = action.get("action")
    if isinstance(action, str):
        for name in (action, f"can_{action}"):
            if name in _RELATIONS:
                return Can(name), {key.replace("-", "_"): _fact(key, value) for key, value in context.items()}
    raise BadRequestException(f"`action` {action!r} is not an action this server decides.")


_RELATIONS = frozenset(Can)

#: What operations call the name of what they create; a question names it `name` (`lakekeeper.md` 3.5).
_NAME_FACTS = {
    Can.CREATE_PROJECT: "project_name",
    Can.CREATE_WAREHOUSE: "warehouse_name",
    Can.CREATE_TABLE: "table",
    Can.CREATE_VIEW: "view",
    Can.CREATE_GENERIC_TABLE: "generic_table",
}


def _named(type: ObjectType, relation: Can, facts: Facts) -> Facts:
    """The facts under the names that policies know from the operations themselves."""
    name = _NAME_FACTS.get(relation)
    named = {name if key == "name" and name is not None else key: value for key, value in facts.items()}
    if "properties" in named:
        named["property_names"] = named.pop("properties")
    return named


def _fact(key: str, value: object) -> Fact:
    """A scalar, a list of texts, or of a map its keys: policies are told which properties are touched, not to what."""
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if isinstance(value, (list, dict)) and all(isinstance(each, str) for each in value):
        return tuple(sorted(value) if isinstance(value, dict) else value)
    raise BadRequestException(f"`action.{key}` is a text, a number, true, false, a list of texts or a map.")


def _server(fields: dict[str, Any], default: str | None) -> Ref:
    return ServerRef()


def _project(fields: dict[str, Any], default: str | None) -> Ref:
    return ProjectRef(_text(fields.pop("project-id", None) or default))


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


def _generic_table(fields: dict[str, Any], default: str | None) -> Ref:
    """By id or by name, under the names of tables or its own."""
    warehouse = UUID(fields.pop("warehouse-id"))
    for id in ("generic-table-id", "table-id"):
        if id in fields:
            return GenericTableIdRef(warehouse, UUID(fields.pop(id)))
    namespace = _levels(fields.pop("namespace"))
    name = fields.pop("generic-table") if "generic-table" in fields else fields.pop("table")
    return GenericTableRef(warehouse, TableIdentifier(namespace, _text(name)))


def _levels(value: object) -> Namespace:
    if not isinstance(value, list):
        raise TypeError("a namespace is a list of names")
    return Namespace(tuple(_text(level) for level in value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a name is text")
    return value


def _tabular(fields: dict[str, Any], default: str | None) -> Ref:
    """The table of this name; the view of this name is the other thing that may be meant."""
    if "table-id" in fields:
        raise ValueError("a table or view is asked for by its name")
    fields["table"] = fields.pop("name")
    return _table(fields, default)


def _role(fields: dict[str, Any], default: str | None) -> Ref:
    return RoleRef(UUID(fields.pop("role-id")))


#: A table or a view by its name, whichever there is: an addition of this server, for engines that list names.
_TABULAR = "tabular"

_REFS: dict[str, Callable[[dict[str, Any], str | None], Ref]] = {
    "server": _server,
    "project": _project,
    "warehouse": _warehouse,
    "namespace": _namespace,
    "table": _table,
    "view": _view,
    "generic-table": _generic_table,
    _TABULAR: _tabular,
    "role": _role,
}
