# SPDX-License-Identifier: Apache-2.0
"""The ports of the door to the rooms above it. Each has an adapter and, in the tests, a table or a refuser."""

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
    """Ask whether the caller has `relation` on `object`.

    `within` is the revision of the object's warehouse, read with its row; without it an answer about an object in a
    warehouse is not cached. `by` is a relation that implies `relation` and that the caller seems to have: a hint that
    is cheaper to confirm. `above` are the containers of a stand-in for an absent object, from its parent upwards to an
    existing one. `inside` is the container of the object by its row: a caller with the relation on all its contents has
    it on the object.
    """

    relation: Can
    object: ObjectKey
    within: UUID | None = field(default=None, compare=False)
    by: str | None = field(default=None, compare=False)
    above: tuple[ObjectKey, ...] = field(default=(), compare=False)
    inside: ObjectKey | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Pin:
    """Describe what an answer about relationships depends on beside the question: the revision that cached answers are
    keyed by. One statement reads it before any question is sent.

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
        """Read the excerpts of the metadata documents of these tables and views after their rows. Objects that are
        gone, or have no readable document, are left out.
        """
        ...

    async def endings(self, caller: Actor, *, after: datetime, until: datetime) -> Sequence[datetime]:
        """When grants to the caller, or to one of the caller's roles, end within these times, in order."""
        ...


class Relationships(Protocol):
    """Answers questions about relationships (OpenFGA)."""

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
    """Keeps audit records."""

    def buffer(self, record: AuditRecord) -> None:
        """Take the record for writing within 200 ms. Raises AuditUnavailable when the buffer is full."""
        ...

    async def commit(self, record: AuditRecord) -> None:
        """Return once the record is durable. Raises AuditUnavailable when it cannot be made so."""
        ...


class Observer(Protocol):
    """Receives durations and outcomes of decisions, for metrics."""

    def decided(self, *, operation: str, outcome: str, determined_by: str) -> None:
        """One operation was decided."""
        ...

    def decision_took(self, engine: str, seconds: float) -> None:
        """One decision engine (`openfga`, `opa`) or the whole decision (`total`) took this long."""
        ...
