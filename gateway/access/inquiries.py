# SPDX-License-Identifier: Apache-2.0
"""What the door would say to somebody else, or of something else: for lists, and for who was admitted to ask it.

Nothing here opens anything. Permits are the door's alone (`door.py`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.engines import Engines
from gateway.access.fair_slots import FairSlots
from gateway.access.granted_columns import GrantedColumns
from gateway.access.operation import Operation
from gateway.access.operations.checks import BatchCheck
from gateway.access.outage import DecisionEngineUnavailable
from gateway.access.permit import Permit
from gateway.access.ports import Pin, Question, Resolver
from gateway.access.questions import only_warehouse, pin_of, revision_of
from gateway.access.refs import ObjectKey, Ref
from gateway.access.refusals import unavailable
from gateway.access.relations import Can
from gateway.access.resolved import Excerpt, ResolvedTable
from gateway.access.shares import Lane, principal_key
from gateway.access.suppositions import AT_ONCE, AT_ONCE_EACH, Supposition, questions_about, weigh


class Inquiries:
    """Answers of both engines that admit nobody. Each method raises the refusal for an outage."""

    def __init__(self, resolver: Resolver, engines: Engines, columns: GrantedColumns) -> None:
        self._resolver = resolver
        self._engines = engines
        self._columns = columns
        self._slots = {
            Lane.USER: FairSlots(AT_ONCE, each=AT_ONCE_EACH),
            Lane.ENGINE: FairSlots(AT_ONCE, each=AT_ONCE),
        }

    async def related(
        self,
        permit: Permit[Operation],
        actor: Actor,
        relation: Can,
        objects: Sequence[ObjectKey],
        by: Sequence[str | None] = (),
    ) -> list[bool]:
        """As `Door.visible`, about somebody else: only for operations that were admitted to ask about others."""
        if not objects:
            return []
        within = only_warehouse(permit.resolution)
        hints = by or [None] * len(objects)
        questions = [
            Question(relation, key, revision_of(key, within), hint) for key, hint in zip(objects, hints, strict=True)
        ]
        try:
            return await self._engines.check(
                actor, questions, permit.resolution.now, _pin(permit, actor), paced=_lane(permit) is Lane.USER
            )
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage

    async def holds(self, permit: Permit[Operation], asked: Sequence[tuple[Can, Ref]]) -> list[bool]:
        """Return OpenFGA's answers about the caller, in order; False for absent objects, which are asked about as well.

        A yes allows nothing: policies were not asked.
        """
        resolution = permit.resolution
        supposed = [Supposition(permit.actor, relation, on) for relation, on in asked]
        try:
            async with self._room(permit)():
                answers = await self._engines.check(
                    permit.actor,
                    questions_about(supposed, resolution),
                    resolution.now,
                    pin_of(resolution),
                    paced=_lane(permit) is Lane.USER,
                )
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage
        return [yes and resolution.get(on) is not None for yes, (_, on) in zip(answers, asked, strict=True)]

    def _room(self, permit: Permit[Operation]) -> Callable[[], AbstractAsyncContextManager[None]]:
        """The slots that questions of this request take."""
        return partial(self._slots[_lane(permit)].slot, principal_key(permit.actor))

    async def would(self, permit: Permit[Operation], supposed: Sequence[Supposition]) -> list[bool]:
        """What both engines would say if these came to the door now, in order: only for operations that were admitted
        to ask it.
        """
        try:
            return await weigh(
                supposed,
                asked_by=permit.actor,
                record=permit.trail.record,
                resolution=permit.resolution,
                resolver=self._resolver,
                engines=self._engines,
                pin=pin_of(permit.resolution),
                room=self._room(permit),
                # What an engine asks about a user blocks that user's statement, which the engine gives up soon.
                paced=_lane(permit) is Lane.USER,
            )
        except DecisionEngineUnavailable as outage:
            raise unavailable(permit.operation.is_catalog_mutation()) from outage

    async def readable_columns(
        self, permit: Permit[Operation], asked: Sequence[tuple[Actor, Ref]]
    ) -> list[frozenset[int]]:
        """Of tables that somebody may not read all of: the columns, by field id, that they may, in order; none where
        both engines do not say yes, to the table read in part and to the column. Only for operations that were admitted
        to ask it.

        One statement for each actor, also when none of the tables is there, and no question about a table of which no
        column is granted.
        """
        found: dict[tuple[Actor, Ref], frozenset[int]] = {}
        for actor in dict.fromkeys(actor for actor, _ in asked):
            refs = dict.fromkeys(ref for other, ref in asked if other == actor)
            rows = {ref: row for ref in refs if isinstance(row := permit.resolution.get(ref), ResolvedTable)}
            recorded = await self._columns.recorded(actor, rows)
            supposed = [Supposition(actor, Can.READ_COLUMNS, ref) for ref in recorded]
            partly = await self.would(permit, supposed) if supposed else []
            read = {ref: recorded[ref] for ref, yes in zip(list(recorded), partly, strict=True) if yes}
            try:
                confirmed = await self._columns.confirmed(
                    actor, rows, read, now=permit.resolution.now, pin=_pin(permit, actor)
                )
            except DecisionEngineUnavailable as outage:
                raise unavailable(permit.operation.is_catalog_mutation()) from outage
            found |= {(actor, ref): fields for ref, fields in confirmed.items()}
        return [found.get(each, frozenset()) for each in asked]

    async def excerpts(self, ids: Sequence[UUID]) -> AsyncIterator[tuple[UUID, Excerpt]]:
        """As `GrantedColumns.excerpts`: only for tables and views of which the question was answered with yes."""
        async for each in self._columns.excerpts(ids):
            yield each


def _lane(permit: Permit[Operation]) -> Lane:
    """Return where the questions of a request wait: the lane of engines is for those that are proven to be one."""
    return Lane.ENGINE if _inspects(permit.operation) or permit.actor.engine is not None else Lane.USER


def _inspects(operation: Operation) -> bool:
    # Anybody may send `delegated` with questions about themselves. One about others is answered to inspectors alone,
    # and comes this far only after that was decided.
    return (
        isinstance(operation, BatchCheck)
        and operation.delegated
        and any(each.principal is not None for each in operation.checks)
    )


def _pin(permit: Permit[Operation], actor: Actor) -> Pin | None:
    """What is known of coming expiries is known of the caller alone."""
    return pin_of(permit.resolution) if actor == permit.actor else None
