# SPDX-License-Identifier: Apache-2.0
"""An OPA that is slow, broken or incomplete.

It allows no request, each failure raises the typed error, and no message contains the token.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.access.decisions.policy import (
    PolicyActor,
    PolicyContext,
    PolicyQuestion,
    PolicyRequest,
    PolicyResource,
    Reason,
)
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.obligations.kinds import CredentialLife, NoVending
from gateway.obligations.merging import Obligations
from gateway.opa.decider import OpaDecider
from tests.support.clock import quickest
from tests.support.rows.parts import closed_port

pytestmark = pytest.mark.chaos

TOKEN = "very-secret-token"
YES = {"allow": True, "reasons": [], "obligations": {}}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def request(questions: int = 1) -> PolicyRequest:
    question = PolicyQuestion(operation="load_table", resource=PolicyResource(type="table"))
    return PolicyRequest(
        actor=PolicyActor(id="oidc~alice", kind="user"),
        context=PolicyContext(request_id="r", time="2026-03-04T12:00:00Z"),
        questions=(question,) * questions,
    )


@asynccontextmanager
async def opa(handler: Handler, timeout_s: float = 10.0) -> AsyncIterator[OpaDecider]:
    """Yield a decider whose OPA is a server that answers every request with `handler`."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app) as server:
        decider = OpaDecider(str(server.make_url("")), TOKEN, timeout_s=timeout_s)
        try:
            yield decider
        finally:
            await decider.aclose()


def answering(body: Any, status: int = 200, content_type: str = "application/json") -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, content_type=content_type)

    return handler


async def outage(decider: OpaDecider, questions: int = 1) -> None:
    with pytest.raises(DecisionEngineUnavailable) as raised:
        await decider.decide(request(questions))
    assert TOKEN not in "".join(traceback.format_exception(raised.value))
    assert raised.value.__cause__ is None


@pytest.mark.threat("LG-DEC-19")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"result": None},
        {"result": True},
        {"result": {}},
        {"result": {"allow": True}},
        {"result": [YES]},
        {"result": {"decisions": True}},
        {"result": {"decisions": []}},
        {"result": {"decisions": [YES, YES]}},
        {"result": {"decisions": [True]}},
        {"result": {"decisions": [{}]}},
        {"result": {"decisions": [{**YES, "allow": "true"}]}},
        {"result": {"decisions": [{**YES, "allow": 1}]}},
        {"result": {"decisions": [{**YES, "allow": None}]}},
        {"result": {"decisions": [{**YES, "obligations": {"max_credential_seconds": "900"}}]}},
        {"result": {"decisions": [{**YES, "obligations": {"max_credential_seconds": -1}}]}},
        {"result": {"decisions": [{**YES, "obligations": {"mask_columns": ["a"]}}]}},
        {"result": {"decisions": [{**YES, "obligations": None}]}},
        {"result": {"decisions": [{**YES, "obligations": {"max_credential_seconds": None}}]}},
        {"result": {"decisions": [{**YES, "obligations": {"no_vending": "true"}}]}},
        {"result": {"decisions": [{**YES, "obligations": {"append_only": None}}]}},
        {"result": {"decisions": [{**YES, "obligations": {"hide_operations": "drop_table"}}]}},
        {"result": {"decisions": [{"allow": True, "reasons": []}]}},
        {"result": {"decisions": [{"allow": True, "obligations": {}}]}},
        {"result": {"decisions": [{**YES, "reasons": [{"code": "c"}]}]}},
        {"result": {"decisions": [{**YES, "verdict": "maybe"}]}},
        {"result": {"decisions": [YES], "limits": {}}},
        {"result": {"decisions": [YES], "valid_until": "tomorrow"}},
        {"decisions": [YES]},
        [{"result": {"decisions": [YES]}}],
        "not json",
        "",
        "null",
        "[" * 100_000,
    ],
)
async def test_incomplete_opa_decision_is_an_outage(body: Any) -> None:
    async with opa(answering(body)) as decider:
        await outage(decider)


@pytest.mark.threat("LG-DEC-23")
async def test_one_missing_answer_among_several_is_an_outage() -> None:
    async with opa(answering({"result": {"decisions": [YES, YES]}})) as decider:
        await outage(decider, 3)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 502, 503, 504])
async def test_any_error_status_is_an_outage(status: int) -> None:
    async with opa(answering({"result": {"decisions": [YES]}}, status)) as decider:
        await outage(decider)


async def test_response_without_json_content_type_is_an_outage() -> None:
    async with opa(answering({"result": {"decisions": [YES]}}, content_type="text/html")) as decider:
        await outage(decider)


