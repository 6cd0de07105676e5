# SPDX-License-Identifier: Apache-2.0
"""Checks and lists in the terms of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast
from uuid import UUID

import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Question
from gateway.access.tuples import ALL_USERS, MANAGED_ACCESS, Principal, PrincipalType, TupleKey
from gateway.fga.client import FgaClient
from gateway.fga.model_analysis import FollowedReaches
from gateway.fga.relationships import FgaRelationships, read_back, rfc3339, subject_of, to_wire
from gateway.fga.wire import Condition, FgaTuple

ROLE = UUID("9f0b2c4e-0000-4000-8000-00000000abcd")
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
TABLE = ObjectKey(ObjectType.TABLE, "00000000-0000-4000-8000-000000000001")


class Recorder:
    """A client that records its checks."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.model_id = "m"

    async def batch_check(
        self, checks: Sequence[FgaTuple], *, contextual: Sequence[FgaTuple], context: Mapping[str, str], paced: bool
    ) -> list[bool]:
        self.calls.append({"checks": list(checks), "contextual": list(contextual), "context": dict(context)})
        return [True] * len(checks)


class Lister(Recorder):
    """A client that returns some objects in lists and allows configured checks."""

    def __init__(self, named: set[str], held: set[tuple[str, str]]) -> None:
        super().__init__()
        self._named = named
        self._held = held

    async def confirmed(
        self, user: str, relation: str, objects: Set[str], *, contextual: object, context: object, others: int
    ) -> set[str]:
        self.calls.append({"listed": relation, "contextual": contextual, "context": context})
        return self._named & objects

    async def batch_check(
        self, checks: Sequence[FgaTuple], *, contextual: Sequence[FgaTuple], context: Mapping[str, str], paced: bool
    ) -> list[bool]:
        await super().batch_check(checks, contextual=contextual, context=context, paced=paced)
        return [(check.relation, check.object) in self._held for check in checks]


def listed(count: int, by: str | None) -> tuple[list[Question], list[str]]:
    keys = [ObjectKey(ObjectType.TABLE, f"t{number}") for number in range(count)]
    return [Question(Can.INCLUDE_IN_LIST, key, None, by) for key in keys], [f"table:{key.id}" for key in keys]


async def test_many_hints_use_one_list_request_and_the_rest_is_checked() -> None:
    """A list response of OpenFGA may be truncated, so a missing object means nothing."""
    questions, names = listed(150, "select")
    recorder = Lister(set(names[:140]), {("select", names[141]), ("can_include_in_list", names[142])})
    answers = await relationships(recorder).check(Actor.user("oidc~a"), questions, now=NOON)
    assert [number for number, yes in enumerate(answers) if yes] == [*range(140), 141, 142]
    requested = [{check.relation for check in call["checks"]} for call in recorder.calls[1:]]
    assert (recorder.calls[0]["listed"], requested) == ("select", [{"select"}, {"can_include_in_list"}])
    assert [len(call["checks"]) for call in recorder.calls[1:]] == [10, 9]


async def test_many_columns_use_one_list_request_and_the_rest_is_checked() -> None:
    """A hint may suffice for one relation and not for another in the same call."""
    keys = [ObjectKey(ObjectType.COLUMN, f"t.{number}") for number in range(300)]
    questions = [Question(Can.READ_DATA, key, None, "select") for key in keys]
    questions += [Question(Can.GET_METADATA, keys[0], None, "select")]
    names = [f"column:{key.id}" for key in keys]
    recorder = Lister(set(names[:298]), {("can_read_data", names[299])})
    answers = await relationships(recorder).check(Actor.user("oidc~a"), questions, now=NOON)
    assert [number for number, yes in enumerate(answers) if yes] == [*range(298), 299]
    assert recorder.calls[0]["listed"] == "select"
    requested = [[(check.relation, check.object) for check in call["checks"]] for call in recorder.calls[1:]]
    assert [set(each) for each in requested] == [
        {("select", names[298]), ("select", names[299])},
        {("can_read_data", names[298]), ("can_read_data", names[299]), ("can_get_metadata", names[0])},
    ]


async def test_few_hints_are_checked_and_a_wrong_hint_loses_no_row() -> None:
    questions, names = listed(3, "select")
    recorder = Lister(set(), {("select", names[0]), ("can_include_in_list", names[2])})
    assert await relationships(recorder).check(Actor.user("oidc~a"), questions, now=NOON) == [True, False, True]
    assert not [call for call in recorder.calls if "listed" in call]


