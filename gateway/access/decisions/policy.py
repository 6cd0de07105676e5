# SPDX-License-Identifier: Apache-2.0
"""Requests to the policies (OPA) and their results, as values.

Their JSON form is that of these structs, in snake_case. `policies/schemas/input.json` is generated from `PolicyRequest`
(`gateway/opa/schema.py`), and every rule is type-checked against it. One request carries many questions, so that all of
them cost one round trip.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

import msgspec
from msgspec import UNSET, UnsetType

from gateway.access.actor import Actor
from gateway.access.demand import Fact
from gateway.obligations.merging import NO_OBLIGATIONS, Obligations


class PolicyActor(msgspec.Struct, frozen=True, kw_only=True):
    """Describe the caller. `kind` is `user`, `role` or `system`; the policies deny every other value.

    `roles` are the ids of the actor's known roles, so that a policy about a group binds its members. `engine` is the id
    of the service that acts for the actor, by a token of the gateway; null if there is none. `subject_proven` is false
    if that engine asserted the actor: the gateway saw no token of the actor's own. `asked_by` is the caller, if the
    actor is the owner of the view that is read through. `groups_known` is false if the actor may be in groups that the
    gateway does not know, and so have more roles: no token of the actor states them.
    """

    id: str
    kind: str
    assumed_role: str | None = None
    roles: tuple[str, ...] = ()
    engine: str | None = None
    subject_proven: bool = True
    asked_by: str | None = None
    groups_known: bool = True

    @classmethod
    def of(cls, actor: Actor, roles: tuple[str, ...], *, is_caller: bool = True) -> Self:
        """Return the policy input for this actor, with the ids of its roles.

        Only the caller has a token in this request.
        """
        role = actor.assumed_role
        return cls(
            id=actor.id,
            kind=actor.kind.value,
            assumed_role=None if role is None else str(role),
            roles=roles,
            engine=actor.engine,
            subject_proven=actor.subject_proven,
            asked_by=actor.asked_by,
            groups_known=not actor.id or (is_caller and not actor.groups_unknown),
        )


class PolicyContext(msgspec.Struct, frozen=True, kw_only=True):
    """The circumstances of a request. `time` (RFC 3339) is by the database's clock; policies never use OPA's own."""

    request_id: str
    time: str
    user_agent: str | None = None
    client_address: str | None = None

    @classmethod
    def at(cls, now: datetime, *, request_id: str, user_agent: str | None, client_address: str | None) -> Self:
        """Return the circumstances at `now`, a time in UTC by the database's clock."""
        time = now.isoformat().replace("+00:00", "Z")
        return cls(request_id=request_id, time=time, user_agent=user_agent, client_address=client_address)


class ResourceNames(msgspec.Struct, frozen=True, kw_only=True):
    """Describe an object by its known names, and by the objects above it. An unknown name or id is null.

    Names are not identities: a rename or a move changes them, and ids stay. `namespace_ids` has the id of each level of
    `namespace`. `former_names` are full names that it had, namespace levels first. `former_namespaces` are former names
    of its namespaces, and of a namespace itself. Both have the newest first and at most 20 entries. Without
    `former_names_complete` there are more, which a guardrail treats like an unknown name.
    """

    name: str | None = None
    namespace: list[str] | None = None
    namespace_ids: list[str] | None = None
    former_names: list[list[str]] = []
    former_namespaces: list[list[str]] = []
    former_names_complete: bool = True
    warehouse_id: str | None = None
    warehouse: str | None = None
    project_id: str | None = None

    def names(self) -> dict[str, Any]:
        """Return these fields by name, without those of a subclass."""
        return {field: getattr(self, field) for field in ResourceNames.__struct_fields__}


class PolicyResource(ResourceNames, frozen=True, kw_only=True):
    """Describe the object: its type in the relationship model and the known names.

    A guardrail that matches names treats null as a match, so that an object without a name is never less guarded than
    one with a name.
    """

    type: str
    id: str | None = None


class Asserted(msgspec.Struct, frozen=True, kw_only=True):
    """The properties and the context that a policy enforcement point (AuthZEN) states about its question.

    The gateway verified none of them. The asker is the caller of the request, and not the actor of the question.
    """

    subject: Mapping[str, Any] = {}
    action: Mapping[str, Any] = {}
    resource: Mapping[str, Any] = {}
    context: Mapping[str, Any] = {}


class PolicyQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One operation on one resource; `facts` are the operation's own scalars and lists (`Operation.facts`).

    `asserted` is absent unless a policy enforcement point asks. A guardrail may deny by it. It must not rely on it.
    """

    operation: str
    resource: PolicyResource
    facts: Mapping[str, Fact] = {}
    asserted: Asserted | UnsetType = UNSET


class PolicyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The questions of one call."""

    actor: PolicyActor
    context: PolicyContext
    questions: tuple[PolicyQuestion, ...]


class Reason(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason for a denial: `code` is a stable snake_case word, `message` a sentence for the caller."""

    code: str
    message: str


class PolicyAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result to one question."""

    allow: bool
    reasons: tuple[Reason, ...] = ()
    obligations: Obligations = NO_OBLIGATIONS


class PolicyAnswers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The results to all questions of a request, in their order.

    `valid_until` is the policies' promise that the same input gives the same answers until then; without it no result
    is cached. `revision` names the policies and the policy data that gave the promise.
    """

    decisions: tuple[PolicyAnswer, ...]
    valid_until: datetime | None = None
    revision: str | None = None
