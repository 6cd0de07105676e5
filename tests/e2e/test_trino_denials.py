# SPDX-License-Identifier: Apache-2.0
"""Refusals on a real Trino, and the way from them to the reason and to a grant.

Trino shows the catalog's message as a cause of its own error. OPA can answer Trino with a boolean only, so a refusal of
the bridge has no page, and the user asks for the reason by the names in the statement.
"""

from __future__ import annotations

import time

import pytest

from tests.support.engines.trino import Refused
from tests.support.engines.trino_calls import pytestmark
from tests.support.engines.trino_lake import Lake
from tests.support.stack.explained import DENIAL_PAGE, REQUESTS, denial_in, explain
from tests.support.stack.world import World

__all__ = ["pytestmark"]

_APPROVED_SECONDS = 30
_ENDED_SECONDS = 120


def test_refusal_of_the_catalog_reaches_the_user_with_the_page(lake: Lake) -> None:
    """The user's own token proves no enforcing engine, so the catalog refuses what the bridge allowed."""
    own = {"token": lake.columns.token}
    with pytest.raises(Refused, match="not all of this table may be read") as refused:
        lake.trino.run(lake.columns, f"select id from {lake.schema}.orders", extra=own)
    path = f"/management/v1/access/denials/{denial_in(str(refused.value))}"
    found = lake.columns.get(path).json()
    assert (found["operation"], found["explanation"]["object"]["name"]) == ("load_table", f"{lake.schema}.orders")
    assert lake.reader.get(path).status_code == 404, "the denial belongs to the refused user"


def test_refusal_of_the_bridge_leads_to_a_grant_that_ends_by_itself(world: World, lake: Lake) -> None:
    statement = f"comment on table {lake.schema}.orders is 'said'"
    with pytest.raises(Refused, match="Access Denied: Cannot comment table") as refused:
        lake.trino.run(lake.reader, statement)
    assert DENIAL_PAGE.search(str(refused.value)) is None
    asked = {"action": "commit", "warehouse-id": world.warehouse, "namespace": [lake.schema], "table": "orders"}
    found = explain(lake.reader, {"table": asked})
    (missing,) = found["relationships"]["repairs"][0]["grants"]
    assert (found["decision"], missing["privilege"], missing["object"]["type"]) == ("denied", "modify", "table")
    on = {"type": "table", "table-id": missing["object"]["id"], "warehouse-id": world.warehouse}
    body = {"object": on, "privileges": ["modify"], "reason": "comment", "duration-seconds": _APPROVED_SECONDS}
    made = lake.reader.post(REQUESTS, body).json()
    assert world.admin.post(f"{REQUESTS}/{made['id']}/approve", {}).status_code == 204
    lake.trino.run(lake.reader, statement)
    began = time.monotonic()
    while lake.may(lake.reader, statement):
        assert time.monotonic() - began < _ENDED_SECONDS, "the grant did not end"
        time.sleep(2)
