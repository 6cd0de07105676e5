# SPDX-License-Identifier: Apache-2.0
"""Parse the bodies of permission checks into operations. An invalid body raises an error with status 400. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.demand import Fact, Facts
from gateway.access.management_errors import TooManyChecks
from gateway.access.nouns.cards import ACTIONS
from gateway.access.nouns.data_policy import DataPolicyRef
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import (
    GenericTable,
    NamespaceIdRef,
    NamespaceRef,
    ObjectType,
    Ref,
    Table,
    TabularRef,
    View,
    WarehouseRef,
)
from gateway.access.nouns.relations import Can
from gateway.access.nouns.role import RoleRef
from gateway.access.nouns.server import ServerRef
from gateway.access.nouns.tag import TagRef
from gateway.access.operations.actions import Identity
from gateway.access.operations.checks import (
    MAX_CHECKS,
    BatchCheck,
    BatchCheckAnswer,
    BatchCheckRequest,
    Check,
    CheckItem,
    CheckPermission,
    CheckRequest,
    CheckResult,
    UnknownAction,
)
from gateway.access.principals import other_principal, principal_of
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.identifiers import Namespace, TableIdentifier

#: Maximum number of principals in one batch. Each principal costs a query of its roles and a call to each engine.
#: MAX_CHECKS limits the number of checks.
MAX_PRINCIPALS = 100


def parse_check(request: CheckRequest, *, caller: Actor, default_project_id: str | None) -> CheckPermission:
    """Return the operation for a request body. Raise 400 if the body is invalid; the message names the invalid part."""
    check = _check(request.operation, request.identity, None, caller, default_project_id)
    if check.or_on is not None:
        raise BadRequestException(
            "A `tabular` check is only possible in a batch: POST /management/v1/action/batch-check."
        )
    return CheckPermission(check)


def parse_batch(
    request: BatchCheckRequest, *, caller: Actor, default_project_id: str | None
) -> tuple[BatchCheck, list[bool]]:
    """Return (the operation for the checks whose action is known, one flag per check of the request: True if its action
    is known).

    Raise 400 if the body is invalid; the message names the invalid part. Raises TooManyChecks.
    """
    if len(request.checks) > MAX_CHECKS:
        raise TooManyChecks(
            f"The request contains {len(request.checks)} checks; at most {MAX_CHECKS} are allowed. Send them in "
            "several requests."
        )
    parsed = [_known_check(each, caller, default_project_id) for each in request.checks]
    checks = tuple(each for each in parsed if each is not None)
    if len({check.principal for check in checks}) > MAX_PRINCIPALS:
        raise TooManyChecks(
            f"The checks of one request may name at most {MAX_PRINCIPALS} different principals. Send them in several "
            "requests."
        )
    operation = BatchCheck(checks, request.error_on_not_found, request.delegated)
    return operation, [each is not None for each in parsed]


def add_unknown(answer: BatchCheckAnswer, checks: Sequence[CheckItem], is_known: Sequence[bool]) -> BatchCheckAnswer:
    """Insert the results of checks with unknown actions, in the order of the request. Such checks are not allowed."""
    results = iter(answer.results)
    return BatchCheckAnswer(
        results=[
            next(results) if known else CheckResult(allowed=False, id=each.id)
            for each, known in zip(checks, is_known, strict=True)
        ]
    )


def _known_check(item: CheckItem, caller: Actor, default_project_id: str | None) -> Check | None:
    """Return the check. Return None if this server does not have the action: the client may have another version."""
    try:
        return _check(item.operation, item.identity, item.id, caller, default_project_id)
    except UnknownAction:
        return None


def _check(
    operation: dict[str, dict[str, Any]],
    identity: Identity | None,
    id: str | None,
    caller: Actor,
    default_project_id: str | None,
) -> Check:
    if len(operation) != 1:
        raise BadRequestException(f"`operation` must have exactly one of these fields: {', '.join(_REFS)}.")
    ((kind, fields),) = operation.items()
    if kind not in _REFS:
        raise BadRequestException(f"`operation` has the unknown field {kind!r}. Possible fields: {', '.join(_REFS)}")
    fields = dict(fields)
    relation, facts = _action(fields.pop("action", None))
    runs_as_owner = _flag(fields, kind, "runs-as-owner") if kind == "view" else False
    append = _flag(fields, kind, "append") if kind == "table" else False
    applies_restrictions = _restrictions(fields, relation) if kind == "table" else False
    with _complete(f"operation.{kind}", kind):
        other = _view({**fields, "view": fields["name"]}, None) if kind == _TABULAR else None
        ref = _REFS[kind](fields, default_project_id)
    _refuse_unknown(f"operation.{kind}", fields)
    principal = None if identity is None else other_principal(principal_of(identity), caller)
    named = _named(ref.type, relation, facts)
    return Check(
        ref,
        relation,
        principal,
        named,
        id=id,
        or_on=other,
        runs_as_owner=runs_as_owner,
        append=append,
        applies_restrictions=applies_restrictions,
    )


def parse_object(member: str, object: dict[str, dict[str, Any]], default_project_id: str | None) -> Ref:
    """Return the reference in a member of a body, such as `{"table": {"warehouse-id": …, "table-id": …}}`.

    Raise 400 if it is invalid; the message names the invalid part.
    """
    if len(object) != 1:
        raise BadRequestException(f"`{member}` must have exactly one of these fields: {', '.join(_OBJECTS)}.")
    ((kind, fields),) = object.items()
    if kind not in _OBJECTS:
        raise BadRequestException(f"`{member}` has the unknown field {kind!r}. Possible fields: {', '.join(_OBJECTS)}")
    fields = dict(fields)
    with _complete(f"{member}.{kind}", kind):
        ref = _OBJECTS[kind](fields, default_project_id)
    _refuse_unknown(f"{member}.{kind}", fields)
    return ref


def parse_action(action: str, type: ObjectType) -> Can:
    """Return the relation of an action on objects of a type. Raises UnknownAction."""
    relation, _ = _action(action)
    if relation not in ACTIONS[type]:
        raise UnknownAction(
            f"The action {relation} does not apply to a {type}. Possible actions: {', '.join(sorted(ACTIONS[type]))}"
        )
    return relation


def parse_any_action(action: str) -> Can:
    """Return the relation of an action on objects of any type. Raises UnknownAction."""
    return _action(action)[0]


@contextmanager
def _complete(member: str, kind: str) -> Iterator[None]:
    """Raise 400 if the block cannot read a reference."""
    try:
        yield
    except (KeyError, ValueError, TypeError, AttributeError):
        raise BadRequestException(f"`{member}` must identify one {kind} completely, by ids or by names.") from None


def _refuse_unknown(member: str, fields: dict[str, Any]) -> None:
    if fields:
        raise BadRequestException(f"`{member}` has unknown fields: {', '.join(sorted(fields))}")


def _flag(fields: dict[str, Any], kind: str, name: str) -> bool:
    """Remove an optional boolean field and return it; False if it is absent. Raise 400 for another type."""
    value = fields.pop(name, False)
    if not isinstance(value, bool):
        raise BadRequestException(f"`operation.{kind}.{name}` must be true or false.")
    return value


def _restrictions(fields: dict[str, Any], relation: Can) -> bool:
    """Remove the field `restrictions` and return True if it is present. Raise 400 for an unknown form."""
    if "restrictions" not in fields:
        return False
    if fields.pop("restrictions") != "trino" or relation is not Can.READ_COLUMNS:
        raise BadRequestException(
            '`operation.table.restrictions` must be "trino", and is possible only with the action read_columns.'
        )
    return True


def _action(action: object) -> tuple[Can, Facts]:
    """Return (relation, facts for policies) of an action, which is a text or an object: `"drop"` or `{"action": "drop",
    "purge": true}`.
    """
    context: dict[str, Any] = {}
    if isinstance(action, dict):
        context = {key: value for key, value in action.items() if key != "action"}
        action = action.get("action")
    if isinstance(action, str):
        for name in (action, f"can_{action}"):
            if name in _RELATIONS:
                return Can(name), {key.replace("-", "_"): _fact(key, value) for key, value in context.items()}
        raise UnknownAction(f"`action` {action!r} is not an action of this server.")
    raise BadRequestException("`action` must be the name of an action, or an object with the name in `action`.")


_RELATIONS = frozenset(Can)

#: The name of the fact with the new object's name, by create action. In the body of a check the name of the member is
#: `name`.
_NAME_FACTS = {
    Can.CREATE_PROJECT: "project_name",
    Can.CREATE_WAREHOUSE: "warehouse_name",
    Can.CREATE_TABLE: "table",
    Can.CREATE_VIEW: "view",
    Can.CREATE_GENERIC_TABLE: "generic_table",
}


def _named(type: ObjectType, relation: Can, facts: Facts) -> Facts:
    """Return the facts under the same names under which the real operations send them to policies."""
    name = _NAME_FACTS.get(relation)
    named = {name if key == "name" and name is not None else key: value for key, value in facts.items()}
    if "properties" in named:
        named["property_names"] = named.pop("properties")
    return named


def _fact(key: str, value: object) -> Fact:
    """Return the fact that policies receive: a scalar, a list of strings, or the keys of a map without its values."""
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if isinstance(value, (list, dict)) and all(isinstance(each, str) for each in value):
        return tuple(sorted(value) if isinstance(value, dict) else value)
    raise BadRequestException(
        f"`action.{key}` must be a string, an integer, true, false, a list of strings or an object."
    )


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
        return TabularRef(Table, warehouse, UUID(fields.pop("table-id")))
    return TabularRef(Table, warehouse, TableIdentifier(_levels(fields.pop("namespace")), _text(fields.pop("table"))))


def _view(fields: dict[str, Any], default: str | None) -> Ref:
    warehouse = UUID(fields.pop("warehouse-id"))
    if "view-id" in fields:
        return TabularRef(View, warehouse, UUID(fields.pop("view-id")))
    return TabularRef(View, warehouse, TableIdentifier(_levels(fields.pop("namespace")), _text(fields.pop("view"))))


def _generic_table(fields: dict[str, Any], default: str | None) -> Ref:
    """Return the generic table by id or by name. The keys of tables (`table-id`, `table`) are accepted too."""
    warehouse = UUID(fields.pop("warehouse-id"))
    for id in ("generic-table-id", "table-id"):
        if id in fields:
            return TabularRef(GenericTable, warehouse, UUID(fields.pop(id)))
    namespace = _levels(fields.pop("namespace"))
    name = fields.pop("generic-table") if "generic-table" in fields else fields.pop("table")
    return TabularRef(GenericTable, warehouse, TableIdentifier(namespace, _text(name)))


def _levels(value: object) -> Namespace:
    if not isinstance(value, list):
        raise TypeError("a namespace must be a list of names")
    return Namespace(tuple(_text(level) for level in value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a name must be a string")
    return value


def _tabular(fields: dict[str, Any], default: str | None) -> Ref:
    """Return the table with this name. `_check` adds the view with the same name as the alternative."""
    if "table-id" in fields:
        raise ValueError("a table or view must be given by its name")
    fields["table"] = fields.pop("name")
    return _table(fields, default)


def _role(fields: dict[str, Any], default: str | None) -> Ref:
    return RoleRef(UUID(fields.pop("role-id")))


def _tag(fields: dict[str, Any], default: str | None) -> Ref:
    return TagRef(UUID(fields.pop("tag-id")))


def _data_policy(fields: dict[str, Any], default: str | None) -> Ref:
    return DataPolicyRef(UUID(fields.pop("data-policy-id")))


#: A table or a view by name, whichever exists. An extension of this server for engines that filter lists of names.
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
    "tag": _tag,
    "data-policy": _data_policy,
}

#: The objects that answers about access can be about: those of checks by one name.
_OBJECTS = {kind: read for kind, read in _REFS.items() if kind != _TABULAR}
