# SPDX-License-Identifier: Apache-2.0
"""Explain decisions of a past moment by relationships, from the history of grants, memberships and placements.

OpenFGA confirms each answer with the model of that moment. All facts are contextual tuples about new ids, so the tuples
of today take no part. Guardrails, data policies and groups of tokens are not kept, so they are no part of the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import msgspec

from gateway.access.door.permit import Permit
from gateway.access.management_errors import PastNotAnswered
from gateway.access.nouns.refs import ObjectKey
from gateway.access.operations.answers import Explaining, Explanation, NotKept, RelationshipsAnswer, Revisions
from gateway.access.principals import actor_of
from gateway.access.tuples import PrincipalType
from gateway.db.answers.past import History, go_back, history_of
from gateway.db.answers.path_facts import read_path_facts
from gateway.db.answers.path_grants import snapshot
from gateway.db.engine.database import Connection
from gateway.features.answers.confirmation import deciding
from gateway.features.answers.explain import Explanations, Subject
from gateway.features.answers.summary import summary_of
from gateway.features.answers.world import Presenter, principal_key, world_of
from gateway.fga.answer_checks import ActiveModel, AnswerChecks
from gateway.fga.client import MAX_CONTEXTUAL_TUPLES
from gateway.fga.evaluation import HeldTuple
from gateway.fga.provenance import witnesses_of
from gateway.fga.relationships import object_name
from gateway.fga.row_authorizer import principals_of
from gateway.fga.wire import ModelNotFound
from gateway.iceberg.errors import BadRequestException

#: What has no history.
NOT_KEPT: Final[tuple[NotKept, ...]] = ("policies", "data-policies", "token-groups", "warehouse-status")


class PastExplanations(Explanations):
    """The use case of `POST /access/explain` with `at`."""

    async def explain_at(self, permit: Permit[Explaining], at: datetime) -> Explanation:
        """Return why the principal had or did not have the relation at the moment.

        Raises PastNotAnswered, BadRequestException for a moment in the future, and the errors of `explain`.
        """
        subject = self._subject(permit, at)
        return await self._agreed(lambda: self._explain_at(permit, subject))

    async def _explain_at(self, permit: Permit[Explaining], subject: Subject) -> Explanation:
        check, at = permit.operation.check, subject.at
        actor = actor_of(subject.principal)
        async with snapshot(self._database) as (connection, moment):
            history = await moved_back(connection, subject.key, at, moment.now)
            facts = await read_path_facts(connection, principals_of(actor), subject.key, now=at, past=True)
        model = await past_model(self._answer_engines.checks, history)
        subject = replace(subject, model_id=model.id)
        world = world_of(actor, facts)
        relation, name = check.relation.value, object_name(subject.key)
        with deciding():
            found, more = await asyncio.to_thread(
                witnesses_of, model.rules, world.tuples, world.user, at, relation, name
            )
            (held,) = await self._answer_engines.confirmations.alone(
                [within_limit(world.tuples)], world.user, relation, name, at, model_id=model.id
            )
        if held is not bool(found):
            raise subject.disagreement(world, "relationships")
        relationships = RelationshipsAnswer(holds=False, relation=relation)
        if found:
            relationships = await self._witnesses(permit, subject, world, model.rules, found, more)
        names = await self._names([principal_key(subject.principal), subject.key])
        presenter = Presenter(world, names, frozenset({subject.key}))
        answer = Explanation(
            decision="allowed" if found else "denied",
            principal=presenter.party(principal_key(subject.principal)),
            action=check.relation.value.removeprefix("can_"),
            object=presenter.party(subject.key),
            relationships=relationships,
            revisions=Revisions(model=model.id),
            as_of=at,
            groups_unknown=subject.principal.type is PrincipalType.USER,
            not_kept=list(NOT_KEPT),
        )
        return msgspec.structs.replace(answer, summary=summary_of(answer))


async def moved_back(connection: Connection, key: ObjectKey, at: datetime, now: datetime) -> History:
    """Let the connection read the rows of the moment, and return the history of the object.

    Raises PastNotAnswered if the history does not reach back to the moment, and BadRequestException if it is not past.
    """
    if at > now:
        raise BadRequestException(f"`at` must not be in the future. It is {now.isoformat()} now.")
    history = await history_of(connection, key, at)
    if at < history.since:
        raise PastNotAnswered(
            f"The history of access to this {key.type} begins at {history.since.isoformat()}. Ask about that moment or "
            "a later one."
        )
    await go_back(connection, at)
    return history


async def past_model(checks: AnswerChecks, history: History) -> ActiveModel:
    """Return the model that checks used at the moment. Raises PastNotAnswered if OpenFGA no longer has it."""
    if history.model_id is None:
        raise LookupError("a moment within the history has no model")
    try:
        with deciding(ModelNotFound):
            return await checks.model_of(history.model_id)
    except ModelNotFound:
        raise PastNotAnswered(
            f"The relationship model {history.model_id}, which checks used at that moment, is no longer in OpenFGA's "
            "store. An operator can restore the store from a backup."
        ) from None


def within_limit(tuples: Sequence[HeldTuple]) -> list[HeldTuple]:
    """Return the tuples without memberships that lead to no other tuple. Raises PastNotAnswered for too many."""
    kept = [each for each in tuples if not each.object.startswith("role:")]
    left = [each for each in tuples if each.object.startswith("role:")]
    holders = {each.user.partition("#")[0] for each in kept}
    while leading := [each for each in left if each.object in holders]:
        kept += leading
        holders |= {each.user.partition("#")[0] for each in leading}
        left = [each for each in left if each not in leading]
    if len(kept) > MAX_CONTEXTUAL_TUPLES:
        raise PastNotAnswered(
            f"{len(kept)} facts decide about this question, and OpenFGA confirms at most {MAX_CONTEXTUAL_TUPLES}. Ask "
            "about one of the roles."
        )
    return kept
