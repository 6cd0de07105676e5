# SPDX-License-Identifier: Apache-2.0
"""The ids of resources, which the API needs, and the paths of their endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.apply.client import segment
from gateway.apply.collector import is_uuid
from gateway.apply.state import Address, Kind

MANAGEMENT: Final = "/management/v1"

#: The separator of namespace levels in paths (Iceberg REST specification).
_SEPARATOR: Final = "\x1f"


class UnknownRole(Exception):
    """A principal names a role that does not exist in the project."""


class Located:
    """The ids of the resources that exist, by their address, and the roles of each project by name."""

    def __init__(self) -> None:
        self._ids: dict[Address, str] = {}
        self._addresses: dict[tuple[Kind, str], Address] = {}
        self._roles: dict[Address, dict[str, str]] = {}

    def add(self, address: Address, id: str) -> None:
        """Record the id of a resource. A role can be named as a principal afterwards."""
        self._ids[address] = id
        self._addresses[address.kind, id] = address
        if address.kind is Kind.ROLE and address.parent is not None:
            roles = self._roles.setdefault(address.parent, {})
            for name in [name for name, known in roles.items() if known == id]:
                del roles[name]
            roles[address.name] = id

    def add_role(self, project: Address, name: str, id: str) -> None:
        """Record a role that the file does not describe but may name as a principal."""
        self._roles.setdefault(project, {}).setdefault(name, id)

    def knows(self, address: Address) -> bool:
        """Return whether the resource exists."""
        return address in self._ids

    def id(self, address: Address) -> str:
        """Return the id of a resource that exists. Raises KeyError."""
        return self._ids[address]

    def address(self, kind: Kind, id: str) -> Address | None:
        """Return the address of the resource with an id, or None."""
        return self._addresses.get((kind, id))

    def role_names(self, project: Address) -> Mapping[str, str]:
        """Return {id: name} of the roles of a project."""
        return {id: name for name, id in self._roles.get(project, {}).items()}

    def project(self, address: Address) -> str | None:
        """Return the id of the project of a resource; None on the server."""
        return None if address.kind in (Kind.SERVER, Kind.USER) else self._ids[address.within(Kind.PROJECT)]

    def principal(self, text: str, on: Address) -> dict[str, str]:
        """Return `{"user": id}` or `{"role": id}` of a principal of the file. Raises UnknownRole."""
        kind, _, name = text.partition(":")
        if kind == "user":
            return {"user": name}
        # A UUID is always an id. Whoever may create roles could otherwise name one like the id of another role.
        if is_uuid(name):
            return {"role": name}
        roles = {} if on.kind is Kind.SERVER else self._roles.get(on.within(Kind.PROJECT), {})
        if name in roles:
            return {"role": roles[name]}
        raise UnknownRole(f"{on}: the role {name!r} does not exist in the project. Add it to the file.")

    def path(self, address: Address) -> str:
        """Return the path of a resource in the management API, to which `/grants` can be added."""
        match address.kind:
            case Kind.SERVER:
                return f"{MANAGEMENT}/server"
            case Kind.PROJECT:
                return f"{MANAGEMENT}/project"
            case Kind.ROLE:
                return f"{MANAGEMENT}/role/{self._ids[address]}"
            case Kind.TAG:
                return f"{MANAGEMENT}/tag-definition/{self._ids[address]}"
            case Kind.MAPPING_TABLE | Kind.DATA_POLICY:
                return f"{MANAGEMENT}/{address.kind}/{self._ids[address]}"
            case Kind.USER:
                return f"{MANAGEMENT}/user/{segment(address.name)}"
            case Kind.WAREHOUSE:
                return f"{MANAGEMENT}/warehouse/{self._ids[address]}"
            case Kind.COLUMN if address.parent is not None:
                return f"{self.path(address.parent)}/columns/{segment(address.name)}"
            case _:
                warehouse = self.path(address.within(Kind.WAREHOUSE))
                return f"{warehouse}/{address.kind}/{self._ids[address]}"

    def tags_path(self, address: Address) -> str:
        """Return the path of the tags of an object in the management API."""
        if address.kind is Kind.COLUMN and address.parent is not None:
            return f"{self.path(address.parent)}/column/{segment(address.name)}/tags"
        return f"{self.path(address)}/tags"

    def namespace_path(self, address: Address) -> str:
        """Return the path of a namespace in the catalog API."""
        return f"{self.catalog(address)}/namespaces/{segment(_SEPARATOR.join(address.levels))}"

    def catalog(self, address: Address) -> str:
        """Return the path of the warehouse of a resource in the catalog API."""
        return f"/catalog/v1/{self._ids[address.within(Kind.WAREHOUSE)]}"
