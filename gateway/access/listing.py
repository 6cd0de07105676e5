# SPDX-License-Identifier: Apache-2.0
"""Who can see a row of a list at all, known before any row is asked about (section 5 of the design, "Lists").

Where the parent is not all-seen, a row can only be visible by a live grant to the caller or to one of the caller's
roles, and PostgreSQL records all of those. So a list reads the rows that such a grant speaks for, and OpenFGA judges
each of them: a row too many costs a question and never an answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from gateway.access.actor import Actor
from gateway.access.outage import DecisionEngineUnavailable
from gateway.access.refs import TABULARS, ObjectType
from gateway.access.refusals import unavailable
from gateway.access.resolved import Resolution

#: The derived relation by which a container is seen for the sake of something in it.
TRAVERSE = "traverse"


@dataclass(frozen=True, slots=True)
class Reach:
    """By which grants an object of one type can be visible in a list, as a model has it.

    `own`: privileges on the object itself. `below`: whether grants on something in it count too (by `traverse`).
    `above`: privileges on what it lies in (a project, the server) that show every row. `certain`: relations of which
    each alone makes it visible; the others of `own` do so in some cases only. `inside`, of a namespace: privileges on
    it, or on a namespace it lies in, without one of which nobody sees everything in it who does not see everything in
    its warehouse; None when there are other ways. `tasks`, of what lies in a namespace: whether by `own` on it, or by
    `inside` of its namespaces, everybody sees its tasks who does and does not see everything in its warehouse.
    """

    own: frozenset[str]
    below: bool
    above: frozenset[str]
    certain: frozenset[str]
    inside: frozenset[str] | None = None
    tasks: bool = False


#: By type of object. A type that is not in it has no such bounds: a list of them asks about every row.
Reaches = Mapping[ObjectType, Reach]

#: The reaches of the model that serves at this moment. Raises DecisionEngineUnavailable when it cannot be read.
ReachesInUse = Callable[[], Awaitable[Reaches]]


@dataclass(frozen=True, slots=True)
class Holders:
    """Whose grants count for a caller: the caller's own, unless a role is assumed, and those of the caller's roles."""

    user: str | None
    roles: tuple[str, ...]


def holders_of(actor: Actor, resolution: Resolution) -> Holders:
    """For a list of this caller; the roles are those that were read with what the list is of."""
    return Holders(None if actor.assumed_role is not None else actor.id, resolution.caller_roles)


async def reach_of(reaches: ReachesInUse, type: ObjectType) -> Reach | None:
    """What a list of this type goes by; None when it asks about every row. Raises the refusal for an outage."""
    try:
        return (await reaches()).get(type)
    except DecisionEngineUnavailable as outage:
        raise unavailable(False) from outage


async def all_by_grants(reaches: ReachesInUse, *, tasks: bool = False) -> bool:
    """Whether who does not see everything in a warehouse sees the things in it, or else the `tasks` about them, only by
    grants on them or on the namespaces they lie in. Raises the refusal for an outage.
    """
    within = await reach_of(reaches, ObjectType.NAMESPACE)
    if within is None or within.inside is None:
        return False
    things = [await reach_of(reaches, type) for type in sorted(TABULARS)]
    return all(thing is not None and not thing.above and (thing.tasks or not tasks) for thing in things)
