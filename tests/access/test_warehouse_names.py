# SPDX-License-Identifier: Apache-2.0
"""Every operation of a warehouse by its name: decided as by its id, and without a hint that the warehouse exists."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx
import pytest

from gateway.access.nouns.refs import UNUSED_ID, WarehouseNameRef
from gateway.access.nouns.warehouse_names import WarehouseNames
from tests.support.door import world
from tests.support.door.app import Running, running
from tests.support.door.examples import EXAMPLES, Example
from tests.support.door.world import DoorFixture

BY_PREFIX = [example for example in EXAMPLES if "prefix" in example.path]
NAME = "lake"


def named(example: Example, name: str = NAME) -> str:
    """Return the path of a request with the name of the warehouse."""
    return example.url.replace(example.path["prefix"], name)


def closed(door_fixture: DoorFixture) -> DoorFixture:
    """Return the fixture with a caller that has no right at all."""
    door_fixture.judge.answer = lambda _: False
    return door_fixture


def body(answer: httpx.Response, name: str = NAME) -> str:
    """Return the body without the error id and the given name."""
    if not answer.content:
        return ""
    error: dict[str, Any] = answer.json()["error"]
    return f"{error['message'].replace(name, '…')} {error['type']} {error['code']} {error['stack'][:-1]}"


async def test_operations_by_name_are_decided_as_by_id() -> None:
    by_id, by_name = DoorFixture(), DoorFixture()
    async with running(by_id) as one, running(by_name) as other:
        for example in BY_PREFIX:
            first, second = await one.send(example), await other.send(example, at=named(example))
            assert (first.status_code, one.spy.calls) == (second.status_code, other.spy.calls), example
    assert by_id.judge.calls == by_name.judge.calls
    assert [each.questions for each in by_id.rules.calls] == [each.questions for each in by_name.rules.calls]
    pairs = zip(by_id.audit.buffered, by_name.audit.buffered, strict=True)
    assert all(
        [each.resources for each in one.decisions] == [each.resources for each in two.decisions] for one, two in pairs
    )


async def _refused(name: str) -> tuple[list[tuple[int, list[str], str]], list[int], DoorFixture]:
    """Send every request by this name without rights; return the answers, the numbers of calls, and the fixture."""
    door_fixture = closed(DoorFixture())
    answers, calls = [], []
    async with running(door_fixture) as app:
        for example in BY_PREFIX:
            answer = await app.send(example, at=named(example, name))
            answers.append((answer.status_code, sorted(answer.headers), body(answer, name)))
            calls += [len(door_fixture.resolver.calls), len(door_fixture.judge.calls), len(door_fixture.rules.calls)]
        assert app.spy.calls == []
    return answers, calls, door_fixture


@pytest.mark.threat("LG-DIS-01")
async def test_an_invisible_name_and_an_unknown_one_get_the_same_answer_after_the_same_calls() -> None:
    invisible, there, fixture = await _refused(NAME)
    unknown, nowhere, _ = await _refused("pond")
    assert invisible == unknown
    assert there == nowhere
    texts = " ".join(text for _, _, text in invisible)
    assert str(world.WAREHOUSE_ID) not in texts
    assert UNUSED_ID[:-12] not in texts
    assert any(text.startswith("Warehouse does not exist: …") for _, _, text in invisible)
    assert fixture.audit.buffered, "refusals are recorded"


@pytest.mark.threat("LG-DIS-01")
async def test_absent_names_have_ids_of_their_own_and_spellings_share_them() -> None:
    """Idempotency keys are claimed for the path with the id. With one id for all absent names, a second request with
    the key of a running one was a conflict for an absent name, and none for an invisible one.
    """
    fixture = DoorFixture()
    names = WarehouseNames(fixture.resolver)

    async def id_of(name: str, project: str = world.PROJECT_ID) -> UUID:
        return await names.id_of(WarehouseNameRef(project, name), world.ALICE)

    pond = await id_of("pond")
    assert pond == await id_of("POND")
    assert len({pond, await id_of("sea"), await id_of("pond", "p2"), UUID(UNUSED_ID)}) == 4
    assert pond.version is None, "no row has such an id"


async def test_a_name_costs_one_read_more_than_an_id() -> None:
    async with running() as app:
        for example in BY_PREFIX:
            resolver = app.door_fixture.resolver
            resolver.calls.clear()
            await app.send(example)
            by_id = len(resolver.calls)
            resolver.calls.clear()
            await app.send(example, at=named(example))
            assert len(resolver.calls) == by_id + 1, example


async def _looked_for(app: Running, prefix: str, **headers: str) -> list[WarehouseNameRef]:
    """Return the names that a request with this prefix looks for."""
    app.door_fixture.resolver.calls.clear()
    await app.client.get(f"/catalog/v1/{prefix}/namespaces", headers={"authorization": "Bearer alice"} | headers)
    return [ref for refs in app.door_fixture.resolver.calls for ref in refs if isinstance(ref, WarehouseNameRef)]


async def test_the_project_is_the_one_of_the_header_or_the_default_one() -> None:
    async with running() as app:
        assert await _looked_for(app, "lake") == [WarehouseNameRef(world.PROJECT_ID, "lake")]
        assert await _looked_for(app, "lake", **{"x-project-id": "p2"}) == [WarehouseNameRef("p2", "lake")]
        two = [("authorization", "Bearer alice"), ("x-project-id", "p1"), ("x-project-id", "p2")]
        app.door_fixture.resolver.calls.clear()
        answer = await app.client.get("/catalog/v1/lake/namespaces", headers=two)
        assert answer.status_code == 404


@pytest.mark.parametrize(
    "id", [str(world.WAREHOUSE_ID), str(world.WAREHOUSE_ID).upper(), world.WAREHOUSE_ID.hex, str(UUID(int=7))]
)
async def test_the_form_of_a_uuid_is_always_an_id(id: str) -> None:
    async with running() as app:
        assert await _looked_for(app, id) == []


async def test_names_are_decoded_once() -> None:
    async with running() as app:
        assert await _looked_for(app, "%6Cake") == [WarehouseNameRef(world.PROJECT_ID, "lake")]
        assert await _looked_for(app, "%256Cake") == [WarehouseNameRef(world.PROJECT_ID, "%6Cake")]
        assert await _looked_for(app, "v1") == [WarehouseNameRef(world.PROJECT_ID, "v1")]
        for refused in ("a%2Fb", "..%2Flake", "%2e%2e", "lake%00", "lake%5Cx", "%ff", "n" * 129):
            assert await _looked_for(app, refused) == []


async def test_a_renamed_warehouse_is_not_reached_by_its_former_name() -> None:
    """The router caches the parameters of a path; the id of the first request must not be among them."""
    load = next(example for example in BY_PREFIX if example.label == "list tables")
    async with running() as app:
        await app.send(load, at=named(load))
        assert app.spy.calls == ["ListTables"]
        del app.door_fixture.resolver.rows[world.WAREHOUSE_BY_NAME]
        answer = await app.send(load, at=named(load))
        assert (answer.status_code, app.spy.calls) == (404, ["ListTables"])


async def test_without_a_token_no_name_is_looked_for() -> None:
    async with running() as app:
        answer = await app.client.get("/catalog/v1/lake/namespaces")
        assert answer.status_code == 401
        assert app.door_fixture.resolver.calls == []
