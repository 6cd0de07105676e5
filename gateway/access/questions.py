# SPDX-License-Identifier: Apache-2.0
"""From demands to the questions about relationships, and from the answers back. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from gateway.access.decision import DemandAnswer
from gateway.access.demand import Demand
from gateway.access.operation import Operation
from gateway.access.ports import Pin, Question
from gateway.access.refs import NOBODY_HAS_THIS_ID, ObjectKey, ObjectType, Ref
from gateway.access.relations import VISIBLE_BY
from gateway.access.resolved import Resolution, warehouse_of

_IN_A_WAREHOUSE = frozenset({ObjectType.NAMESPACE, ObjectType.TABLE, ObjectType.VIEW})


def refs_of(asked: Sequence[Operation]) -> list[Ref]:
    """Each reference of the operations once, in order."""
    refs: dict[Ref, None] = {}
    for operation in asked:
        refs.update(dict.fromkeys(demand.on for demand in operation.demands()))
        refs.update(dict.fromkeys(operation.looks_up()))
    return list(refs)


def key_of(ref: Ref, resolution: Resolution) -> ObjectKey:
    """The object to ask about; for an absent one a stand-in, so that absence costs the same question."""
    row = resolution.get(ref)
    return ObjectKey(ref.type, NOBODY_HAS_THIS_ID) if row is None else row.key


def questions_of(demand: Demand, resolution: Resolution) -> list[Question]:
    key = key_of(demand.on, resolution)
    warehouse = warehouse_of(resolution.get(demand.on))
    within = None if warehouse is None else warehouse.revision
    visible_by = VISIBLE_BY.get(key.type)
    asked = [] if visible_by is None else [Question(visible_by, key, within)]
    return [*asked, *(Question(relation, key, within) for relation in demand.relations)]


def pin_of(resolution: Resolution) -> Pin | None:
    """What answers may be remembered by; None when the resolver does not say."""
    if resolution.revision is None or resolution.time_boxes is None:
        return None
    return Pin(resolution.revision, resolution.time_boxes, resolution.next_expiry)


def only_warehouse(resolution: Resolution) -> UUID | None:
    """The revision of the warehouse that everything resolved lies in, if it is one."""
    revisions = list(resolution.warehouses().values())
    return revisions[0] if len(revisions) == 1 else None


def revision_of(key: ObjectKey, within: UUID | None) -> UUID | None:
    """`within` for what lies in a warehouse and is listed with it; a list of warehouses resolves none of them."""
    return within if key.type in _IN_A_WAREHOUSE else None


def answer_of(demand: Demand, resolution: Resolution, yes: set[Question]) -> DemandAnswer:
    key = key_of(demand.on, resolution)
    visible_by = VISIBLE_BY.get(key.type)
    holds = any(Question(relation, key) in yes for relation in demand.relations)
    # manage_grants opens the grants of an object that is otherwise invisible (lakekeeper.md, appendix B): whoever holds
    # the demanded relation itself has been told of the object by being given it.
    visible = holds or visible_by is None or Question(visible_by, key) in yes
    return DemandAnswer(demand, resolution.get(demand.on), visible, holds)
