# SPDX-License-Identifier: Apache-2.0
"""Select the rows of a list that the caller can possibly see, before OpenFGA is queried.

A caller that does not see everything in the parent sees a row only by a live grant to itself or to one of its roles.
PostgreSQL records all such grants. So only rows with such a grant are read, and OpenFGA checks each of them. A row that
is read needlessly costs one check, and never changes the result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.nouns.authz_errors import unavailable
from gateway.access.nouns.refs import TABULARS, ObjectType
from gateway.access.nouns.resolved import Resolution

#: The derived relation that makes the containers above a granted object visible.
TRAVERSE = "traverse"


@dataclass(frozen=True, slots=True)
class Reach:
    """The grants that can make an object of one type visible in a list, as derived from a model.

    - `own`: privileges on the object itself.
    - `below`: True if grants on its contents count too (by `traverse`).
    - `above`: privileges on its containers (a project, the server) that show every row.
    - `certain`: relations of which each alone makes it visible; the other relations of `own` do so in some cases only.
    - `inside`, of a namespace: privileges on it or on a namespace above it. Without one of them a caller sees
      everything in the namespace only if it sees everything in the warehouse. None if there are other ways.
    - `tasks`, of objects in a namespace: True if only `own` on the object, or `inside` of its namespaces, shows the
      tasks of the object. Callers that see everything in the warehouse are not considered.
    """

    own: frozenset[str]
    below: bool
    above: frozenset[str]
    certain: frozenset[str]
    inside: frozenset[str] | None = None
    tasks: bool = False


#: Reach by object type. For a type without an entry, a list checks every row.
Reaches = Mapping[ObjectType, Reach]

#: Function that returns the reaches of the model in use. It raises DecisionEngineUnavailable if the model cannot be
#: read.
ReachesInUse = Callable[[], Awaitable[Reaches]]


@dataclass(frozen=True, slots=True)
class Holders:
    """The principals whose grants count for a caller: its roles, and itself unless it acts as a role."""

    user: str | None
    roles: tuple[str, ...]


def holders_of(actor: Actor, resolution: Resolution) -> Holders:
    """Return the principals whose grants count in a list of this caller. `resolution` is that of the list's parent."""
    return Holders(None if actor.assumed_role is not None else actor.id, resolution.caller_roles)


async def reach_of(reaches: ReachesInUse, type: ObjectType) -> Reach | None:
    """Return the grants that can make objects of this type visible. Return None if a list must check every row.

    Raises the refusal for an outage.
    """
    try:
        return (await reaches()).get(type)
    except DecisionEngineUnavailable as outage:
        raise unavailable(False) from outage


async def all_by_grants(reaches: ReachesInUse, *, tasks: bool = False) -> bool:
    """Return True if objects of a warehouse are visible only by grants on them or on their namespaces.

    Callers that see everything in the warehouse are not considered. With `tasks`, the tasks of the objects must also be
    visible only by these grants. Raises the refusal for an outage.
    """
    within = await reach_of(reaches, ObjectType.NAMESPACE)
    if within is None or within.inside is None:
        return False
    things = [await reach_of(reaches, type) for type in sorted(TABULARS)]
    return all(thing is not None and not thing.above and (thing.tasks or not tasks) for thing in things)
