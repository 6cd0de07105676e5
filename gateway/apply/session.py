# SPDX-License-Identifier: Apache-2.0
"""Send the requests of `lakegate apply`. A session knows the ids of objects and the paths of their endpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from gateway.apply import ApplyError
from gateway.apply.client import Api, segment
from gateway.apply.state import Address, Kind, Resource, State

MANAGEMENT: Final = "/management/v1"

#: The separator of namespace levels in paths (Iceberg REST specification).
_SEPARATOR: Final = "\x1f"


class UnknownRole(ApplyError):
    """A principal of the file is a role that does not exist in the project."""


class Located:
    """The ids of existing resources by address, and the roles of each project by name."""

    def __init__(self) -> None:
        self._ids: dict[Address, str] = {}
        self._addresses: dict[tuple[Kind, str], Address] = {}
        self._roles: dict[Address, dict[str, str]] = {}

    def add(self, address: Address, id: str) -> None:
        """Record the id of a resource. If it is a role, principals can then refer to it."""
        self._ids[address] = id
        self._addresses[address.kind, id] = address
        if address.kind is Kind.ROLE and address.parent is not None:
            roles = self._roles.setdefault(address.parent, {})
            for name in [name for name, known in roles.items() if known == id]:
                del roles[name]
            roles[address.name] = id

    def add_role(self, project: Address, name: str, id: str) -> None:
        """Record a role that the file does not describe, so that principals can refer to it."""
        self._roles.setdefault(project, {}).setdefault(name, id)

    def knows(self, address: Address) -> bool:
        """Return True if the resource exists."""
        return address in self._ids

    def id(self, address: Address) -> str:
        """Return the id of a resource that exists. Raises KeyError."""
        return self._ids[address]

    def address(self, kind: Kind, id: str) -> Address | None:
        """Return the address of the resource with an id; None if there is none."""
        return self._addresses.get((kind, id))

    def role_names(self, project: Address) -> Mapping[str, str]:
        """Return {id: name} of the roles of a project."""
        return {id: name for name, id in self._roles.get(project, {}).items()}

    def project(self, address: Address) -> str | None:
        """Return the id of the project of a resource; None for resources of the server."""
        return None if address.kind in (Kind.SERVER, Kind.USER) else self._ids[address.within(Kind.PROJECT)]

    def principal(self, text: str, on: Address) -> dict[str, str]:
        """Return `{"user": id}` or `{"role": id}` for a principal of the file. Raises UnknownRole."""
        kind, _, name = text.partition(":")
        if kind == "user":
            return {"user": name}
        # A UUID is always an id. Otherwise a role could get the id of another role as its name.
        if is_uuid(name):
            return {"role": name}
        roles = {} if on.kind is Kind.SERVER else self._roles.get(on.within(Kind.PROJECT), {})
        if name in roles:
            return {"role": roles[name]}
        raise UnknownRole(f"{on}: the role {name!r} does not exist in the project. Add it to the file.")

    def path(self, address: Address) -> str:
        """Return the path of a resource in the management API. `/grants` can be appended to it."""
        match address.kind:
            case Kind.SERVER | Kind.PROJECT:
                return f"{MANAGEMENT}/{address.kind}"
            case Kind.USER:
                return f"{MANAGEMENT}/user/{segment(address.name)}"
            case Kind.COLUMN:
                return f"{self.path(address.on)}/columns/{segment(address.name)}"
            case Kind.NAMESPACE | Kind.TABLE | Kind.VIEW | Kind.GENERIC_TABLE:
                return f"{self.path(address.within(Kind.WAREHOUSE))}/{address.kind}/{self._ids[address]}"
        return f"{MANAGEMENT}/{address.kind.path}/{self._ids[address]}"

    def tags_path(self, address: Address) -> str:
        """Return the path of the tags of an object in the management API."""
        if address.kind is Kind.COLUMN:
            return f"{self.path(address.on)}/column/{segment(address.name)}/tags"
        return f"{self.path(address)}/tags"

    def namespace_path(self, address: Address) -> str:
        """Return the path of a namespace in the catalog API."""
        return f"{self.catalog(address)}/namespaces/{segment(_SEPARATOR.join(address.levels))}"

    def catalog(self, address: Address) -> str:
        """Return the path of the warehouse of a resource in the catalog API."""
        return f"/catalog/v1/{self._ids[address.within(Kind.WAREHOUSE)]}"


@dataclass
class Session:
    """Sends requests about objects that are identified by their addresses.

    `tagged` are the projects that have tags. There, an export reads the tags of all columns to find the tagged columns.
    """

    api: Api
    located: Located
    tagged: set[Address] = field(default_factory=set)

    def pages(self, on: Address, below: str, member: str, query: Mapping[str, str] | None = None) -> Iterator[Any]:
        """Yield the entries of a list that belongs to an object. Raises ApiError."""
        path = f"{self.located.path(on)}/{below}"
        return self.api.pages(path, member, project=self.located.project(on), query=query)

    def change(self, method: str, on: Address, below: str = "", body: Any = None) -> Any:
        """Send a change of an object, and return the response. `below` is appended to the path of the object. Raises
        ApiError.
        """
        path = f"{self.located.path(on)}{below}"
        return self.api.change(method, path, body, project=self.located.project(on))


@dataclass
class Reading(Session):
    """A read of the current state of the objects in `wanted`. With `containers`, warehouses and namespaces that its
    lists leave out are read too.

    `lists` are the lists that were read only to find the names of objects.
    """

    wanted: State = field(default_factory=State)
    containers: bool = False
    found: dict[Address, Resource] = field(default_factory=dict)
    lists: set[tuple[Kind, Address]] = field(default_factory=set)

    def once(self, kind: Kind, on: Address) -> bool:
        """Return True at the first call for a list that is read only to find names."""
        first = (kind, on) not in self.lists
        self.lists.add((kind, on))
        return first

    def add(self, resource: Resource) -> None:
        """Record an object that exists, with its id."""
        self.located.add(resource.address, resource.id or "")
        self.found[resource.address] = resource

    @cached_property
    def caller(self) -> str:
        """The id of the caller."""
        return str(self.api.get(f"{MANAGEMENT}/whoami")["id"])

    @cached_property
    def caller_roles(self) -> frozenset[str]:
        """The ids of the caller's roles."""
        path = f"{self.located.path(Address(Kind.USER, self.caller))}/roles/transitive"
        return frozenset(each["id"] for each in self.api.get(path)["roles"])

    def of_principal(self, kind: Kind, on: Address, principal: Mapping[str, str], *, before: str = "") -> Address:
        """Return the address of an entry about a principal. Its name consists of `before` and the principal.

        A role is identified by its UUID if this entry of the file does so, else by the name that the file uses.
        """
        if "user" in principal:
            return Address(kind, f"{before}user:{principal['user']}", on)
        id = principal["role"]
        by_id = Address(kind, f"{before}role:{id}", on)
        if on.kind is Kind.SERVER or by_id in self.wanted.resources:
            return by_id
        name = self.located.role_names(on.within(Kind.PROJECT)).get(id, id)
        # If the name has the form of a UUID, the id is returned, because the name would be read as an id.
        return by_id if is_uuid(name) else Address(kind, f"{before}role:{name}", on)


@dataclass
class Changing(Session):
    """The changes of a plan. `present` is the state from which it was computed. `credentials` are the credentials for
    warehouses.
    """

    present: State = field(default_factory=State)
    credentials: dict[Address, Mapping[str, str]] = field(default_factory=dict)


def is_uuid(text: str) -> bool:
    """Return whether the text is a UUID."""
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def usual_id(text: str) -> str:
    """Return a UUID in canonical form, and any other text unchanged."""
    return str(UUID(text)) if is_uuid(text) else text
