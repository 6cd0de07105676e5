# SPDX-License-Identifier: Apache-2.0
"""What is settled before anybody is asked: who may come this way at all, and whether anything may be changed now.

Nothing here looks at an object, so nothing here can tell of one.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.access.actor import Actor, ActorKind
from gateway.access.delegation import may_be_delegated
from gateway.access.demand import Demand
from gateway.access.entrance import Entrance
from gateway.access.operation import Audience, ChangeOperation, HttpOperation, Operation, Step, SystemTask
from gateway.access.operations.assuming import AssumeRole
from gateway.access.operations.passing import ReadThroughView
from gateway.access.refusals import (
    AssumeRoleForbidden,
    DelegationForbidden,
    NotAuthenticated,
    ProjectTokenForbidden,
    in_maintenance,
    not_kept_in_maintenance,
)


class Threshold:
    """The questions that the caller and the operation answer by themselves.

    `read_only`: in maintenance nothing that changes anything passes, whoever asks (`Operation.pauses`).
    """

    def __init__(self, *, read_only: bool) -> None:
        self._read_only = read_only

    def pauses(self, operation: type[Operation]) -> bool:
        """Whether read-only maintenance is on and keeps this from being done."""
        return self._read_only and operation.pauses()

    def require_open(self, operation: type[Operation]) -> None:
        """Raise the answer of read-only maintenance to what would change something."""
        if not self.pauses(operation):
            return
        if issubclass(operation, ChangeOperation) and operation.refused_for_good:
            raise not_kept_in_maintenance(operation.refused_for_good)
        raise in_maintenance(operation.is_catalog_mutation())

    def demands_of(self, operation: Operation) -> Sequence[Demand]:
        """What is asked about: in maintenance not what only a change would need."""
        demands = operation.demands()
        return [demand for demand in demands if not demand.changes] if self._read_only else demands

    def require(self, entrance: Entrance, asked: Sequence[Operation]) -> None:
        """Raise TypeError for a mistake of the gateway's code, and the refusal (401, 403, or the answer of maintenance)
        for a caller who cannot be let in, whatever the engines would say.
        """
        for each in asked:
            _require_way(entrance, each)
            _require_stated(each)
        if entrance.actor.kind is ActorKind.ANONYMOUS and not all(each.is_public() for each in asked):
            raise NotAuthenticated("This operation needs a bearer token in the Authorization header.")
        for each in asked:
            _require_own(entrance.actor, each)
            _require_token_for(entrance.actor, each)
            _require_own_hand(entrance.actor, each)
            self.require_open(type(each))


def _require_way(entrance: Entrance, operation: Operation) -> None:
    """Raise TypeError unless this caller may come this way at all: a mistake of the gateway's code, never of a caller.

    The gateway's tasks come with operations of their own and nobody else comes with those; an answer is repeated only
    where one is remembered.
    """
    system = entrance.actor.kind is ActorKind.SYSTEM
    tasks = operation.system_tasks if isinstance(operation, SystemTask) else frozenset()
    own = system and entrance.actor.id.removeprefix("system~") in tasks
    if isinstance(operation, SystemTask) != system or (system and not own):
        raise TypeError(f"{type(operation).__name__} is not for {entrance.actor.id}")
    if isinstance(operation, AssumeRole):
        if entrance.assumption is not None or entrance.admitted:
            raise TypeError(f"{type(operation).__name__} comes first, and once")
    elif isinstance(operation, ReadThroughView):
        # The role may have been assumed before an outer view whose owner's rights count here.
        if any(not issubclass(each, ReadThroughView | AssumeRole) for each in entrance.admitted):
            raise TypeError(f"{type(operation).__name__} comes before what it leads to")
    elif isinstance(operation, Step) and entrance.remembered is None:
        raise TypeError(f"{type(operation).__name__} needs a remembered success")


def _require_stated(operation: Operation) -> None:
    """Raise TypeError for an operation that nothing is required for and that does not say so.

    Lock 1 sees that there are demands; that one of them is required depends on the values and is seen only here.
    """
    stated = operation.open_to is not None or any(demand.required for demand in operation.demands())
    if isinstance(operation, HttpOperation) and not stated:
        raise TypeError(f"{type(operation).__name__} requires nothing here and is not declared open")


def _require_own(actor: Actor, operation: Operation) -> None:
    """Raise TypeError for what is open to oneself, demands nothing here and is about somebody else, so that no handler
    can take the one for the other. Who acts as a role is there with the role's rights alone, and no record is the
    role's own.
    """
    whose = operation.whose()
    if not operation.is_open(Audience.SELF) or whose is None or any(demand.required for demand in operation.demands()):
        return
    if whose != actor.id or actor.assumed_role is not None:
        raise TypeError(f"{type(operation).__name__} is open to {whose} alone and not to {actor.id}")


def _require_own_hand(actor: Actor, operation: Operation) -> None:
    """Raise DelegationForbidden for what no engine does in somebody's name."""
    if actor.engine is not None and not may_be_delegated(type(operation)):
        raise DelegationForbidden(f"{operation.name()} is not possible for {actor.engine} in the name of {actor.id}.")


def _require_token_for(actor: Actor, operation: Operation) -> None:
    """Raise the refusal of a change that no right is needed for, and that is the caller's own or of the whole server.

    ProjectTokenForbidden when the caller's token is for one project: what takes a right is refused there because
    nothing outside the project exists. AssumeRoleForbidden for who acts as a role: what takes a right is refused there
    because the role does not have it, and a role has nothing that is open to people.
    """
    if not isinstance(operation, ChangeOperation) or operation.for_every_token:
        return
    if any(each.required for each in operation.demands()):
        return
    if actor.assumed_role is not None:
        raise AssumeRoleForbidden(f"{operation.name()} is not possible while acting as a role.")
    if actor.project_token:
        raise ProjectTokenForbidden(f"{operation.name()} is not possible with a token for the project {actor.within}.")
