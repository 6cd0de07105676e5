# SPDX-License-Identifier: Apache-2.0
"""Determine where an engine that acts for a user must hold `delegate`. Pure.

A token of an engine for a user is valid nowhere by itself: each operation checks, beside the user's right, that the
engine may act for others *there*. The place is the warehouse of the object, because `delegate` is granted on warehouses
(for all warehouses of a project: on the project, `fga_model/warehouse.fga`). Objects outside of warehouses are out of
reach: users administer and grant rights only as themselves.
"""

from __future__ import annotations

from gateway.access.operation import HttpOperation, Operation
from gateway.access.ports import Question
from gateway.access.questions import refs_of
from gateway.access.relations import Can
from gateway.access.resolved import Resolution, warehouse_of


def may_be_delegated(operation: type[Operation]) -> bool:
    """Return True if an engine can request the operation in a user's name: operations of the catalog, and acting as a
    role.
    """
    return not issubclass(operation, HttpOperation) or operation.is_public() or operation.is_of_catalog()


def questions_to_engine(operation: Operation, resolution: Resolution) -> list[Question] | None:
    """Return the relations that an engine must hold for `operation`; None if nothing that it could hold is enough.

    An absent object has no place: it is hidden from the user without another reason.
    """
    places: dict[Question, None] = {}
    for ref in refs_of((operation,)):
        row = resolution.get(ref)
        if row is None:
            continue
        warehouse = warehouse_of(row)
        if warehouse is None:
            return None
        places[Question(Can.DELEGATE, warehouse.key, warehouse.revision)] = None
    return list(places) or None
