# SPDX-License-Identifier: Apache-2.0
"""Whom a request is about, as a value."""

from __future__ import annotations

from uuid import UUID

from gateway.access.actor import Actor, ActorKind
from gateway.access.tuples import Principal, PrincipalType, require_fitting
from gateway.iceberg.errors import BadRequestException
from gateway.protocol.grants import GrantedTo
from gateway.protocol.rights import Identity


def principal_of(identity: Identity) -> Principal:
    """Raises 400 unless it names exactly one user or role, by an id that relationships can hold."""
    if (identity.user is None) == (identity.role is None):
        raise BadRequestException("A principal is exactly one of user and role.")
    if identity.role is not None:
        return Principal(PrincipalType.ROLE, str(identity.role))
    return Principal(PrincipalType.USER, require_fitting(identity.user or ""))


def own_principal(caller: Actor) -> Principal:
    """Who the caller is when rights are asked about: the assumed role, or else the user."""
    if caller.assumed_role is not None:
        return Principal(PrincipalType.ROLE, str(caller.assumed_role))
    return Principal(PrincipalType.USER, caller.id)


def unless_own(principal: Principal | None, caller: Actor) -> Principal | None:
    """None when the principal is the caller: about oneself everybody may ask."""
    return None if principal == own_principal(caller) else principal


def actor_of(principal: Principal) -> Actor:
    """The principal at the door. A role is judged as a nameless member of it, with the rights of the role alone: which
    human would come is not known, so policies are told no user id.
    """
    if principal.type is PrincipalType.ROLE:
        return Actor(kind=ActorKind.ROLE, id="", assumed_role=UUID(principal.id))
    return Actor.user(principal.id)


def told_principal(type: str, id: str) -> GrantedTo:
    """A principal of a row, for the wire."""
    return GrantedTo(role=UUID(id)) if type == PrincipalType.ROLE else GrantedTo(user=id)
