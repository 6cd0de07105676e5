# SPDX-License-Identifier: Apache-2.0
"""Decide whether an engine may act for a user in an operation.

The engine needs the relation `delegate` on the warehouse in OpenFGA. The grant of `delegate` may be limited to some
users and addresses (`gateway.access.delegate_grants`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from msgspec import UNSET

from gateway.access.actor import Actor
from gateway.access.decisions.decision import DelegationRefusal, Failure
from gateway.access.delegate_grants import ADMINISTRATORS_REFUSED, DelegateGrant, refusing_limit
from gateway.access.door.questions import engine_pin_of, pin_of, refs_of
from gateway.access.door.request_context import RequestContext
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Resolution, ResolvedWarehouse, warehouse_of
from gateway.access.operation import HttpOperation, Operation
from gateway.access.operations.steps import ReadThroughView
from gateway.access.ports import Pin, Question

Check = Callable[[Actor, Sequence[Question], datetime, Pin | None], Awaitable[list[bool]]]
"""`Engines.check`."""


def may_be_delegated(operation: type[Operation]) -> bool:
    """Return True if an engine can request the operation for a user.

    These are catalog operations, public operations, and those without an endpoint, such as assuming a role.
    """
    return not issubclass(operation, HttpOperation) or operation.is_public() or operation.is_of_catalog()


def questions_to_engine(operation: Operation, resolution: Resolution) -> list[Question] | None:
    """Return the questions about relations that the engine must have; None if no relation would be enough.

    A token of an engine for a user gives no right by itself. Each operation checks the user's right, and that the
    engine has `delegate` on the warehouse of the object. `delegate` is granted on warehouses, or on a project for all
    of its warehouses (`fga_model/warehouse.fga`). Engines cannot reach objects outside of warehouses: users administer
    and grant rights only as themselves.

    An absent object has no warehouse here. It is hidden from the user anyway.
    """
    engine_questions: dict[Question, None] = {}
    for ref in refs_of((operation,)):
        row = resolution.get(ref)
        if row is None:
            continue
        warehouse = warehouse_of(row)
        if warehouse is None:
            return None
        engine_questions[Question(Can.DELEGATE, warehouse.key, warehouse.revision)] = None
    return list(engine_questions) or None


def administering(on: ObjectType) -> Can:
    """Return the relation that makes a user an administrator of a warehouse or project: managing the grants on it."""
    return Can.GRANT_DELEGATE if on is ObjectType.PROJECT else Can.GRANT_MANAGE_GRANTS


def administers(warehouse: ResolvedWarehouse) -> tuple[Question, ...]:
    """Return the questions whether a user administers the warehouse. One yes is enough."""
    project = ObjectKey(ObjectType.PROJECT, warehouse.project_id)
    return (
        Question(administering(ObjectType.WAREHOUSE), warehouse.key, warehouse.revision),
        Question(administering(ObjectType.PROJECT), project),
    )


@dataclass(frozen=True, slots=True)
class _Limited:
    """The effect of the grants' limits in one warehouse.

    `refusal` is set if no grant permits the user, whatever OpenFGA returns. A yes to one of `questions` also refuses:
    the user is an administrator, and no grant includes administrators.
    """

    refusal: str | None = None
    questions: tuple[Question, ...] = ()


async def delegation_refusals(
    check: Check, context: RequestContext, operations: Sequence[Operation], resolution: Resolution
) -> list[DelegationRefusal | None]:
    """Return, for each operation, the reason why the engine may not act for the caller; None if it may.

    All are None if no engine acts for the caller. The limits are checked with every operation. The engine's relation is
    cached like other checks. Raises DecisionEngineUnavailable, alone or in a group.
    """
    engine = context.actor.engine_itself()
    if engine is None:
        return [None] * len(operations)
    needed = [questions_to_engine(operation, resolution) for operation in operations]
    ordered = list(dict.fromkeys(question for some in needed if some is not None for question in some))
    if not ordered:
        return [_refusal(operation, None, set(), {}, set()) for operation in operations]
    limited = _limits(context, resolution)
    excluded = list(dict.fromkeys(question for each in limited.values() for question in each.questions))
    user, pin = _user_of(context, resolution)
    async with asyncio.TaskGroup() as both:
        holding = both.create_task(_yes(check, engine, ordered, resolution.now, engine_pin_of(resolution)))
        administering = both.create_task(_yes(check, user, excluded, resolution.now, pin))
    return [
        _refusal(operation, some, holding.result(), limited, administering.result())
        for operation, some in zip(operations, needed, strict=True)
    ]


def _limits(context: RequestContext, resolution: Resolution) -> dict[ObjectKey, _Limited]:
    """Return the effect of the limits in each warehouse of the request, by the warehouse's key."""
    found: dict[ObjectKey, _Limited] = {}
    for row in resolution.rows.values():
        warehouse = warehouse_of(row)
        if warehouse is None or warehouse.key in found:
            continue
        here = covering(resolution, warehouse)
        user, roles, address = context.actor.id, resolution.caller_roles, context.client_address
        permitting = [each for each in here if each.permits(user, roles, address)]
        if not permitting:
            found[warehouse.key] = _Limited(refusing_limit(here, user, roles))
        elif any(each.for_administrators for each in permitting):
            found[warehouse.key] = _Limited()
        else:
            found[warehouse.key] = _Limited(questions=administers(warehouse))
    return found


