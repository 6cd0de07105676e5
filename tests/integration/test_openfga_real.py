# SPDX-License-Identifier: Apache-2.0
"""The model and the client against a real OpenFGA with in-memory storage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import pytest

from gateway.access.actor import Actor, ActorKind
from gateway.access.dependency_errors import ConditionConflict, DecisionEngineUnavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Question
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.fga.client import FgaClient
from gateway.fga.compiled import actions_of, compiled_model
from gateway.fga.model import ModelNotReady, StoreAndModel, find_model, push_model
from gateway.fga.model_analysis import FollowedReaches
from gateway.fga.names import role_members, user_object
from gateway.fga.relationships import FgaRelationships, rfc3339, to_wire
from gateway.fga.wire import Condition, FgaTuple, TuplesRefused
from tests.support.clock import quickest
from tests.support.servers.openfga_server import KEY, openfga_in_memory

pytestmark = [pytest.mark.integration, pytest.mark.servers]

LISTED = ("project", "warehouse", "namespace", "table", "view", "generic_table")
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
CONTEXT = {"current_time": rfc3339(NOW)}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Run an OpenFGA with its tuples in memory."""
    with openfga_in_memory() as address:
        yield address


@pytest.fixture
async def pushed(endpoint: str) -> StoreAndModel:
    """Create a separate store for each test."""
    return await push_model(endpoint, KEY, f"test-{uuid4()}")


@pytest.fixture
async def client(endpoint: str, pushed: StoreAndModel) -> AsyncIterator[FgaClient]:
    made = FgaClient(endpoint, KEY, pushed.store_id, pushed.model_id, timeout_s=30)
    yield made
    await made.aclose()


async def holds(client: FgaClient, user: str, relation: str, object_: str, **context: str) -> bool:
    [answer] = await client.batch_check([FgaTuple(user, relation, object_)], context=context or CONTEXT)
    return answer


# ---- the store and the model ----


async def test_pushing_an_equal_model_changes_nothing(endpoint: str, pushed: StoreAndModel) -> None:
    name = f"again-{uuid4()}"
    first = await push_model(endpoint, KEY, name)
    assert await push_model(endpoint, KEY, name) == first
    assert await find_model(endpoint, KEY, name, demanded=actions_of(compiled_model())) == first
    assert first.store_id != pushed.store_id


async def test_concurrent_migrations_create_one_store(endpoint: str) -> None:
    name = f"race-{uuid4()}"
    found = await asyncio.gather(*[push_model(endpoint, KEY, name) for _ in range(4)])
    assert len({each.store_id for each in found}) == 1
    settled = await push_model(endpoint, KEY, name)
    assert settled.store_id == found[0].store_id
    assert settled.model_id in {each.model_id for each in found}


async def test_a_changed_model_is_replaced_by_the_shipped_one(endpoint: str, pushed: StoreAndModel) -> None:
    name = f"changed-{uuid4()}"
    first = await push_model(endpoint, KEY, name)
    other = {"schema_version": "1.1", "type_definitions": [{"type": "user"}]}
    await _call(endpoint, "POST", f"/stores/{first.store_id}/authorization-models", other)
    with pytest.raises(ModelNotReady, match="lacks table#can_drop"):
        await find_model(endpoint, KEY, name, demanded={"table": {"can_drop"}})
    again = await push_model(endpoint, KEY, name)
    assert again.store_id == first.store_id
    assert again.model_id != first.model_id
    assert await find_model(endpoint, KEY, name, demanded={"table": {"can_drop"}}) == again


