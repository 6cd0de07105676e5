# SPDX-License-Identifier: Apache-2.0
"""Render the demands of every operation for the descriptions in the OpenAPI documents.

The demands are those of the examples of the operation. A demand that not all examples have depends on the request.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gateway.access.demand import Demand
from gateway.access.operation import HttpOperation
from gateway.api.openapi_rights import GRANT_EACH, Need
from tests.support.door.examples import EXAMPLES

#: Modules of operations that demand the action to grant each privilege in the request.
_BY_PRIVILEGE = ("grants", "grant_lists", "access_requests", "access_reviews")


def render() -> str:
    """Return the demands as JSON: a line for each operation that has some."""
    operations: dict[str, list[HttpOperation]] = {}
    for example in EXAMPLES:
        operations.setdefault(type(example.operation).__name__, []).append(example.operation)
    lines = []
    for name, examples in sorted(operations.items()):
        needs = _needs(examples)
        if needs:
            lines.append(f"{msgspec.json.encode(name).decode()}: {msgspec.json.encode(needs).decode()}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _needs(examples: Sequence[HttpOperation]) -> list[Need]:
    by_example = [[_need(type(each), demand) for demand in each.demands()] for each in examples]
    found = dict.fromkeys(need for needs in by_example for need in needs)
    owned = next((on for on, actions, *_ in found if actions == ("change_ownership",)), None)
    if owned is not None:  # Another privilege in the request demands another action.
        found[owned, (GRANT_EACH,), False, ""] = None
        by_example.append([])
    return [
        msgspec.structs.replace(_readable(need), sometimes=not all(need in needs for needs in by_example))
        for need in found
    ]


_Need = tuple[str, tuple[str, ...], bool, str]


def _need(operation: type[HttpOperation], demand: Demand) -> _Need:
    actions = tuple(dict.fromkeys(_action(operation, each) for each in demand.relations))
    enforced = "" if demand.restricted is None else demand.restricted.removeprefix("can_")
    return str(demand.on.type), actions, not demand.required, enforced


def _action(operation: type[HttpOperation], relation: str) -> str:
    by_privilege = operation.__module__.rpartition(".")[2] in _BY_PRIVILEGE
    return GRANT_EACH if by_privilege and relation.startswith("can_grant_") else relation.removeprefix("can_")


def _readable(need: _Need) -> Need:
    on, actions, optional, enforced = need
    return Need(on, list(actions), optional=optional, enforced=enforced)
