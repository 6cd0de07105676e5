# SPDX-License-Identifier: Apache-2.0
"""A change without the verdict of its verifier is not made, whatever the reason."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from gateway import settings
from gateway.settings.verifiers import verifier_problems
from gateway.verification.opa_rule import OpaRule
from gateway.verification.panel import Asked, Judgement, Panel, Seat
from gateway.verification.port import ChangeKind, ProposedChange, Rejected
from gateway.verification.webhook import Webhook
from gateway.verification.wire import MOST_ANSWER_BYTES, MOST_QUESTION_BYTES
from tests.support.door.verified_changes import Scripted, change, document
from tests.support.servers.verifier_servers import KEY, Handler, answering, serving

DROP = change(ChangeKind.DROP)
NEW = change(ChangeKind.CREATE, object_id=None, after=document())


async def _cut(request: web.Request) -> web.StreamResponse:
    """End the connection without an answer, as a server with a limit of the body may do."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def of_size(size: int) -> ProposedChange:
    return change(ChangeKind.CREATE, object_id=None, after=document(properties={"x": "y" * size}))


def judged(handler: Handler, proposed: ProposedChange = NEW) -> tuple[Judgement, list[Asked], bool]:
    """Return the verdict of a webhook, what was observed, and True if the verifier is healthy."""

    async def run() -> tuple[Judgement, list[Asked], bool]:
        seen: list[Asked] = []
        async with serving(handler) as url:
            webhook = Webhook("w", url, KEY, timeout=20, connections=2)
            panel = Panel([Seat(verifier=webhook, timeout=20)], observe=seen.append)
            judgement = await panel.verify(proposed)
            try:
                await panel.check("w")
                healthy = True
            except Exception:
                healthy = False
            await panel.close()
        return judgement, seen, healthy

    return asyncio.run(run())


@pytest.mark.parametrize("handler", [answering("{}", status=500), answering("{}", status=503), answering("?"), _cut])
def test_failure_of_the_server_stops_the_change(handler: Handler) -> None:
    judgement, _, healthy = judged(handler)
    assert judgement.unavailable and isinstance(judgement.verdict, Rejected) and not healthy


def test_question_that_is_too_large_is_rejected_with_its_size() -> None:
    judgement, seen, healthy = judged(answering('{"verdict":"approve"}'), of_size(MOST_QUESTION_BYTES))
    assert isinstance(judgement.verdict, Rejected) and not judgement.unavailable
    assert f"more than {MOST_QUESTION_BYTES}" in judgement.verdict.reasons[0]
    # It shows nothing about the verifier, so /health stays as it was.
    assert [each.outcome for each in seen] == ["rejected"] and healthy


def test_server_that_finds_the_question_too_large_rejects_it() -> None:
    judgement, _, _ = judged(answering("", status=413))
    assert isinstance(judgement.verdict, Rejected) and not judgement.unavailable


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429])
def test_server_that_refuses_the_question_closes(status: int) -> None:
    judgement, _, healthy = judged(answering("{}", status=status))
    assert judgement.unavailable and not healthy


def test_connection_that_ends_after_a_large_question_closes() -> None:
    judgement, _, _ = judged(_cut, of_size(2_000_000))
    assert judgement.unavailable


def test_flood_of_questions_and_one_question_to_a_hanging_verifier_close() -> None:
    async def run() -> list[Judgement]:
        hanging = Panel([Seat(verifier=Scripted("hang"), timeout=0.3, questions=2)])
        flood = await asyncio.gather(*(hanging.verify(DROP) for _ in range(50)))
        return [*flood, await hanging.verify(DROP)]

    assert all(each.unavailable and isinstance(each.verdict, Rejected) for each in asyncio.run(run()))


@pytest.mark.parametrize("timeout", [0.3, 5])
def test_a_padded_change_that_a_verifier_cannot_judge_in_time_is_not_made(timeout: float) -> None:
    """A caller pads its change with 4 MB, so that a verifier needs more than its timeout."""

    async def slow_for_padding(request: web.Request) -> web.StreamResponse:
        size = len(await request.read())
        await asyncio.sleep(1 if size > 4_000_000 else 0)
        return web.json_response({"verdict": "reject", "reasons": ["no"]})

    async def run() -> Judgement:
        async with serving(slow_for_padding) as url:
            webhook = Webhook("w", url, KEY, timeout=20, connections=2)
            panel = Panel([Seat(verifier=webhook, timeout=timeout)])
            judgement = await panel.verify(of_size(4_000_000))
            await panel.close()
        return judgement

    judgement = asyncio.run(run())
    assert isinstance(judgement.verdict, Rejected) and judgement.unavailable is (timeout < 1)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("schema", {}),
        ("columns", {"PROTECTED_COLUMNS": "id"}),
        ("opa", {}),
        ("webhook", {"URL": "https://a.example", "SECRET": KEY.decode()}),
        ("extension", {}),
    ],
)
def test_the_gateway_does_not_start_with_the_removed_value_open(kind: str, more: dict[str, str]) -> None:
    def problems(on_failure: str) -> list[str]:
        given = {"KIND": kind, "ON_FAILURE": on_failure, **more}
        read = settings.load({f"LAKEGATE__VERIFIERS__V__{name}": value for name, value in given.items()})
        return verifier_problems(read.verifiers, read.max_request_time)

    assert problems("closed") == []
    (problem,) = problems("open")
    assert problem.startswith("LAKEGATE__VERIFIERS__V__ON_FAILURE must be closed, or unset: `open` was removed")


MANY_REASONS = json.dumps({"verdict": "reject", "reasons": ["a column was dropped"] * 101})
LONG_REASON = json.dumps({"verdict": "reject", "reasons": ["x" * 2001]})


@pytest.mark.parametrize("answer", [MANY_REASONS, LONG_REASON, json.dumps({"reasons": "x" * MOST_ANSWER_BYTES})])
def test_answer_that_is_too_long_closes(answer: str) -> None:
    # A caller can choose how many violations a change has.
    judgement, _, _ = judged(answering(answer))
    assert judgement.unavailable


@pytest.mark.parametrize(
    "handler",
    [
        # OPA's answer if two rules give different verdicts, or a built-in function fails for a value of the change.
        answering('{"code":"internal_error","errors":[{"code":"eval_conflict_error"}]}', status=500),
        answering("{}"),
        answering('{"result":{"verdict":"maybe"}}'),
        answering('{"result":{"verdict":"reject","reasons":[""]}}'),
        answering(f'{{"result":{MANY_REASONS}}}'),
        answering("", status=503),
    ],
)
def test_rule_in_opa_without_a_verdict_closes(handler: Handler) -> None:
    async def run() -> Judgement:
        async with serving(handler) as url:
            rule = OpaRule("o", url, "verdict", token=None, timeout=20, connections=2)
            panel = Panel([Seat(verifier=rule, timeout=20)])
            judgement = await panel.verify(NEW)
            await panel.close()
        return judgement

    assert asyncio.run(run()).unavailable
