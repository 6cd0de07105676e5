# SPDX-License-Identifier: Apache-2.0
"""Explain decisions of a past moment by relationships, from the history of grants, memberships and placements.

OpenFGA confirms each answer with the model of that moment. All facts are contextual tuples about new ids, so the tuples
of today take no part. Guardrails, data policies and groups of tokens are not kept, so they are no part of the answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import msgspec

from gateway.access.door.permit import Permit
from gateway.access.operations.answers import ExplainAccess, Explanation, RelationshipsAnswer, Revisions
from gateway.access.principals import actor_of
from gateway.access.tuples import PrincipalType
from gateway.db.answers.path_facts import read_path_facts
from gateway.features.answers.confirmation import deciding
from gateway.features.answers.explain import Explanations, Subject
from gateway.features.answers.moments import NOT_KEPT, moment_of, within_limit
from gateway.features.answers.summary import summary_of
from gateway.features.answers.world import Presenter, principal_key, world_of
from gateway.fga.provenance import witnesses_of
from gateway.fga.relationships import object_name
from gateway.fga.row_authorizer import principals_of


class PastExplanations(Explanations):
    """The use case of `POST /access/explain` with `at`."""

    async def explain_at(self, permit: Permit[ExplainAccess]) -> Explanation:
        """Return why the principal had or did not have the relation at the moment of the operation.

        Raises PastNotAnswered, BadRequestException for a moment in the future, and the errors of `explain`.
        """
        at = permit.operation.at
        if at is None:
            raise LookupError("the operation is about the present")
        subject = self._subject(permit, at)
        return await self._agreed(lambda: self._explain_at(permit, subject))

    async def _explain_at(self, permit: Permit[ExplainAccess], subject: Subject) -> Explanation:
        check, at = permit.operation.check, subject.at
        actor = actor_of(subject.principal)
        read = moment_of(permit, self._database, self._answer_engines.checks, subject.key)
        async with read as (connection, _, model):
            facts = await read_path_facts(connection, principals_of(actor), subject.key, now=at)
        subject = replace(subject, model_id=model.id)
        world = world_of(actor, facts)
        relation, name = check.relation.value, object_name(subject.key)
        with deciding():
            found, more = await asyncio.to_thread(
                witnesses_of, model.rules, world.tuples, world.user, at, relation, name
            )
            (held,) = await self._answer_engines.confirmations.alone(
                [within_limit(world.tuples, name)],
                world.user,
                relation,
                name,
                at,
                asker=permit.actor,
                model_id=model.id,
            )
        if held is not bool(found):
            raise subject.disagreement(world, "relationships")
        if found:
            sight = self._asker.sight(permit, world)
            relationships, presenter = await self._witnesses(permit, subject, world, sight, model.rules, found, more)
        else:
            relationships = RelationshipsAnswer(holds=False, relation=relation)
            names = await self._names(permit, [principal_key(subject.principal), subject.key])
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