async def test_two_stores_of_one_name_are_refused(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.fga.model._SETTLE_SECONDS", 0.02)
    name = f"twice-{uuid4()}"
    for _ in range(2):
        await _call(endpoint, "POST", "/stores", {"name": name})
    with pytest.raises(ModelNotReady, match="2 stores named"):
        await push_model(endpoint, KEY, name)
    with pytest.raises(ModelNotReady, match="2 stores named"):
        await find_model(endpoint, KEY, name, demanded={})


async def test_serving_without_store_model_or_relation_is_refused(endpoint: str) -> None:
    with pytest.raises(ModelNotReady, match="no store named"):
        await find_model(endpoint, KEY, f"absent-{uuid4()}", demanded={})
    empty = f"empty-{uuid4()}"
    await _call(endpoint, "POST", "/stores", {"name": empty})
    with pytest.raises(ModelNotReady, match="has no model"):
        await find_model(endpoint, KEY, empty, demanded={})
    full = f"full-{uuid4()}"
    await push_model(endpoint, KEY, full)
    with pytest.raises(ModelNotReady, match="lacks table#can_fly, view#can_swim"):
        await find_model(endpoint, KEY, full, demanded={"view": {"can_swim"}, "table": {"can_fly", "can_drop"}})


async def test_wrong_api_key_is_an_outage_and_absent_from_the_error(endpoint: str, pushed: StoreAndModel) -> None:
    with pytest.raises(DecisionEngineUnavailable) as raised:
        await push_model(endpoint, "wrong-secret", "any")
    assert "wrong-secret" not in repr(raised.value)
    client = FgaClient(endpoint, "wrong-secret", pushed.store_id, pushed.model_id, timeout_s=30)
    for asking in (client.ping(), client.write([FgaTuple("user:a", "select", "table:1")])):
        with pytest.raises(DecisionEngineUnavailable) as raised:
            await asking
        assert "wrong-secret" not in repr(raised.value)
    await client.aclose()


# ---- checks and writes ----


async def test_grant_and_revocation_apply_at_once(client: FgaClient) -> None:
    grant = FgaTuple("user:a", "select", "table:1")
    await client.ping()
    assert not await holds(client, "user:a", "can_read_data", "table:1")
    await client.write([grant])
    assert await holds(client, "user:a", "can_read_data", "table:1")
    await client.write(deletes=[grant])
    assert not await holds(client, "user:a", "can_read_data", "table:1")


async def test_repeated_writes_and_deletes_succeed(client: FgaClient) -> None:
    grant = FgaTuple("user:a", "select", "table:1")
    await client.write([grant])
    await client.write([grant, FgaTuple("user:b", "select", "table:1")])
    await client.write(deletes=[grant, FgaTuple("user:c", "select", "table:1")])
    await client.write(deletes=[grant])
    assert [found async for found in client.read()] == [FgaTuple("user:b", "select", "table:1")]


async def test_changed_condition_needs_a_delete_first(client: FgaClient) -> None:
    plain = FgaTuple("user:a", "select", "table:1")
    boxed = FgaTuple("user:a", "select", "table:1", Condition("unexpired", {"expires_at": "2026-03-05T00:00:00Z"}))
    await client.write([boxed])
    with pytest.raises(ConditionConflict):
        await client.write([plain])
    assert [found async for found in client.read()] == [boxed]
    await client.write(deletes=[boxed])
    await client.write([plain])
    assert [found async for found in client.read()] == [plain]


async def test_write_with_an_invalid_tuple_is_refused_as_a_whole(client: FgaClient) -> None:
    good = FgaTuple("user:a", "select", "table:1")
    for bad in (
        FgaTuple("user:*", "select", "table:1"),
        FgaTuple("user:a", "can_drop", "table:1"),
        FgaTuple("role:r", "select", "table:1"),
        FgaTuple("namespace:n", "child", "warehouse:w"),
        FgaTuple("user:*", "traverse", "namespace:n"),
    ):
        with pytest.raises(TuplesRefused):
            await client.write([good, bad])
    assert [found async for found in client.read()] == []


async def test_tuple_read_covers_all_pages_and_filters(client: FgaClient) -> None:
    tuples = [FgaTuple(f"user:u{n:03}", "select", f"table:{n % 2}") for n in range(250)]
    for start in (0, 100, 200):
        await client.write(tuples[start : start + 100])
    assert {found.user async for found in client.read()} == {each.user for each in tuples}
    assert len([found async for found in client.read(object="table:1")]) == 125
    assert len([found async for found in client.read(user="user:u003", object="table:")]) == 1


async def test_expiring_grant_applies_until_its_expiry_and_needs_the_time(client: FgaClient) -> None:
    key = TupleKey(Principal(PrincipalType.USER, "oidc~a"), "select", ObjectKey(ObjectType.TABLE, "1"))
    await client.write([to_wire(key, expires_at=NOW)])
    before, after = rfc3339(NOW - timedelta(microseconds=1)), rfc3339(NOW)
    assert await holds(client, "user:oidc~a", "can_read_data", "table:1", current_time=before)
    assert not await holds(client, "user:oidc~a", "can_read_data", "table:1", current_time=after)
    assert not await holds(client, "user:oidc~a", "can_read_data", "table:1", other="x")
    with pytest.raises(DecisionEngineUnavailable, match="cannot decide"):
        await holds(client, "user:oidc~a", "can_read_data", "table:1", current_time="noon")


async def test_unknown_relation_is_an_outage(client: FgaClient) -> None:
    with pytest.raises(DecisionEngineUnavailable, match="table#can_fly"):
        await holds(client, "user:a", "can_fly", "table:1")


async def test_two_hundred_checks_keep_their_order(client: FgaClient) -> None:
    await client.write([FgaTuple(f"user:u{n}", "select", "table:1") for n in range(0, 200, 3)])
    checks = [FgaTuple(f"user:u{n}", "can_read_data", "table:1") for n in range(200)]
    assert await client.batch_check(checks, context=CONTEXT) == [n % 3 == 0 for n in range(200)]


async def test_unusual_user_ids_are_ordinary_users(client: FgaClient) -> None:
    nasty = ["*", "oidc~*", "oidc~a:b#c", "role:x#assignee", "oidc~a|b@c", "oidc~a b\n", "oidc~é名", "o~" + "x" * 500]
    for number, user_id in enumerate(nasty):
        await client.write([FgaTuple(user_object(user_id), "select", f"table:{number}")])
    for number, _ in enumerate(nasty):
        checks = [FgaTuple(user_object(user_id), "can_read_data", f"table:{number}") for user_id in [*nasty, "oidc~x"]]
        answers = await client.batch_check(checks, context=CONTEXT)
        assert answers == [other == number for other in range(len(checks))]


# ---- effects of the model ----


def _tree(depth: int) -> list[FgaTuple]:
    """Return the tuples of server:s - project:p - warehouse:w - namespace:n1 - … - namespace:n<depth> - table:t"""
    tuples = [
        FgaTuple("server:s", "server", "project:p"),
        FgaTuple("project:p", "project", "warehouse:w"),
        FgaTuple("warehouse:w", "parent", "namespace:n1"),
    ]
    tuples += [FgaTuple(f"namespace:n{n}", "parent", f"namespace:n{n + 1}") for n in range(1, depth)]
    return [*tuples, FgaTuple(f"namespace:n{depth}", "parent", "table:t")]


async def test_the_deepest_namespaces_and_longest_role_chains_are_decided_in_time(client: FgaClient) -> None:
    roles = [str(UUID(int=n)) for n in range(11)]
    chain = [
        FgaTuple(role_members(inner), "assignee", f"role:{outer}")
        for outer, inner in zip(roles, roles[1:], strict=False)
    ]
    operator = FgaTuple(role_members(roles[0]), "operator", "server:s")
    member = FgaTuple("user:deep", "assignee", f"role:{roles[-1]}")
    await client.write([*_tree(5), *chain, operator, member])
    relations = ("can_read_data", "can_drop", "can_get_metadata", "can_grant_select", "can_read_assignments")
    for user, expected in (("user:deep", True), ("user:nobody", False)):
        checks = [FgaTuple(user, relation, "table:t") for relation in relations]

        async def send(checks: list[FgaTuple] = checks, expected: bool = expected) -> None:
            assert await client.batch_check(checks, context=CONTEXT) == [expected] * len(relations)

        # The normal time is a few hundredths of a second; a model that walks a path once per way of reaching it takes
        # more than five seconds.
        assert await quickest(send) < 1.5


async def test_managed_access_restricts_an_assumed_role_like_its_members(client: FgaClient) -> None:
    role = uuid4()
    key = ObjectKey(ObjectType.TABLE, "t")
    await client.write([*_tree(1), FgaTuple(role_members(role), "ownership", "table:t")])
    relationships = FgaRelationships(client)
    actor = Actor(kind=ActorKind.USER, id="oidc~alice", assumed_role=role)
    questions = [Question(Can.GRANT_SELECT, key), Question(Can.READ_DATA, key)]
    assert await relationships.check(actor, questions, now=NOW) == [True, True]
    flag = [FgaTuple("user:*", "managed_access", "warehouse:w"), FgaTuple("role:*", "managed_access", "warehouse:w")]
    await client.write(flag)
    assert await relationships.check(actor, questions, now=NOW) == [False, True]
    assert await holds(client, role_members(role), "can_grant_select", "table:t"), (
        "a check of the role itself ignores the flag; if this fails, the workaround can be removed"
    )


async def test_an_assumed_role_gives_only_what_the_role_has(client: FgaClient) -> None:
    role, key = uuid4(), ObjectKey(ObjectType.TABLE, "t")
    own = FgaTuple("user:oidc~alice", "modify", "table:t")
    await client.write([own, FgaTuple(role_members(role), "select", "table:t")])
    relationships = FgaRelationships(client)
    questions = [Question(Can.READ_DATA, key), Question(Can.WRITE_DATA, key)]
    assumed = Actor(kind=ActorKind.USER, id="oidc~alice", assumed_role=role)
    assert await relationships.check(assumed, questions, now=NOW) == [True, False]
    assert await relationships.check(Actor.user("oidc~alice"), questions, now=NOW) == [True, True]
    assert [found async for found in client.read(object=f"role:{role}")] == [], (
        "the membership of an assumed role must not be stored"
    )


@pytest.mark.threat("LG-DIS-15")
async def test_checks_and_lists_agree(client: FgaClient, endpoint: str, pushed: StoreAndModel) -> None:
    await client.write(
        [
            *_tree(2),
            FgaTuple("namespace:n1", "parent", "table:u"),
            FgaTuple("user:a", "select", "namespace:n1"),
            FgaTuple("user:b", "modify", "table:u"),
            FgaTuple("user:c", "describe", "table:t"),
            FgaTuple("user:c", "traverse", "namespace:n1"),
            FgaTuple("user:d", "ownership", "warehouse:w"),
            FgaTuple("user:*", "managed_access", "namespace:n1"),
            FgaTuple("user:e", "ownership", "table:t"),
        ]
    )
    relations = sorted(actions_of(compiled_model())["table"])
    for user in ("user:a", "user:b", "user:c", "user:d", "user:e", "user:f"):
        checks = [FgaTuple(user, relation, table) for relation in relations for table in ("table:t", "table:u")]
        answers = await client.batch_check(checks, context=CONTEXT)
        by_check = {(check.relation, check.object) for check, yes in zip(checks, answers, strict=True) if yes}
        by_list = await _listed(endpoint, pushed, user, relations)
        assert by_check == by_list, user


async def _listed(endpoint: str, pushed: StoreAndModel, user: str, relations: Sequence[str]) -> set[tuple[str, str]]:
    found = set()
    for relation in relations:
        requested: dict[str, Any] = {"authorization_model_id": pushed.model_id, "context": CONTEXT}
        requested |= {"type": "table", "relation": relation, "user": user}
        answer = await _call(endpoint, "POST", f"/stores/{pushed.store_id}/list-objects", requested)
        found |= {(relation, each) for each in answer["objects"]}
    return found


async def _call(endpoint: str, method: str, path: str, body: Any) -> Any:
    """Send one request directly to OpenFGA."""
    headers = {"Authorization": f"Bearer {KEY}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.request(method, endpoint + path, json=body) as response,
    ):
        assert response.status < 300, await response.text()
        return await response.json()


@pytest.mark.parametrize("assumed", [False, True])
async def test_hinted_list_equals_single_checks(client: FgaClient, assumed: bool) -> None:
    """The tables are granted by the hinted relation, by an expired grant, by other relations, or not at all. Granted
    tables outside the list must not matter.
    """
    role, who = uuid4(), f"oidc~{uuid4()}"
    holder = role_members(role) if assumed else user_object(who)
    namespace = uuid4()
    tables = [ObjectKey(ObjectType.TABLE, str(uuid4())) for _ in range(140)]
    names = [f"table:{key.id}" for key in tables]
    over = Condition("unexpired", {"expires_at": rfc3339(NOW)})
    written = [FgaTuple(holder, "select", name) for name in names[:110]]
    written += [FgaTuple(holder, "select", name, over) for name in names[110:120]]
    written += [FgaTuple(holder, "modify", name) for name in names[120:125]]
    written += [FgaTuple(f"namespace:{namespace}", "parent", name) for name in names[125:130]]
    written += [FgaTuple(holder, "describe", f"namespace:{namespace}")]
    written += [FgaTuple(holder, "select", f"table:{uuid4()}") for _ in range(20)]
    for start in range(0, len(written), 100):
        await client.write(written[start : start + 100])
    actor = Actor(kind=ActorKind.USER, id=who, assumed_role=role if assumed else None)
    plain = [Question(Can.INCLUDE_IN_LIST, key) for key in tables]
    hinted = [Question(Can.INCLUDE_IN_LIST, key, None, "select") for key in tables]
    reaches = FollowedReaches(client)
    assert set(await reaches()) == {type for type in ObjectType if type.value in LISTED}
    asking = FgaRelationships(client, reaches)
    expected = [*[True] * 110, *[False] * 10, *[True] * 10, *[False] * 10]
    assert await asking.check(actor, plain, now=NOW) == expected
    assert await asking.check(actor, hinted, now=NOW) == expected


async def test_list_ends_when_complete_or_over_its_limit(client: FgaClient) -> None:
    who = user_object(f"oidc~{uuid4()}")
    names = {f"table:{uuid4()}" for _ in range(60)}
    await client.write([FgaTuple(who, "select", name) for name in names])
    some = set(list(names)[:3])
    assert await client.confirmed(who, "select", some, context=CONTEXT, others=100) == some
    assert len(await client.confirmed(who, "select", {"table:nothing"} | some, context=CONTEXT, others=0)) < 4
    assert await client.confirmed(who, "select", {"table:nothing"}, context=CONTEXT, others=10) == set()
    with pytest.raises(DecisionEngineUnavailable, match="status 400"):
        await client.confirmed(who, "no_such_relation", some, context=CONTEXT, others=10)


@pytest.mark.parametrize("managed", [False, True])
async def test_grouped_checks_equal_single_checks(client: FgaClient, managed: bool) -> None:
    """With every privilege granted on the namespace, a grouped check gives the same decisions as single checks."""
    space = ObjectKey(ObjectType.NAMESPACE, str(uuid4()))
    tables = [ObjectKey(ObjectType.TABLE, str(uuid4())) for _ in range(8)]
    given = ("ownership", "pass_grants", "manage_grants", "manage_tags", "describe", "select", "create", "modify")
    holders = {privilege: f"oidc~{privilege}-{uuid4()}" for privilege in given}
    name = f"namespace:{space.id}"
    written = [FgaTuple(name, "parent", f"table:{key.id}") for key in tables]
    written += [FgaTuple(user_object(who), privilege, name) for privilege, who in holders.items()]
    written += [FgaTuple(f"{type}:*", "managed_access", name) for type in ("user", "role") if managed]
    await client.write(written)
    rights = (Can.GET_METADATA, Can.READ_DATA, Can.DROP, Can.MANAGE_TAGS, Can.READ_ASSIGNMENTS, Can.CHANGE_OWNERSHIP)
    asking = FgaRelationships(client, FollowedReaches(client))
    for who in (*holders.values(), "oidc~nobody"):
        # All tables have the same grants, so one of them represents all.
        apart = [Question(right, tables[0]) for right in rights for _ in tables]
        together = [Question(right, key, inside=(space,)) for right in rights for key in tables]
        answers = [await asking.check(Actor.user(who), requested, now=NOW) for requested in (apart, together)]
        assert answers[0] == answers[1], who