async def test_hints_of_a_replaced_model_are_ignored() -> None:
    """In another model the relation may not show a row; then the full check runs with that model."""
    questions, names = listed(120, "select")
    recorder = Lister(set(names), {("can_include_in_list", names[7])})
    recorder.model_id = "other"
    answers = await relationships(recorder).check(Actor.user("oidc~a"), questions, now=NOON)
    assert [number for number, yes in enumerate(answers) if yes] == [7]

    switching = Lister(set(names), {("can_include_in_list", names[7])})
    confirmed = switching.confirmed

    async def switch(*args: Any, **kwargs: Any) -> set[str]:
        switching.model_id = "other"
        return await confirmed(*args, **kwargs)

    switching.confirmed = switch  # type: ignore[method-assign]  # the model changes while the list is under way
    answers = await relationships(switching).check(Actor.user("oidc~a"), questions, now=NOON)
    assert [number for number, yes in enumerate(answers) if yes] == [7]


async def test_a_list_request_names_the_role_member_and_the_current_time() -> None:
    questions, names = listed(100, "select")
    recorder = Lister(set(names), set())
    actor = Actor(kind=Actor.user("x").kind, id="oidc~alice", assumed_role=ROLE)
    assert all(await relationships(recorder).check(actor, questions, now=NOON))
    [call] = recorder.calls
    assert list(call["contextual"]) == [FgaTuple(f"user:role={ROLE}", "assignee", f"role:{ROLE}")]
    assert call["context"] == {"current_time": "2026-03-04T12:00:00Z"}


class Sure:
    """In the model `m` any hint suffices."""

    async def enough(self, model_id: str, relation: Can, type: ObjectType, granted: str) -> bool:
        listed = (relation, type) == (Can.INCLUDE_IN_LIST, ObjectType.TABLE)
        return model_id == "m" and (listed or (relation, type, granted) == (Can.READ_DATA, ObjectType.COLUMN, "select"))

    async def inherited(self, model_id: str, type_name: str, relation: str, parent_name: str) -> str | None:
        """Return the relation that reads data of all tables in a namespace."""
        known = (model_id, type_name, relation, parent_name) == ("m", "table", "can_read_data", "namespace")
        return "selects" if known else None


def relationships(recorder: Recorder) -> FgaRelationships:
    return FgaRelationships(cast(FgaClient, recorder), cast(FollowedReaches, Sure()))


SPACES = [ObjectKey(ObjectType.NAMESPACE, f"n{number}") for number in range(3)]


def lying(count: int, space: ObjectKey, relation: Can = Can.READ_DATA) -> list[Question]:
    keys = [ObjectKey(ObjectType.TABLE, f"{space.id}-t{number}") for number in range(count)]
    return [Question(relation, key, inside=(space,)) for key in keys]


async def test_many_checks_below_one_container_become_one_check_of_the_container() -> None:
    """The right is held on the first namespace, and in the second one on a single table."""
    requested = [*lying(500, SPACES[0]), *lying(8, SPACES[1]), *lying(7, SPACES[2]), *lying(9, SPACES[0], Can.DROP)]
    own, drop = ("can_read_data", "table:n1-t3"), ("can_drop", "table:n0-t0")
    recorder = Lister(set(), {("selects", "namespace:n0"), own, drop})
    answers = await relationships(recorder).check(Actor.user("oidc~a"), requested, now=NOON)
    assert [number for number, yes in enumerate(answers) if yes] == [*range(500), 503, 515]
    probes, rest = recorder.calls
    assert {(check.relation, check.object) for check in probes["checks"]} == {
        ("selects", "namespace:n0"),
        ("selects", "namespace:n1"),
    }, "small groups and relations without inheritance must be checked one by one"
    assert len(rest["checks"]) == 8 + 7 + 9


async def test_a_container_check_of_another_model_is_ignored() -> None:
    recorder = Lister(set(), {("selects", "namespace:n0")})
    check = recorder.batch_check

    async def switch(*args: Any, **kwargs: Any) -> list[bool]:
        recorder.model_id = "other"
        return await check(*args, **kwargs)

    recorder.batch_check = switch  # type: ignore[method-assign]  # the model changes while the question is under way
    answers = await relationships(recorder).check(Actor.user("oidc~a"), lying(20, SPACES[0]), now=NOON)
    assert not any(answers)
    assert len(recorder.calls[-1]["checks"]) == 20


