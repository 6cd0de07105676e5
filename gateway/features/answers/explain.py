# SPDX-License-Identifier: Apache-2.0
"""Explain decisions: the facts and rules behind a yes, and the grants and circumstances that would change a no.

Both engines are asked without a cache. The reasons come from the rows and the model, and OpenFGA confirms each of them.
An answer on which the engines and the rows disagree is not given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from gateway.access.actor import Actor
from gateway.access.decisions.hypothetical_evaluation import (
    UNKNOWN,
    Circumstances,
    HypotheticalCheck,
    HypotheticalVerdict,
)
from gateway.access.decisions.policy import PolicyRequest
from gateway.access.dependency_errors import first_of
from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.privileges import Privilege, granting
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedWarehouse, warehouse_of
from gateway.access.operations.answers import (
    DataPolicyAnswer,
    ExplainAccess,
    ExplainDenial,
    Explaining,
    Explanation,
    LiftingInput,
    NewGrant,
    RelationshipsAnswer,
    RepairAnswer,
    Revisions,
)
from gateway.access.ports import Question
from gateway.access.principals import actor_of, own_principal
from gateway.access.shares.fair_slots import FairSlots
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.answers.names import CONTAINERS, count_openings, names_of
from gateway.db.answers.path_facts import expiry_of, read_path_facts, role_grants
from gateway.features.answers.asker import Asker, Sight, grants_of_roles, readable_witnesses
from gateway.features.answers.confirmation import Confirming, Disagreement, deciding
from gateway.features.answers.guardrails import TracedRequest, policies_answer
from gateway.features.answers.lifts import SEARCHES, lifts_of
from gateway.features.answers.outcome import Restriction, blocked_by, decision_of, until_of
from gateway.features.answers.repairs import Repair, candidates_for, find_repairs
from gateway.features.answers.summary import summary_of
from gateway.features.answers.world import Presenter, World, principal_key, subject_key, world_of
from gateway.features.grants.partial_checks import CONCERNS_DATA, is_possible
from gateway.features.kit import Kit
from gateway.fga.evaluation import ModelRules
from gateway.fga.provenance import Witness, witnesses_of
from gateway.fga.relationships import object_name, to_wire
from gateway.fga.row_authorizer import principals_of
from gateway.obligations.data_policies import BoundPolicy

#: The most grants of roles that are searched for a membership that would help.
_ROLE_GRANTS: Final = 200


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of an explanation: the principal, its actor, the object, and the time of the decision.

    `model_id` is the model of a past moment, None for the one that checks use.
    """

    principal: Principal
    actor: Actor
    key: ObjectKey
    at: datetime
    model_id: str | None = None

    def disagreement(self, world: World, part: str) -> Disagreement:
        """Return the error for a part of the explanation that an engine does not confirm."""
        return Disagreement(part, [self.principal], [self.key, *(world.facts.path - {self.key})])


