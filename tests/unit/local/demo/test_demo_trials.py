# SPDX-License-Identifier: Apache-2.0
"""The trials of the demonstration against a leaking gateway: each leak must fail its trial."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import httpx2
import pytest

from lakegate.local.demo import story
from lakegate.local.demo.board import Observation, Trial
from lakegate.local.demo.spark import Answer, Worker
from lakegate.local.demo.world import GOLD, Caller, Lake, World
from lakegate.local.ready import ObjectStoreAccess, OpaAccess, OpenFgaAccess, Ready

PREFIX = "0198"
Handler = Callable[[httpx2.Request], httpx2.Response]


def refusal(status: int, kind: str, message: str = "") -> httpx2.Response:
    return httpx2.Response(status, json={"error": {"message": message, "type": kind, "code": status}})


class Engine:
    """An engine that returns the same response to every statement."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def query(self, token: str, statement: str) -> Answer:
        return self._answer


def ready() -> Ready:
    store = ObjectStoreAccess(
        endpoint="http://s3", region="r", bucket="lake", access_key="a", secret_key="b", profile={"sts-role-arn": "arn"}
    )
    return Ready(
        catalog_uri="http://gateway/catalog",
        management_uri="http://gateway/management",
        metrics_uri="http://127.0.0.1:9000/metrics",
        issuer="http://idp",
        token_endpoint="http://idp/token",
        project_id="p",
        warehouse="demo",
        warehouse_id=None,
        users={},
        s3=store,
        postgres="",
        openfga=OpenFgaAccess(url="http://fga", store_id="s", model_id="m", token="t"),
        opa=OpaAccess(url="http://opa", token="operator"),
        bridge_key="",
        pids={},
    )


@pytest.fixture
async def world() -> AsyncIterator[Callable[[Handler, Answer | None], World]]:
    clients: list[httpx2.AsyncClient] = []

    def make(handler: Handler, answer: Answer | None = None) -> World:
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(handler))
        clients.append(http)
        names = ("nobody", "carol", "analyst", "etl", "steward", "contractor")
        people = {
            name: Caller(name, f"oidc~{name}", None if name == "nobody" else name, http, "http://gateway")
            for name in names
        }
        engine = cast(Worker, Engine(answer or Answer(seconds=0.0, rows=[["1"]])))
        return World(ready(), people, Lake("demo", PREFIX), engine)

    yield make
    for client in clients:
        await client.aclose()


async def outcome(trials: list[Trial], tried: str) -> Observation:
    (found,) = [trial for trial in trials if trial.tried == tried]
    return await found.attempt()


async def test_a_config_served_without_a_token_fails_the_trial(world: Any) -> None:
    leaking = world(lambda request: httpx2.Response(200, json={}))
    assert not (await outcome(story.strangers(leaking), "config without a token")).as_expected
    closed = world(lambda request: refusal(401, "MissingAuthorizationHeader"))
    assert (await outcome(story.strangers(closed), "config without a token")).as_expected


@pytest.mark.parametrize(("names", "good"), [([["gold"]], True), ([["gold"], ["silver"]], False), ([], False)])
async def test_the_namespace_list_must_contain_gold_only(world: Any, names: list[list[str]], good: bool) -> None:
    there = world(lambda request: httpx2.Response(200, json={"namespaces": names}))
    assert (await outcome(story.one_gold_table(there), "list namespaces")).as_expected is good


@pytest.mark.parametrize(
    ("hidden", "good"),
    [
        (refusal(404, "NoSuchTableException", "Table silver.flights does not exist"), True),
        (refusal(404, "NoSuchTableException", "Table silver.flights is hidden"), False),
        (refusal(403, "TableActionForbidden", "Table silver.flights does not exist"), False),
        (httpx2.Response(200, json={}), False),
    ],
    ids=["same response", "other message", "forbidden", "visible"],
)
async def test_an_invisible_table_must_get_the_response_of_an_absent_one(
    world: Any, hidden: httpx2.Response, good: bool
) -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/flights"):
            return hidden
        return refusal(404, "NoSuchTableException", "Table silver.no_such_table does not exist")

    assert (await outcome(story.one_gold_table(world(handler)), "load silver.flights")).as_expected is good


async def test_a_refused_commit_that_changed_the_table_fails_the_trial(world: Any) -> None:
    files = iter(["s3://lake/t/metadata/1.json", "s3://lake/t/metadata/2.json"])

    def handler(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json={"metadata-location": next(files)})
        return refusal(403, "TableActionForbidden")

    seen = await outcome(story.no_writing(world(handler)), f"commit to {GOLD} over REST")
    assert not seen.as_expected
    assert "has changed" in seen.text


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        (Answer(seconds=0.0, error="S3Exception", message="Access Denied (Service: S3, Status Code: 403)"), True),
        (Answer(seconds=0.0, rows=[]), False),
        (Answer(seconds=0.0, error="AnalysisException", message="no such column"), False),
    ],
    ids=["refused by the store", "written", "failed for another reason"],
)
async def test_an_insert_must_be_refused_by_the_store(world: Any, answer: Answer, good: bool) -> None:
    there = world(lambda request: httpx2.Response(200, json={"metadata-location": "s3://lake/t/metadata/1"}), answer)
    seen = await outcome(story.no_writing(there), f"INSERT INTO {GOLD} with Spark")
    assert seen.as_expected is good


async def test_a_refused_staged_creation_with_credentials_fails_the_trial(world: Any) -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json={"identifiers": []})
        return httpx2.Response(400, json={"error": {"type": "x"}, "storage-credentials": [{}]})

    seen = await outcome(story.foreign_places(world(handler)), "staged create in another bucket")
    assert not seen.as_expected


@pytest.mark.parametrize("load_after", [200, 404])
async def test_a_load_after_the_revocation_must_be_refused(world: Any, load_after: int) -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            return httpx2.Response(204)
        if request.url.path.endswith("/tables"):
            identifiers = [{"namespace": ["silver"], "name": "weather"}]
            return httpx2.Response(200, json={"identifiers": identifiers, "table-uuids": ["t1"]})
        return httpx2.Response(200, json={}) if load_after == 200 else refusal(404, "NoSuchTableException")

    trials = await story.steward(world(handler))
    seen = await outcome(trials, "revoke it; analyst loads silver.weather")
    assert seen.as_expected is (load_after == 404)


async def test_the_allowed_hours_exclude_then_include_now_and_are_restored() -> None:
    sent: list[dict[str, Any]] = []
    original = {"users": ["oidc~x"], "roles": [], "hours": {}}

    def handler(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["authorization"] == "Bearer operator"
        if request.method == "GET":
            return httpx2.Response(200, json={"result": original})
        sent.append(json.loads(request.content))
        return httpx2.Response(204)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(handler)) as http:
        hours = story.Hours(OpaAccess(url="http://opa", token="operator"), http, "oidc~contractor")
        await hours.remember()
        await hours.close()
        await hours.open()
        await hours.restore()
    closed, opened, restored = sent
    assert closed["users"] == opened["users"] == ["oidc~contractor"]
    assert (opened["hours"]["from"], opened["hours"]["until"]) == ("00:00", "24:00")
    assert int(closed["hours"]["until"][:2]) - int(closed["hours"]["from"][:2]) == 1
    assert restored == original
