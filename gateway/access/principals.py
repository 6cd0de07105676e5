# SPDX-License-Identifier: Apache-2.0
"""Convert principals (users and roles) between the forms of requests, callers and database rows."""

from __future__ import annotations

from uuid import UUID

from gateway.access.actor import Actor, ActorKind
from gateway.access.operations.actions import Identity
from gateway.access.operations.grants import GrantedTo
from gateway.access.tuples import Principal, PrincipalType, require_valid_in_tuples
from gateway.iceberg.errors import BadRequestException


def principal_of(identity: Identity) -> Principal:
    """Return the principal that a request names.

    Raises 400 unless it names exactly one user or role, with an id that fits in a relationship tuple.
    """
    if (identity.user is None) == (identity.role is None):
        raise BadRequestException("A principal must have exactly one of the fields `user` and `role`.")
    if identity.role is not None:
        return Principal(PrincipalType.ROLE, str(identity.role))
    return Principal(PrincipalType.USER, require_valid_in_tuples(identity.user or ""))


def own_principal(caller: Actor) -> Principal:
    """Return the principal of checks about the caller itself: its assumed role, or else the user."""
    if caller.assumed_role is not None:
        return Principal(PrincipalType.ROLE, str(caller.assumed_role))
    return Principal(PrincipalType.USER, caller.id)


def other_principal(principal: Principal | None, caller: Actor) -> Principal | None:
    """Return the principal if it is not the caller.

    Return None for the caller, which needs no right to check itself.
    """
    return None if principal == own_principal(caller) else principal


def actor_of(principal: Principal) -> Actor:
    """Return the actor for which the door evaluates a principal's rights.

    A role is evaluated as an unnamed member with the rights of the role alone. The user is unknown, so policies receive
    no user id.
    """
    if principal.type is PrincipalType.ROLE:
        return Actor(kind=ActorKind.ROLE, id="", assumed_role=UUID(principal.id))
    return Actor.user(principal.id)


def principal_answer(type: str, id: str) -> GrantedTo:
    """Return the principal of a row in the form of a response."""
    return GrantedTo(role=UUID(id)) if type == PrincipalType.ROLE else GrantedTo(user=id)
