# SPDX-License-Identifier: Apache-2.0
"""A door with data policies, their people and requests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import msgspec

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operations.credentials import SignRequest, VendCredentials
from gateway.access.operations.tables import CommitTable, LoadTable
from gateway.access.ports import Pin, Question
from gateway.iceberg.wire import CommitTableRequest, RemoteSignRequest
from gateway.obligations.application import restrictions_for_load
from gateway.obligations.data_policies import (
    BoundPolicy,
    ColumnReference,
    CompareTest,
    DataPolicy,
    Definition,
    Mask,
    PolicyInputs,
    RowFilter,
)
from lakegate.restrictions.actions import Action
from lakegate.restrictions.predicates import Comparison
from tests.support.door import world
from tests.support.door.world import DoorFixture, request_context

ENGINE = "oidc~trino"
LOAD, VEND = LoadTable(world.TABLE), VendCredentials(world.TABLE)
SIGN = SignRequest(world.TABLE, RemoteSignRequest(region="r", method="GET", uri="u", headers={}))
COMMIT = CommitTable(world.TABLE, CommitTableRequest(requirements=(), updates=()))
DOCUMENT = json.dumps(
    {
        "current-schema-id": 0,
        "schemas": [
            {
                "schema-id": 0,
                "fields": [
                    {"id": 1, "name": "email", "type": "string", "required": False},
                    {"id": 2, "name": "region", "type": "string", "required": False},
                ],
            }
        ],
    }
).encode()
MASK = Mask(Action.MASK_ALPHANUM, (ColumnReference(name="email"),))
EUROPE = RowFilter(CompareTest(Comparison.EQ, ColumnReference(name="region"), "EU"))
MASKED = {"required-column-projections": [{"action": "mask-alphanum", "field-id": 1}]}


def policy(id: str, definition: Definition = MASK, **values: object) -> BoundPolicy:
    """Return a policy that is bound to the table."""
    return BoundPolicy(policy=DataPolicy(id=id, version=1, definition=definition, **values))  # type: ignore[arg-type]  # a test


@dataclass
class People:
    """Users with all relations except those in `lacks`, and with `holds` on data policies, by principal.

    The engine holds `engine_has`. `seen` are the questions about data policies.
    """

    holds: dict[str, set[tuple[Can, str]]] = field(default_factory=dict)
    lacks: frozenset[Can] = frozenset()
    engine_has: frozenset[Can] = frozenset({Can.DELEGATE})
    seen: list[tuple[str, Can, str]] = field(default_factory=list)
    fails_on_policies: bool = False

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        name = str(actor.assumed_role or actor.id)
        return [self._answer(name, each) for each in questions]

    def _answer(self, name: str, question: Question) -> bool:
        if question.object.type is ObjectType.DATA_POLICY:
            if self.fails_on_policies:
                raise DecisionEngineUnavailable("no answer")
            self.seen.append((name, question.relation, question.object.id))
            return (question.relation, question.object.id) in self.holds.get(name, set())
        if name == ENGINE:
            return question.relation in self.engine_has
        return question.relation not in self.lacks


TRUSTED = frozenset({Can.DELEGATE, Can.ENFORCE})


def fixture(
    judge: People, *bound: BoundPolicy, inputs: PolicyInputs | None = None, governed: bool = True
) -> DoorFixture:
    """Return a house in which these policies are bound to the table."""
    found = DoorFixture(judge=judge)  # type: ignore[arg-type]  # the same port
    if governed:
        warehouse = msgspec.structs.replace(world.warehouse_row, data_policy_revision=UUID(int=1))
        inner = msgspec.structs.replace(world.inner_row, warehouse=warehouse)
        table = msgspec.structs.replace(world.table_row, namespace=inner)
        found.resolver.rows |= {world.NAMESPACE: inner, world.TABLE: table}
    found.resolver.documents[world.TABLE_ID] = DOCUMENT
    found.resolver.policies[world.TABLE_ID] = PolicyInputs(bound=bound)
    return found


def by_engine(user: str = "oidc~alice") -> Actor:
    """Return a user for whom an engine acts with a delegated token."""
    return Actor.user(user, engine=ENGINE)


async def restrictions_of(house: DoorFixture, actor: Actor | None = None) -> dict[str, object]:
    """Return the `read-restrictions` of a load through the engine."""
    permit = await house.door.admit(request_context(actor or by_engine()), LOAD)
    encoded = restrictions_for_load(permit.obligations, str(world.TABLE_ID))
    return msgspec.json.decode(encoded) if encoded else {}
