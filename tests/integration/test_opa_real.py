# SPDX-License-Identifier: Apache-2.0
"""The policies and the decider against a real OPA that is started as in production."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest

from gateway.access.decisions.policy import (
    PolicyAnswer,
)
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.obligations.kinds import AppendOnly, CredentialLife, NoVending
from gateway.obligations.merging import Obligations
from gateway.opa import explanation
from gateway.opa.decider import OpaDecider
from tests.support.servers.opa_serving import (
    CONTRACTORS,
    GATEWAY,
    OPERATOR,
    SHIPPED,
    SUNDAY_NIGHT,
    WEDNESDAY_NOON,
    call,
    request,
    serving,
    table,
)

pytestmark = pytest.mark.integration

DECISIONS = "/v1/data/gateway/decisions"
CREDENTIALS = "/v1/data/policy_data/credentials"


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with serving(LAKEGATE_OPA_GATEWAY_TOKEN=GATEWAY, LAKEGATE_OPA_OPERATOR_TOKEN=OPERATOR) as address:
        yield address


@pytest.fixture
def endpoint(served: str) -> Iterator[str]:
    """Return the server, with the shipped policy data before and after the test."""
    yield served
    assert call(served, "PUT", CONTRACTORS, SHIPPED["contractors"], OPERATOR) == 204
    assert call(served, "PUT", CREDENTIALS, SHIPPED["credentials"], OPERATOR) == 204


@pytest.fixture
async def decider(endpoint: str) -> AsyncIterator[OpaDecider]:
    made = OpaDecider(endpoint, GATEWAY, timeout_s=30)
    yield made
    await made.aclose()


async def test_default_policies_allow_everything_at_any_time(decider: OpaDecider) -> None:
    await decider.ping()
    for kind in ("user", "role", "system"):
        answers = await decider.decide(request(table(), table("other"), kind=kind, at=SUNDAY_NIGHT))
        assert answers == (PolicyAnswer(allow=True), PolicyAnswer(allow=True))


async def test_operator_marks_a_contractor_at_run_time(decider: OpaDecider, endpoint: str) -> None:
    listed = {**SHIPPED["contractors"], "users": ["oidc~contractor"]}
    assert call(endpoint, "PUT", CONTRACTORS, listed, OPERATOR) == 204
    [night] = await decider.decide(request(at=SUNDAY_NIGHT))
    assert night.allow is False
    assert [reason.code for reason in night.reasons] == ["contractor_outside_hours"]
    assert (await decider.decide(request(at=WEDNESDAY_NOON)))[0].allow is True
    assert (await decider.decide(request(actor="oidc~alice", at=SUNDAY_NIGHT)))[0].allow is True
    moved = [{"op": "replace", "path": "/hours/until", "value": "11:00"}]
    assert call(endpoint, "PATCH", CONTRACTORS, moved, OPERATOR) == 204
    assert (await decider.decide(request(at=WEDNESDAY_NOON)))[0].allow is False


async def test_time_zones_are_known_to_opa(decider: OpaDecider, endpoint: str) -> None:
    hours = {**SHIPPED["contractors"]["hours"], "timezone": "Asia/Tokyo"}
    listed = {"users": ["oidc~contractor"], "roles": [], "hours": hours}
    assert call(endpoint, "PUT", CONTRACTORS, listed, OPERATOR) == 204
    assert (await decider.decide(request(at="2026-03-04T01:00:00Z")))[0].allow is True
    assert (await decider.decide(request(at=WEDNESDAY_NOON)))[0].allow is False


async def test_invalid_policy_data_denies_all_users(decider: OpaDecider, endpoint: str) -> None:
    assert call(endpoint, "PUT", CONTRACTORS, {"users": "oidc~contractor"}, OPERATOR) == 204
    [answer] = await decider.decide(request(actor="oidc~alice"))
    assert answer.allow is False


async def test_credential_rules_become_obligations_of_their_requests(decider: OpaDecider, endpoint: str) -> None:
    rules = [
        {"namespace": ["pii*"], "ask": {"max_credential_seconds": 900}},
        {"warehouse": "cold", "ask": {"no_vending": True}},
        {"namespace": ["logs"], "ask": {"append_only": True, "max_credential_seconds": 1800}},
    ]
    assert call(endpoint, "PUT", CREDENTIALS, {"rules": rules}, OPERATOR) == 204
    answers = await decider.decide(
        request(table(), table(namespace="pii_eu", warehouse="cold"), table(namespace="logs"))
    )
    assert [answer.obligations for answer in answers] == [
        Obligations(),
        Obligations.of(CredentialLife(900), NoVending()),
        Obligations.of(CredentialLife(1800), AppendOnly()),
    ]


async def test_builtin_function_error_fails_the_decision(decider: OpaDecider, endpoint: str) -> None:
    """Without strict errors an invalid pattern would match nothing, and its obligation would be dropped."""
    rules = [{"table": "[", "ask": {"no_vending": True}}]
    assert call(endpoint, "PUT", CREDENTIALS, {"rules": rules}, OPERATOR) == 204
    with pytest.raises(DecisionEngineUnavailable, match=r"eval_builtin_error at .*credentials\.rego:\d+"):
        await decider.decide(request())


async def test_unknown_time_zone_denies_contractors_only(decider: OpaDecider, endpoint: str) -> None:
    hours = {**SHIPPED["contractors"]["hours"], "timezone": "Europe/Atlantis"}
    assert call(endpoint, "PUT", CONTRACTORS, {"users": ["oidc~c"], "roles": [], "hours": hours}, OPERATOR) == 204
    with pytest.raises(DecisionEngineUnavailable, match="contractors.rego"):
        await decider.decide(request(actor="oidc~c"))
    assert (await decider.decide(request(actor="oidc~alice")))[0].allow is True


async def test_thousand_opa_requests_are_answered_in_order(decider: OpaDecider, endpoint: str) -> None:
    rules = [{"table": "*7", "ask": {"no_vending": True}}]
    assert call(endpoint, "PUT", CREDENTIALS, {"rules": rules}, OPERATOR) == 204
    answers = await decider.decide(request(*[table(f"t{number}") for number in range(1000)]))
    assert [answer.obligations == Obligations.of(NoVending()) for answer in answers] == [
        number % 10 == 7 for number in range(1000)
    ]


async def test_an_unknown_kind_of_caller_is_denied(decider: OpaDecider) -> None:
    [answer] = await decider.decide(request(kind="anonymous"))
    assert answer.allow is False


@pytest.mark.parametrize("token", ["wrong", "", OPERATOR])
async def test_unknown_token_gets_no_decision(endpoint: str, token: str) -> None:
    decider = OpaDecider(endpoint, token, timeout_s=30)
    with pytest.raises(DecisionEngineUnavailable):
        await decider.decide(request())
    await decider.aclose()


def test_gateway_token_cannot_change_opa(endpoint: str) -> None:
    assert call(endpoint, "POST", DECISIONS, {"input": {"questions": []}}, GATEWAY) == 200
    assert call(endpoint, "GET", "/health", None, GATEWAY) == 200
    for method, path in (
        ("POST", f"{DECISIONS}?explain=full"),
        ("POST", f"{DECISIONS}?strict-builtin-errors=true&metrics=true"),
        ("POST", "/v1/data/gateway/guardrails/../decisions"),
        ("POST", "/v1/data/gateway"),
        ("POST", "/v1/data"),
        ("GET", DECISIONS),
        ("GET", CONTRACTORS),
        ("PUT", CONTRACTORS),
        ("GET", "/v1/policies"),
        ("PUT", "/v1/policies/gateway/main.rego"),
        ("POST", "/v1/query"),
        ("GET", "/v1/config"),
        ("GET", "/metrics"),
    ):
        assert call(endpoint, method, path, {}, GATEWAY) in (301, 307, 401), (method, path)


async def test_gateway_token_evaluates_one_query_partially(decider: OpaDecider, endpoint: str) -> None:
    actor = request(actor="oidc~alice").actor
    proof = await decider.silence(actor)
    assert proof is not None
    assert proof.rules is None
    body = json.loads(explanation.compile_request(actor))
    assert call(endpoint, "POST", explanation.PATH, body, GATEWAY) == 200
    assert call(endpoint, "POST", explanation.PATH, body, OPERATOR) == 401
    for changed in (
        {"query": "opa.runtime() = x"},
        {"unknowns": ["input"]},
        {"options": {"nondeterministicBuiltins": True}},
        {"input": {**body["input"], "context": {}}},
    ):
        assert call(endpoint, "POST", explanation.PATH, {**body, **changed}, GATEWAY) == 401, changed
    for path in ("/v1/compile", "/v1/compile?explain=fails", "/v1/compile/gateway/residual/speaks?explain=full"):
        assert call(endpoint, "POST", path, body, GATEWAY) == 401, path


def test_operator_token_cannot_decide_or_change_policies(endpoint: str) -> None:
    assert call(endpoint, "GET", CONTRACTORS, None, OPERATOR) == 200
    allow_all = "package system.authz\n\nallow := true\n"
    for method, path, body in (
        ("PUT", "/v1/policies/mine", allow_all),
        ("PUT", "/v1/policies/system%2Fauthz.rego", allow_all),
        ("DELETE", "/v1/policies/system%2Fauthz.rego", None),
        ("PUT", "/v1/data/system/authz/allow", True),
        ("PUT", "/v1/data/gateway/decisions", {}),
        ("PUT", "/v1/data/policy_data/../gateway/decisions", {}),
        ("PUT", "/v1/data/policy_data/%2e%2e/gateway/decisions", {}),
        ("PUT", "/v1/data", {}),
        ("PATCH", "/v1/data", [{"op": "remove", "path": "/policy_data"}]),
        ("DELETE", CONTRACTORS, None),
        ("POST", DECISIONS, {"input": {}}),
        ("GET", "/v1/data", None),
        ("GET", "/v1/config", None),
    ):
        assert call(endpoint, method, path, body, OPERATOR) in (301, 307, 401), (method, path)
    assert call(endpoint, "POST", DECISIONS, {"input": {"questions": []}}, GATEWAY) == 200


def test_opa_refuses_requests_without_a_token(endpoint: str) -> None:
    for method, path in (("POST", DECISIONS), ("GET", "/health"), ("GET", CONTRACTORS), ("GET", "/v1/policies")):
        assert call(endpoint, method, path, {}, None) == 401


def test_opa_without_configured_tokens_refuses_all_requests() -> None:
    with serving() as bare, serving(LAKEGATE_OPA_GATEWAY_TOKEN="", LAKEGATE_OPA_OPERATOR_TOKEN="") as empty:
        for address in (bare, empty):
            for token in (None, "", "null", "undefined", GATEWAY):
                assert call(address, "POST", DECISIONS, {"input": {}}, token) == 401
                assert call(address, "PUT", CONTRACTORS, {}, token) == 401


async def test_the_decider_survives_a_restart_of_opa() -> None:
    variables = {"LAKEGATE_OPA_GATEWAY_TOKEN": GATEWAY, "LAKEGATE_OPA_OPERATOR_TOKEN": OPERATOR}
    with serving(**variables) as first:
        decider = OpaDecider(first, GATEWAY, timeout_s=30)
        assert (await decider.decide(request()))[0].allow
    with pytest.raises(DecisionEngineUnavailable):
        await decider.decide(request())
    with serving(**variables) as second:
        again = OpaDecider(second, GATEWAY, timeout_s=30)
        assert all(await asyncio.gather(*[again.decide(request()) for _ in range(20)]))
        await again.aclose()
    await decider.aclose()
