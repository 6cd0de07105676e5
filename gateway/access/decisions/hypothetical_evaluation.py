# SPDX-License-Identifier: Apache-2.0
"""Evaluate hypothetical checks with OpenFGA and OPA.

The result of "may Bob drop this table?" is the one that Bob would get. OpenFGA checks Bob's relations, and the policies
receive Bob as the actor, with Bob's roles. The user agent and the address are sent as unknown, because Bob sends no
request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from msgspec import UNSET, UnsetType

from gateway.access.actor import Actor
from gateway.access.audit.audit_record import AuditRecord
from gateway.access.decisions.policy import (
    Asserted,
    PolicyActor,
    PolicyAnswer,
    PolicyContext,
    PolicyQuestion,
    PolicyRequest,
)
from gateway.access.demand import Facts
from gateway.access.dependency_errors import first_of
from gateway.access.door.engines import Engines
from gateway.access.door.questions import above_of, inside_of, key_of, pin_of
from gateway.access.nouns.cards import policy_operation_name
from gateway.access.nouns.describe import describe_target
from gateway.access.nouns.refs import ObjectType, Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Resolution, ResolvedTable, warehouse_of
from gateway.access.ports import Question, Resolver
from gateway.obligations.application import EnforcementPoint, unenforced
from gateway.obligations.data_policies import BoundPolicy
from gateway.obligations.guardrail_policies import policies_of, without_policies

#: Actors evaluated at the same time in one process, for all requests of a lane together (`shares.py`). Each costs one
#: call to OPA and few to OpenFGA, however many checks there are. A higher limit would slow down all other decisions.
AT_ONCE = 4
#: Actors evaluated at the same time for one principal. The limit leaves room for other principals.
AT_ONCE_EACH = 1

#: Actors about which OPA alone is asked in one slot. Each costs one call to OPA, and none to OpenFGA.
_POLICIES_TOGETHER: Final = 4

#: Catalog actions on a warehouse; the other actions on warehouses are management.
_OF_CATALOG = frozenset({Can.CREATE_NAMESPACE, Can.GET_CONFIG, Can.LIST_EVERYTHING, Can.LIST_NAMESPACES, Can.USE})

#: Management actions on objects in a warehouse. An inactive warehouse allows them too.
_OF_MANAGEMENT = frozenset(
    each
    for each in Can
    if each.name.startswith("GRANT_")
    or each
    in (
        Can.BREAK_GLASS,
        Can.CHANGE_OWNERSHIP,
        Can.CONFIRM_BREAK_GLASS,
        Can.CONTROL_TASKS,
        Can.GET_TASKS,
        Can.MANAGE_TAGS,
        Can.READ_ASSIGNMENTS,
        Can.READ_GRANTS,
        Can.REQUEST_ACCESS,
        Can.REVIEW_BREAK_GLASS,
        Can.SET_MANAGED_ACCESS,
        Can.SET_PROTECTION,
        Can.UNDROP,
    )
)


@dataclass(frozen=True, slots=True)
class HypotheticalCheck:
    """The check whether `actor` may use `relation` on `on`, with these facts for policies. `on` is resolved already.

    `asserted` is what a policy enforcement point states.
    """

    actor: Actor
    relation: Can
    on: Ref
    facts: Facts = field(default_factory=dict)
    asserted: Asserted | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The circumstances of a request that was not sent. None stands for an unknown one, and for the present time."""

    user_agent: str | None = None
    client_address: str | None = None
    time: datetime | None = None


UNKNOWN: Final = Circumstances()


@dataclass(frozen=True, slots=True)
class HypotheticalVerdict:
    """The parts of the decision on one check. `allowed` is the decision.

    - `exists`: the object exists.
    - `active`: the object is not in an inactive warehouse that the check needs.
    - `holds`: OpenFGA's answer; for an absent object that of a stand-in.
    - `policy`: OPA's answer.
    - `deactivated`: the provider's directory deactivated the actor.
    - `enforceable`: something enforces the obligations of the answer.
    """

    exists: bool
    active: bool
    holds: bool
    policy: PolicyAnswer
    deactivated: bool
    enforceable: bool

    @property
    def allowed(self) -> bool:
        """True if a real request would be allowed."""
        return (
            self.exists
            and self.active
            and self.holds
            and self.policy.allow
            and self.enforceable
            and not self.deactivated
        )


