# SPDX-License-Identifier: Apache-2.0
"""A guardrail with a misspelt rule or obligation, a value of the wrong type, or an error denies (LG-DEC-30).

Another gateway of the stack uses its own OPA. Each case starts that OPA with the shipped policies and one more
guardrail.
"""

from __future__ import annotations

import json
import time

import pytest

from tests.support.stack.explained import explain, of_table
from tests.support.stack.policy_gateway import PolicyGateway
from tests.support.stack.views import create as create_view
from tests.support.stack.world import Table, World, error_of, send_until_decided

pytestmark = pytest.mark.servers

_DENIALS = "denials[index] contains {} if {\n\tsome index, _ in input.questions\n\tfalse\n}\n"
_OBLIGATIONS = "obligations[index] contains ENTRY if {\n\tsome index, _ in input.questions\n}\n"
_DENIED = 'denial[index] contains {"code": "c", "message": "m"} if {\n\tsome index, _ in input.questions\n}\n'

DENIED = {
    "a misspelt obligation": _OBLIGATIONS.replace("ENTRY", '{"no_vendng": true}'),
    "an unknown obligation beside a known one": _OBLIGATIONS.replace(
        "ENTRY", '{"no_vending": true, "read_only": true}'
    ),
    "a text for a switch": _OBLIGATIONS.replace("ENTRY", '{"append_only": "true"}'),
    "a text for a number": _OBLIGATIONS.replace("ENTRY", '{"max_credential_seconds": "900"}'),
    "null for a number": _OBLIGATIONS.replace("ENTRY", '{"max_credential_seconds": null}'),
    "a misspelt rule": _DENIED,
    "a misspelt rule beside a correct one": _DENIALS + _DENIED,
    "no rule at all": "steady := true\n",
    "an undefined rule": "obligations := {0: {input.nothing}}\n",
    "a denial of another form": 'denials[index] := "no" if {\n\tsome index, _ in input.questions\n}\n',
    "a row filter that is a text": _OBLIGATIONS.replace("ENTRY", '{"row_filters": ["region = 1"]}'),
    "a mask with an unknown action": _OBLIGATIONS.replace(
        "ENTRY", '{"column_masks": [{"column": "id", "action": "blur"}]}'
    ),
    "an index that is a text": 'denials["0"] contains {"code": "c", "message": "m"}\n',
}
_TIME = _DENIALS.replace("false", "time.parse_rfc3339_ns(input.actor.id) > 0")


@pytest.fixture(scope="module")
def table(world: World) -> Table:
    return world.table(world.namespace())


@pytest.mark.threat("LG-DEC-30")
@pytest.mark.parametrize("name", DENIED)
def test_an_invalid_guardrail_denies_and_names_its_package(
    guarded_gateway: PolicyGateway, table: Table, name: str
) -> None:
    with guarded_gateway.guarded(DENIED[name]):
        answer = send_until_decided(lambda: guarded_gateway.admin.get(table.path))
    assert answer.status_code == 403, answer.text
    assert "gateway.guardrails.mine is invalid" in error_of(answer)["message"]


@pytest.mark.threat("LG-DEC-30")
def test_an_invalid_inner_test_of_a_row_filter_denies_and_names_the_fault(
    guarded_gateway: PolicyGateway, table: Table
) -> None:
    """The schema of guardrails describes the outermost test only, so OPA accepts this output."""
    entry = '{"row_filters": [{"type": "and", "operands": [{"type": "matches"}]}]}'
    with guarded_gateway.guarded(_OBLIGATIONS.replace("ENTRY", entry)):
        answer = send_until_decided(lambda: guarded_gateway.admin.get(table.path))
    assert answer.status_code == 403, answer.text
    assert "guardrail_invalid" in error_of(answer)["message"]
    assert "matches" in error_of(answer)["message"]


@pytest.mark.threat("LG-DEC-30")
def test_builtin_function_error_denies(guarded_gateway: PolicyGateway, table: Table) -> None:
    with guarded_gateway.guarded(_TIME):
        answer = guarded_gateway.admin.get(table.path)
    assert answer.status_code == 503, answer.text


def test_a_valid_guardrail_allows_with_its_obligation(guarded_gateway: PolicyGateway, table: Table) -> None:
    """Control: the gateway allows requests, so the refusals of the other tests have the named cause."""
    asking = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    with guarded_gateway.guarded(
        _OBLIGATIONS.replace("ENTRY", '{"no_vending": false, "hide_operations": ["drop_table"]}')
    ):
        free = send_until_decided(lambda: guarded_gateway.admin.get(table.path, headers=asking))
    with guarded_gateway.guarded(_OBLIGATIONS.replace("ENTRY", '{"no_vending": true}')):
        bound = send_until_decided(lambda: guarded_gateway.admin.get(table.path, headers=asking))
    assert free.status_code == bound.status_code == 200, (free.text, bound.text)
    assert free.json().get("storage-credentials")
    assert not bound.json().get("storage-credentials")


