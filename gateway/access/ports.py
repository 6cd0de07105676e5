# SPDX-License-Identifier: Apache-2.0
"""What the door needs from the rooms above it. Each port has an adapter and, in the tests, a table or a refuser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.audit_record import AuditRecord
from gateway.access.policy import PolicyAnswer, PolicyRequest
from gateway.access.refs import ObjectKey, Ref
from gateway.access.relations import Can
from gateway.access.resolved import Excerpt, Resolution


@dataclass(frozen=True, slots=True)
class Question:
    """Does the caller have `relation` on `object`?

    `within` is the revision of the warehouse the object lies in, as it was read with its row; an answer about something
    in a warehouse is not remembered without it. `by` is a relation that alone gives `relation` and that the caller
    seems to have: quicker to confirm, and no more than a hint. `above` is what a stand-in for an absent object lies in,
    from its parent upwards; it ends with something that exists. `inside` is what the object lies in by its row: who has
    the relation on everything in there has it on the object.
    """

    relation: Can
    object: ObjectKey
    within: UUID | None = field(default=None, compare=False)
    by: str | None = field(default=None, compare=False)
    above: tuple[ObjectKey, ...] = field(default=(), compare=False)
    inside: ObjectKey | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Pin:
    """What an answer about relationships rests on beside the question, read in one statement before anything is asked
    (section 5 of the design, "Revision" and "Cache").

    `revision` is the server's, `time_boxes` moves whenever a grant with an expiry is made, and `next_expiry` is the
    first instant at which a grant to the caller or to one of the caller's roles ends.
    """

    revision: UUID
    time_boxes: UUID
    next_expiry: datetime | None


class Resolver(Protocol):
    """Turns references into rows, on the primary database."""

    async def resolve(self, refs: Sequence[Ref], caller: Actor) -> Resolution:
        """One read for all references of a request and the caller's roles; references to nothing have no row."""
        ...

    async def columns(self, caller: Actor, table_ids: Sequence[UUID]) -> Mapping[UUID, frozenset[int]]:
        """On which columns of these tables (field ids) there are live grants to the caller, or to one of the caller's
        roles; tables without any are left out. Whether a grant holds is OpenFGA's to say.
        """
        ...

    async def excerpts(self, ids: Sequence[UUID]) -> Mapping[UUID, Excerpt]:
        """Read the small part of the metadata documents of these tables and views that decisions need, after their
        rows; what is gone, and what has no readable document, is left out. Only for what is decided or needs it.
        """
        ...

    async def endings(self, caller: Actor, *, after: datetime, until: datetime) -> Sequence[datetime]:
        """When grants to the caller, or to one of the caller's roles, end within these times, in order."""
        ...


class Relationships(Protocol):
    """Answers who is related to what (OpenFGA)."""

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """One answer per question, in order, as things stand at `now`, the database's clock (time-boxed grants).

        Without a `pin` nothing is remembered and nothing remembered is used. Large questions leave room to others only
        where they are `paced`. Raises DecisionEngineUnavailable rather than guess.
        """
        ...


class Policies(Protocol):
    """Answers under which circumstances (OPA)."""

    async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        """One answer per question of the request, in order. Raises DecisionEngineUnavailable rather than guess."""
        ...


class AuditSink(Protocol):
    """Keeps audit records (decision 14 of the design)."""

    def buffer(self, record: AuditRecord) -> None:
        """Take the record for writing within 200 ms. Raises AuditUnavailable when the buffer is full."""
        ...

    async def commit(self, record: AuditRecord) -> None:
        """Return once the record is durable. Raises AuditUnavailable when it cannot be made so."""
        ...


class Observer(Protocol):
    """Is told how long decisions took and how they went, for metrics."""

    def decided(self, *, operation: str, outcome: str, determined_by: str) -> None:
        """One operation was decided."""
        ...

    def decision_took(self, engine: str, seconds: float) -> None:
        """One decision engine (`openfga`, `opa`) or the whole decision (`total`) took this long."""
        ...
