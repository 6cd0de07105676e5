# SPDX-License-Identifier: Apache-2.0
"""An authorizer that evaluates the relationship model over the rows of PostgreSQL, without OpenFGA's tuples.

It refuses what OpenFGA allows by a tuple that no row requires. Another client with OpenFGA's API key may have written
such a tuple, or its deletion is not delivered yet. It uses the same model as OpenFGA.

The evaluation of the model runs in this process (`gateway.fga.evaluation`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.nouns.authz_errors import MAX_GROUP_ROLES, too_many_groups
from gateway.access.nouns.refs import ObjectKey
from gateway.access.ports import Pin, Question
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.fga.client import MAX_CONTEXTUAL_TUPLES, FgaClient
from gateway.fga.evaluation import Evaluation, HeldTuple, ModelRules, UnknownRule
from gateway.fga.relationships import contextual_containers, object_name, subject_of, to_wire

ROWS: Final = "rows"

ReadTuples = Callable[[Sequence[Principal], Sequence[ObjectKey]], Awaitable[Mapping[TupleKey, datetime | None]]]
"""Return the tuples that rows require, each with its expiry: all of these principals and of the roles that contain
them, the edges above these objects, and the flags of their containers.
"""


class StoredModel(msgspec.Struct):
    """The response of OpenFGA with a model."""

    authorization_model: dict[str, Any]


class FollowedModel:
    """The rules of the model that `client` uses. They are read again when the client uses another model."""

    def __init__(self, client: FgaClient) -> None:
        self._client = client
        self._known: tuple[str, ModelRules] | None = None

    @property
    def model_id(self) -> str:
        """The id of the model that checks use now."""
        return self._client.model_id

    async def __call__(self) -> ModelRules:
        """Return the rules. Raises DecisionEngineUnavailable if the model cannot be read."""
        model_id = self._client.model_id
        known = self._known
        if known is None or known[0] != model_id:
            stored = await self._client.get(f"/authorization-models/{model_id}", StoredModel)
            known = self._known = model_id, ModelRules(stored.authorization_model)
        return known[1]


class RowAuthorizer:
    """Implements `gateway.access.decisions.authorizers.Authorizer` by the rows of PostgreSQL."""

    name = ROWS

    def __init__(self, rules: Callable[[], Awaitable[ModelRules]], read: ReadTuples) -> None:
        self._rules = rules
        self._read = read

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Return one result for each question, in order. Every call reads the rows.

        Raises DatabaseUnavailable, DecisionEngineUnavailable if the model cannot be read or evaluated, ValueError for
        an anonymous actor, and TooManyGroups for more than MAX_GROUP_ROLES roles by groups of the token.
        """
        if not questions:
            return []
        user, contextual = subject_of(actor)
        if len(contextual) > MAX_GROUP_ROLES:
            raise too_many_groups()
        stand_ins = contextual_containers(questions, MAX_CONTEXTUAL_TUPLES - len(contextual))
        objects = {key for each in questions for key in (each.object, *each.above)}
        rows = await self._read(principals_of(actor), list(objects))
        held = [HeldTuple(each.user, each.relation, each.object, None) for each in (*contextual, *stand_ins)]
        for key, until in rows.items():
            wire = to_wire(key)
            held.append(HeldTuple(wire.user, wire.relation, wire.object, until))
        evaluation = Evaluation(await self._rules(), held, user, now)
        try:
            return [evaluation.holds(each.relation.value, object_name(each.object)) for each in questions]
        except UnknownRule as unknown:
            raise DecisionEngineUnavailable(f"The authorizer {ROWS!r} cannot decide: {unknown}.") from None

    async def ping(self) -> None:
        """Raise DecisionEngineUnavailable if the model cannot be read."""
        await self._rules()

    async def close(self) -> None:
        """Do nothing, because the owners of the database and of the client close them."""


def principals_of(actor: Actor) -> list[Principal]:
    """Return the principals whose grants count: the assumed role alone, or the user together with the roles by its
    groups.
    """
    if actor.assumed_role is not None:
        return [Principal(PrincipalType.ROLE, str(actor.assumed_role))]
    roles = [Principal(PrincipalType.ROLE, role) for role in actor.group_roles]
    return [Principal(PrincipalType.USER, actor.id), *roles]
