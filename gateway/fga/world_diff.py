# SPDX-License-Identifier: Apache-2.0
"""Compute which principals gain and lose rights when one relationship model replaces another, from recorded grants.

The result is complete: every principal and every object is covered. A row names the highest object, and what changes on
it and on all objects below it. Users with the same roles and grants share a row. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from gateway.access.decisions.recorded_grants import Grant, World
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import MANAGED_ACCESS, Principal, PrincipalType
from gateway.fga.evaluation import HeldTuple, ModelRules
from gateway.fga.model_analysis import ParsedModel
from gateway.fga.model_diff import ModelDiff
from gateway.fga.model_rules import downward_steps, downward_subjects, stray_wildcards
from gateway.fga.profile_diff import NOTHING, Change, Effect, Profile, ProfileDiff, Step
from gateway.fga.sufficient_grants import members_only_add


class Incomplete(Exception):
    """The grants in the database do not determine all rights of one of the models, so there is no complete answer."""


class Because(NamedTuple):
    """Grants that give these actions, with the object and the principal of each grant.

    `kind` is the kind of the objects below, or empty for the object of the row.
    """

    kind: str
    actions: tuple[str, ...]
    gained: bool
    grants: tuple[tuple[str, ObjectKey, Principal], ...]


class AccessChange(NamedTuple):
    """Describe the changes on an object for principals with the same grants on its path.

    Without principals the row is about every user, except those with rows of their own here or above. `apart_from` are
    objects below with rows of their own, or without a change. The grants in `because` are those of the first principal.
    """

    object: ObjectKey
    principals: tuple[Principal, ...]
    own: Change
    below: tuple[tuple[str, Change], ...]
    apart_from: tuple[ObjectKey, ...]
    because: tuple[Because, ...]

    @property
    def gains(self) -> bool:
        """Return True if the principals gain an action."""
        return bool(self.own.gained or any(each.gained for _, each in self.below))


def changed_access(old: Mapping[str, Any], new: Mapping[str, Any], diff: ModelDiff, world: World) -> list[AccessChange]:
    """Return what changes for which principals, by object.

    `diff` is the comparison of both models for at least the number of nested namespaces in `world`. Raises Incomplete.
    """
    require_complete(old, new)
    return _Walk(old, new, diff, world).rows()


def require_complete(*models: Mapping[str, Any]) -> None:
    """Raise Incomplete unless the rights of a model follow from grants to users and members of roles alone."""
    parsed = [ParsedModel(each) for each in models]
    for model, read in zip(models, parsed, strict=True):
        faults = [*stray_wildcards(model), *downward_subjects(model), *downward_steps(model)]
        if faults:
            raise Incomplete(f"A complete comparison on the grants is impossible: {faults[0]}.")
        if not (read.members_are_recorded() and members_only_add(read)):
            raise Incomplete(
                "A complete comparison on the grants is impossible: grants do not decide who is in a role."
            )
    if len({frozenset(each.implying(ObjectType.ROLE, "assignee")) for each in parsed}) > 1:
        raise Incomplete("A complete comparison on the grants is impossible: the models differ in who is in a role.")


_Pair = tuple[set[str], set[str]]
_HeldOn = dict[ObjectKey, _Pair]


@dataclass
class _Holder:
    """The grants of one principal: relations by object, for the old and the new model."""

    held: _HeldOn = field(default_factory=dict)
    roles: list[Principal] = field(default_factory=list)
    deciding: bool = False


class _Group(NamedTuple):
    """Principals with the same grants: all of their grants are those of `holders`."""

    principals: tuple[Principal, ...]
    holders: tuple[Principal, ...]


_EMPTY: Final[_Pair] = set(), set()


class _Walk:
    def __init__(self, old: Mapping[str, Any], new: Mapping[str, Any], diff: ModelDiff, world: World) -> None:
        self._places = world.places
        changes = [*diff.widened, *diff.narrowed]
        compared: dict[ObjectType, set[str]] = {}
        for each in changes:
            if each.type != "condition":
                compared.setdefault(ObjectType(each.type), set()).add(each.relation)
        self._profiles = ProfileDiff(old, new, compared)
        # A changed right needs every fact of one of the implications, so one grant of each is on the path.
        self._deciding = {
            (fact.on.partition("+")[0], fact.relation) for each in changes for fact in each.facts if fact.holds
        }
        self._deciding |= {(each.type, each.relation) for each in changes if each.accepts}
        self._open = any(_without_grants(each.facts) for each in changes if not each.accepts)
        self._members = ParsedModel(old).implying(ObjectType.ROLE, "assignee")
        self._rules = ModelRules(old), ModelRules(new)
        roles = [key for key in world.places if key.type is ObjectType.ROLE]
        self._holders = {Principal(PrincipalType.ROLE, key.id): _Holder() for key in roles}
        self._flagged = self._children_of([key for key, place in world.places.items() if place.flagged])
        for grant in world.grants:
            self._record(grant)

    def _children_of(self, keys: Iterable[ObjectKey]) -> dict[ObjectKey, list[ObjectKey]]:
        """Return the objects on the paths to `keys`, by the container above them."""
        found: dict[ObjectKey, list[ObjectKey]] = {}
        known: set[ObjectKey] = set()
        for key in keys:
            below = key
            while below not in known and (above := self._places[below].above) is not None:
                known.add(below)
                found.setdefault(above, []).append(below)
                below = above
        return found

    def _record(self, grant: Grant) -> None:
        if grant.object not in self._places:
            return
        holder = self._holders.setdefault(grant.principal, _Holder())
        admitted = [admits_grant(rules, grant) for rules in self._rules]
        if grant.object.type is ObjectType.ROLE and grant.relation in self._members:
            if admitted[0] != admitted[1]:
                raise Incomplete(f"The models differ in whether {grant.relation} of a role can be held.")
            if admitted[0]:
                holder.roles.append(Principal(PrincipalType.ROLE, grant.object.id))
        pair = holder.held.setdefault(grant.object, (set(), set()))
        for admits, relations in zip(admitted, pair, strict=True):
            if admits:
                relations.add(grant.relation)
        holder.deciding |= (grant.object.type.value, grant.relation) in self._deciding

    def rows(self) -> list[AccessChange]:
        found: dict[tuple[Any, ...], list[Principal]] = {}
        if self._open:
            self._visit(_Group((), ()), found)
        for group in self._groups():
            self._visit(group, found)
        rows = [
            AccessChange(on, tuple(sorted(who)), effect.own, effect.below, apart, self._because(path, on, effect, who))
            for (on, effect, apart, path, _), who in found.items()
        ]
        return sorted(rows, key=lambda each: (each.object.type, each.object.id, each.principals))

    def _groups(self) -> Iterator[_Group]:
        """Yield all principals that hold a deciding grant, in groups with equal grants."""
        alike: dict[tuple[Any, ...], list[Principal]] = {}
        for principal, holder in self._holders.items():
            own = tuple(sorted((key.type, key.id) for key in holder.held))
            roles = frozenset(holder.roles)
            # A user with grants on roles only has the grants of the roles.
            plain = principal.type is PrincipalType.USER and all(key[0] == ObjectType.ROLE for key in own)
            alike.setdefault((roles, own if plain else principal), []).append(principal)
        for who in alike.values():
            holders = self._closure(who[0])
            same = [each for each in who if self._holders[each].held == self._holders[who[0]].held]
            yield _Group(tuple(same), holders)
            yield from (_Group((each,), self._closure(each)) for each in who if each not in same)

    def _closure(self, principal: Principal) -> tuple[Principal, ...]:
        found, waiting = {principal: None}, [principal]
        while waiting:
            holder = self._holders.get(waiting.pop())
            for role in holder.roles if holder is not None else ():
                if role not in found:
                    found[role] = None
                    waiting.append(role)
        return tuple(found)

    def _visit(self, group: _Group, found: dict[tuple[Any, ...], list[Principal]]) -> None:
        role = bool(group.principals) and group.principals[0].type is PrincipalType.ROLE
        holders = [self._holders[each] for each in group.holders if each in self._holders]
        if not (self._open or role or any(each.deciding for each in holders)):
            return
        held = self._together(group)
        top = [key for key, (old, new) in held.items() if self._decides(key, old | new)]
        if self._open:
            top += [key for key, place in self._places.items() if place.above is None]
        starts = set(top)
        highest = [each for each in starts if not any(above in starts for above in self._path(each)[:-1])]
        if highest:
            self._descend(highest, held, group, found)

    def _together(self, group: _Group) -> _HeldOn:
        held: _HeldOn = {}
        for principal in group.holders:
            holder = self._holders.get(principal)
            for key, (old, new) in holder.held.items() if holder is not None else ():
                if key in held:
                    held[key] = held[key][0] | old, held[key][1] | new
                else:
                    held[key] = old, new
        if group.principals and group.principals[0].type is PrincipalType.ROLE:
            # The principal is a member of the role that it assumes.
            itself = ObjectKey(ObjectType.ROLE, group.principals[0].id)
            if itself in self._places:
                old, new = held.get(itself, _EMPTY)
                held[itself] = old | {"assignee"}, new | {"assignee"}
        return held

    def _decides(self, key: ObjectKey, relations: set[str]) -> bool:
        return any((key.type.value, each) in self._deciding for each in relations)

    def _descend(
        self,
        starts: Sequence[ObjectKey],
        held: Mapping[ObjectKey, _Pair],
        group: _Group,
        found: dict[tuple[Any, ...], list[Principal]],
    ) -> None:
        """Add the rows of a group on these objects and below. Only objects with grants or flags can differ there."""
        own = self._children_of(held)
        waiting = list(starts)
        while waiting:
            key = waiting.pop()
            profile = self._profile(key, held)
            effect = self._profiles.effect(profile)
            apart: list[ObjectKey] = []
            below = self._inside(own, key)
            while below:
                child = below.pop()
                if self._as_expected(effect, child, self._profiles.effect(self._profile(child, held))):
                    below += self._inside(own, child)
                else:
                    apart.append(child)
                    waiting.append(child)
            if not effect.empty:
                apart.sort(key=lambda each: (each.type, each.id))
                at = (key, effect, tuple(apart), profile, bool(group.principals))
                found.setdefault(at, []).extend(group.principals)

    def _inside(self, own: Mapping[ObjectKey, list[ObjectKey]], key: ObjectKey) -> list[ObjectKey]:
        return list(dict.fromkeys([*own.get(key, ()), *self._flagged.get(key, ())]))

    def _as_expected(self, effect: Effect, child: ObjectKey, inner: Effect) -> bool:
        """Return True if the effect on an object below is already part of the row of the object above."""
        if any("+" in kind for kind, _ in (*effect.below, *inner.below)):
            return False
        below = dict(effect.below)
        reachable = self._profiles.reachable(child.type)
        expected = tuple((kind, each) for kind, each in effect.below if kind in reachable)
        return inner == Effect(below.get(child.type.value, NOTHING), expected)

    def _path(self, key: ObjectKey) -> list[ObjectKey]:
        path = [key]
        while (above := self._places[path[-1]].above) is not None:
            path.append(above)
        return path[::-1]

    def _profile(self, key: ObjectKey, held: Mapping[ObjectKey, _Pair]) -> Profile:
        steps = []
        for each in self._path(key):
            old, new = held.get(each, _EMPTY)
            steps.append(Step(each.type, frozenset(old), frozenset(new), self._places[each].flagged))
        return tuple(steps)

    def _because(
        self, profile: Profile, on: ObjectKey, effect: Effect, who: Sequence[Principal]
    ) -> tuple[Because, ...]:
        path = self._path(on)
        holders = self._closure(sorted(who)[0]) if who else ()
        reasons: dict[tuple[Any, ...], list[str]] = {}
        for kind, change in (("", effect.own), *effect.below):
            for gained, actions in ((True, change.gained), (False, change.lost)):
                for action in sorted(actions):
                    held = self._profiles.witness(profile, kind, action, gained=gained)
                    grants = tuple(
                        (each.relation, path[each.level], self._holding(holders, path[each.level], each.relation))
                        for each in held
                    )
                    reasons.setdefault((kind, gained, grants), []).append(action)
        return tuple(Because(kind, tuple(each), gained, grants) for (kind, gained, grants), each in reasons.items())

    def _holding(self, holders: Sequence[Principal], key: ObjectKey, relation: str) -> Principal:
        for each in holders:
            old, new = self._holders[each].held.get(key, _EMPTY) if each in self._holders else _EMPTY
            if relation in old or relation in new:
                return each
        return Principal(PrincipalType.ROLE, key.id)


def _without_grants(facts: Sequence[Any]) -> bool:
    return all(fact.relation == MANAGED_ACCESS for fact in facts if fact.holds)


def admits_grant(rules: ModelRules, grant: Grant) -> bool:
    """Return True if the model admits a tuple for the grant."""
    user = f"{grant.principal.type.value}:x" + ("#assignee" if grant.principal.type is PrincipalType.ROLE else "")
    until = datetime.max.replace(tzinfo=UTC) if grant.expires else None
    return rules.admits(HeldTuple(user, grant.relation, f"{grant.object.type.value}:x", until))
