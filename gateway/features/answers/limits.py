# SPDX-License-Identifier: Apache-2.0
"""Name on each row of an answer what would limit the principal: guardrails and data policies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from gateway.access.actor import Actor
from gateway.access.decisions.hypothetical_checks import HypotheticalChecks
from gateway.access.decisions.hypothetical_evaluation import HypotheticalCheck
from gateway.access.decisions.policy import PolicyAnswer
from gateway.access.door.permit import Permit
from gateway.access.nouns.cards import policy_operation_name
from gateway.access.nouns.refs import ObjectKey, Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Resolution
from gateway.access.operations.answer_lists import (
    LimitedActions,
    RestrictedTables,
    RowLimits,
    WhatCan,
    WhoCan,
    WhoCanRow,
)
from gateway.access.operations.answers import PolicyReason
from gateway.access.principals import actor_of
from gateway.access.restrictions.bound_restrictions import PolicyVerdict
from gateway.access.tuples import Principal
from gateway.db.answers.restricted_contents import policies_within, restricted_tables
from gateway.db.engine.database import Database
from gateway.features.grants.partial_checks import CONCERNS_DATA
from gateway.obligations.guardrail_policies import policies_of

_UNSTATED: Final = PolicyReason(code="unstated", message="a guardrail denies the action and states no reason")

#: The most restricted tables that are counted in one object, and the most data policies that one answer asks about.
_TABLES: Final = 1000
_POLICIES: Final = 200


async def limited(
    permit: Permit[WhoCan], decisions: HypotheticalChecks, principals: Sequence[Principal], rows: Sequence[WhoCanRow]
) -> list[WhoCanRow]:
    """Return the rows, one for each principal, with what limits the action for it."""
    on, action = permit.operation.on, permit.operation.action
    checks = [HypotheticalCheck(actor_of(each), action, on) for each in principals]
    limits = await _limits_of(permit, decisions, checks, permit.resolution)
    return [msgspec.structs.replace(row, limits=each) for row, each in zip(rows, limits, strict=True)]


async def limited_actions(
    permit: Permit[WhatCan], decisions: HypotheticalChecks, actor: Actor, held: Mapping[Ref, Collection[Can]]
) -> dict[Ref, list[LimitedActions]]:
    """Return what limits the actions of the actor on each object, with the actions that have equal limits together.

    Objects that do not exist any more are left out.
    """
    resolution = await decisions.resolve(permit, list(held))
    checks = {
        (on, action): HypotheticalCheck(actor, action, on)
        for on, actions in held.items()
        if resolution.get(on) is not None
        for action in actions
    }
    # Policies receive the same question for several actions.
    alike = {_question(check): check for check in checks.values()}
    answers = await _limits_of(permit, decisions, list(alike.values()), resolution)
    limits = dict(zip(alike, answers, strict=True))
    found: dict[Ref, list[LimitedActions]] = {}
    for on, actions in held.items():
        groups: list[tuple[RowLimits, list[str]]] = []
        for action in sorted(actions):
            limit = limits[_question(checks[on, action])] if (on, action) in checks else None
            if limit is None:
                continue
            group = next((names for each, names in groups if each == limit), None)
            if group is None:
                groups.append((limit, group := []))
            group.append(action.value.removeprefix("can_"))
        found[on] = [
            LimitedActions(actions=names, denied=each.denied, obligations=each.obligations, restricted=each.restricted)
            for each, names in groups
        ]
    return found


async def restricted_contents(
    permit: Permit[WhatCan],
    decisions: HypotheticalChecks,
    database: Database,
    actor: Actor,
    containers: Sequence[ObjectKey],
) -> dict[ObjectKey, RestrictedTables]:
    """Return the number of tables in each container to which data policies apply that restrict the actor.

    Containers without such tables are left out. With too many data policies to ask about, none is left out.
    """
    if not containers:
        return {}
    async with database.read() as connection:
        policies = await policies_within(connection, containers, limit=_POLICIES + 1)
    some = dict(list(policies.items())[:_POLICIES])
    restricting = await decisions.restricting(permit, actor, some) if some else frozenset()
    counts: Mapping[ObjectKey, int] = {}
    if restricting:
        async with database.read() as connection:
            counts = await restricted_tables(connection, containers, restricting, most=_TABLES + 1)
    incomplete = len(policies) > len(some)
    return {
        key: RestrictedTables(count=min(count, _TABLES), at_least=incomplete or count > _TABLES)
        for key in containers
        if (count := counts.get(key, 0)) or incomplete
    }


def _question(check: HypotheticalCheck) -> tuple[Ref, str, bool]:
    """Return what the limits of a check depend on, beside the actor."""
    return check.on, policy_operation_name(check.on.type, check.relation), check.relation in CONCERNS_DATA


async def _limits_of(
    permit: Permit[WhoCan] | Permit[WhatCan],
    decisions: HypotheticalChecks,
    checks: Sequence[HypotheticalCheck],
    resolution: Resolution,
) -> list[RowLimits | None]:
    """Return the limits of each check, in order; None if nothing limits it."""
    answers = await decisions.policies(permit, checks, resolution=resolution)
    stated = {
        index: (check.actor, check.on, policies_of(answer.obligations))
        for index, (check, answer) in enumerate(zip(checks, answers, strict=True))
        if check.relation in CONCERNS_DATA
    }
    verdicts = await decisions.policy_verdicts(permit, list(stated.values()), resolution=resolution)
    of_check = dict(zip(stated, verdicts, strict=True))
    return [_limits(answer, of_check.get(index)) for index, answer in enumerate(answers)]


def _limits(answer: PolicyAnswer, verdict: PolicyVerdict | None) -> RowLimits | None:
    reasons = [PolicyReason(code=each.code, message=each.message) for each in answer.reasons]
    found = RowLimits(
        denied=[] if answer.allow else reasons or [_UNSTATED],
        obligations=dict(answer.obligations.audited()),
        restricted=verdict is not None and verdict.restricts,
    )
    return None if found == RowLimits() else found