def covering(resolution: Resolution, warehouse: ResolvedWarehouse) -> list[DelegateGrant]:
    """Return the recorded grants of `delegate` to the engine on the warehouse or on its project."""
    return [each for each in resolution.delegations if each.covers(str(warehouse.id), warehouse.project_id)]


def limits_end(actor: Actor, resolution: Resolution) -> datetime | None:
    """Return a time until which the limits of the engine's grants permit the caller; None if they permit it without
    end.

    The time may be earlier than the actual end. It is never later, except if the caller's own membership in a role ends
    (`limiting_roles`). OpenFGA knows the end of the engine's relation, but not the grant that permits this caller. If
    the grant is to a role of the engine, that membership may end too, so the first end of any grant counts.
    """
    ends: list[datetime | None] = []
    warehouses = {each.key: each for each in map(warehouse_of, resolution.rows.values()) if each is not None}
    for warehouse in warehouses.values():
        here = covering(resolution, warehouse)
        if all(each.limits is not None and each.limits.unlimited for each in here):
            continue
        permitting = [each for each in here if each.names(actor.id, resolution.caller_roles)]
        ends += [each.expires_at if each.direct else resolution.engine_next_expiry for each in permitting]
        ends += [each.expires_at for each in permitting]
    return min((end for end in ends if end is not None), default=None)


def limiting_roles(actor: Actor, resolution: Resolution) -> list[str]:
    """Return the roles of the caller by which the engine's grants include it, where they do not name the caller itself.

    The caller's memberships in them may expire.
    """
    found: set[str] = set()
    for warehouse in filter(None, map(warehouse_of, resolution.rows.values())):
        for each in covering(resolution, warehouse):
            if each.limits is not None and each.limits.roles is not UNSET and not each.names(actor.id, ()):
                found.update(str(role) for role in each.limits.roles)
    return sorted(found.intersection(resolution.caller_roles))


def _user_of(context: RequestContext, resolution: Resolution) -> tuple[Actor, Pin | None]:
    """Return the user that the engine acts for, without an assumed role, and the pin for cached results about this
    user.

    An administrator that acts as a role is still an administrator, but the pin of the request is then that of the role.
    """
    if context.actor.assumed_role is not None:
        return without_role(context.actor), None
    return resolution.acting(context.actor), pin_of(resolution)


def without_role(actor: Actor) -> Actor:
    """Return the user without the role that it assumes."""
    return actor if actor.assumed_role is None else msgspec.structs.replace(actor, assumed_role=None, within=None)


async def _yes(
    check: Check, actor: Actor, questions: Sequence[Question], now: datetime, pin: Pin | None
) -> set[Question]:
    answers = await check(actor, questions, now, pin) if questions else []
    return {question for question, answer in zip(questions, answers, strict=True) if answer}


def _refusal(
    operation: Operation,
    needed: Sequence[Question] | None,
    yes: set[Question],
    limited: dict[ObjectKey, _Limited],
    administered: set[Question],
) -> DelegationRefusal | None:
    # Assuming a role and repeating a recorded success give no access by themselves.
    if not isinstance(operation, HttpOperation | ReadThroughView):
        return None
    if needed is None or not yes.issuperset(needed):
        return DelegationRefusal(Failure.NOT_DELEGATED)
    for question in needed:
        limits = limited[question.object]
        if limits.refusal is not None:
            return DelegationRefusal(Failure.OUTSIDE_LIMITS, limits.refusal)
        if not administered.isdisjoint(limits.questions):
            return DelegationRefusal(Failure.OUTSIDE_LIMITS, ADMINISTRATORS_REFUSED)
    return None