async def test_slow_server_is_an_outage_at_the_timeout() -> None:
    async def slow(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(3)
        return web.Response()

    async with opa(slow, timeout_s=0.2) as decider:

        async def send() -> None:
            await outage(decider)
            with pytest.raises(DecisionEngineUnavailable):
                await decider.ping()

        assert await quickest(send) < 1


async def test_retries_of_a_broken_server_end_at_the_timeout() -> None:
    requested: list[int] = []

    async def breaking(_: web.Request) -> web.StreamResponse:
        requested.append(1)
        return web.Response(status=500)

    async with opa(breaking, timeout_s=10.0) as decider, asyncio.timeout(12):
        await outage(decider)
    assert len(requested) == 2, "a failed decision request must be retried once"


async def test_policy_error_is_an_outage_naming_the_line_without_a_retry() -> None:
    calls: list[str] = []
    location = {"file": "gateway/guardrails/times.rego", "row": 7, "col": 3}
    errors = [{"code": "eval_builtin_error", "message": 'parsing time "secret"', "location": location}]

    async def failing(received: web.Request) -> web.StreamResponse:
        calls.append(received.raw_path)
        return web.json_response({"code": "internal_error", "message": "m", "errors": errors}, status=500)

    async with opa(failing) as decider:
        with pytest.raises(DecisionEngineUnavailable) as raised:
            await decider.decide(request())
    assert str(raised.value) == "A policy failed for this input: eval_builtin_error at gateway/guardrails/times.rego:7."
    assert calls == ["/v1/data/gateway/decisions?strict-builtin-errors=true"]


async def test_unreachable_server_is_an_outage() -> None:
    with closed_port() as port:
        decider = OpaDecider(f"http://127.0.0.1:{port}", TOKEN, timeout_s=1.0)
        await outage(decider)
        with pytest.raises(DecisionEngineUnavailable):
            await decider.ping()
        await decider.aclose()


async def test_complete_response_is_read_in_order() -> None:
    body = {
        "result": {
            "decisions": [
                {"allow": True, "reasons": [], "obligations": {"max_credential_seconds": 900, "no_vending": True}},
                {"allow": False, "reasons": [{"code": "c", "message": "m"}], "obligations": {}},
            ],
            "valid_until": "2026-03-04T13:00:00Z",
        },
        "decision_id": "4ca636c1",
    }
    async with opa(answering(body)) as decider:
        first, second = await decider.decide(request(2))
        held = await decider.evaluate(request(2))
    assert first.allow is True
    assert first.obligations == Obligations.of(CredentialLife(900), NoVending())
    assert second.allow is False
    assert second.reasons == (Reason(code="c", message="m"),)
    assert held.valid_until is not None


@pytest.mark.threat("LG-POL-10")
async def test_request_path_is_fixed_and_fields_are_snake_case() -> None:
    seen: list[tuple[str, Any, str | None]] = []

    async def keeping(requested: web.Request) -> web.StreamResponse:
        seen.append((requested.raw_path, await requested.json(), requested.headers.get("Authorization")))
        return web.json_response({"result": {"decisions": [YES]}})

    nasty = '/v1/data/trino/allow/../../x["]}'
    question = PolicyQuestion(
        operation=nasty,
        resource=PolicyResource(type="table", id=nasty, name=nasty, namespace=[nasty]),
        facts={"purge": True, "names": ("a", "b"), "number": 3, "nothing": None},
    )
    requested = PolicyRequest(
        actor=PolicyActor(id=nasty, kind="user", roles=("r",), engine=nasty),
        context=PolicyContext(request_id="r", time="t", user_agent=nasty),
        questions=(question,),
    )
    async with opa(keeping) as decider:
        await decider.decide(requested)
    [(path, body, bearer)] = seen
    assert path == "/v1/data/gateway/decisions?strict-builtin-errors=true"
    assert bearer == f"Bearer {TOKEN}"
    assert body == {
        "input": {
            "actor": {
                "id": nasty,
                "kind": "user",
                "assumed_role": None,
                "roles": ["r"],
                "engine": nasty,
                "subject_proven": True,
                "groups_known": True,
                "asked_by": None,
            },
            "context": {"request_id": "r", "time": "t", "user_agent": nasty, "client_address": None},
            "questions": [
                {
                    "operation": nasty,
                    "resource": {
                        "type": "table",
                        "id": nasty,
                        "name": nasty,
                        "namespace": [nasty],
                        "namespace_ids": None,
                        "former_names": [],
                        "former_namespaces": [],
                        "former_names_complete": True,
                        "warehouse_id": None,
                        "warehouse": None,
                        "project_id": None,
                    },
                    "facts": {"purge": True, "names": ["a", "b"], "number": 3, "nothing": None},
                }
            ],
        }
    }


async def test_concurrent_calls_share_one_session() -> None:
    async def allowing(requested: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.05)
        questions = (await requested.json())["input"]["questions"]
        return web.json_response({"result": {"decisions": [YES] * len(questions)}})

    async with opa(allowing) as decider:
        answers = await asyncio.gather(*[decider.decide(request(n)) for n in range(1, 9)])
        assert [len(each) for each in answers] == list(range(1, 9))
