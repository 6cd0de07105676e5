# SPDX-License-Identifier: Apache-2.0
"""Convert demands, the relations that an operation requires, to questions for OpenFGA. Pure.

The results of OpenFGA are converted back to results of the demands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any
from uuid import UUID

from gateway.access.decisions.decision import DemandAnswer
from gateway.access.demand import Demand
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.cards import CARDS, IN_A_WAREHOUSE, VISIBLE_BY
from gateway.access.nouns.refs import UNUSED_ID, NamespaceIdRef, NamespaceRef, ObjectKey, ObjectType, Ref, TabularRef
from gateway.access.nouns.resolved import (
    Resolution,
    ResolvedGenericTable,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
    ResolvedWarehouse,
    warehouse_of,
)
from gateway.access.operation import Operation
from gateway.access.ports import Pin, Question


def refs_of(operations: Sequence[Operation]) -> list[Ref]:
    """Return the references of the operations in order, each once."""
    refs: dict[Ref, None] = {}
    for operation in operations:
        refs.update(dict.fromkeys(demand.on for demand in operation.demands()))
        refs.update(dict.fromkeys(operation.further_refs()))
    return list(refs)


def key_of(ref: Ref, resolution: Resolution) -> ObjectKey:
    """Return the object to check. If it is absent, return a stand-in, so that the check takes as long."""
    row = resolution.get(ref)
    return placeholder_key(ref) if row is None else row.key


def placeholder_key(ref: Ref) -> ObjectKey:
    """Return the key of an object that does not exist, a different one for each reference.

    Equal questions are sent only once. With one common key, several absent objects would cost less than several
    invisible ones, and the duration would tell them apart.
    """
    # The ids of rows are UUIDs of version 4 or 7. This id has no version, so no row has it.
    return ObjectKey(ref.type, UNUSED_ID[:-12] + sha256(repr(ref).encode()).hexdigest()[:12])


def stand_ins_in(container: ObjectKey) -> list[tuple[ObjectKey, tuple[ObjectKey, ...]]]:
    """Return a stand-in for the objects of each type in a container, with its containers from its parent upwards."""
    found: dict[ObjectType, tuple[ObjectKey, tuple[ObjectKey, ...]]] = {}
    left: list[tuple[ObjectKey, tuple[ObjectKey, ...]]] = [(container, ())]
    for key, above in left:
        for type, card in CARDS.items():
            if key.type in card.parents and type not in found:
                found[type] = ObjectKey(type, f"{UNUSED_ID[:-8]}{len(found) + 1:08x}"), (key, *above)
                left.append(found[type])
    return list(found.values())


def above_of(ref: Ref, resolution: Resolution) -> tuple[ObjectKey, ...]:
    """Return the containers of the stand-in for an absent `ref`, from its parent upwards.

    OpenFGA then evaluates as many levels as for an invisible object, so the duration does not distinguish the two
    (LG-DIS-01).
    """
    where = resolution.absent.get(ref)
    if where is None or not isinstance(ref, _IN_A_WAREHOUSE):
        return ()
    missing = range(_levels_above(ref) - len(where.namespaces), 0, -1)
    placeholder_keys = [ObjectKey(ObjectType.NAMESPACE, f"{UNUSED_ID[:-8]}{level:08x}") for level in missing]
    if where.namespaces:
        return (*placeholder_keys, ObjectKey(ObjectType.NAMESPACE, str(where.namespaces[-1])))
    return (*placeholder_keys, ObjectKey(ObjectType.WAREHOUSE, str(ref.warehouse_id)))


_IN_A_WAREHOUSE = (NamespaceRef, NamespaceIdRef, TabularRef)


def _levels_above(ref: NamespaceRef | NamespaceIdRef | TabularRef[Any]) -> int:
    """Return the number of namespaces above an absent object.

    For a reference by id the number is not known. Then it is 1 for a table, and 0 for a namespace, because that is most
    frequent.
    """
    match ref:
        case NamespaceRef(namespace=namespace):
            return len(namespace.levels) - 1
        case NamespaceIdRef():
            return 0
        case _:
            return len(ref.identifier.namespace.levels) if ref.named else 1


def inside_of(ref: Ref, resolution: Resolution) -> tuple[ObjectKey, ...]:
    """Return the containers of an object, from its parent upwards to the project; empty for objects outside of
    warehouses.

    The containers of an absent object start with `above_of`, so that their number is that of an invisible object.
    """
    row = resolution.get(ref)
    if row is not None:
        return containers_of(row)
    above, where = above_of(ref, resolution), resolution.absent.get(ref)
    if where is None or not above or not isinstance(ref, _IN_A_WAREHOUSE):
        return ()
    namespaces = (ObjectKey(ObjectType.NAMESPACE, str(id)) for id in reversed(where.namespaces[:-1]))
    warehouse = ObjectKey(ObjectType.WAREHOUSE, str(ref.warehouse_id))
    rest = (warehouse,) if where.namespaces else ()
    return (*above, *namespaces, *rest, ObjectKey(ObjectType.PROJECT, where.project_id))


def containers_of(row: Resolved) -> tuple[ObjectKey, ...]:
    """Return the containers of the object with this row, from its parent upwards to the project."""
    match row:
        case ResolvedTable(namespace=namespace) | ResolvedView(namespace=namespace):
            return (namespace.key, *containers_of(namespace))
        case ResolvedGenericTable(namespace=namespace):
            return (namespace.key, *containers_of(namespace))
        case ResolvedNamespace(ancestors=ancestors, warehouse=warehouse):
            namespaces = (ObjectKey(ObjectType.NAMESPACE, str(id)) for id in reversed(ancestors))
            return (*namespaces, warehouse.key, *containers_of(warehouse))
        case ResolvedWarehouse(project_id=project_id):
            return (ObjectKey(ObjectType.PROJECT, project_id),)
        case _:
            return ()


def questions_of(demand: Demand, resolution: Resolution) -> list[Question]:
    """Return the questions for a demand: visibility, the demanded relations, and the column-level relation."""
    key, row = key_of(demand.on, resolution), resolution.get(demand.on)
    warehouse = warehouse_of(row)
    within = None if warehouse is None else warehouse.revision
    visible_by = VISIBLE_BY.get(key.type)
    above = above_of(demand.on, resolution)
    partly = [] if demand.restricted is None else [demand.restricted]
    relations = dict.fromkeys([*([] if visible_by is None else [visible_by]), *demand.relations, *partly])
    inside = inside_of(demand.on, resolution)
    return [Question(relation, key, within, above=above, inside=inside) for relation in relations]


def pin_of(resolution: Resolution) -> Pin | None:
    """Return the state on which cached results depend. Return None if the resolution does not contain it."""
    if resolution.revision is None or resolution.time_boxes is None:
        return None
    return Pin(
        resolution.revision,
        resolution.time_boxes,
        resolution.next_expiry,
        resolution.caller_roles,
        resolution.revocations_pending,
    )


def engine_pin_of(resolution: Resolution) -> Pin | None:
    """Return the same as `pin_of` for questions about the engine that acts for the caller."""
    pin = pin_of(resolution)
    return None if pin is None else replace(pin, next_expiry=resolution.engine_next_expiry, roles=None)


def only_warehouse(resolution: Resolution) -> UUID | None:
    """Return the revision of the one warehouse that contains all resolved rows.

    Return None if there are several, or none.
    """
    revisions = list(resolution.warehouses().values())
    return revisions[0] if len(revisions) == 1 else None


def revision_of(key: ObjectKey, within: UUID | None) -> UUID | None:
    """Return `within` for an object inside of a warehouse; None for other objects."""
    return within if key.type in IN_A_WAREHOUSE else None


def in_inactive_warehouse(operation: Operation, resolution: Resolution) -> Demand | None:
    """Return the first required demand on an object in an inactive warehouse; None if there is none.

    Management operations work in inactive warehouses too, so the result for them is None.
    """
    if not operation.is_of_catalog():
        return None
    for demand in operation.demands():
        warehouse = warehouse_of(resolution.get(demand.on))
        if demand.required and warehouse is not None and not warehouse.active:
            return demand
    return None


def answer_of(demand: Demand, resolution: Resolution, yes: set[Question]) -> DemandAnswer:
    """Return the result of a demand. `yes` are the questions that OpenFGA answered with True."""
    key = key_of(demand.on, resolution)
    visible_by = VISIBLE_BY.get(key.type)
    holds = any(Question(relation, key) in yes for relation in demand.relations)
    # `manage_grants` allows managing the grants of an object that is otherwise invisible. A caller that holds the
    # demanded relation may therefore see that the object exists.
    visible = holds or visible_by is None or Question(visible_by, key) in yes
    row = resolution.get(demand.on)
    partly = not holds and demand.restricted is not None and Question(demand.restricted, key) in yes
    # The check for an absent object used a stand-in, which inherits relations from its containers. But no caller has
    # rights on an absent object.
    there = row is not None
    return DemandAnswer(demand, row, there and visible, there and holds, there and visible and partly)
