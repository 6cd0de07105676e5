# SPDX-License-Identifier: Apache-2.0
"""The interfaces that the door uses to decide operations, and that adapters implement: rows, OpenFGA, OPA and the
audit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.audit.audit_record import AuditRecord, IssuedCredential
from gateway.access.decisions.policy import PolicyAnswer, PolicyRequest
from gateway.access.nouns.refs import ObjectKey, Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Excerpt, Governed, Resolution
from gateway.access.tuples import TupleKey
from gateway.obligations.data_policies import PolicyInputs


@dataclass(frozen=True, slots=True)
class Question:
    """A question to OpenFGA: does the caller have `relation` on `object`?

    `within` is the revision of the object's warehouse, read with its row. Without it, a result about an object in a
    warehouse is not cached. `by` is a hint: a relation that implies `relation` and is cheaper to confirm, and that the
    caller seems to have. `above` are the containers of a stand-in for an absent object, from its parent upwards to an
    existing one. `inside` are the containers of the object by its row, from its parent upwards to the project; those of
    a stand-in begin with `above`. A caller with the relation on all contents of a container has it on the object.
    `seen` is True if the caller is already known to have a relation to the same object. Then the duration of a refusal
    cannot disclose that the object exists.
    """

    relation: Can
    object: ObjectKey
    within: UUID | None = field(default=None, compare=False)
    by: str | None = field(default=None, compare=False)
    above: tuple[ObjectKey, ...] = field(default=(), compare=False)
    inside: tuple[ObjectKey, ...] = field(default=(), compare=False)
    seen: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Pin:
    """The state on which a cached result about relationships depends. It is the part of the cache key beside the
    question.

    One statement reads it before any question is sent. `revision` is that of the server. `time_boxes` changes whenever
    a grant with an expiry is made. `next_expiry` is the first time at which a grant to the caller or to one of the
    caller's roles expires. `roles` are these roles, by the rows; None if they are not known. `revocations_pending` is
    True if OpenFGA may still have a tuple whose right was revoked, from any principal.
    """

    revision: UUID
    time_boxes: UUID
    next_expiry: datetime | None
    roles: tuple[str, ...] | None = field(default=None, compare=False)
    revocations_pending: bool = field(default=False, compare=False)


class Resolver(Protocol):
    """Reads the rows behind references, on the primary database."""

    async def resolve(self, refs: Sequence[Ref], caller: Actor) -> Resolution:
        """Read the rows behind all references, and the caller's roles, in one read. Absent objects have no row."""
        ...

    async def columns(self, caller: Actor, table_ids: Sequence[UUID]) -> Mapping[UUID, frozenset[int]]:
        """Return the columns (field ids) of these tables on which the caller, or one of its roles, has live grants.

        Tables without such columns are left out. The rows only select columns: OpenFGA decides whether the caller has
        the privilege.
        """
        ...

    async def excerpts(self, ids: Sequence[UUID]) -> Mapping[UUID, Excerpt]:
        """Read the excerpts of the current metadata documents of these tables and views.

        Objects that no longer exist, or have no readable document, are left out.
        """
        ...

    async def policy_inputs(self, rows: Sequence[Governed]) -> Mapping[UUID, PolicyInputs | None]:
        """Return the data policies bound to each row, by the row's id. For a namespace, they are those of a new table
        in it.

        The value is None if this version cannot read a stored policy.
        """
        ...

    async def mapped_values(
        self, project_id: str, names: Sequence[str], user: str, roles: Sequence[str]
    ) -> Sequence[tuple[str, tuple[str, ...]]]:
        """Return (name, values for the user and the roles) of each of these mapping tables of a project.

        If `user` is empty, only the values for the roles are returned.
        """
        ...

    async def subjects_by_group(self, policy_ids: Sequence[str], provider: str) -> frozenset[str]:
        """Return the data policies among `policy_ids` whose subjects include a role that maps to a group of this
        provider.
        """
        ...

    async def grant_expiries(self, caller: Actor, *, after: datetime, until: datetime) -> Sequence[datetime]:
        """Return the expiries between `after` and `until` of grants to the caller or to its roles, in order."""
        ...


class Relationships(Protocol):
    """Answers questions about relationships (OpenFGA)."""

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Return one result for each question, in order.

        Grants with an expiry count as of `now`, a time by the database's clock. Without a `pin` the cache is neither
        read nor written. A large batch leaves capacity to other requests only if it is `paced`. Raises
        DecisionEngineUnavailable if a result is missing.
        """
        ...


class GrantRows(Protocol):
    """Reads the recorded grants, on the primary database."""

    async def recorded(self, keys: Sequence[TupleKey]) -> Set[TupleKey]:
        """Return those of the `keys` that the rows require now, in one read.

        The rows only select checks: OpenFGA decides whether a principal has a relation. Raises DatabaseUnavailable.
        """
        ...


class Creations(Protocol):
    """Reads created objects whose tuples OpenFGA has not received yet, on the primary database."""

    async def pending(self, objects: Sequence[ObjectKey]) -> Mapping[TupleKey, datetime | None]:
        """Return the undelivered tuples of newly created `objects` and of their newly created containers, each with its
        expiry.

        These are edges to parents, and ownerships of creators. Raises DatabaseUnavailable.
        """
        ...


class Revocations(Protocol):
    """Reads revocations that OpenFGA has not received yet, on the primary database."""

    async def pending(self, actor: Actor) -> bool:
        """Return True if an undelivered revocation may concern the actor. Raises DatabaseUnavailable."""
        ...


class Policies(Protocol):
    """Evaluates the policies (OPA)."""

    async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        """Return one result for each question of the request, in order.

        Raises DecisionEngineUnavailable if a result is missing.
        """
        ...


class AuditSink(Protocol):
    """Stores audit records."""

    def buffer(self, record: AuditRecord) -> None:
        """Accept the record, to be written within 200 ms. Raises AuditUnavailable if the buffer is full."""
        ...

    async def commit(self, record: AuditRecord, issued: IssuedCredential | None = None) -> None:
        """Write the record and the register entry `issued` in one transaction, and return once they are durable.

        Raises AuditUnavailable if they cannot be made durable.
        """
        ...


class Observer(Protocol):
    """Receives durations and outcomes of decisions, for metrics."""

    def decided(self, *, operation: str, outcome: str, determined_by: str) -> None:
        """Count one decided operation."""
        ...

    def decision_took(self, engine: str, seconds: float) -> None:
        """Record how long one decision engine (`openfga`, `opa`) or the whole decision (`total`) took."""
        ...
