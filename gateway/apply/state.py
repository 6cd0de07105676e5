# SPDX-License-Identifier: Apache-2.0
"""The current and desired state that the planner compares, and the changes of a plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Any, Self

from gateway.apply import ApplyError
from gateway.iceberg.identifiers import fold


class Phase(IntEnum):
    """The parts of a plan in their order. If a run stops between two parts, no access has been widened."""

    OBJECTS = 0
    """Objects are created and changed, tags and mapping tables among them."""
    POLICIES = 1
    """Data policies are created. They are not bound yet."""
    PRINCIPALS = 2
    """Subjects are added, and what no present policy uses: exemptions from unbound ones, values of new tables."""
    RESTRICTIONS = 3
    """Policies are bound, tags attached, and exemptions and values of mapping tables removed."""
    DEFINITIONS = 4
    """Data policies are changed. A new version can rely on the attached tags, or leave a part to a bound policy."""
    SUBJECTS = 5
    """Members of roles that are subjects of policies are added. Another role can give them access afterwards."""
    ACCESS = 6
    """Members of roles and grants are added."""
    REVOCATIONS = 7
    """Grants, members, roles and containers are removed. New grants precede them, so access is not interrupted."""
    DEPARTURES = 8
    """Roles that are subjects of policies, and their members, are removed. They have no access by other roles now."""
    RELEASES = 9
    """Restrictions are removed, and exemptions and values of mapping tables added."""


class Kind(StrEnum):
    """The kinds of resources, in the order in which they are created.

    `path` is their part of a path in the management API. They are created and changed in the phase `added` of a plan,
    and removed in the phase `removed`. For some kinds, the content of the resource determines the phase.
    """

    rank: int
    path: str
    added: Phase
    removed: Phase

    def __new__(
        cls, name: str, added: Phase = Phase.OBJECTS, removed: Phase = Phase.REVOCATIONS, path: str | None = None
    ) -> Self:
        """Create a kind with its attributes."""
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.rank = len(cls.__members__)
        kind.path, kind.added, kind.removed = path or name, added, removed
        return kind

    SERVER = "server"
    USER = "user"
    PROJECT = "project"
    ROLE = "role"
    TAG = "tag", Phase.OBJECTS, Phase.RELEASES, "tag-definition"
    MAPPING_TABLE = "mapping-table", Phase.OBJECTS, Phase.RELEASES
    WAREHOUSE = "warehouse"
    NAMESPACE = "namespace"
    TABLE = "table"
    VIEW = "view"
    GENERIC_TABLE = "generic-table"
    COLUMN = "column"
    ATTACHMENT = "attachment", Phase.RESTRICTIONS, Phase.RELEASES
    DATA_POLICY = "data-policy", Phase.POLICIES, Phase.RELEASES
    NAME = "name"
    BINDING = "binding", Phase.RESTRICTIONS, Phase.RELEASES
    MAPPING_ENTRY = "mapping-entry", Phase.RELEASES, Phase.RESTRICTIONS
    MEMBER = "member", Phase.ACCESS
    GRANT = "grant", Phase.ACCESS


#: Resources that the file can contain, but that apply never creates or removes.
ANCHORS = frozenset({Kind.SERVER, Kind.TABLE, Kind.VIEW, Kind.GENERIC_TABLE, Kind.COLUMN})

#: Resources that contain data. They are removed only if a separate flag is set.
CONTAINERS = frozenset({Kind.WAREHOUSE, Kind.NAMESPACE})


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a resource: its kind, its name within the parent, and the parent's address.

    The name of a member and of a mapping entry is its principal (`user:oidc~ann`, `role:analysts`), that of a grant is
    the privilege, a space and the principal. An attachment has the name of its tag, and a binding that of
    `binding_address`. Names of tags, mapping tables and data policies are folded, because their letter case is ignored.
    """

    kind: Kind
    name: str
    parent: Address | None = None

    def ancestors(self) -> Iterator[Address]:
        """Yield the parent, its parent, and so on."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    @property
    def depth(self) -> int:
        """The number of ancestors."""
        return sum(1 for _ in self.ancestors())

    def within(self, kind: Kind) -> Address:
        """Return the first address of this kind among this address and its ancestors, nearest first. Raises LookupError
        if there is none.
        """
        for each in (self, *self.ancestors()):
            if each.kind is kind:
                return each
        raise LookupError(f"{self} is not within a {kind}")

    @property
    def on(self) -> Address:
        """The parent. Raises LookupError if the address has no parent."""
        if self.parent is None:
            raise LookupError(f"{self} is on no object")
        return self.parent

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the nearest namespace, from the top."""
        return tuple(each.name for each in reversed((self, *self.ancestors())) if each.kind is Kind.NAMESPACE)

    def __str__(self) -> str:
        name, on = self.name.replace(":", " ", 1), self.parent
        match self.kind:
            case Kind.SERVER:
                return "server"
            case Kind.GRANT:
                privilege, _, principal = self.name.partition(" ")
                return f"grant {privilege} on {on} to {principal.replace(':', ' ', 1)}"
            case Kind.MEMBER:
                return f"member {name} of {on}"
            case Kind.MAPPING_ENTRY:
                return f"entry of {name} in {on}"
            case Kind.ATTACHMENT:
                return f"tag {self.name} of {on}"
            case Kind.BINDING:
                return f"binding of {on} to {bound_object(self) or ' '.join(json.loads(self.name))}"
            case Kind.USER | Kind.PROJECT:
                return f"{self.kind} {self.name}"
        return f"{self.kind} {'/'.join(self._path())}"

    def _path(self) -> Iterator[str]:
        """Yield the parts of the printed path. The levels of a namespace are joined by dots."""
        for kind in (Kind.PROJECT, Kind.ROLE, Kind.TAG, Kind.MAPPING_TABLE, Kind.DATA_POLICY, Kind.WAREHOUSE):
            yield from (each.name for each in (self, *self.ancestors()) if each.kind is kind)
        if self.levels:
            yield ".".join(self.levels)
        below = (Kind.TABLE, Kind.VIEW, Kind.GENERIC_TABLE, Kind.COLUMN, Kind.NAME)
        yield from (each.name for each in reversed((self, *self.ancestors())) if each.kind in below)


