# SPDX-License-Identifier: Apache-2.0
"""Lock 6a and 6b: every declared operation is served and has an example, and no example passes a door that refuses.

Each walk has a counterpart in which the same requests succeed, so that no walk can pass by sending nothing.
"""

from __future__ import annotations

import re
from itertools import groupby

import pytest

from gateway.access.decisions.policy import PolicyAnswer, PolicyRequest
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.nouns.cards import VISIBLE_BY
from gateway.access.nouns.refs import ObjectType
from gateway.access.operation import OPERATIONS, Durability, Operation
from gateway.access.operations.generic_tables import LoadGenericTable
from gateway.access.operations.tables import LoadTable
from gateway.access.ports import Question
from gateway.api.serves import SERVED
from tests.support.door.app import Running, running
from tests.support.door.examples import EXAMPLES, OLDER_PATHS, Example
from tests.support.door.use_cases import EXTRAS, FINDING, ORDERED, WITHOUT_USE_CASE
from tests.support.door.world import DENIED, DoorFixture

#: Paths that need no token.
OPEN = ("/.well-known/", "/health", "/swagger-ui", "/api-docs/", "/ui")

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def _hidden(name: str) -> int:
    """Return the status for a hidden object: the protocol has no 404 for signatures."""
    return 400 if name.startswith("Sign") else 404


def _required(example: Example) -> bool:
    return any(demand.required for demand in example.operation.demands())


def test_every_operation_has_an_example() -> None:
    assert {type(example.operation).__name__ for example in EXAMPLES} == set(OPERATIONS)


def test_every_example_is_routed_to_its_operation() -> None:
    for example in EXAMPLES:
        assert type(example.operation) in SERVED
        assert "{" not in example.url


async def test_a_caller_with_all_rights_reaches_every_use_case() -> None:
    async with running() as app:
        for example in EXAMPLES:
            app.spy.calls.clear()
            await app.send(example)
            name = type(example.operation).__name__
            expected = [] if name in WITHOUT_USE_CASE else ORDERED.get(name, [name])
            # A request for several objects finds each of them first.
            assert [called for called, _ in groupby(app.spy.calls)] == expected or name in EXTRAS, example
    recorded = {decision.operation for record in app.door_fixture.audit.buffered for decision in record.decisions}
    assert recorded == {operation.name() for operation in OPERATIONS.values() if not operation.is_public()}


async def _statuses(app: Running, examples: list[Example]) -> dict[str, int]:
    return {
        f"{type(example.operation).__name__} {example.label}": (await app.send(example)).status_code
        for example in examples
    }


@pytest.mark.threat("LG-DEC-01")
async def test_a_caller_without_relationships_reaches_no_use_case() -> None:
    door_fixture = DoorFixture()
    door_fixture.judge.answer = lambda _: False
    closed = [example for example in EXAMPLES if _required(example)]
    async with running(door_fixture) as app:
        statuses = await _statuses(app, closed)
        assert set(app.spy.calls) <= FINDING
    assert {name for name, status in statuses.items() if status not in (403, _hidden(name))} == set()
    on_server = {f"{type(e.operation).__name__} {e.label}" for e in closed if e.about is ObjectType.SERVER}
    assert {name for name, status in statuses.items() if status == 403} == on_server, (
        "only operations on the server return 403; all other objects are invisible"
    )
    finding = {OPERATIONS[name].name() for name in FINDING}
    refused = [record for record in door_fixture.audit.buffered if record.operation not in finding]
    assert all(record.outcome in ("hidden", "forbidden") for record in refused)
    assert len(refused) == len(closed)


async def test_a_caller_with_visibility_alone_gets_403_and_reaches_no_use_case() -> None:
    door_fixture = DoorFixture()
    door_fixture.judge.answer = lambda question: question.relation is VISIBLE_BY.get(question.object.type)
    closed = [
        example
        for example in EXAMPLES
        if any(d.required and d.relation is not VISIBLE_BY.get(d.on.type) for d in example.operation.demands())
        # The request of a caller that sees the object needs no tag, and visibility permits it.
        and not example.label.endswith("request by tag")
    ]
    async with running(door_fixture) as app:
        statuses = await _statuses(app, closed)
        assert set(app.spy.calls) <= FINDING
    assert {name for name, status in statuses.items() if status != 403} == set()


@pytest.mark.threat("LG-DEC-17")
async def test_a_policy_denial_stops_every_use_case_including_open_ones() -> None:
    door_fixture = DoorFixture()
    door_fixture.rules.answer = DENIED
    guarded = [example for example in EXAMPLES if not example.operation.is_public()]
    async with running(door_fixture) as app:
        statuses = await _statuses(app, guarded)
        assert app.spy.calls == []
        shown = (await app.send(guarded[0])).json()["error"]["message"]
    assert {name for name, status in statuses.items() if status != 403} == set()
    assert "closed: The house is closed." in shown


