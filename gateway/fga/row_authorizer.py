# SPDX-License-Identifier: Apache-2.0
"""An authorizer that evaluates the relationship model over the rows of PostgreSQL, without OpenFGA's tuples.

It refuses what OpenFGA allows by a tuple that no row requires. Another client with OpenFGA's API key may have written
such a tuple, or its deletion is not delivered yet. It uses the same model as OpenFGA.

The evaluation of the model over given tuples is pure, and runs in this process. Its result equals a check of OpenFGA
for the same model and tuples: `tests/integration/test_decision_differential.py` compares both with random tuples.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.nouns.authz_errors import MAX_GROUP_ROLES, too_many_groups
from gateway.access.nouns.refs import ObjectKey
from gateway.access.ports import Pin, Question
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.fga.client import MAX_CONTEXTUAL_TUPLES, FgaClient
from gateway.fga.relationships import contextual_containers, object_name, subject_of, to_wire

_Node = tuple[str, str]
"""(relation, object)."""


class HeldTuple(NamedTuple):
    """A tuple with names of `gateway.fga.names`. `until` is its expiry, None if it does not expire."""

    user: str
    relation: str
    object: str
    until: datetime | None


class UnknownRule(Exception):
    """The model has a kind of rule that this evaluation does not implement, so nothing can be decided."""


class ModelRules:
    """The rules of a model in OpenFGA's JSON form, ready for evaluations."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        types = model["type_definitions"]
        self.rules: Mapping[str, Mapping[str, Any]] = {each["type"]: each.get("relations") or {} for each in types}
        self._direct: dict[_Node, frozenset[tuple[str, str, bool, str]]] = {}
        for each in types:
            for relation, about in ((each.get("metadata") or {}).get("relations") or {}).items():
                self._direct[relation, each["type"]] = frozenset(
                    (
                        subject["type"],
                        subject.get("relation") or "",
                        "wildcard" in subject,
                        subject.get("condition") or "",
                    )
                    for subject in about.get("directly_related_user_types") or ()
                )

    def admits(self, held: HeldTuple) -> bool:
        """Return True if the model allows this kind of subject in tuples of the relation.

        Other tuples have no effect.
        """
        type, _, id = held.user.partition(":")
        id, _, relation = id.partition("#")
        condition = "" if held.until is None else "unexpired"
        subject = (type, relation, id == "*", condition)
        return subject in self._direct.get((held.relation, held.object.partition(":")[0]), frozenset())


class Evaluation:
    """Evaluates checks of one user at the time `now`.

    A check that recurs within its own evaluation is False, as in OpenFGA.
    """

    def __init__(self, model: ModelRules, tuples: Iterable[HeldTuple], user: str, now: datetime) -> None:
        self._model = model
        self._user = user
        self._anyone = f"{user.partition(':')[0]}:*"
        self._on: dict[_Node, list[str]] = {}
        for held in tuples:
            if (held.until is None or now < held.until) and model.admits(held):
                self._on.setdefault((held.relation, held.object), []).append(held.user)
        self._known: dict[_Node, bool] = {}
        self._path: dict[_Node, int] = {}
        # The lowest depth of an outer check that recurred during the current one.
        self._recurred: float = math.inf

    def holds(self, relation: str, object: str) -> bool:
        """Return True if the user has the relation on the object. Raises UnknownRule."""
        node = relation, object
        if node in self._known:
            return self._known[node]
        if node in self._path:
            self._recurred = min(self._recurred, self._path[node])
            return False
        rule = self._model.rules.get(object.partition(":")[0], {}).get(relation)
        if rule is None:
            return False
        depth, outer, self._recurred = len(self._path), self._recurred, math.inf
        self._path[node] = depth
        try:
            result = self._rule(rule, node)
        finally:
            del self._path[node]
        if self._recurred >= depth:
            # A result that depends on an unfinished outer check is valid only within that check, so it is not kept.
            self._known[node] = result
            self._recurred = math.inf
        self._recurred = min(self._recurred, outer)
        return result

    def _rule(self, rule: Mapping[str, Any], node: _Node) -> bool:
        relation, object = node
        if "this" in rule:
            return any(self._is_user(subject) for subject in self._on.get(node, ()))
        if "computedUserset" in rule:
            return self.holds(rule["computedUserset"]["relation"], object)
        if "tupleToUserset" in rule:
            above = self._on.get((rule["tupleToUserset"]["tupleset"]["relation"], object), ())
            wanted = rule["tupleToUserset"]["computedUserset"]["relation"]
            return any(self.holds(wanted, parent) for parent in above)
        if "union" in rule:
            return any(self._rule(child, node) for child in rule["union"]["child"])
        if "intersection" in rule:
            return all(self._rule(child, node) for child in rule["intersection"]["child"])
        if "difference" in rule:
            both = rule["difference"]
            return self._rule(both["base"], node) and not self._rule(both["subtract"], node)
        raise UnknownRule(f"the relationship model has an unknown rule for {relation} on {object.partition(':')[0]}")

    def _is_user(self, subject: str) -> bool:
        object, _, relation = subject.partition("#")
        return self.holds(relation, object) if relation else subject in (self._user, self._anyone)


ROWS: Final = "rows"

ReadTuples = Callable[[Sequence[Principal], Sequence[ObjectKey]], Awaitable[Mapping[TupleKey, datetime | None]]]
"""Return the tuples that rows require, each with its expiry: all of these principals and of the roles that contain
them, the edges above these objects, and the flags of their containers.
"""


class _Stored(msgspec.Struct):
    authorization_model: dict[str, Any]


class FollowedModel:
    """The rules of the model that `client` uses. They are read again when the client uses another model."""

    def __init__(self, client: FgaClient) -> None:
        self._client = client
        self._known: tuple[str, ModelRules] | None = None

    async def __call__(self) -> ModelRules:
        """Return the rules. Raises DecisionEngineUnavailable if the model cannot be read."""
        model_id = self._client.model_id
        known = self._known
        if known is None or known[0] != model_id:
            stored = await self._client.get(f"/authorization-models/{model_id}", _Stored)
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
        rows = await self._read(_principals(actor), list(objects))
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


def _principals(actor: Actor) -> list[Principal]:
    """Return the principals whose grants count: the assumed role alone, or the user together with the roles by its
    groups.
    """
    if actor.assumed_role is not None:
        return [Principal(PrincipalType.ROLE, str(actor.assumed_role))]
    roles = [Principal(PrincipalType.ROLE, role) for role in actor.group_roles]
    return [Principal(PrincipalType.USER, actor.id), *roles]
