# SPDX-License-Identifier: Apache-2.0
"""Decide the relations of recorded decisions by two relationship models, on the grants of now. Pure.

The roles of the caller and the position of the object are those of the record. Callers and objects with equal relations
on their paths are evaluated once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gateway.access.audit.audit_record import AuditedActor, AuditedDecision, AuditedResource
from gateway.access.audit.audited_inputs import CallerInputs, DecisionInputs
from gateway.access.decisions.recorded_grants import World
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType
from gateway.fga.evaluation import ModelRules
from gateway.fga.profile_diff import Profile, ProfileDiff, Step
from gateway.fga.world_diff import admits_grant, require_complete

#: The relations on columns decided these, and a caller that is not trusted to hide columns was refused.
_BY_COLUMNS: Final = "RestrictedWithoutEnforcer"
_COLUMNS: Final = "readable_columns"

_Held = dict[ObjectKey, tuple[set[str], set[str]]]
_NOTHING: Final[tuple[set[str], set[str]]] = set(), set()


class Related(NamedTuple):
    """Tell whether each model gives all demanded relations, and name those that only one of the models gives."""

    old: bool
    new: bool
    differing: tuple[str, ...] = ()


def recorded_relations(decision: AuditedDecision) -> bool | None:
    """Return whether OpenFGA gave all demanded relations when a decision was recorded; None if the record lacks it."""
    if decision.outcome == "allowed" or decision.failure == "DeniedByPolicy":
        return True
    return False if decision.failure in ("ActionForbidden", "CannotSeeResource", "ResourceNotFound") else None


class RelationshipReplay:
    """Decides by two models. Raises Incomplete if grants do not determine the rights of one of them."""

    def __init__(self, old: Mapping[str, Any], new: Mapping[str, Any], world: World) -> None:
        require_complete(old, new)
        self._places = world.places
        self._profiles = ProfileDiff(old, new, {})
        self._server = next((key for key in world.places if key.type is ObjectType.SERVER), None)
        self._held: dict[Principal, _Held] = {}
        self._roles: dict[Principal, list[Principal]] = {}
        rules = ModelRules(old), ModelRules(new)
        for grant in world.grants:
            pair = self._held.setdefault(grant.principal, {}).setdefault(grant.object, (set(), set()))
            for each, relations in zip(rules, pair, strict=True):
                if admits_grant(each, grant):
                    relations.add(grant.relation)
            if grant.object.type is ObjectType.ROLE and grant.relation == "assignee":
                role = Principal(PrincipalType.ROLE, grant.object.id)
                self._roles.setdefault(grant.principal, []).append(role)

    def related(self, actor: AuditedActor, caller: CallerInputs, decision: AuditedDecision) -> Related | None:
        """Return the answers of both models to a decision; None if a model alone cannot decide it."""
        inputs = decision.inputs
        if actor.kind != "user" or inputs is None:
            return None
        if decision.failure == _BY_COLUMNS or _COLUMNS in decision.obligations:
            return None
        holders = self._holders(actor, caller)
        stated = inputs.demands or tuple((each, 0) for each in decision.relations)
        old, new, differing = True, True, []
        for relations, index in stated:
            resource = decision.resources[index]
            if resource.id is None:
                return Related(False, False)
            path = self._path(resource, inputs if index == 0 else None)
            if path is None:
                return None
            profile = self._profile(path, holders)
            accepted = relations.split("|")
            was, becomes = (
                any(self._profiles.holds(profile, each, new=side) for each in accepted) for side in (False, True)
            )
            if was != becomes:
                differing.append(relations)
            old, new = old and was, new and becomes
        return Related(old, new, tuple(dict.fromkeys(differing)))

    def relates(self, actor: AuditedActor, caller: CallerInputs, on: ObjectKey, relation: str) -> tuple[bool, bool]:
        """Return whether the caller has the relation on an object outside of warehouses, by each model."""
        path = self._recorded_path(on)
        if path is None:
            return False, False
        profile = self._profile(path, self._holders(actor, caller))
        return self._profiles.holds(profile, relation, new=False), self._profiles.holds(profile, relation, new=True)

    def _holders(self, actor: AuditedActor, caller: CallerInputs) -> Sequence[Principal]:
        """Return the principals whose grants the caller has. A caller that assumed a role has only that role's."""
        if actor.assumed_role is None:
            roles = (Principal(PrincipalType.ROLE, each) for each in caller.roles)
            return (Principal(PrincipalType.USER, actor.id), *roles)
        found = {Principal(PrincipalType.ROLE, actor.assumed_role): None}
        waiting = list(found)
        while waiting:
            for role in self._roles.get(waiting.pop(), ()):
                if role not in found:
                    found[role] = None
                    waiting.append(role)
        return tuple(found)

    def _path(self, resource: AuditedResource, inputs: DecisionInputs | None) -> list[ObjectKey] | None:
        """Return the object with its containers, the server first; None if they are unknown.

        With `inputs`, the containers are those of the record.
        """
        key = ObjectKey(ObjectType(resource.type), resource.id or "")
        if inputs is None or inputs.project_id is None or inputs.warehouse_id is None or self._server is None:
            return self._recorded_path(key)
        path = [self._server, ObjectKey(ObjectType.PROJECT, inputs.project_id)]
        path.append(ObjectKey(ObjectType.WAREHOUSE, inputs.warehouse_id))
        path += [ObjectKey(ObjectType.NAMESPACE, each) for each in inputs.namespace_ids or ()]
        return path if path[-1] == key else [*path, key]

    def _recorded_path(self, key: ObjectKey) -> list[ObjectKey] | None:
        if key not in self._places:
            return None
        path = [key]
        while (above := self._places[path[-1]].above) is not None:
            path.append(above)
        return path[::-1]

    def _profile(self, path: Iterable[ObjectKey], holders: Sequence[Principal]) -> Profile:
        steps = []
        for key in path:
            old: set[str] = set()
            new: set[str] = set()
            for each in holders:
                before, after = self._held.get(each, {}).get(key, _NOTHING)
                old |= before
                new |= after
            if key.type is ObjectType.ROLE and Principal(PrincipalType.ROLE, key.id) in holders:
                old, new = old | {"assignee"}, new | {"assignee"}
            place = self._places.get(key)
            steps.append(Step(key.type, frozenset(old), frozenset(new), place is not None and place.flagged))
        return tuple(steps)