@pytest.mark.threat("LG-DEC-19")
@pytest.mark.parametrize("broken", ["openfga", "opa", "audit"])
async def test_no_use_case_runs_while_a_decision_engine_or_the_audit_is_down(broken: str) -> None:
    door_fixture = DoorFixture()

    def no_answer(question: Question) -> bool:
        raise DecisionEngineUnavailable("down")

    async def no_decision(request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        raise DecisionEngineUnavailable("down")

    match broken:
        case "openfga":
            door_fixture.judge.answer = no_answer
        case "opa":
            door_fixture.rules.decide = no_decision  # type: ignore[method-assign]  # the one answer this test is about
        case _:
            door_fixture.audit.full = True
    guarded = [
        example
        for example in EXAMPLES
        if not example.operation.is_public() and (broken != "openfga" or example.operation.demands())
    ]
    async with running(door_fixture) as app:
        if broken == "audit":
            # In the other cases the use case writes the record: it is reached, and its response is not sent.
            guarded = [e for e in guarded if e.operation.durability is Durability.BUFFERED]
            guarded = [e for e in guarded if not isinstance(e.operation, LoadTable | LoadGenericTable)]
        for example in guarded:
            answer = await app.send(example)
            mutating = any(o.is_catalog_mutation() for o in SERVED[type(example.operation)].opt["operations"])
            assert answer.status_code == (429 if mutating else 503), example
            assert int(answer.headers["retry-after"]) > 0
        assert set(app.spy.calls) <= (FINDING if broken == "openfga" else set())


@pytest.mark.threat("LG-DEC-01")
@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic YTpi", "Bearer a b", "alice"])
async def test_without_a_token_every_operation_is_401(header: str | None) -> None:
    door_fixture = DoorFixture()
    async with running(door_fixture) as app:
        for example in EXAMPLES:
            if example.operation.is_public():
                continue
            answer = await app.send(example, subject=None, **({} if header is None else {"authorization": header}))
            assert answer.status_code == 401, example
            assert answer.headers["www-authenticate"].startswith("Bearer")
        assert app.spy.calls == []
    assert door_fixture.judge.calls == [], "a request without a token must cause no check"
    assert door_fixture.resolver.calls == [], "a request without a token must cause no lookup"


async def test_every_undeclared_method_of_every_path_is_405() -> None:
    declared = {f"{o.endpoint.split(' ', 1)[0]} {path}" for o in OPERATIONS.values() for path in o.paths()}
    paths = {example.operation.endpoint.split(" ", 1)[1]: example.url for example in EXAMPLES}
    paths |= {template: path for path, template in _older().items()}
    async with running() as app:
        for template, path in sorted(paths.items()):
            for method in METHODS:
                answer = await app.client.request(method, path)
                expected = {405}
                if f"{method} {template}" in declared:
                    # A token request is checked for missing form fields before anything else.
                    expected = {200, 503} if path.startswith(OPEN) else {400 if path.endswith("/oauth/tokens") else 401}
                assert answer.status_code in expected, (method, path)
        assert app.spy.calls == []


def _older() -> dict[str, str]:
    """Return a filled legacy path and its template."""
    return {
        path: template
        for name, path in OLDER_PATHS
        for template in OPERATIONS[name].also_at
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path)
    }


def test_every_legacy_path_has_an_example() -> None:
    assert set(_older().values()) == {path for operation in OPERATIONS.values() for path in operation.also_at}


@pytest.mark.parametrize(("name", "path"), OLDER_PATHS)
async def test_a_legacy_path_is_the_same_operation_at_the_door(name: str, path: str) -> None:
    """A permitted caller reaches the use case with the same operation; another caller is refused as at the current
    path.
    """
    [example] = [each for each in EXAMPLES if type(each.operation).__name__ == name]
    async with running() as app:
        await app.send(example, at=path)
        assert app.spy.calls == [name]
        assert app.door_fixture.audit.buffered[-1].decisions[0].operation == example.operation.name()
    door_fixture = DoorFixture()
    door_fixture.judge.answer = lambda _: False
    async with running(door_fixture) as app:
        assert (await app.send(example, at=path)).status_code == _hidden(name)
        assert app.spy.calls == []


async def test_an_open_path_with_an_invalid_token_is_401_and_not_anonymous() -> None:
    async with running() as app:
        assert (await app.client.get("/health", headers={"authorization": "Bearer"})).status_code == 401


def test_operations_that_share_an_endpoint_are_never_public() -> None:
    for handler in set(SERVED.values()):
        operations: frozenset[type[Operation]] = handler.opt["operations"]
        if len(operations) > 1:
            assert {operation.is_public() for operation in operations} == {False}
