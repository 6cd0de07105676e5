# SPDX-License-Identifier: Apache-2.0
"""Guardrails bind the rights that a break-glass activation gives, and the refusal is marked in the audit.

Another gateway of the stack uses an OPA of its own, with one more guardrail.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.support.stack.break_glass import audited, change, holder, on_table, start, started
from tests.support.stack.policy_gateway import PolicyGateway
from tests.support.stack.world import Person, Table, World, error_of, send_until_decided

pytestmark = pytest.mark.servers

_FREEZE = (
    'denials[index] contains {"code": "freeze", "message": "Tables are frozen."} if {\n'
    "\tsome index, question in input.questions\n"
    '\tquestion.resource.type == "table"\n'
    "\tquestion.operation in OPERATIONS\n"
    "}\n"
)


@pytest.fixture
def oncall(world: World, guarded_gateway: PolicyGateway) -> Iterator[Person]:
    """Return a holder of `break_glass`, whose requests go to the gateway with the guardrail."""
    person = holder(world)
    beside = Person(person.name, person.id, person.token, str(guarded_gateway.admin.http.base_url))
    yield beside
    beside.http.close()
    world.strip(person)


@pytest.mark.threat("LG-REQ-05")
def test_a_guardrail_denies_what_an_activation_gives(
    world: World, guarded_gateway: PolicyGateway, oncall: Person, table: Table
) -> None:
    with guarded_gateway.guarded(_FREEZE.replace("OPERATIONS", '{"load_table", "vend_credentials"}')):
        assert send_until_decided(lambda: oncall.get(table.path)).status_code == 404
        id = started(oncall, on_table(world, table))
        for path in (table.path, f"{table.path}/credentials"):
            refused = send_until_decided(partial(oncall.get, path))
            assert refused.status_code == 403, refused.text
            assert "freeze: Tables are frozen." in error_of(refused)["message"]
            assert audited(world, refused) == ("forbidden", id)
        # The activation gives the right: only the guardrail denies.
        listed = oncall.get(f"{world.root}/namespaces/{table.namespace}/tables")
        assert [each["name"] for each in listed.json()["identifiers"]] == [table.name]
        assert change(oncall, id, "end").status_code == 204


@pytest.mark.threat("LG-REQ-05")
def test_a_guardrail_denies_the_activation_itself(
    world: World, guarded_gateway: PolicyGateway, oncall: Person, table: Table
) -> None:
    with guarded_gateway.guarded(_FREEZE.replace("OPERATIONS", '{"activate_break_glass"}')):
        refused = send_until_decided(lambda: start(oncall, on_table(world, table)))
        assert refused.status_code == 403, refused.text
        assert "freeze: Tables are frozen." in error_of(refused)["message"]
        assert send_until_decided(lambda: oncall.get(table.path)).status_code == 404
