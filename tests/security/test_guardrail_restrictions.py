# SPDX-License-Identifier: Apache-2.0
"""Row filters and masks of guardrails on a running gateway: an enforcer applies them, and others get nothing."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.stack.columns import wide
from tests.support.stack.exchanging import acting
from tests.support.stack.policy_gateway import PolicyGateway, policy_gateway
from tests.support.stack.world import Person, World, error_of, send_until_decided

pytestmark = pytest.mark.servers

DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}
#: The mask depends on the time of day, and the filter on the network, which is unknown in checks of an engine.
RULES = """
obligations[index] contains {"column_masks": [{"column": "name", "action": "mask-alphanum"}]} if {
\tsome index, question in input.questions
\tquestion.resource.type == "table"
\ttime.clock(time.parse_rfc3339_ns(input.context.time))[0] >= 0
}

obligations[index] contains {"row_filters": [{
\t"type": "compare", "operator": "eq", "column": {"name": "name"}, "value": "one",
}]} if {
\tsome index, question in input.questions
\tquestion.resource.type == "table"
\tnot _internal
}

_internal if {
	is_string(input.context.client_address)
	net.cidr_contains("10.0.0.0/8", input.context.client_address)
}
"""


@pytest.fixture(scope="module")
def site(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolicyGateway]:
    with policy_gateway(world, tmp_path_factory.mktemp("restricting")) as running:
        yield running


@pytest.fixture
def through(world: World, site: PolicyGateway) -> Iterator[Person]:
    """Return the administrator, for whom an enforcer acts at the gateway under test."""
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    person = Person(
        "through", world.admin.id, acting(world, world.etl, world.admin).token, str(site.admin.http.base_url)
    )
    yield person
    person.http.close()
    world.strip(world.etl)


def test_an_enforcer_gets_the_restrictions_and_another_caller_the_remedy(
    world: World, site: PolicyGateway, through: Person
) -> None:
    """The warehouse has no data policies, so only the guardrail restricts."""
    table = wide(world, world.namespace())
    place = {"warehouse-id": world.warehouse, "namespace": [table.namespace], "table": table.name}
    action = {"action": "read_columns"}
    checks = [
        {"operation": {"table": {**place, "restrictions": "trino", "action": action}}},
        {"operation": {"table": {**place, "action": action}}},
        {"operation": {"table": {**place, "action": {"action": "write_data"}}}},
        {"operation": {"table": {**place, "action": {"action": "drop"}}}},
    ]
    with site.guarded(RULES):
        loaded = send_until_decided(lambda: through.get(table.path, headers=DELEGATION))
        again = through.get(table.path, headers={**DELEGATION, "If-None-Match": loaded.headers.get("etag", "")})
        refused: list[httpx.Response] = [
            site.admin.get(table.path),
            site.admin.get(f"{table.path}/credentials"),
            world.commit(through, table.path, {"action": "set-properties", "updates": {"a": "b"}}),
        ]
        own = site.admin.post("/management/v1/action/batch-check", {"checks": checks})
        named = [{**each, "identity": {"user": world.admin.id}} for each in checks]
        engine = Person("engine", world.etl.id, world.etl.token, str(site.admin.http.base_url))
        checked = engine.post("/management/v1/action/batch-check", {"checks": named, "delegated": True})
    free = send_until_decided(lambda: site_free(world, table.path, loaded.headers.get("etag", "")))
    assert loaded.status_code == 200, loaded.text
    assert loaded.json()["read-restrictions"] == {
        "required-column-projections": [{"field-id": 2, "action": "mask-alphanum"}],
        "required-row-filter": {
            "type": "eq",
            "left": {"type": "reference", "id": 2},
            "right": {"type": "literal", "value": "one"},
        },
    }
    assert again.status_code in {200, 304}, again.text
    assert free.status_code == 200, "an answer without the restrictions must not have the entity tag of this one"
    for answer in refused:
        assert answer.status_code == 403, answer.text
    assert "enforcer" in error_of(refused[0])["message"]
    engine.http.close()
    assert [each["allowed"] for each in own.json()["results"]] == [False] * 4, "literals of guardrails are for engines"
    assert checked.status_code == 200, checked.text
    results = checked.json()["results"]
    assert [each["allowed"] for each in results] == [True, False, False, False]
    assert [each["column"] for each in results[0]["restrictions"]["column-masks"]] == ["name"]
    assert "one" in results[0]["restrictions"]["row-filter"]


def site_free(world: World, path: str, etag: str) -> httpx.Response:
    """Load the table at the gateway of the stack, which has no such guardrail."""
    return world.admin.get(path, headers={"If-None-Match": etag})