SERVER = Address(Kind.SERVER, "")

#: Values that a new warehouse or namespace has. They are left out of exported files.
DEFAULTS: Mapping[str, Any] = {
    "protected": False,
    "managed-access": False,
    "managed-by": "self-managed",
    "delete-profile": {"type": "hard"},
    "allowed-format-versions": [1, 2, 3],
    "policy-loss": "refuse-restricted",
    "task-queues": {},
    "status": "active",
}


def namespace_address(warehouse: Address, levels: Iterable[str]) -> Address:
    """Return the address of a namespace. `levels` start at the top."""
    address = warehouse
    for level in levels:
        address = Address(Kind.NAMESPACE, level, address)
    return address


def name_address(warehouse: Address, levels: Iterable[str], name: str) -> Address:
    """Return the address of a name to which a data policy is bound. The letter case of the name is ignored."""
    return Address(Kind.NAME, fold(name), namespace_address(warehouse, map(fold, levels)))


_NAMED_IN_NAMESPACE = (Kind.TABLE, Kind.GENERIC_TABLE, Kind.NAME)


def binding_address(policy: Address, target: Address) -> Address:
    """Return the address of the binding of a data policy to a warehouse, namespace, (generic) table, name or tag."""
    if target.kind is Kind.TAG:
        parts: tuple[Any, ...] = (target.kind, target.name)
    else:
        table = (target.name,) if target.kind in _NAMED_IN_NAMESPACE else ()
        parts = (target.kind, target.within(Kind.WAREHOUSE).name, target.levels, *table)
    return Address(Kind.BINDING, json.dumps(parts, ensure_ascii=False), policy)


def hidden_binding(policy: Address, type: str, id: str) -> Address:
    """Return the address of a binding to an object that the caller cannot see. The id of the object stands for its
    name.
    """
    return Address(Kind.BINDING, json.dumps(["hidden", type, id]), policy)


def bound_object(binding: Address) -> Address | None:
    """Return the object to which a data policy is bound; None if the caller cannot see it."""
    kind, *parts = json.loads(binding.name)
    project = binding.within(Kind.PROJECT)
    if kind == "hidden":
        return None
    if kind == Kind.TAG:
        return Address(Kind.TAG, parts[0], project)
    on = namespace_address(Address(Kind.WAREHOUSE, parts[0], project), parts[1])
    return Address(Kind(kind), parts[2], on) if kind in _NAMED_IN_NAMESPACE else on


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource with the fields that are compared. In the desired state, it has only the fields that the file sets.

    If `id` is set, the resource is found by it, so that its name can change. `spec` is the entry of the file, which the
    executor needs. The file declares all fields whose names begin with one of `open_prefixes`: with pruning, other
    current fields with such a prefix are removed. `keep` is the reason why this current resource is never removed. If
    `reference` is True, the file only refers to the resource, which must exist.
    """

    address: Address
    fields: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    spec: Any = field(default=None, compare=False, repr=False)
    open_prefixes: tuple[str, ...] = ()
    keep: str | None = None
    reference: bool = field(default=False, compare=False)


Scope = tuple[Kind, Address]
"""A complete list of the file: the resources of this kind directly below the address."""


@dataclass(frozen=True)
class State:
    """Resources by their address, and the lists that the file declares completely."""

    resources: Mapping[Address, Resource] = field(default_factory=dict)
    scopes: frozenset[Scope] = frozenset()

    def of_kind(self, *kinds: Kind) -> list[Resource]:
        """Return the resources of these kinds. Parents precede their children."""
        found = [each for each in self.resources.values() if each.address.kind in kinds]
        return sorted(found, key=lambda each: (each.address.depth, str(each.address)))

    def children(self, kind: Kind, parent: Address) -> list[Resource]:
        """Return the resources of a kind directly below an address, ordered by their names."""
        return self._children.get((kind, parent), [])

    @cached_property
    def _children(self) -> Mapping[Scope, list[Resource]]:
        found: dict[Scope, list[Resource]] = {}
        for each in sorted(self.resources.values(), key=lambda each: each.address.name):
            if each.address.parent is not None:
                found.setdefault((each.address.kind, each.address.parent), []).append(each)
        return found

    def has_scope(self, kind: Kind, parent: Address) -> bool:
        """Return True if the file has a complete list of the resources of this kind directly below the address."""
        return (kind, parent) in self.scopes


class Action(StrEnum):
    """The kind of a change. The value is its sign in a printed plan."""

    CREATE = "+"
    UPDATE = "~"
    REMOVE = "-"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field with its value before and after the change. If `after` is None, the property is removed."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one resource. `desired` is None for a removal."""

    action: Action
    address: Address
    fields: tuple[FieldChange, ...] = ()
    desired: Resource | None = None


class NotChangeable(ApplyError):
    """The file changes a field that cannot change in this way, or lacks one that a creation needs."""