async def evaluate_checks(
    hypothetical: Sequence[HypotheticalCheck],
    *,
    requester: Actor,
    record: AuditRecord,
    resolution: Resolution,
    resolver: Resolver,
    engines: Engines,
    room: Callable[[], AbstractAsyncContextManager[None]],
    paced: bool,
    guardrails: dict[int, tuple[BoundPolicy, ...]] | None = None,
    circumstances: Circumstances | None = None,
    asking: Callable[[PolicyRequest], None] | None = None,
) -> list[HypotheticalVerdict]:
    """Return one verdict for each check, in order. A check on an absent object is not allowed.

    If guardrails demand row filters or masks, the check is refused. With `guardrails`, a check on one table is allowed
    instead, and its filters and masks are added to `guardrails` by the index of the check: the caller must apply them.

    The checks of one actor are one request to OPA. The checks of each actor take one slot of `room`. `paced` is as for
    `Relationships.check`. `circumstances` replace those of the request, and the unknown ones of other
    actors. `asking` receives each request to OPA before it is sent. Raises DecisionEngineUnavailable if a result is
    missing.
    """
    verdicts: dict[int, HypotheticalVerdict] = {}
    of_actor: dict[Actor, list[int]] = {}
    for index, each in enumerate(hypothetical):
        of_actor.setdefault(each.actor, []).append(index)

    async def about(actor: Actor, indexes: Sequence[int]) -> None:
        async with room():
            same = actor == requester
            known = resolution if same else await resolver.resolve((), actor)
            some = [hypothetical[index] for index in indexes]
            request = _policy_request(
                some, actor, known.caller_roles, record, resolution, circumstances, is_caller=same
            )
            if asking is not None:
                asking(request)
            questions = questions_about(some, resolution)
            async with asyncio.TaskGroup() as both:
                allowing = both.create_task(engines.allowed(request))
                # Checked at the time of `known`, because it contains the expiries after that time. The revisions of
                # warehouses are older.
                relating = both.create_task(engines.check(actor, questions, known.now, pin_of(known), paced=paced))
        answers = zip(indexes, allowing.result(), relating.result(), strict=True)
        for index, policy, holds in answers:
            # If no component enforces an obligation at a scan, the result is False, because True would disclose all of
            # the data.
            obligations = policy.obligations
            if guardrails is not None and isinstance(resolution.get(hypothetical[index].on), ResolvedTable):
                guardrails[index] = policies_of(obligations)
                obligations = without_policies(obligations)
            verdicts[index] = HypotheticalVerdict(
                exists=resolution.get(hypothetical[index].on) is not None,
                # The check is sent for an inactive warehouse too: the duration must not disclose an invisible one.
                active=not _is_in_inactive_warehouse(hypothetical[index], resolution),
                holds=holds,
                policy=policy,
                # The door refuses deactivated users, whatever tuples OpenFGA still has for them.
                deactivated=known.deactivated,
                enforceable=unenforced(obligations, EnforcementPoint.SCAN) is None,
            )

    try:
        async with asyncio.TaskGroup() as group:
            for actor, indexes in of_actor.items():
                group.create_task(about(actor, indexes))
    except ExceptionGroup as failed:
        raise first_of(failed) from None
    return [verdicts[index] for index in range(len(hypothetical))]


async def ask_policies(
    hypothetical: Sequence[HypotheticalCheck],
    *,
    requester: Actor,
    record: AuditRecord,
    resolution: Resolution,
    resolver: Resolver,
    engines: Engines,
    room: Callable[[], AbstractAsyncContextManager[None]],
) -> list[PolicyAnswer]:
    """Return OPA's answer to each check, in order, with unknown circumstances.

    The checks of one actor are one request to OPA. The requests of `_POLICIES_TOGETHER` actors take one slot of `room`.
    Raises DecisionEngineUnavailable if an answer is missing.
    """
    found: dict[int, PolicyAnswer] = {}
    of_actor: dict[Actor, list[int]] = {}
    for index, each in enumerate(hypothetical):
        of_actor.setdefault(each.actor, []).append(index)

    async def about(actor: Actor, indexes: Sequence[int]) -> None:
        known = await resolver.resolve((), actor)
        some = [hypothetical[index] for index in indexes]
        request = _policy_request(
            some, actor, known.caller_roles, record, resolution, UNKNOWN, is_caller=actor == requester
        )
        found.update(zip(indexes, await engines.allowed(request), strict=True))

    actors = list(of_actor.items())
    for first in range(0, len(actors), _POLICIES_TOGETHER):
        try:
            async with room(), asyncio.TaskGroup() as group:
                for actor, indexes in actors[first : first + _POLICIES_TOGETHER]:
                    group.create_task(about(actor, indexes))
        except ExceptionGroup as failed:
            raise first_of(failed) from None
    return [found[index] for index in range(len(hypothetical))]


def _is_in_inactive_warehouse(hypothetical: HypotheticalCheck, resolution: Resolution) -> bool:
    """Return True if the check is about a catalog action in an inactive warehouse.

    Management continues in inactive warehouses: rights can be granted and read.
    """
    warehouse = warehouse_of(resolution.get(hypothetical.on))
    if warehouse is None or warehouse.active:
        return False
    if hypothetical.on.type is ObjectType.WAREHOUSE:
        return hypothetical.relation in _OF_CATALOG
    return hypothetical.relation not in _OF_MANAGEMENT


def questions_about(hypothetical: Sequence[HypotheticalCheck], resolution: Resolution) -> list[Question]:
    """Return the question to OpenFGA for each check.

    For an absent object it contains a stand-in at the same location.
    """
    questions = []
    for each in hypothetical:
        row = resolution.get(each.on)
        warehouse = warehouse_of(row)
        within = None if warehouse is None else warehouse.revision
        key, above = key_of(each.on, resolution), above_of(each.on, resolution)
        questions.append(Question(each.relation, key, within, above=above, inside=inside_of(each.on, resolution)))
    return questions


def _policy_request(
    hypothetical: Sequence[HypotheticalCheck],
    actor: Actor,
    roles: tuple[str, ...],
    record: AuditRecord,
    resolution: Resolution,
    circumstances: Circumstances | None,
    *,
    is_caller: bool,
) -> PolicyRequest:
    own = Circumstances(record.user_agent, record.client_address) if is_caller else UNKNOWN
    known = own if circumstances is None else circumstances
    return PolicyRequest(
        actor=PolicyActor.of(actor, roles, is_caller=is_caller),
        context=PolicyContext.at(
            (known.time or resolution.now).astimezone(UTC),
            request_id=record.request_id,
            user_agent=known.user_agent,
            client_address=known.client_address,
        ),
        questions=tuple(
            PolicyQuestion(
                operation=policy_operation_name(each.on.type, each.relation),
                resource=describe_target(each.on, resolution),
                facts=dict(each.facts),
                asserted=each.asserted,
            )
            for each in hypothetical
        ),
    )
