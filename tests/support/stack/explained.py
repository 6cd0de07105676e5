# SPDX-License-Identifier: Apache-2.0
"""Questions about decisions, for tests of explanations."""

from __future__ import annotations

import re
from typing import Any

from tests.support.stack.world import Person, World, send_until_decided

EXPLAIN = "/management/v1/access/explain"
CHECK = "/management/v1/permissions/check"
REQUESTS = "/management/v1/access/requests"
#: The address of the page with the reason, in the message of a refused request.
DENIAL_PAGE = re.compile(r"/ui\?denial=([0-9a-f-]{36})")


def denial_in(text: str) -> str:
    """Return the id of the denial in an error message."""
    found = DENIAL_PAGE.search(text)
    assert found is not None, text
    return found[1]


def of_table(world: World, id: str, action: str) -> dict[str, Any]:
    """Return the operation of a question about an action on a table."""
    return {"table": {"action": action, "warehouse-id": world.warehouse, "table-id": id}}


def explain(asker: Person, operation: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the explanation of an operation."""
    answer = send_until_decided(lambda: asker.post(EXPLAIN, {"operation": operation, **more}))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
