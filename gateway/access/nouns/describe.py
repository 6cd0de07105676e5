# SPDX-License-Identifier: Apache-2.0
"""Describe the objects of a request for policies and for the audit.

The description has the name in the request, and the id if the object exists.
"""

from __future__ import annotations

from gateway.access.audit.audit_record import AuditedResource
from gateway.access.decisions.policy import PolicyResource
from gateway.access.nouns import refs
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.project import ResolvedProject
from gateway.access.nouns.resolved import (
    NO_FORMER_NAMES,
    FormerNames,
    Resolution,
    ResolvedGenericTable,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
    ResolvedWarehouse,
    warehouse_of,
)
from gateway.access.nouns.role import ResolvedRole
from gateway.access.operation import Operation

_MAX_NAME_CHARACTERS = 2048


def describe_for_policy(operation: Operation, resolution: Resolution) -> PolicyResource:
    """Return the operation's first object in the form that policies receive. Without an object, return the server."""
    about = (*(demand.on for demand in operation.demands()), *operation.further_refs())
    if not about:
        return PolicyResource(type=refs.ObjectType.SERVER.value)
    return describe_target(about[0], resolution)


def describe_target(ref: refs.Ref, resolution: Resolution) -> PolicyResource:
    """Return the object of one reference in the form that policies receive."""
    row = resolution.get(ref)
    warehouse = warehouse_of(row)
    name, namespace, warehouse_id = ref.requested()
    inside = _namespace_of(row)
    own, above = _former_names(row)
    return PolicyResource(
        type=ref.type.value,
        id=None if row is None else row.key.id,
        name=_stored_name(row) or name,
        namespace=_stored_levels(row) or (None if namespace is None else list(namespace)),
        namespace_ids=None if inside is None else [str(id) for id in (*inside.ancestors, inside.id)],
        former_names=[list(levels) for levels in own.names],
        former_namespaces=[list(levels) for levels in above.names],
        former_names_complete=own.complete and above.complete,
        warehouse_id=warehouse_id if warehouse is None else str(warehouse.id),
        warehouse=None if warehouse is None else warehouse.name,
        project_id=None if warehouse is None else warehouse.project_id,
    )


def describe_resource(ref: refs.Ref, resolution: Resolution) -> AuditedResource:
    """Return the object of one reference in the form that the audit records."""
    row = resolution.get(ref)
    warehouse = warehouse_of(row)
    warehouse_id = ref.requested().warehouse_id or (None if warehouse is None else str(warehouse.id))
    return AuditedResource(
        type=ref.type.value,
        id=None if row is None else row.key.id,
        name=_cut(ref.full_name),
        warehouse_id=warehouse_id,
        project_id=row.in_project if row is not None and warehouse_id is None else None,
    )


def _cut(name: str | None) -> str | None:
    """Return the beginning of a name. Its length is chosen by the caller, and the audit record must stay small."""
    if name is None or len(name) <= _MAX_NAME_CHARACTERS:
        return name
    return name[:_MAX_NAME_CHARACTERS] + "…"


def _stored_name(row: Resolved | None) -> str | None:
    match row:
        case (
            ResolvedTable(identifier=identifier)
            | ResolvedView(identifier=identifier)
            | ResolvedGenericTable(identifier=identifier)
        ):
            return identifier.name
        case ResolvedNamespace(namespace=namespace):
            return namespace.dotted
        case ResolvedWarehouse(name=name) | ResolvedProject(name=name) | ResolvedRole(name=name):
            return name
        case _:
            return None


def _namespace_of(row: Resolved | None) -> ResolvedNamespace | None:
    """Return the namespace that contains a row's object; for a namespace, its own row."""
    match row:
        case ResolvedTable(namespace=parent) | ResolvedView(namespace=parent) | ResolvedGenericTable(namespace=parent):
            return parent
        case ResolvedNamespace():
            return row
        case _:
            return None


def _stored_levels(row: Resolved | None) -> list[str] | None:
    inside = _namespace_of(row)
    return None if inside is None else list(inside.namespace.levels)


def _former_names(row: Resolved | None) -> tuple[FormerNames, FormerNames]:
    """Return (former names of a table or view, former names of its namespaces).

    For a namespace, the first is empty, and the second includes the former names of the namespace itself.
    """
    inside = _namespace_of(row)
    above = NO_FORMER_NAMES if inside is None else inside.former
    match row:
        case ResolvedTable(former=own) | ResolvedView(former=own) | ResolvedGenericTable(former=own):
            return own, above
        case _:
            return NO_FORMER_NAMES, above
