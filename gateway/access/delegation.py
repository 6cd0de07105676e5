# SPDX-License-Identifier: Apache-2.0
"""Where an engine that acts for somebody has to hold `delegate`. Pure.

A token of an engine for a user is good nowhere by itself: each operation asks, beside what the user needs, whether the
engine may act for others *there*. The place is the warehouse that things lie in, because that is where `delegate` is
granted (for all warehouses of a project: on the project, `fga_model/warehouse.fga`). What lies in no warehouse is out
of reach: a user administers, hands out rights and is asked about by name only as themselves.
"""

from __future__ import annotations

from gateway.access.operation import HttpOperation, Operation
from gateway.access.ports import Question
from gateway.access.questions import refs_of
from gateway.access.relations import Can
from gateway.access.resolved import Resolution, warehouse_of


def may_be_delegated(operation: type[Operation]) -> bool:
    """Whether an engine can ask for it in somebody's name at all: the catalog's own operations, and on the way to them
    acting as a role, which gives nothing by itself.
    """
    return not issubclass(operation, HttpOperation) or operation.is_public() or operation.is_of_catalog()


def questions_to_engine(operation: Operation, resolution: Resolution) -> list[Question] | None:
    """What an engine must hold for `operation` in somebody's name; None when nothing it could hold is enough.

    What is absent lies nowhere: it is hidden from the user and needs no other reason.
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
