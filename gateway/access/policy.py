# SPDX-License-Identifier: Apache-2.0
"""What is asked of the policies (OPA) and what they answer, as values.

The wire is these structs in snake_case JSON: `policies/schemas/input.json` is generated from `PolicyRequest`
(`gateway/opa/schema.py`) and every rule is type-checked against it. One request carries many questions, because one
answer to all of them costs one round trip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Self

import msgspec

from gateway.access.actor import Actor
from gateway.access.demand import Fact


class PolicyActor(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks. `kind` is `user`, `role` or `system`; the policies deny every other value.

    `roles` are the ids of the roles the actor is known to belong to, so that a policy about a group binds its members.
    `engine` is the id of the service that asks in the actor's name, by a token of ours; null when they ask themselves.
    `subject_proven` is false when that engine asserted the actor: no token of the actor's own was shown to the gateway.
    `asked_by` is who asked, where the actor is the owner of the view that is read through.
    """

    id: str
    kind: str
    assumed_role: str | None = None
    roles: tuple[str, ...] = ()
    engine: str | None = None
    subject_proven: bool = True
    asked_by: str | None = None

    @classmethod
    def of(cls, actor: Actor, roles: tuple[str, ...]) -> Self:
        """The caller, or whom the caller acts as, in these roles."""
        role = actor.assumed_role
        return cls(
            id=actor.id,
            kind=actor.kind.value,
            assumed_role=None if role is None else str(role),
            roles=roles,
            engine=actor.engine,
            subject_proven=actor.subject_proven,
            asked_by=actor.asked_by,
        )


class PolicyContext(msgspec.Struct, frozen=True, kw_only=True):
    """The circumstances. `time` (RFC 3339) is the database's clock: policies never look at OPA's own."""

    request_id: str
    time: str
    user_agent: str | None = None
    client_address: str | None = None

    @classmethod
    def at(cls, now: datetime, *, request_id: str, user_agent: str | None, client_address: str | None) -> Self:
        """The circumstances at `now`, a time in UTC by the database's clock."""
        time = now.isoformat().replace("+00:00", "Z")
        return cls(request_id=request_id, time=time, user_agent=user_agent, client_address=client_address)


class PolicyResource(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked about: its type in the relationship model and what is known of its names.

    A name or an id that is not known is null. A guardrail that looks at names treats null as matching, so that a thing
    without a name is never less guarded than one with a name.

    Names are not identities: a rename or a move changes them, and ids stay. `namespace_ids` has the id of each level of
    `namespace`. `former_names` are full names that it had, namespace levels first. `former_namespaces` are names that
    its namespaces had, and a namespace itself. Both have the newest first and at most 20 entries. Without
    `former_names_complete` there are more, which a guardrail treats like a name that is not known.
    """

    type: str
    id: str | None = None
    name: str | None = None
    namespace: list[str] | None = None
    namespace_ids: list[str] | None = None
    former_names: list[list[str]] = []
    former_namespaces: list[list[str]] = []
    former_names_complete: bool = True
    warehouse_id: str | None = None
    warehouse: str | None = None
    project_id: str | None = None


class PolicyQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One operation on one resource; `facts` are the operation's own scalars and lists (`Operation.facts`)."""

    operation: str
    resource: PolicyResource
    facts: Mapping[str, Fact] = {}


class PolicyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is asked in one call."""

    actor: PolicyActor
    context: PolicyContext
    questions: tuple[PolicyQuestion, ...]


class Reason(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why something was denied: `code` is a stable snake_case word, `message` a sentence for the caller."""

    code: str
    message: str


class Obligations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What has to be observed if the answer is yes. The defaults oblige to nothing.

    `max_credential_seconds` bounds the life of vended credentials, `no_vending` forbids them, `append_only` takes
    deletion out of them, `hide_operations` names operations that are not to be offered to the caller. A field this
    gateway does not know makes the whole answer unusable: an obligation that is not understood must not be ignored.
    """

    max_credential_seconds: Annotated[int, msgspec.Meta(ge=0)] | None = None
    no_vending: bool = False
    append_only: bool = False
    hide_operations: tuple[str, ...] = ()


class PolicyAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to one question."""

    allow: bool
    reasons: tuple[Reason, ...] = ()
    obligations: Obligations = Obligations()


class PolicyAnswers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answers to all questions of a request, in their order.

    `valid_until` is the policies' promise that the same input gives the same answers until then; without it nothing
    may be remembered. `revision` names the policies and the policy data that gave the promise.
    """

    decisions: tuple[PolicyAnswer, ...]
    valid_until: datetime | None = None
    revision: str | None = None


def strictest(all_of_them: Sequence[Obligations]) -> Obligations:
    """What has to be observed when all of these have to be."""
    bounds = [each.max_credential_seconds for each in all_of_them if each.max_credential_seconds is not None]
    return Obligations(
        max_credential_seconds=min(bounds, default=None),
        no_vending=any(each.no_vending for each in all_of_them),
        append_only=any(each.append_only for each in all_of_them),
        hide_operations=tuple(dict.fromkeys(name for each in all_of_them for name in each.hide_operations)),
    )
