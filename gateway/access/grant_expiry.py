# SPDX-License-Identifier: Apache-2.0
"""Compute the earliest time at which a permit's grants expire.

Relations, role memberships, definer views and delegation count.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from gateway.access.actor import Actor
from gateway.access.column_restrictions import enforcing
from gateway.access.engines import Engines, questions_to_engine
from gateway.access.operation import Operation
from gateway.access.permit import Permit
from gateway.access.ports import Question, Resolver
from gateway.access.questions import key_of, refs_of
from gateway.access.refs import ObjectKey, ObjectType, Ref, column_key
from gateway.access.relations import Can
from gateway.access.resolved import Resolution, ResolvedTable
from gateway.obligations.kinds import ReadableColumns


class GrantExpiry:
    """Finds expiries by bisection: as time passes, grants are only lost."""

    def __init__(self, resolver: Resolver, engines: Engines) -> None:
        self._resolver = resolver
        self._engines = engines

    async def first(
        self,
        permit: Permit[Operation],
        until: datetime,
        resolution: Resolution,
        held: Collection[tuple[Can, Ref]] | None = None,
    ) -> datetime | None:
        """Return the first time up to `until` at which the caller loses a relation of `permit`; None if there is none.

        `resolution` is that of the last decision. With `held`, only these relations of the permit count. Raises
        DecisionEngineUnavailable.
        """
        actor = resolution.acting(permit.actor)
        held = permit.held if held is None else held
        questions = [Question(relation, key_of(on, resolution)) for relation, on in held]
        # Grants on columns expire one by one. Credentials must expire with the first of them.
        restrictions = [each for each in permit.obligations if isinstance(each, ReadableColumns)]
        questions += [
            Question(Can.READ_DATA, column_key(each.table, field)) for each in restrictions for field in each.fields
        ]
        found = await self._expiry_below_views(permit, until)
        if resolution.next_expiry is not None and resolution.next_expiry <= until:
            found.append(await self._first_loss(actor, questions, resolution.now, until))
        found.append(await self._of_membership(actor, resolution.now, until))
        engine = actor.engine_itself()
        if engine is not None:
            # The permit must not outlive the rights of the engine that acts for the caller either.
            engine_questions = questions_to_engine(permit.operation, resolution) or []
            tables = {each.table for each in restrictions}
            engine_questions = [
                *engine_questions,
                *(
                    enforcing(row)
                    for row in resolution.rows.values()
                    if isinstance(row, ResolvedTable) and row.key.id in tables
                ),
            ]
            found.append(await self._first_loss(engine, engine_questions, resolution.now, until))
        return min((end for end in found if end is not None), default=None)

    async def membership(self, permit: Permit[Operation], role_id: str, until: datetime) -> datetime | None:
        """Return the time up to `until` at which the caller's membership of a role expires; None if there is none.

        Raises DecisionEngineUnavailable.
        """
        actor = permit.resolution.acting(permit.actor)
        member = msgspec.structs.replace(actor, assumed_role=None, within=None)
        question = Question(Can.ASSUME, ObjectKey(ObjectType.ROLE, role_id))
        return await self._first_loss(member, [question], permit.resolution.now, until)

    async def _expiry_below_views(self, permit: Permit[Operation], until: datetime) -> list[datetime | None]:
        """Return two times for each definer view: the reader's loss of the view, and the end of its role membership."""
        found = []
        for definer_view in permit.definer_views:
            resolution = await self._resolver.resolve(refs_of((definer_view.operation,)), definer_view.actor)
            questions = [
                Question(demand.relation, key_of(demand.on, resolution)) for demand in definer_view.operation.demands()
            ]
            reader = resolution.acting(definer_view.actor)
            found.append(await self._first_loss(reader, questions, resolution.now, until))
            found.append(await self._of_membership(reader, resolution.now, until))
        return found

    async def _of_membership(self, actor: Actor, now: datetime, until: datetime) -> datetime | None:
        """Return the time at which the membership in `actor`'s assumed role expires; None if it does not, or without a
        role.

        The grants to the role do not include this membership.
        """
        if actor.assumed_role is None:
            return None
        member = msgspec.structs.replace(actor, assumed_role=None, within=None)
        role = ObjectKey(ObjectType.ROLE, str(actor.assumed_role))
        return await self._first_loss(member, [Question(Can.ASSUME, role)], now, until)

    async def _first_loss(
        self, actor: Actor, questions: Sequence[Question], now: datetime, until: datetime
    ) -> datetime | None:
        """Return the first expiry of a grant to `actor`, up to `until`, from which on not all `questions` are True."""
        ends = await self._resolver.grant_expiries(actor, after=now, until=until)
        first, last = 0, len(ends)
        while first < last:
            middle = (first + last) // 2
            if all(await self._engines.check(actor, questions, ends[middle], None)):
                first = middle + 1
            else:
                last = middle
        return ends[first] if first < len(ends) else None
