# SPDX-License-Identifier: Apache-2.0
"""Convert the facts of a decision between rows, the evaluation of the model, and answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from gateway.access.actor import Actor
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.answers import AbsentFact, Fact, FactGrant, FactKind, Party, WitnessAnswer
from gateway.access.tuples import MANAGED_ACCESS, READ_COLUMNS, Principal, TupleKey
from gateway.db.answers.path_facts import PathFacts
from gateway.db.grants.grant_ends import GrantRow
from gateway.db.tuples.desired_tuples import TRAVERSE
from gateway.fga.evaluation import HeldTuple
from gateway.fga.provenance import Witness
from gateway.fga.relationships import object_name, subject_of, to_wire

ASSIGNEE = "assignee"
_MEMBERSHIPS: Final = frozenset(each.value for each in GRANTABLE[ObjectType.ROLE])


@dataclass(frozen=True, slots=True)
class World:
    """The facts about one actor and one object, for the evaluation of the model.

    - `user`: the actor's name in OpenFGA.
    - `keys`: the fact behind each tuple. The memberships of the actor's groups and of its assumed role are not in it.
    - `by_groups`: the tuples of the memberships by groups in the actor's token.
    """

    user: str
    tuples: tuple[HeldTuple, ...]
    keys: Mapping[HeldTuple, TupleKey]
    by_groups: frozenset[HeldTuple]
    objects: Mapping[str, ObjectKey]
    facts: PathFacts

    def without(self, hidden: Set[HeldTuple]) -> World:
        """Return the world without some of its facts, and without those of roles that the user has only by them.

        Otherwise the readable facts of a role would show that the user is a member.
        """
        left = [each for each in self.tuples if each not in hidden]
        return replace(self, tuples=tuple(_of_user(left)))


def world_of(actor: Actor, facts: PathFacts) -> World:
    """Return the facts in the form of the evaluation. Raises ValueError for an anonymous actor."""
    user, contextual = subject_of(actor)
    keys = {held_tuple(key, until): key for key, until in facts.tuples.items()}
    memberships = frozenset(HeldTuple(each.user, each.relation, each.object, None) for each in contextual)
    return World(
        user=user,
        tuples=(*keys, *memberships),
        keys=keys,
        by_groups=memberships if actor.assumed_role is None else frozenset(),
        objects={object_name(key): key for key in facts.path},
        facts=facts,
    )


def _of_user(tuples: Sequence[HeldTuple]) -> list[HeldTuple]:
    """Return the tuples without those of roles to which no membership of the tuples leads."""
    found = [each for each in tuples if "#" not in each.user]
    of_role: dict[str, list[HeldTuple]] = {}
    for each in tuples:
        role, hash, _ = each.user.partition("#")
        if hash:
            of_role.setdefault(role, []).append(each)
    for each in found:
        if each.relation in _MEMBERSHIPS:
            found.extend(of_role.pop(each.object, ()))
    return found


def held_tuple(key: TupleKey, until: datetime | None = None) -> HeldTuple:
    """Return the tuple of a recorded relationship for evaluations."""
    wire = to_wire(key)
    return HeldTuple(wire.user, wire.relation, wire.object, until)


def kind_of(key: TupleKey) -> FactKind:
    """Return the kind of a recorded relationship, as in answers."""
    if isinstance(key.subject, ObjectKey):
        return "hierarchy"
    if key.relation == MANAGED_ACCESS:
        return "managed-access"
    if key.relation in (TRAVERSE, READ_COLUMNS):
        return "visibility"
    return "membership" if key.object.type is ObjectType.ROLE else "grant"


def principal_key(principal: Principal) -> ObjectKey:
    """Return the object key of a user or role, under which names are read."""
    return ObjectKey(ObjectType(principal.type.value), principal.id)


def subject_key(key: TupleKey) -> ObjectKey:
    """Return the object key of the subject of a relationship."""
    return key.subject if isinstance(key.subject, ObjectKey) else principal_key(key.subject)


@dataclass(frozen=True, slots=True)
class Presenter:
    """Presents facts to one caller. `names` are those of objects and principals.

    Edges and flags of path objects that are not `visible` are left out.
    """

    world: World
    names: Mapping[ObjectKey, str]
    visible: frozenset[ObjectKey]

    def party(self, key: ObjectKey) -> Party:
        """Return an object or principal with its name."""
        return Party(type=key.type.value, id=key.id, name=self.names.get(key))

    def witness(self, witness: Witness) -> WitnessAnswer:
        """Return a witness whose facts the caller may all read, from the principal to the object."""
        facts = [self._fact(each) for each in _from_principal(self.world.user, witness.facts)]
        return WitnessAnswer(
            facts=[each for each in facts if each is not None],
            absent=[
                AbsentFact(relation=each.relation, object=self.party(self.world.objects[each.object]))
                for each in sorted(witness.absent)
                if each.relation == MANAGED_ACCESS and self.world.objects.get(each.object) in self.visible
            ],
            until=witness.until,
        )

    def _fact(self, held: HeldTuple) -> Fact | None:
        key = self.world.keys.get(held)
        if key is None:
            return self._group(held) if held in self.world.by_groups else None
        kind = kind_of(key)
        if kind in ("hierarchy", "managed-access") and not self._is_visible(key):
            return None
        return Fact(
            kind=kind,
            subject=self.party(subject_key(key)),
            relation=key.relation,
            object=self.party(key.object),
            grants=[_grant(row) for row in self.world.facts.grants.get(key, ())],
        )

    def _is_visible(self, key: TupleKey) -> bool:
        return key.object in self.visible and (isinstance(key.subject, Principal) or key.subject in self.visible)

    def _group(self, held: HeldTuple) -> Fact:
        role = ObjectKey(ObjectType.ROLE, held.object.partition(":")[2])
        user = ObjectKey(ObjectType.USER, held.user.partition(":")[2])
        return Fact(kind="group", subject=self.party(user), relation=ASSIGNEE, object=self.party(role))


def _grant(row: GrantRow) -> FactGrant:
    return FactGrant(
        id=row.id,
        granted_by=row.granted_by,
        granted_at=row.granted_at,
        reason=row.reason,
        expires_at=row.expires_at,
    )


def _from_principal(user: str, facts: Iterable[HeldTuple]) -> Sequence[HeldTuple]:
    """Return the facts as a path: memberships, grants, and edges down to the object. Flags for all users come last."""
    left = sorted(facts, key=lambda held: held[:3])
    reached, ordered = {user}, list[HeldTuple]()
    while following := [held for held in left if held.user.partition("#")[0] in reached]:
        ordered += following
        reached |= {held.object for held in following}
        left = [held for held in left if held not in following]
    return [*ordered, *left]
