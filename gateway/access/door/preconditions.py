# SPDX-License-Identifier: Apache-2.0
"""Check preconditions that need neither OpenFGA nor OPA: the caller's kind, its token, and read-only maintenance.

No object is read here, so these responses disclose none.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.access.actor import Actor, ActorKind
from gateway.access.decisions.delegation import may_be_delegated
from gateway.access.demand import Demand
from gateway.access.door.request_context import RequestContext
from gateway.access.nouns.authz_errors import (
    AssumeRoleForbidden,
    DelegationForbidden,
    NotAuthenticated,
    ProjectTokenForbidden,
    in_maintenance,
    not_kept_in_maintenance,
)
from gateway.access.operation import Audience, ChangeOperation, HttpOperation, Operation, Step, SystemTask
from gateway.access.operations.steps import AssumeRole, ReadThroughView


class Preconditions:
    """Checks that depend on the caller and the operation only.

    With `read_only`, the operations that pause in maintenance are refused (`Operation.pauses`).
    """

    def __init__(self, *, read_only: bool) -> None:
        self._read_only = read_only

    def pauses(self, operation: type[Operation]) -> bool:
        """Return True if read-only maintenance refuses the operation."""
        return self._read_only and operation.pauses()

    def require_not_paused(self, operation: type[Operation]) -> None:
        """Raise the error of read-only maintenance if it refuses the operation."""
        if not self.pauses(operation):
            return
        if issubclass(operation, ChangeOperation) and operation.refused_for_good:
            raise not_kept_in_maintenance(operation.refused_for_good)
        raise in_maintenance(operation.is_catalog_mutation())

    def demands_of(self, operation: Operation) -> Sequence[Demand]:
        """Return the demands to check. In read-only maintenance, demands for access to changes are left out."""
        demands = operation.demands()
        return [demand for demand in demands if not demand.changes] if self._read_only else demands

    def require(self, context: RequestContext, operations: Sequence[Operation]) -> None:
        """Raise the refusal of a caller that could not be admitted whatever the engines decide: 401, 403, or the error
        of maintenance.

        Raises TypeError for a mistake in the gateway's code.
        """
        for each in operations:
            _require_way(context, each)
            _require_stated(each)
        if context.actor.kind is ActorKind.ANONYMOUS and not all(each.is_public() for each in operations):
            raise NotAuthenticated("This operation needs a bearer token in the Authorization header.")
        for each in operations:
            _require_own(context.actor, each)
            _require_token_for(context.actor, each)
            _require_direct_call(context.actor, each)
            self.require_not_paused(type(each))


def _require_way(context: RequestContext, operation: Operation) -> None:
    """Raise TypeError if operations of this kind cannot be requested in this situation.

    The cause is a mistake in the gateway's code, never in a request. Only the gateway's own tasks do system tasks. A
    response is repeated only if a success is recorded.
    """
    system = context.actor.kind is ActorKind.SYSTEM
    tasks = operation.system_tasks if isinstance(operation, SystemTask) else frozenset()
    own = system and context.actor.id.removeprefix("system~") in tasks
    if isinstance(operation, SystemTask) != system or (system and not own):
        raise TypeError(f"{type(operation).__name__} cannot be requested by {context.actor.id}")
    if isinstance(operation, AssumeRole):
        if context.assumption is not None or context.admitted:
            raise TypeError(f"{type(operation).__name__} must be the first operation of a request, and only once")
    elif isinstance(operation, ReadThroughView):
        # The role may have been assumed before an outer view, so that the rights of the view's owner count here.
        if any(not issubclass(each, ReadThroughView | AssumeRole) for each in context.admitted):
            raise TypeError(
                f"{type(operation).__name__} must be admitted before the operation that reads through the view"
            )
    elif isinstance(operation, Step) and context.recorded_success is None:
        raise TypeError(f"{type(operation).__name__} needs a recorded success of the same idempotency key")


def _require_stated(operation: Operation) -> None:
    """Raise TypeError for an HTTP operation that has no required demand and is not declared open.

    Lock 1 checks that demands are defined. The fields of the operation determine which are required, so this is checked
    here.
    """
    stated = operation.open_to is not None or any(demand.required for demand in operation.demands())
    if isinstance(operation, HttpOperation) and not stated:
        raise TypeError(f"{type(operation).__name__} has no required demand in this request and is not declared open")


def _require_own(actor: Actor, operation: Operation) -> None:
    """Raise TypeError if an operation open to SELF has no demand in this request and is about another user.

    So no handler can confuse the two users. A caller that acts as a role has no user record of its own.
    """
    target_user = operation.target_user()
    if (
        not operation.is_open(Audience.SELF)
        or target_user is None
        or any(demand.required for demand in operation.demands())
    ):
        return
    if target_user != actor.id or actor.assumed_role is not None:
        raise TypeError(f"{type(operation).__name__} is open only to {target_user} without an assumed role")


def _require_direct_call(actor: Actor, operation: Operation) -> None:
    """Raise DelegationForbidden if an engine acts for the caller, and engines cannot request this operation for
    users.
    """
    if actor.engine is not None and not may_be_delegated(type(operation)):
        raise DelegationForbidden(
            f"The engine {actor.engine} cannot request {operation.name()} on behalf of {actor.id}. The user must "
            "send this request directly."
        )


def _require_token_for(actor: Actor, operation: Operation) -> None:
    """Raise the refusal for a token that does not permit changes that need no right: changes of the caller itself or of
    the whole server.

    Raises ProjectTokenForbidden if the caller's token is for one project: objects outside of it do not exist for that
    token. Raises AssumeRoleForbidden for a caller that acts as a role: operations open to users are not open to roles.
    """
    if not isinstance(operation, ChangeOperation) or operation.for_every_token:
        return
    if any(each.required for each in operation.demands()):
        return
    if actor.assumed_role is not None:
        raise AssumeRoleForbidden(
            f"{operation.name()} is not possible while acting as a role. Send the request without the header "
            "x-assume-role."
        )
    if actor.project_token:
        raise ProjectTokenForbidden(
            f"{operation.name()} is not possible with a token that is limited to the project {actor.within}. Use a "
            "token without this limit."
        )
