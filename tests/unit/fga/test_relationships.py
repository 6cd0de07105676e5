# SPDX-License-Identifier: Apache-2.0
"""Who asks and what is asked, in the words of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast
from uuid import UUID

import pytest

from gateway.access.actor import Actor
from gateway.access.ports import Question
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.relations import Can
from gateway.access.tuples import EVERYBODY, MANAGED_ACCESS, Principal, PrincipalType, TupleKey
from gateway.fga.client import Condition, FgaClient, FgaTuple
from gateway.fga.relationships import FgaRelationships, rfc3339, subject_of, to_wire
from gateway.fga.stored import read_back

ROLE = UUID("9f0b2c4e-0000-4000-8000-00000000abcd")
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
TABLE = ObjectKey(ObjectType.TABLE, "00000000-0000-4000-8000-000000000001")


class Recorder:
    """Stands for the client and keeps what it was asked."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    async def batch_check(
        self, checks: Sequence[FgaTuple], *, contextual: Sequence[FgaTuple], context: Mapping[str, str]
    ) -> list[bool]:
        self.calls.append({"checks": list(checks), "contextual": list(contextual), "context": dict(context)})
        return [True] * len(checks)


def relationships(recorder: Recorder) -> FgaRelationships:
    return FgaRelationships(cast(FgaClient, recorder))


async def test_a_user_is_asked_for_by_the_encoded_id_and_at_the_time_of_the_clock() -> None:
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


async def test_an_assumed_role_is_asked_for_by_a_member_who_has_nothing_else() -> None:
    recorder = Recorder()
    actor = Actor(kind=Actor.user("x").kind, id="oidc~alice", assumed_role=ROLE)
    await relationships(recorder).check(actor, [Question(Can.READ_DATA, TABLE)], now=NOON)
    [call] = recorder.calls
    assert call["checks"] == [FgaTuple(f"user:role={ROLE}", "can_read_data", f"table:{TABLE.id}")]
    assert call["contextual"] == [FgaTuple(f"user:role={ROLE}", "assignee", f"role:{ROLE}")]


async def test_no_questions_ask_nobody() -> None:
    recorder = Recorder()
    assert await relationships(recorder).check(Actor.user("oidc~a"), [], now=NOON) == []
    assert recorder.calls == []


def test_an_anonymous_caller_is_never_asked_about() -> None:
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


def test_times_are_told_in_utc_and_never_without_a_zone() -> None:
    assert rfc3339(datetime(2026, 3, 4, 13, 0, 0, 5, tzinfo=timezone(timedelta(hours=1)))) == (
        "2026-03-04T12:00:00.000005Z"
    )
    with pytest.raises(ValueError, match="without a zone"):
        rfc3339(datetime(2026, 3, 4, 13))


def test_a_flag_is_on_everybody_and_no_other_relation_ever_is() -> None:
    on = ObjectKey(ObjectType.NAMESPACE, "00000000-0000-4000-8000-000000000001")
    for type in PrincipalType:
        flag = TupleKey(Principal(type, EVERYBODY), MANAGED_ACCESS, on)
        assert to_wire(flag).user == f"{type.value}:*"
        assert read_back(to_wire(flag)).key == flag
    assert to_wire(TupleKey(Principal(PrincipalType.USER, EVERYBODY), "select", on)).user == "user:%2A"
    assert read_back(FgaTuple("user:*", "select", f"namespace:{on.id}")).key is None