_OF_TABLES = (
    "obligations[index] contains {ENTRY} if {\n\tsome index, question in input.questions\n"
    '\tquestion.resource.type in {"table", "view"}\n}\n'
)
UNENFORCED = {
    "row filters": '"row_filters": [{"type": "is-null", "column": {"name": "id"}}]',
    "masks": '"column_masks": ["id: sha-256-global"]',
}


@pytest.mark.threat("LG-DEC-30")
@pytest.mark.parametrize("name", UNENFORCED)
def test_obligation_without_an_enforcer_denies_all_reads(
    world: World, guarded_gateway: PolicyGateway, name: str
) -> None:
    """Without an enforcer, a row filter or mask closes every path to the data. The audit records the obligation."""
    table, asking = world.table(world.namespace()), {"X-Iceberg-Access-Delegation": "vended-credentials"}
    read = {"operation": {"table": {"warehouse-id": world.warehouse, "table-id": table.uuid, "action": "read_data"}}}
    commit = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    view = create_view(world, table.namespace)["path"]
    sign = {"region": world.ready.s3.region, "method": "GET", "uri": "x", "headers": {}}
    with guarded_gateway.guarded(_OF_TABLES.replace("ENTRY", UNENFORCED[name])):
        load = send_until_decided(lambda: guarded_gateway.admin.get(table.path, headers=asking))
        refused = {
            "load": load,
            "load without keys": guarded_gateway.admin.get(table.path),
            "vend": guarded_gateway.admin.get(f"{table.path}/credentials"),
            "sign": guarded_gateway.admin.post(f"{table.path}/sign", sign),
            "commit": guarded_gateway.admin.post(table.path, commit),
            "load of a view": guarded_gateway.admin.get(view),
        }
        checked = guarded_gateway.admin.post("/management/v1/action/batch-check", {"checks": [read]})
        drop = guarded_gateway.admin.delete(f"{table.path}?purgeRequested=false")
    for location, answer in refused.items():
        assert answer.status_code == 403, (location, answer.text)
        expected = "no component enforces" if location == "load of a view" else "enforcer"
        assert expected in error_of(answer)["message"], location
        assert "s3" not in answer.text, location
    assert [each["allowed"] for each in checked.json()["results"]] == [False]
    assert drop.status_code == 204, "a drop returns no data, so the obligation must not refuse it"
    record = "convert_from(record, 'UTF8')"
    kept = f"select {record} as r from audit_log where {record} like '%' || $1 || '%'"
    deadline = time.monotonic() + 30
    while not (rows := world.sql(kept, load.headers["x-request-id"])) and time.monotonic() < deadline:
        time.sleep(0.1)
    (decision,) = (each for each in json.loads(rows[0]["r"])["decisions"] if each["operation"] == "load_table")
    field = UNENFORCED[name].split('"')[1]
    assert decision["failure"] == "RestrictedWithoutEnforcer"
    assert decision["obligations"] == {"row_filters": 0, "column_masks": 0} | {field: 1}


def test_a_denial_by_a_fact_names_the_value_that_lifts_it(guarded_gateway: PolicyGateway, world: World) -> None:
    table = world.table(world.namespace())
    facts = {"purge": True, "other": True}
    asked = of_table(world, table.uuid, "drop")
    asked["table"]["action"] = {"action": "drop", **facts}
    denials = _DENIALS.replace("{}", '{"code": "no_purge", "message": "Keep the files."}').replace(
        "index, _", "index, question"
    )
    with guarded_gateway.guarded(denials.replace("false", "question.facts.purge\n\tquestion.facts.other")):
        found = explain(guarded_gateway.admin, asked)
        assert found["decision"] == "denied"
        lifts = [(each["input"], each["value"]) for each in found["policies"]["lifted-by"]]
        assert lifts == [("questions.facts.purge", False), ("questions.facts.other", False)]
    either = denials.replace("false", "true in {question.facts.purge, question.facts.other}")
    with guarded_gateway.guarded(either):
        found = explain(guarded_gateway.admin, asked)
        assert found["decision"] == "denied"
        assert "lifted-by" not in found["policies"], "each of the two facts denies"
