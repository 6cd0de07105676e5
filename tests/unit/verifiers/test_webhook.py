# SPDX-License-Identifier: Apache-2.0
"""Webhooks: the signature, the strict reading of answers, and servers that fail in every way."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import hmac
import json

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from gateway.verification.opa_rule import OpaRule
from gateway.verification.panel import Panel, Seat, VerifierFailed
from gateway.verification.port import Approved, ChangeKind, Pending, ProposedChange, Rejected, Verdict
from gateway.verification.webhook import Webhook, signature, signing_key
from gateway.verification.wire import MOST_ANSWER_BYTES, MOST_QUESTION_BYTES, InvalidAnswer, decode_answer
from tests.support.door.verified_changes import change, document, field
from tests.support.servers.verifier_servers import KEY, Handler, answering, serving

CHANGE = change(
    before=document([field(1, "a")]),
    after=document([field(1, "b")]),
    updates=({"action": "set-properties", "updates": {"x": "ü"}},),
)


async def asked(handler: Handler, proposed: ProposedChange = CHANGE, *, documents: bool = True) -> Verdict:
    async with serving(handler) as url:
        webhook = Webhook("w", f"{url}/judge", KEY, timeout=5, connections=4, documents=documents)
        try:
            return await webhook.verify(proposed)
        finally:
            await webhook.close()


def test_question_is_signed_and_contains_the_change() -> None:
    seen: list[tuple[dict[str, str], bytes, str]] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append((dict(request.headers), await request.read(), request.path))
        return web.json_response({"verdict": "approve"})

    assert asyncio.run(asked(handle)) == Approved()
    ((headers, body, path),) = seen
    # Computed here again, as docs/change-approval.md shows it to the authors of servers.
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}" and path == "/judge"
    question = json.loads(body)
    assert (question["kind"], question["object-type"], question["principal"]) == ("commit", "table", "oidc~alice")
    assert question["after"]["schemas"][0]["fields"][0]["name"] == "b"
    assert question["updates"][0]["updates"] == {"x": "ü"}


def test_signature_equals_the_example_of_the_specification() -> None:
    """The values are those of the reference libraries of Standard Webhooks."""
    key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    found = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_!!", "a2tra2tr", "whsec_" + "a" * 8, "whsec_" + "a" * 400])
def test_weak_or_malformed_secret_is_refused_without_its_text(secret: str) -> None:
    with pytest.raises(ValueError, match="must be whsec_") as refused:
        signing_key(secret)
    assert len(secret) < 10 or secret not in str(refused.value)


def test_documents_are_sent_only_if_set() -> None:
    seen: list[dict[str, object]] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(await request.json())
        return web.json_response({"verdict": "pending", "reasons": ["ask Bob"]})

    assert asyncio.run(asked(handle, documents=False)) == Pending(("ask Bob",))
    assert (seen[0]["before"], seen[0]["after"], seen[0]["updates"]) == (None, None, [])


NONSENSE = {
    "empty": "",
    "no JSON": "approve",
    "a list": "[]",
    "null": "null",
    "a text": '"approve"',
    "no verdict": '{"reasons":["x"]}',
    "unknown verdict": '{"verdict":"approved"}',
    "another case": '{"verdict":"Approve"}',
    "a number": '{"verdict":1}',
    "true": '{"verdict":true}',
    "reasons is a text": '{"verdict":"reject","reasons":"x"}',
    "reason is a number": '{"verdict":"reject","reasons":[1]}',
    "unknown member": '{"verdict":"approve","verdit":"reject"}',
    "approves twice": '{"verdict":"approve"}{"verdict":"approve"}',
    "two verdicts": '{"verdict":"reject","verdict":"approve"}',
    "two equal verdicts": '{"verdict":"approve","verdict":"approve"}',
    "deep": "[" * 50_000,
    "no UTF-8": b'{"verdict":"approve","reasons":["\xff"]}',
    "too many reasons": json.dumps({"verdict": "reject", "reasons": ["x"] * 101}),
}


@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_is_a_failure_and_never_an_approval(body: str | bytes) -> None:
    with pytest.raises(InvalidAnswer):
        asyncio.run(asked(answering(body)))
    with pytest.raises(VerifierFailed):
        asyncio.run(asked_opa(answering(b'{"result":' + (body.encode() if isinstance(body, str) else body) + b"}")))


GOOD = '{"verdict":"approve"}'


async def _redirect(request: web.Request) -> web.Response:
    if request.path == "/other":
        return web.Response(text=GOOD, content_type="application/json")
    raise web.HTTPTemporaryRedirect("/other")


async def _drips(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    for _ in range(200):
        await response.write(b" " * 16_384)
    return response


async def _bomb(_request: web.Request) -> web.Response:
    body = gzip.compress(b" " * 2**24 + GOOD.encode())
    return web.Response(body=body, headers={"Content-Type": "application/json", "Content-Encoding": "gzip"})


async def _compressed(_request: web.Request) -> web.Response:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    return web.Response(body=gzip.compress(GOOD.encode()), headers=headers)


@pytest.mark.threat("LG-DEC-35")
@pytest.mark.parametrize(
    "handler",
    [
        answering(GOOD, status=500),
        answering(GOOD, status=202),
        answering(GOOD, content_type="text/plain"),
        answering(" " * 2_000_000 + GOOD),
        answering(" " * (MOST_ANSWER_BYTES - len(GOOD) + 1) + GOOD),
        _redirect,
        _drips,
        _bomb,
        _compressed,
    ],
    ids=[
        "500",
        "202",
        "text",
        "2 MB",
        "one byte too long",
        "redirect",
        "3 MB without a length",
        "16 MB compressed",
        "compressed",
    ],
)
def test_answer_of_another_kind_is_a_failure(handler: Handler) -> None:
    with pytest.raises(InvalidAnswer):
        asyncio.run(asked(handler))


def test_answer_of_the_largest_size_is_accepted() -> None:
    assert asyncio.run(asked(answering(" " * (MOST_ANSWER_BYTES - len(GOOD)) + GOOD))) == Approved()


def test_server_that_hangs_or_closes_neither_approves_nor_holds_requests() -> None:
    async def hang(_request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def cut(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def run(handler: Handler) -> None:
        async with serving(handler) as url:
            webhook = Webhook("w", url, KEY, timeout=5, connections=2)
            panel = Panel([Seat(verifier=webhook, timeout=0.2, questions=2)])
            judgements = await asyncio.gather(*(panel.verify(CHANGE) for _ in range(10)))
            assert all(judgement.unavailable and judgement.verdict != Approved() for judgement in judgements)
            await panel.close()

    asyncio.run(run(hang))
    asyncio.run(run(cut))


def test_server_that_is_down_is_a_failure_and_is_asked_again_later() -> None:
    async def run() -> Verdict:
        async with serving(answering(GOOD)) as url:
            pass
        webhook = Webhook("w", url, KEY, timeout=5, connections=2)
        with pytest.raises((aiohttp.ClientError, OSError)):
            await webhook.verify(CHANGE)
        await webhook.close()
        return await asked(answering('{"verdict":"reject","reasons":[]}'))

    assert asyncio.run(run()) == Rejected(())


def test_question_with_documents_of_two_megabytes_arrives_whole_and_a_larger_one_fails() -> None:
    sizes: list[int] = []

    async def handle(request: web.Request) -> web.Response:
        body = await request.read()
        sizes.append(len(json.loads(body)["after"]["properties"]["x"]))
        signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + body
        expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
        return web.json_response(
            {"verdict": "approve" if expected in request.headers["webhook-signature"] else "reject"}
        )

    large = change(ChangeKind.CREATE, object_id=None, after=document(properties={"x": "y" * 2_000_000}))
    assert asyncio.run(asked(handle, large)) == Approved() and sizes == [2_000_000]
    huge = change(ChangeKind.CREATE, object_id=None, after=document(properties={"x": "y" * MOST_QUESTION_BYTES}))
    with pytest.raises(VerifierFailed, match="more than"):
        asyncio.run(asked(handle, huge))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["approve", "reject"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["verdict", "reasons", "x"]), inner),
    max_leaves=6,
)


@given(json_values)
def test_only_the_documented_form_is_an_approval(value: object) -> None:
    try:
        verdict = decode_answer(json.dumps(value).encode())
    except InvalidAnswer:
        return
    assert isinstance(value, dict) and value.keys() <= {"verdict", "reasons"}
    assert (verdict == Approved()) == (value["verdict"] == "approve")


async def asked_opa(handler: Handler) -> Verdict:
    async with serving(handler) as url:
        rule = OpaRule("o", url, "verdict", token="t", timeout=5, connections=2)
        try:
            return await rule.verify(CHANGE)
        finally:
            await rule.close()


def test_rule_in_opa_is_asked_with_the_token_at_its_fixed_path() -> None:
    seen: list[tuple[str, str, object]] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append((request.path_qs, request.headers["Authorization"], await request.json()))
        return web.json_response({"decision_id": "1", "result": {"verdict": "reject", "reasons": ["no"]}})

    assert asyncio.run(asked_opa(handle)) == Rejected(("no",))
    ((path, token, body),) = seen
    assert (path, token) == ("/v1/data/lakegate/changes/verdict?strict-builtin-errors=true", "Bearer t")
    assert isinstance(body, dict) and body["input"]["kind"] == "commit"


@pytest.mark.parametrize("body", ["{}", '{"result":{}}', '{"result":{"verdict":"approve"},"result":{}}'])
def test_undefined_or_incomplete_rule_is_a_failure(body: str) -> None:
    with pytest.raises(InvalidAnswer):
        asyncio.run(asked_opa(answering(body)))


@pytest.mark.parametrize("rule", ["", "a/b", "../x", "a-b", "1a", "verdict?x", "ä"])
def test_name_that_could_reach_another_decision_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match="no name of a rule"):
        OpaRule("o", "http://127.0.0.1:1", rule, token=None, timeout=1, connections=1)
