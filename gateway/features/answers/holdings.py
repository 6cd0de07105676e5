# SPDX-License-Identifier: Apache-2.0
"""Convert recorded grants of principals and of their roles to tuples for the evaluation, and back to grants. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import UTC, datetime
from typing import Final

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.grants.grant_ends import GrantRow
from gateway.fga.access_profiles import PROFILE_USER
from gateway.fga.evaluation import HeldTuple
from gateway.fga.names import object_of, role_members
from gateway.fga.relationships import object_name, to_wire

Holding = tuple[Principal, str, ObjectKey]
"""(holder, relation, object)."""

_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def structural(tuples: Iterable[TupleKey]) -> list[HeldTuple]:
    """Return the edges and flags as tuples for the evaluation."""
    wires = map(to_wire, tuples)
    return [HeldTuple(each.user, each.relation, each.object, None) for each in wires]


@dataclass(slots=True)
class Holdings:
    """The grants of some principals and of the roles that contain them.

    `derived` are tuples that follow from grants on the contents of an object, each with its expiry. `asked` are
    the objects of the answer.
    """

    grants: InitVar[Iterable[GrantRow]]
    derived: InitVar[Mapping[Holding, datetime | None]]
    asked: InitVar[Iterable[ObjectKey]] = ()
    _rows: dict[Holding, list[GrantRow]] = field(init=False, default_factory=dict)
    _of: dict[Principal, dict[tuple[str, ObjectKey], datetime | None]] = field(init=False, default_factory=dict)
    _objects: dict[str, ObjectKey] = field(init=False)
    _leading: set[Principal] = field(init=False)

    def __post_init__(
        self, grants: Iterable[GrantRow], derived: Mapping[Holding, datetime | None], asked: Iterable[ObjectKey]
    ) -> None:
        """Group the grants by their holders."""
        for grant in grants:
            self._rows.setdefault((grant.principal, grant.privilege, grant.object), []).append(grant)
        for (principal, privilege, object), rows in self._rows.items():
            self._of.setdefault(principal, {})[privilege, object] = _until(rows)
        for (principal, relation, object), until in derived.items():
            self._of.setdefault(principal, {})[relation, object] = until
        self._objects = {object_name(key): key for held in self._of.values() for _, key in held}
        self._leading = self._leading_roles(asked)

    def _leading_roles(self, asked: Iterable[ObjectKey]) -> set[Principal]:
        """Return the roles through which a principal gets other tuples than memberships, and the roles asked about."""
        containing: dict[Principal, set[Principal]] = {}
        found = {_role(key) for key in asked if key.type is ObjectType.ROLE}
        for principal, held in self._of.items():
            for _, key in held:
                if key.type is ObjectType.ROLE:
                    containing.setdefault(_role(key), set()).add(principal)
                else:
                    found.add(principal)
        left = list(found)
        while left:
            for inner in containing.get(left.pop(), ()):
                if inner not in found:
                    found.add(inner)
                    left.append(inner)
        return {each for each in found if each.type is PrincipalType.ROLE}

    def within(self, objects: Container[ObjectKey]) -> Holdings:
        """Return the holdings without those on other objects than `objects` and roles."""
        rows = [
            row
            for (_, _, key), some in self._rows.items()
            if key in objects or key.type is ObjectType.ROLE
            for row in some
        ]
        derived = {
            (holder, relation, key): until
            for holder, held in self._of.items()
            for (relation, key), until in held.items()
            if (key in objects or key.type is ObjectType.ROLE) and (holder, relation, key) not in self._rows
        }
        own = [key for key in self._objects.values() if key.type is ObjectType.ROLE and key in objects]
        return Holdings(rows, derived, own)

    def roles(self) -> list[ObjectKey]:
        """Return the roles of which principals are members."""
        return [key for key in self._objects.values() if key.type is ObjectType.ROLE]

    def roles_of(self, principal: Principal) -> list[Principal]:
        """Return the roles that matter of which the principal is a direct member."""
        held = self._of.get(principal, {})
        roles = dict.fromkeys(_role(key) for _, key in held if key.type is ObjectType.ROLE)
        return [each for each in roles if each in self._leading]

    def tuples_of(self, principal: Principal) -> frozenset[HeldTuple]:
        """Return the tuples of the principal, as PROFILE_USER, and of the roles that contain it.

        Memberships of roles that lead to no other tuple are left out.
        """
        found: set[HeldTuple] = set()
        if principal.type is PrincipalType.ROLE:
            found.add(HeldTuple(PROFILE_USER, "assignee", object_of("role", principal.id), None))
        left, seen = [principal], {principal}
        while left:
            holder = left.pop()
            name = role_members(holder.id) if holder.type is PrincipalType.ROLE else PROFILE_USER
            for (relation, key), until in self._of.get(holder, {}).items():
                if key.type is ObjectType.ROLE and _role(key) not in self._leading:
                    continue
                found.add(HeldTuple(name, relation, object_name(key), until))
                if key.type is ObjectType.ROLE and _role(key) not in seen:
                    seen.add(_role(key))
                    left.append(_role(key))
        return frozenset(found)

    def own(self, principal: Principal) -> Sequence[ObjectKey]:
        """Return the objects on which the principal itself holds a tuple."""
        return [key for _, key in self._of.get(principal, {})]

    def held_by_others(self, principals: Container[Principal]) -> set[ObjectKey]:
        """Return the objects on which another holder than the principals has a tuple."""
        return {key for holder, held in self._of.items() if holder not in principals for _, key in held}

    def holding_of(self, principal: Principal, held: HeldTuple) -> Holding | None:
        """Return the holder, the relation and the object of a tuple in `tuples_of(principal)`.

        Return None for the membership by which a role is evaluated.
        """
        key = self._objects.get(held.object)
        if key is None or (held.user == PROFILE_USER and principal.type is PrincipalType.ROLE):
            return None
        role = held.user.removeprefix("role:").removesuffix("#assignee")
        holder = principal if held.user == PROFILE_USER else Principal(PrincipalType.ROLE, role)
        return holder, held.relation, key

    def grant_of(self, holding: Holding) -> GrantRow | None:
        """Return the grant behind a tuple, the one that ends last; None for a tuple that follows from contents."""
        rows = self._rows.get(holding)
        return max(rows, key=lambda row: (row.expires_at or _NEVER, str(row.id))) if rows else None


def _role(key: ObjectKey) -> Principal:
    return Principal(PrincipalType.ROLE, key.id)


def _until(rows: Sequence[GrantRow]) -> datetime | None:
    ends = [row.expires_at for row in rows if row.expires_at is not None]
    return max(ends) if len(ends) == len(rows) else None