async def test_a_check_names_the_encoded_user_id_and_the_current_time() -> None:
    recorder = Recorder()
    answers = await relationships(recorder).check(Actor.user("oidc~a:*"), [Question(Can.READ_DATA, TABLE)], now=NOON)
    assert answers == [True]
    assert recorder.calls == [
        {
            "checks": [FgaTuple("user:oidc~a%3A%2A", "can_read_data", f"table:{TABLE.id}")],
            "contextual": [],
            "context": {"current_time": "2026-03-04T12:00:00Z"},
        }
    ]


async def test_an_assumed_role_is_checked_as_a_member_without_other_rights() -> None:
    recorder = Recorder()
    actor = Actor(kind=Actor.user("x").kind, id="oidc~alice", assumed_role=ROLE)
    await relationships(recorder).check(actor, [Question(Can.READ_DATA, TABLE)], now=NOON)
    [call] = recorder.calls
    assert call["checks"] == [FgaTuple(f"user:role={ROLE}", "can_read_data", f"table:{TABLE.id}")]
    assert call["contextual"] == [FgaTuple(f"user:role={ROLE}", "assignee", f"role:{ROLE}")]


async def test_a_placeholder_is_checked_below_the_container_of_the_absent_object() -> None:
    recorder = Recorder()
    inner, outer = (ObjectKey(ObjectType.NAMESPACE, f"00000000-0000-4000-8000-00000000000{n}") for n in (2, 3))
    warehouse = ObjectKey(ObjectType.WAREHOUSE, "00000000-0000-4000-8000-000000000004")
    questions = [
        Question(relation, TABLE, above=(inner, outer, warehouse)) for relation in (Can.GET_METADATA, Can.READ_DATA)
    ]
    await FgaRelationships(cast(FgaClient, recorder)).check(Actor.user("oidc~alice"), questions, now=NOON)
    [call] = recorder.calls
    assert call["contextual"] == [
        FgaTuple(f"namespace:{inner.id}", "parent", f"table:{TABLE.id}"),
        FgaTuple(f"namespace:{outer.id}", "parent", f"namespace:{inner.id}"),
        FgaTuple(f"warehouse:{warehouse.id}", "parent", f"namespace:{outer.id}"),
    ]


async def test_an_empty_check_sends_no_request() -> None:
    recorder = Recorder()
    assert await relationships(recorder).check(Actor.user("oidc~a"), [], now=NOON) == []
    assert recorder.calls == []


def test_an_anonymous_caller_is_never_checked() -> None:
    with pytest.raises(ValueError, match="anonymous"):
        subject_of(Actor.anonymous())


def test_recorded_relationships_become_tuples() -> None:
    namespace = ObjectKey(ObjectType.NAMESPACE, "00000000-0000-4000-8000-000000000002")
    alice = Principal(PrincipalType.USER, "oidc~al ice")
    role = Principal(PrincipalType.ROLE, str(ROLE))
    assert to_wire(TupleKey(alice, "select", TABLE)) == FgaTuple("user:oidc~al%20ice", "select", f"table:{TABLE.id}")
    assert to_wire(TupleKey(role, "select", TABLE)).user == f"role:{ROLE}#assignee"
    assert to_wire(TupleKey(namespace, "parent", TABLE)).user == f"namespace:{namespace.id}"
    boxed = to_wire(TupleKey(alice, "select", TABLE), expires_at=NOON)
    assert boxed.condition == Condition("unexpired", {"expires_at": "2026-03-04T12:00:00Z"})


def test_times_are_sent_in_utc_and_never_without_a_zone() -> None:
    assert rfc3339(datetime(2026, 3, 4, 13, 0, 0, 5, tzinfo=timezone(timedelta(hours=1)))) == (
        "2026-03-04T12:00:00.000005Z"
    )
    with pytest.raises(ValueError, match="without a zone"):
        rfc3339(datetime(2026, 3, 4, 13))


def test_only_the_managed_access_flag_has_a_wildcard_subject() -> None:
    on = ObjectKey(ObjectType.NAMESPACE, "00000000-0000-4000-8000-000000000001")
    for type in PrincipalType:
        flag = TupleKey(Principal(type, ALL_USERS), MANAGED_ACCESS, on)
        assert to_wire(flag).user == f"{type.value}:*"
        assert read_back(to_wire(flag)).key == flag
    assert to_wire(TupleKey(Principal(PrincipalType.USER, ALL_USERS), "select", on)).user == "user:%2A"
    assert read_back(FgaTuple("user:*", "select", f"namespace:{on.id}")).key is None
