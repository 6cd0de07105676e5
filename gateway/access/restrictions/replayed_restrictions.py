# SPDX-License-Identifier: Apache-2.0
"""Compare what two versions of data policies let the callers of recorded decisions read. Pure.

Bindings, exemptions, mapping tables and columns are those of now. The roles of the caller are those of the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from gateway.access.audit.audit_record import AuditedActor
from gateway.access.audit.audited_inputs import CallerInputs
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Excerpt
from gateway.iceberg.identifiers import fold
from gateway.obligations.binding import restrictions_of
from gateway.obligations.binding_columns import recorded_ids
from gateway.obligations.data_policies import (
    AppliesTo,
    AttributeSource,
    BoundPolicy,
    DataPolicy,
    PolicyInputs,
    PrincipalAttributes,
    attributes_of,
    column_names,
)
from gateway.obligations.implication import implies
from gateway.obligations.kinds import TableRestrictions
from gateway.obligations.projections import Columns, RestrictionNotExpressible, columns_of

CLAIMS: Final = "claims"
"""A changed policy tests claims of the token. Records do not contain them, so it counts as wider."""
_REFUSED: Final = "refused"


class MappedValue(NamedTuple):
    """A value of a mapping table for a user or role."""

    project_id: str
    name: str
    principal_id: str
    value: str


@dataclass(frozen=True, slots=True)
class PolicyWorld:
    """The data policies of recorded tables: their inputs, excerpts of their documents, and all mapped values."""

    inputs: Mapping[UUID, PolicyInputs | None]
    excerpts: Mapping[UUID, Excerpt]
    mapped: Sequence[MappedValue]


class ChangedPolicy(NamedTuple):
    """The new version of a data policy, with its name."""

    name: str
    policy: DataPolicy


class RestrictionChange(NamedTuple):
    """The changed policies on a table, and what of the table changes. `wider` is true unless it is proven narrower."""

    wider: bool
    policies: tuple[str, ...]
    parts: tuple[str, ...]


Relates = Callable[[AuditedActor, CallerInputs, ObjectKey, Can], tuple[bool, bool]]
"""Return whether the caller has a relation on an object, by the old and by the new relationship model."""

_Restricted = TableRestrictions | str | None


class RestrictionReplay:
    """Computes the restrictions of recorded callers by the old and by the new definitions."""

    def __init__(self, world: PolicyWorld, changed: Mapping[str, ChangedPolicy], relates: Relates) -> None:
        self._world = world
        self._changed = changed
        self._relates = relates
        self._mapped: dict[tuple[str, str], dict[str, set[str]]] = {}
        for each in world.mapped:
            by_name = self._mapped.setdefault((each.project_id, each.principal_id), {})
            by_name.setdefault(each.name, set()).add(each.value)
        self._known: dict[tuple[object, ...], RestrictionChange | None] = {}

    def change(
        self, actor: AuditedActor, caller: CallerInputs, table: UUID, project_id: str
    ) -> RestrictionChange | None:
        """Return what the new definitions change for the caller on the table; None if nothing."""
        inputs = self._world.inputs.get(table)
        if inputs is None or actor.kind != "user" or not any(each.policy.id in self._changed for each in inputs.bound):
            return None
        key = actor, caller, table
        if key not in self._known:
            self._known[key] = self._compared(actor, caller, table, project_id, inputs)
        return self._known[key]

    def _compared(
        self, actor: AuditedActor, caller: CallerInputs, table: UUID, project_id: str, inputs: PolicyInputs
    ) -> RestrictionChange | None:
        excerpt = self._world.excerpts.get(table)
        if excerpt is None:
            return None
        columns = columns_of(excerpt.text)
        new_bound = tuple(self._replaced(each, columns) for each in inputs.bound)
        applying = [
            self._applying(actor, caller, some, new) for some, new in ((inputs.bound, False), (new_bound, True))
        ]
        changed = {old.policy.id for old, new in zip(inputs.bound, new_bound, strict=True) if old != new}
        concerned = [each for some in applying for each in some if each.policy.id in changed]
        names = tuple(sorted({self._changed[each.policy.id].name for each in concerned}))
        if not names or applying[0] == applying[1]:
            return None
        if any(attributes_of(each.policy.definition, AttributeSource.CLAIM) for each in concerned):
            return RestrictionChange(True, names, (CLAIMS,))
        attributes = self._attributes(actor, caller, project_id, [each for some in applying for each in some])
        old, new = (
            _restricted(str(table), each, inputs, attributes, columns, excerpt.metadata_location) for each in applying
        )
        if _identity(old) == _identity(new):
            return None
        return RestrictionChange(not _covers(new, old), names, _parts(old, new, columns))

    def _replaced(self, bound: BoundPolicy, columns: Columns) -> BoundPolicy:
        """Return the binding with the new version of its policy; the binding itself if nothing of it changes."""
        changed = self._changed.get(bound.policy.id)
        if changed is None or _content(changed.policy) == _content(bound.policy):
            return bound
        recorded, new = bound.recorded, changed.policy.definition
        if recorded and column_names(new) != column_names(bound.policy.definition):
            # A change of the names records the columns again in the bindings to tables.
            recorded = recorded_ids(new, columns)
        return msgspec.structs.replace(bound, policy=changed.policy, recorded=recorded)

    def _applying(
        self, actor: AuditedActor, caller: CallerInputs, bound: Sequence[BoundPolicy], new: bool
    ) -> list[BoundPolicy]:
        """Return the policies that restrict the caller, as `DataRestrictions` does.

        All restrict a user that an engine only asserted. A user with unknown groups counts as a subject.
        """
        if not actor.subject_proven or actor.asked_by is not None:
            return list(bound)
        found = []
        for each in bound:
            key = ObjectKey(ObjectType.DATA_POLICY, each.policy.id)
            if self._relates(actor, caller, key, Can.SKIP_POLICY)[new]:
                continue
            everyone = each.policy.applies_to is AppliesTo.EVERYONE or not caller.groups_known
            if everyone or self._relates(actor, caller, key, Can.BE_SUBJECT)[new]:
                found.append(each)
        return found

    def _attributes(
        self, actor: AuditedActor, caller: CallerInputs, project_id: str, bound: Sequence[BoundPolicy]
    ) -> PrincipalAttributes:
        """Return the attributes of the caller. One that acts as a role has only the values of that role."""
        roles = caller.roles if actor.assumed_role is None else (actor.assumed_role,)
        holders = (*roles, actor.id) if actor.assumed_role is None else roles
        names = sorted(
            {name for each in bound for name in attributes_of(each.policy.definition, AttributeSource.MAPPING)}
        )
        mappings = []
        for name in names:
            found = (self._mapped.get((project_id, holder), {}).get(fold(name), ()) for holder in holders)
            mappings.append((name, tuple(sorted({value for some in found for value in some}))))
        return PrincipalAttributes(
            principal=actor.id, roles=tuple(sorted(roles)), mappings=tuple(mappings), complete=caller.groups_known
        )


def _content(policy: DataPolicy) -> bytes:
    return msgspec.json.encode((policy.definition, policy.applies_to, policy.allow_append))


def _restricted(
    table: str,
    bound: Sequence[BoundPolicy],
    inputs: PolicyInputs,
    attributes: PrincipalAttributes,
    columns: Columns,
    location: str,
) -> _Restricted:
    try:
        return restrictions_of(table, bound, inputs, attributes, columns, location).restrictions
    except RestrictionNotExpressible:
        return _REFUSED


def _identity(restricted: _Restricted) -> object:
    return restricted.identity() if isinstance(restricted, TableRestrictions) else restricted


def _covers(new: _Restricted, old: _Restricted) -> bool:
    """Return True if the new restrictions contain the old ones."""
    if new == _REFUSED or old is None:
        return True
    if not isinstance(new, TableRestrictions) or not isinstance(old, TableRestrictions):
        return False
    both = new.strictest(old)
    masked = [(each.field_id, each.action) for each in both.masks] == [
        (each.field_id, each.action) for each in new.masks
    ]
    return masked and implies(new.row_filter, old.row_filter) and (old.append or not new.append)


def _parts(old: _Restricted, new: _Restricted, columns: Columns) -> tuple[str, ...]:
    """Return what differs: the rows, appends, and each column with another mask."""
    if _REFUSED in (old, new):
        return (_REFUSED,)
    before, after = (each if isinstance(each, TableRestrictions) else None for each in (old, new))
    filters = [None if each is None else each.identity()[0] for each in (before, after)]
    masks = [{} if each is None else {one.field_id: one.action for one in each.masks} for each in (before, after)]
    names = {field.id: field.name for schema in columns.schemas for field in schema}
    names |= {field.id: field.name for field in columns.current}
    changed = {
        names.get(id, str(id)) for id in masks[0].keys() | masks[1].keys() if masks[0].get(id) != masks[1].get(id)
    }
    found = [f"column={name}" for name in sorted(changed)]
    rows = ["rows"] if filters[0] != filters[1] else []
    return (*rows, *found) or ("append",)