class Explanations(Confirming):
    """The use case of `POST /access/explain`."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._server_id = kit.server_id
        self._asker = Asker(self._door.hypothetical_checks)
        self._searches = FairSlots(SEARCHES, each=1)

    async def explain(self, permit: Permit[ExplainAccess] | Permit[ExplainDenial]) -> Explanation:
        """Return why the principal may or may not take the action.

        Raises AnswerPending, AnswerDisagreed, the refusal for an outage, and the error for an absent object.
        """
        subject = self._subject(permit, permit.resolution.now)
        return await self._agreed(lambda: self._explain(permit, subject))

    @staticmethod
    def _subject(permit: Permit[Explaining], at: datetime) -> Subject:
        check = permit.operation.check
        row = permit.resolution.get(check.on)
        if row is None:
            raise not_found(check.on)
        principal = check.principal or own_principal(permit.actor)
        actor = permit.actor if check.principal is None else actor_of(principal)
        return Subject(principal, actor, row.key, at)

    async def _explain(self, permit: Permit[Explaining], subject: Subject) -> Explanation:
        try:
            async with asyncio.TaskGroup() as group:
                asked = asyncio.get_running_loop().create_future()
                judging = group.create_task(self._verdict(permit, subject, asked))
                tracing = group.create_task(self._trace(permit, asked))
                return await self._explained(permit, subject, group, judging, tracing)
        except ExceptionGroup as failed:
            raise first_of(failed) from None

    async def _verdict(
        self, permit: Permit[Explaining], subject: Subject, asked: asyncio.Future[PolicyRequest]
    ) -> tuple[HypotheticalVerdict, tuple[BoundPolicy, ...]]:
        """Return (the decision of the engines, the data policies that guardrails bind to the table).

        `asked` receives the request to OPA.
        """
        check = permit.operation.check
        stated: dict[int, tuple[BoundPolicy, ...]] = {}
        (verdict,) = await self._answer_engines.decisions.verdicts(
            permit,
            [HypotheticalCheck(subject.actor, check.relation, check.on, check.facts)],
            guardrails=stated if check.relation in CONCERNS_DATA else None,
            circumstances=_circumstances(permit.operation),
            asking=asked.set_result,
        )
        return verdict, stated.get(0, ())

    async def _trace(self, permit: Permit[Explaining], asked: Awaitable[PolicyRequest]) -> TracedRequest:
        """Return OPA's answer to the request `asked`, with the rules behind it and what would lift a denial."""
        server = ObjectKey(ObjectType.SERVER, str(self._server_id))
        reads = await self._asker.having(permit, Can.READ_POLICIES, [server])
        request, engines = await asked, self._answer_engines
        with deciding():
            answers, trace = await engines.trace(request)
            lifts: list[LiftingInput] = []
            if not answers.decisions[0].allow:
                async with self._searches.slot(permit.actor.id):
                    lifts = await lifts_of(engines.evaluate, request, answers, trace.read)
        return TracedRequest(request, answers, trace, lifts, server in reads)

    async def _explained(
        self,
        permit: Permit[Explaining],
        subject: Subject,
        group: asyncio.TaskGroup,
        judging: Awaitable[tuple[HypotheticalVerdict, tuple[BoundPolicy, ...]]],
        tracing: Awaitable[TracedRequest],
    ) -> Explanation:
        check = permit.operation.check
        async with self._database.transaction() as connection:
            facts = await read_path_facts(
                connection, principals_of(subject.actor), subject.key, now=permit.resolution.now
            )
        world = world_of(subject.actor, facts)
        sight = group.create_task(self._asker.sight(permit, world))
        relation = permit.operation.check.relation.value
        with deciding():
            model = await self._answer_engines.checks.model()
        now = permit.resolution.now
        with deciding():
            # Many roles cost much time of the processor, so other requests must not wait for it.
            found, more = await asyncio.to_thread(
                witnesses_of, model.rules, world.tuples, world.user, now, relation, object_name(subject.key)
            )
        verdict, stated = await judging
        with deciding():
            refused = (
                bool(found)
                and not verdict.holds
                and await self._answer_engines.refuses(subject.actor, Question(check.relation, subject.key), now)
            )
        if bool(found) is not (verdict.holds or refused):
            raise subject.disagreement(world, "relationships")
        if found:
            relationships, presenter = await self._witnesses(permit, subject, world, sight, model.rules, found, more)
        else:
            relationships, presenter = await self._repairs(permit, subject, world, sight, model.rules)
        traced = await tracing
        if traced.answers.decisions[0] != verdict.policy:
            raise subject.disagreement(world, "policies")
        policies = policies_answer(traced)
        data_policies, restriction = await self._data_policies(permit, subject, verdict, stated)
        warehouse = warehouse_of(permit.resolution.get(check.on))
        blocked = blocked_by(verdict, restriction, by_authorizer=refused)
        answer = Explanation(
            decision=decision_of(verdict, policies, blocked, restriction),
            principal=presenter.party(principal_key(subject.principal)),
            action=check.relation.value.removeprefix("can_"),
            object=presenter.party(subject.key),
            relationships=relationships,
            policies=policies,
            revisions=_revisions(permit, warehouse, model.id, traced.answers.revision),
            as_of=now,
            until=until_of(relationships.witnesses),
            blocked_by=blocked,
            data_policies=data_policies,
            warehouse_id=None if warehouse is None else warehouse.id,
            groups_unknown=check.principal is not None and subject.principal.type is PrincipalType.USER,
        )
        return msgspec.structs.replace(answer, summary=summary_of(answer))

    async def _witnesses(
        self,
        permit: Permit[Explaining],
        subject: Subject,
        world: World,
        sight: Awaitable[Sight],
        rules: ModelRules,
        found: Sequence[Witness],
        more: bool,
    ) -> tuple[RelationshipsAnswer, Presenter]:
        """Return the confirmed witnesses that the caller may read, and how to present them."""
        relation = permit.operation.check.relation.value
        visible, unreadable = await sight
        name = object_name(subject.key)
        with deciding():
            readable, more = await asyncio.to_thread(
                readable_witnesses, rules, world, unreadable, found, more, relation, name, subject.at
            )
        facts = {world.keys[held] for each in readable for held in each.facts if held in world.keys}
        named = [*facts_keys(facts), *world.facts.path, principal_key(subject.principal)]
        confirming = self._answer_engines.confirmations.alone(
            [each.facts for each in readable or found[:1]],
            world.user,
            relation,
            name,
            subject.at,
            asker=permit.actor,
            model_id=subject.model_id,
        )
        with deciding():
            confirmed, names = await asyncio.gather(confirming, self._names(permit, named))
        if not all(confirmed):
            raise subject.disagreement(world, "witness")
        presenter = Presenter(world, names, visible | {subject.key})
        answer = RelationshipsAnswer(
            holds=True,
            relation=relation,
            witnesses=[presenter.witness(each) for each in readable],
            another_grant=not readable,
            more=more,
        )
        return answer, presenter

    async def _repairs(
        self, permit: Permit[Explaining], subject: Subject, world: World, sight: Awaitable[Sight], rules: ModelRules
    ) -> tuple[RelationshipsAnswer, Presenter]:
        """Return the minimal grants that would give the relation, after OpenFGA confirmed each set, and how to present
        them.
        """
        relation, now = permit.operation.check.relation.value, permit.resolution.now
        audited, (seen, unreadable) = await asyncio.gather(
            self._asker.having(permit, Can.READ_ASSIGNMENTS, world.facts.path), sight
        )
        visible = seen | {subject.key}
        # A grant that the caller may not read counts as missing. Otherwise the repairs would show that it exists.
        known = world.without(unreadable)
        async with self._database.transaction() as connection:
            grants = await role_grants(connection, audited, now=now, limit=_ROLE_GRANTS) if audited else {}
        roles = {key.subject.id for key in grants if isinstance(key.subject, Principal)}
        further = grants_of_roles(known, {key: expiry_of(rows) for key, rows in grants.items()})
        candidates = candidates_for(subject.principal, visible, roles)
        name = object_name(subject.key)
        question = Question(permit.operation.check.relation, subject.key)
        with deciding():
            repairs, more = await asyncio.to_thread(
                find_repairs, rules, known, candidates, further, relation, name, now
            )
            confirmed = await self._answer_engines.confirmations.together_with(
                [[to_wire(key) for key in repair.grants] for repair in repairs], subject.actor, question, now
            )
        if not all(confirmed):
            raise subject.disagreement(world, "repair")
        presented, presenter = await self._presented(permit, subject, world, repairs)
        return RelationshipsAnswer(holds=False, relation=relation, repairs=presented, more=more), presenter

    async def _presented(
        self, permit: Permit[Explaining], subject: Subject, world: World, repairs: Sequence[Repair]
    ) -> tuple[list[RepairAnswer], Presenter]:
        keys = {key for repair in repairs for key in repair.grants}
        containers = {key.object for key in keys if key.object.type in CONTAINERS}
        seen_whole = await self._asker.having(permit, Can.LIST_EVERYTHING, containers)
        async with self._database.read() as connection:
            counts = await count_openings(connection, [key.object for key in keys], seen_whole)
        names = await self._names(permit, [*facts_keys(keys), principal_key(subject.principal), subject.key])
        presenter = Presenter(world, names, frozenset(containers))
        answers = []
        for repair in repairs:
            known = all(key.object in counts for key in repair.grants)
            opens = [opening for key in repair.grants for opening in counts.get(key.object, [])]
            grants = [_new_grant(presenter, key) for key in repair.grants]
            answers.append(RepairAnswer(grants=grants, opens=opens if known else None))
        return answers, presenter

    async def _data_policies(
        self,
        permit: Permit[Explaining],
        subject: Subject,
        verdict: HypotheticalVerdict,
        stated: tuple[BoundPolicy, ...],
    ) -> tuple[list[DataPolicyAnswer], Restriction]:
        """Return (the data policies that restrict the principal and that the caller may read, their effect)."""
        check = permit.operation.check
        if not verdict.allowed or check.relation not in CONCERNS_DATA:
            return [], Restriction.NONE
        (policy,) = await self._answer_engines.decisions.policy_verdicts(permit, [(subject.actor, check.on, stated)])
        if policy is None or not policy.restricts:
            return [], Restriction.NONE
        effect = Restriction.PARTS if is_possible(check.relation, policy) else Restriction.ALL
        keys = [ObjectKey(ObjectType.DATA_POLICY, id) for id in sorted(policy.applying or ())]
        readable = await self._asker.having(permit, Can.READ, keys)
        names = await self._names(permit, readable)
        return [DataPolicyAnswer(id=key.id, name=names.get(key, "")) for key in keys if key in readable], effect

    async def _names(self, permit: Permit[Explaining], keys: Iterable[ObjectKey]) -> Mapping[ObjectKey, str]:
        """Return the names of the objects, without those of roles that the caller may not read."""
        some = list(keys)
        roles = [key for key in some if key.type is ObjectType.ROLE]
        seen = await self._asker.having(permit, Can.READ_METADATA, roles)
        async with self._database.read() as connection:
            return await names_of(connection, [key for key in some if key.type is not ObjectType.ROLE or key in seen])


def facts_keys(keys: Iterable[TupleKey]) -> list[ObjectKey]:
    """Return the objects and principals of the relationships, each once."""
    return list(dict.fromkeys(each for key in keys for each in (subject_key(key), key.object)))


def _new_grant(presenter: Presenter, key: TupleKey) -> NewGrant:
    return NewGrant(
        privilege=key.relation,
        principal=presenter.party(subject_key(key)),
        object=presenter.party(key.object),
        granted_with=granting(Privilege(key.relation)).value,
    )


def _circumstances(operation: Explaining) -> Circumstances | None:
    if not isinstance(operation, ExplainAccess):
        return None
    given = Circumstances(operation.user_agent, operation.client_address, operation.time)
    return None if given == UNKNOWN else given


def _revisions(
    permit: Permit[Explaining], warehouse: ResolvedWarehouse | None, model_id: str, policies: str | None
) -> Revisions:
    return Revisions(
        model=model_id,
        server=permit.resolution.revision,
        warehouse=None if warehouse is None else warehouse.revision,
        data_policies=None if warehouse is None else warehouse.data_policy_revision,
        policies=policies,
    )
