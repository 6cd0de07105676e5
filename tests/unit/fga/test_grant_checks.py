# SPDX-License-Identifier: Apache-2.0
"""Answers from confirmed grants: what OpenFGA is asked, and when a confirmed grant must not answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID, uuid4

import msgspec
import pytest

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Pin, Question
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.fga.client import FgaClient
from gateway.fga.compiled import compiled_model
from gateway.fga.grant_checks import GrantCheckedRelationships
from gateway.fga.model_analysis import FollowedReaches, ParsedModel
from gateway.fga.relationships import FgaRelationships
from gateway.fga.sufficient_grants import deciding_grants
from gateway.fga.wire import FgaTuple
from tests.support.model_edits import Edited, above, computed

T = ObjectType
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
ROLE = "9f0b2c4e-0000-4000-8000-00000000abcd"
ALICE, BOB = Actor.user("oidc~alice"), Actor.user("oidc~bob")
SPACE, WAREHOUSE, PROJECT = (ObjectKey(each, f"{each.value}-1") for each in (T.NAMESPACE, T.WAREHOUSE, T.PROJECT))
TABLES = [ObjectKey(T.TABLE, f"t{number}") for number in range(3)]
WITHIN = UUID(int=3)
PIN = Pin(UUID(int=1), UUID(int=2), None, (ROLE,))
TO_ROLE = TupleKey(Principal(PrincipalType.ROLE, ROLE), "select", SPACE)
TO_ALICE = TupleKey(Principal(PrincipalType.USER, ALICE.id), "select", SPACE)
MEMBERS, MEMBER = f"role:{ROLE}#assignee", ("assignee", f"role:{ROLE}")


def read(table: ObjectKey = TABLES[0], relation: Can = Can.READ_DATA, *, seen: bool = False) -> Question:
    return Question(relation, table, WITHIN, inside=(SPACE, WAREHOUSE, PROJECT), seen=seen)


@dataclass
class Server:
    """A client of an OpenFGA in which `holding` checks hold, as (user, relation, object)."""

    holding: set[tuple[str, str, str]] = field(default_factory=set)
    sent: list[list[FgaTuple]] = field(default_factory=list)
    model_id: str = "m"
    meanwhile: Any = None

    async def get(self, path: str, kind: Any) -> Any:
        return kind(authorization_model=compiled_model())

    async def batch_check(self, checks: Sequence[FgaTuple], **_: object) -> list[bool]:
        self.sent.append(list(checks))
        if self.meanwhile is not None:
            self.meanwhile()
        return [(check.user, check.relation, check.object) in self.holding for check in checks]


@dataclass
class Rows:
    """The recorded grants."""

    keys: set[TupleKey]
    reads: int = 0
    down: bool = False

    async def recorded(self, keys: Sequence[TupleKey]) -> Set[TupleKey]:
        self.reads += 1
        if self.down:
            raise DatabaseUnavailable("down")
        return self.keys & set(keys)


class Setting:
    def __init__(
        self,
        *recorded: TupleKey,
        holding: Set[tuple[str, str, str]] = frozenset(),
        seconds: float = 60,
        complete: bool = True,
    ) -> None:
        self.server, self.rows, self.time = Server(set(holding)), Rows(set(recorded)), 0.0
        client = cast(FgaClient, self.server)
        followed = FollowedReaches(client)
        self.checks = GrantCheckedRelationships(
            FgaRelationships(client, followed),
            followed,
            self.rows,
            model_id=lambda: self.server.model_id,
            server_id="s",
            complete=complete,
            entries=100,
            seconds=seconds,
            observer=self,
            clock=lambda: self.time,
        )

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        """Ignore the figures."""

    async def ask(self, actor: Actor, *questions: Question, pin: Pin = PIN, now: datetime = NOON) -> list[bool]:
        return await self.checks.check(actor, questions, now=now, pin=pin)

    def asked(self) -> set[tuple[str, str, str]]:
        """Return the checks sent since the last call."""
        found = {(each.user, each.relation, each.object) for batch in self.server.sent for each in batch}
        self.server.sent.clear()
        return found


def name(actor: Actor) -> str:
    return f"user:{actor.id}"


GRANT = (MEMBERS, "select", f"namespace:{SPACE.id}")
ALICE_IS_MEMBER, BOB_IS_MEMBER = ((name(each), *MEMBER) for each in (ALICE, BOB))


async def test_one_confirmed_grant_of_a_role_answers_for_members_and_siblings() -> None:
    here = Setting(TO_ROLE, holding={GRANT, ALICE_IS_MEMBER, BOB_IS_MEMBER})
    assert await here.ask(ALICE, read(), read(relation=Can.GET_METADATA)) == [True, True]
    assert len(here.server.sent) == 1, "the first request needs one call"
    assert here.asked() == {GRANT, ALICE_IS_MEMBER}
    assert await here.ask(ALICE, read(TABLES[1]), read(TABLES[2])) == [True, True]
    assert here.asked() == set()
    assert await here.ask(BOB, read()) == [True]
    assert here.asked() == {BOB_IS_MEMBER}
    assert here.rows.reads == 1, "confirmed grants need no rows"


async def test_a_member_by_the_rows_has_nothing_until_openfga_confirms_the_membership() -> None:
    here = Setting(TO_ROLE, holding={GRANT, ALICE_IS_MEMBER})
    assert await here.ask(ALICE, read()) == [True]
    assert await here.ask(BOB, read()) == [False]
    assert (name(BOB), "can_read_data", "table:t0") in here.asked(), "the question itself must decide"


async def test_an_unconfirmed_grant_decides_nothing_in_either_direction() -> None:
    here = Setting(TO_ROLE, holding={ALICE_IS_MEMBER})
    question = (name(ALICE), "can_read_data", "table:t0")
    for allowed in (False, True):
        here.server.holding |= {question} if allowed else set()
        assert await here.ask(ALICE, read()) == [allowed]
        assert question in here.asked()
    here.server.holding.add(GRANT)
    here.time = 5.0
    assert await here.ask(ALICE, read()) == [True]
    assert here.asked() == {GRANT}, "after a while the grant is checked again"


OTHERS: dict[str, tuple[Actor, Question, Pin]] = {
    "another server revision": (ALICE, read(), replace(PIN, revision=UUID(int=9))),
    "another grant with an expiry": (ALICE, read(), replace(PIN, time_boxes=UUID(int=9))),
    "another warehouse revision": (ALICE, replace(read(), within=UUID(int=9)), PIN),
    "another user": (BOB, read(), PIN),
    "by another group": (msgspec.structs.replace(ALICE, group_roles=(str(UUID(int=7)),)), read(), PIN),
    "under a role": (msgspec.structs.replace(ALICE, assumed_role=UUID(int=8)), read(), PIN),
    "without the role": (ALICE, read(), replace(PIN, roles=())),
    "with unknown roles": (ALICE, read(), replace(PIN, roles=None)),
    "another relation": (ALICE, read(relation=Can.WRITE_DATA), PIN),
    "in another container": (ALICE, replace(read(), inside=(ObjectKey(T.NAMESPACE, "n2"), WAREHOUSE, PROJECT)), PIN),
    "without its container": (ALICE, replace(read(), inside=()), PIN),
    "without a revision": (ALICE, replace(read(), within=None), PIN),
}


@pytest.mark.threat("LG-DEC-14")
@pytest.mark.parametrize("case", OTHERS)
async def test_a_confirmed_grant_answers_only_under_the_same_state(case: str) -> None:
    here = Setting(TO_ROLE, holding={GRANT, ALICE_IS_MEMBER})
    assert await here.ask(ALICE, read()) == [True]
    here.server.holding.clear()
    actor, question, pin = OTHERS[case]
    assert await here.ask(actor, question, pin=pin) == [False]


@pytest.mark.threat("LG-DIS-13")
@pytest.mark.parametrize("during", [True, False])
async def test_grants_of_another_model_answer_nothing(during: bool) -> None:
    here = Setting(TO_ROLE, holding={GRANT, ALICE_IS_MEMBER})
    if during:
        here.server.meanwhile = lambda: setattr(here.server, "model_id", "other")
    else:
        assert await here.ask(ALICE, read()) == [True]
        here.server.model_id = "other"
        here.server.holding.clear()
    assert await here.ask(ALICE, read()) == [False]


async def test_a_confirmed_grant_ends_with_the_first_expiry_and_after_its_maximum_age() -> None:
    until = NOON + timedelta(seconds=5)
    for pin, now, time in ((replace(PIN, next_expiry=until), until, 0.0), (PIN, NOON, 60.0)):
        here = Setting(TO_ROLE, holding={GRANT, ALICE_IS_MEMBER})
        assert await here.ask(ALICE, read(), pin=pin) == [True]
        here.server.holding.clear()
        assert await here.ask(ALICE, read(), pin=pin, now=until - timedelta(microseconds=1)) == [True]
        here.time = time
        assert await here.ask(ALICE, read(), pin=pin, now=now) == [False]


async def test_only_a_seen_object_is_refused_by_the_rows() -> None:
    here = Setting()
    assert await here.ask(ALICE, read(seen=True)) == [False]
    assert here.asked() == set()
    assert await here.ask(ALICE, read()) == [False]
    assert here.asked() == {(name(ALICE), "can_read_data", "table:t0")}


async def test_rows_refuse_nothing_while_rights_outside_of_them_count() -> None:
    here = Setting(complete=False, holding={(name(ALICE), "can_read_data", "table:t0")})
    assert await here.ask(ALICE, read(seen=True)) == [True]


async def test_an_object_that_a_confirmed_grant_shows_counts_as_seen() -> None:
    describe = replace(TO_ROLE, relation="describe")
    here = Setting(describe, holding={(MEMBERS, "describe", GRANT[2]), ALICE_IS_MEMBER})
    assert await here.ask(ALICE, read(relation=Can.GET_METADATA)) == [True]
    here.asked()
    assert await here.ask(ALICE, read(TABLES[1], Can.GET_METADATA), read(TABLES[1])) == [True, False]
    assert here.asked() == set()


async def test_a_seen_object_with_a_possible_grant_is_not_refused_by_the_rows() -> None:
    here = Setting(TO_ALICE, holding={(name(ALICE), "can_read_data", "table:t0")})
    assert await here.ask(ALICE, read(seen=True)) == [True]


async def test_without_rows_every_question_is_sent() -> None:
    here = Setting(TO_ROLE, holding={(name(ALICE), "can_read_data", "table:t0")})
    here.rows.down = True
    assert await here.ask(ALICE, read(seen=True), read(TABLES[1], seen=True)) == [True, False]


async def test_members_of_a_role_share_the_right_to_traverse() -> None:
    traverse = (MEMBERS, "traverse", f"namespace:{SPACE.id}")
    visible = Question(Can.GET_METADATA, SPACE, WITHIN, inside=(WAREHOUSE, PROJECT))
    here = Setting(holding={traverse, ALICE_IS_MEMBER, BOB_IS_MEMBER, (name(ALICE), "can_get_metadata", GRANT[2])})
    assert await here.ask(ALICE, visible) == [True]
    assert len(here.server.sent) == 1
    here.asked()
    assert await here.ask(BOB, visible) == [True]
    assert here.asked() == {BOB_IS_MEMBER}


@pytest.mark.parametrize("roles", [(), (ROLE,)])
@pytest.mark.parametrize("type", [T.TABLE, T.NAMESPACE])
async def test_absent_and_invisible_objects_cause_the_same_calls(type: ObjectType, roles: tuple[str, ...]) -> None:
    """Also in the second request, when the membership is cached."""
    inside = (SPACE, WAREHOUSE, PROJECT)
    invisible = Question(Can.GET_METADATA, ObjectKey(type, "there"), WITHIN, inside=inside)
    absent = Question(Can.GET_METADATA, ObjectKey(type, "gone"), above=(SPACE,), inside=inside)
    calls = []
    for question in (invisible, absent):
        here = Setting(holding={ALICE_IS_MEMBER})
        for _ in range(3):
            assert await here.ask(ALICE, question, pin=replace(PIN, roles=roles)) == [False]
        sent = [[(each.user, each.relation, each.object.split(":")[0]) for each in batch] for batch in here.server.sent]
        calls.append((here.rows.reads, sent))
    assert calls[0] == calls[1]
    assert calls[0][0] == 3


async def test_grants_confirmed_for_an_absent_object_are_not_cached() -> None:
    """The revision of its warehouse is unknown, so nothing would end such an entry."""
    here = Setting(TO_ROLE, holding={GRANT, ALICE_IS_MEMBER})
    absent = Question(Can.READ_DATA, ObjectKey(T.TABLE, "gone"), above=(SPACE,), inside=(SPACE, WAREHOUSE, PROJECT))
    assert await here.ask(ALICE, absent) == [True]
    here.server.holding.discard(GRANT)
    assert await here.ask(ALICE, absent) == [False]
    assert await here.ask(ALICE, read()) == [False]


async def test_without_a_cache_every_question_is_sent() -> None:
    here = Setting(TO_ROLE, holding={GRANT, ALICE_IS_MEMBER}, seconds=0)
    assert await here.ask(ALICE, read()) == [False]
    assert here.rows.reads == 0


# ---- the grants that the model makes sufficient ----

LEVELS = (T.TABLE, T.NAMESPACE, T.WAREHOUSE, T.PROJECT, T.SERVER)


def of_model(model: Mapping[str, Any], relation: str, levels: Sequence[ObjectType] = LEVELS) -> Any:
    return deciding_grants(ParsedModel(model), relation, levels)


def test_the_shipped_model_names_the_sufficient_grants_of_each_level() -> None:
    found = of_model(compiled_model(), "can_read_data")
    three = frozenset({"select", "modify", "ownership"})
    expected = (three, three, three, frozenset({"select", "modify", "data_admin", "project_admin"}), {"operator"})
    assert found.sufficient == found.necessary == expected
    seen = of_model(compiled_model(), "can_get_metadata", LEVELS[1:])
    assert "traverse" in seen.sufficient[0]
    assert seen.necessary is None, "traverse has no rows"
    assert of_model(compiled_model(), "no_such_relation") is None


def test_an_exclusion_or_an_intersection_makes_no_grant_sufficient() -> None:
    base = {"union": {"child": [computed("select"), above("selects")]}}
    for rewrite in (
        {"difference": {"base": base, "subtract": computed("manage_tags")}},
        {"intersection": {"child": [base, computed("describe")]}},
    ):
        found = of_model(Edited().rule("table", "selects", rewrite).model, "can_read_data")
        assert not any(found.sufficient)
        assert found.necessary is not None
    shipped = of_model(compiled_model(), "can_change_ownership")
    assert "ownership" not in shipped.sufficient[0], "managed access excludes the owners"
    assert shipped.sufficient[0] == {"manage_grants"}


@pytest.mark.parametrize(
    "subject",
    [{"type": "user", "wildcard": {}}, {"type": "user", "condition": "office_hours"}, {"type": "table"}],
)
def test_a_relation_with_other_subjects_is_not_sufficient(subject: Mapping[str, Any]) -> None:
    found = of_model(Edited().subject("namespace", "select", subject).model, "can_read_data")
    assert "select" not in found.sufficient[1]
    assert {"modify", "ownership"} <= found.sufficient[1]


def test_an_edge_with_a_condition_leads_to_no_sufficient_grant() -> None:
    edited = Edited()
    edited._types["table"]["metadata"]["relations"]["parent"]["directly_related_user_types"] = [
        {"type": "namespace", "condition": "unexpired"}
    ]
    found = of_model(edited.model, "can_read_data")
    assert found.sufficient[0] and not any(found.sufficient[1:])


@pytest.mark.parametrize(
    "edited",
    [
        Edited().rule("role", "assignee", {"difference": {"base": {"this": {}}, "subtract": computed("ownership")}}),
        Edited().subject("role", "assignee", {"type": "user", "wildcard": {}}),
        Edited().subject("role", "assignee", {"type": "user", "condition": "office_hours"}),
    ],
)
def test_roles_with_other_members_than_recorded_ones_answer_nothing(edited: Edited) -> None:
    assert of_model(edited.model, "can_read_data") is None


async def test_checks_about_members_carry_no_tuples_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies: list[Any] = []

    async def answer(self: FgaClient, method: str, path: str, body: Any) -> bytes:
        bodies.append(body)
        return msgspec.json.encode({"result": {each["correlation_id"]: {"allowed": True} for each in body["checks"]}})

    monkeypatch.setattr(FgaClient, "_query", answer)
    client = FgaClient("http://127.0.0.1:1", "key", ULID, ULID, timeout_s=1)
    group = FgaTuple("user:a", "assignee", f"role:{uuid4()}")
    checks = [FgaTuple("user:a", "describe", "table:t"), FgaTuple(MEMBERS, "describe", "table:t")]
    assert await client.batch_check(checks, contextual=[group], context={"current_time": "now"}) == [True, True]
    assert ["contextual_tuples" in each for each in bodies[0]["checks"]] == [True, False]
    assert all(each["context"] for each in bodies[0]["checks"])
