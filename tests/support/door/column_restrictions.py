# SPDX-License-Identifier: Apache-2.0
"""A door with column grants, and callers with and without an engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gateway.access.actor import Actor
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operations.credentials import SignRequest, VendCredentials
from gateway.access.operations.tables import LoadTable
from gateway.access.ports import Pin, Question
from gateway.iceberg.wire import RemoteSignRequest
from tests.support.door import world
from tests.support.door.world import DoorFixture

ENGINE = "oidc~trino"
LOAD, VEND = LoadTable(world.TABLE), VendCredentials(world.TABLE)
SIGN = SignRequest(world.TABLE, RemoteSignRequest(region="r", method="GET", uri="u", headers={}))
DOCUMENT = json.dumps(
    {
        "current-schema-id": 1,
        "schemas": [
            {"schema-id": 0, "fields": [{"id": 4, "name": "old", "type": "string", "required": False}]},
            {
                "schema-id": 1,
                "fields": [{"id": id, "name": f"c{id}", "type": "string", "required": id == 3} for id in (1, 2, 3)],
            },
        ],
    }
).encode()


@dataclass
class Restricted:
    """A user with some readable columns; the engine holds the relations `engine_has`."""

    columns: frozenset[int] = frozenset({2})
    describes: bool = False
    engine_has: frozenset[Can] = frozenset({Can.DELEGATE, Can.ENFORCE})
    calls: list[str] = field(default_factory=list)
    until: datetime | None = None
    enforces_until: datetime | None = None

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        self.calls.append(actor.id)
        if actor.id == ENGINE:
            over = self.enforces_until is not None and now >= self.enforces_until
            has = self.engine_has - {Can.ENFORCE} if over else self.engine_has
            return [each.relation in has for each in questions]
        return [self._holds(each, now) for each in questions]

    def _holds(self, question: Question, now: datetime) -> bool:
        if question.object.type is ObjectType.COLUMN:
            field = int(question.object.id.partition(".")[2])
            return field in self.columns and (self.until is None or now < self.until)
        seen = {Can.INCLUDE_IN_LIST, Can.READ_COLUMNS} | ({Can.GET_METADATA} if self.describes else set())
        return question.relation in seen


def door_fixture(judge: Restricted, *granted: int) -> DoorFixture:
    """Return a house with a table of three columns; PostgreSQL has grants on those in `granted`."""
    door_fixture = DoorFixture(judge=judge)  # type: ignore[arg-type]  # the same port
    door_fixture.resolver.documents[world.TABLE_ID] = DOCUMENT
    door_fixture.resolver.granted = {world.TABLE_ID: frozenset(granted or {2})}
    return door_fixture


def by_engine() -> Actor:
    """Return Alice, for whom an engine acts with a delegated token."""
    return Actor.user("oidc~alice", engine=ENGINE)
