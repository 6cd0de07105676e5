# SPDX-License-Identifier: Apache-2.0
"""Read the present state of the resources that a file names, and of the lists that it declares completely."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.access.operations.roles import OWN_PROVIDER
from gateway.apply.catalog_lists import LISTS, namespaces_of, tabulars_of
from gateway.apply.client import FORBIDDEN, Api, ApiError
from gateway.apply.data_policies import DataPolicyReader
from gateway.apply.grant_reading import GrantReader
from gateway.apply.located import MANAGEMENT, Located
from gateway.apply.mapping_tables import MappingTableReader
from gateway.apply.state import SERVER, Address, Kind, Resource, State, namespace_address
from gateway.apply.tags import TagReader
from gateway.apply.warehouse_changes import warehouse_fields

#: Properties that the server sets. They are never written.
SYNTHETIC = frozenset({"namespace_id", "managed_access", "location"})


class Ambiguous(Exception):
    """The file names an object in two ways that contradict each other, or twice."""


class Inactive(Exception):
    """The file names contents of a warehouse that is inactive, so the catalog does not serve it."""


def read_state(
    api: Api, wanted: State, *, containers: bool = False, refused: list[str] | None = None
) -> tuple[State, Located]:
    """Return the present state of everything that `wanted` names, and the ids. Raises ApiError, Ambiguous and Inactive.

    With `containers`, also the warehouses and namespaces that the lists of `wanted` leave out. With a list `refused`,
    grants and tags of objects that the caller may not read are left out and described there.
    """
    reader = _Reader(api, wanted, containers=containers)
    reader.read()
    scopes = set(wanted.scopes)
    for scope in sorted(wanted.scopes, key=lambda each: (each[0], str(each[1]))):
        try:
            reader.contents(*scope)
        except ApiError as error:
            if refused is None or error.status != FORBIDDEN:
                raise
            what = "grants" if scope[0] is Kind.GRANT else "tags"
            refused.append(f"the {what} on {scope[1]} are left out, because you may not read them")
            scopes.discard(scope)
    reader.tags.keep_used()
    return State(reader.found, frozenset(scopes)), reader.located


class _Reader:
    """Collects resources from the top to the bottom, each list of the API once."""

    def __init__(self, api: Api, wanted: State, *, containers: bool) -> None:
        self._containers = containers
        self.found: dict[Address, Resource] = {}
        self.located = Located()
        self._grants = GrantReader(api, wanted, self.located)
        self.tags = TagReader(api, wanted, self.located, self.found)
        self._api = api
        self._wanted = wanted

    def read(self) -> None:
        """Read all resources except grants and tags of objects."""
        if SERVER in self._wanted.resources:
            self._add(SERVER, "", {})
        for user in self._wanted.of_kind(Kind.USER):
            self._user(user.address)
        if projects := self._wanted.of_kind(Kind.PROJECT):
            listed = self._api.get(f"{MANAGEMENT}/project-list")["projects"]
            for project in projects:
                self._project(project, listed)
        for namespace in self._wanted.of_kind(Kind.NAMESPACE):
            self._namespace(namespace.address)
        for kind in LISTS:
            self._tabulars(kind)
        for column in self._wanted.of_kind(Kind.COLUMN):
            self._column(column.address)
        self._policies([each for each in self.found if each.kind is Kind.PROJECT])

    def _policies(self, projects: Iterable[Address]) -> None:
        """Read tags, mapping tables and data policies. Bindings need the ids of tags and of bound objects."""
        tables = MappingTableReader(self._api, self._wanted, self.located, self.found, self._grants)
        policies = DataPolicyReader(self._api, self._wanted, self.located, self.found)
        for project in projects:
            self.tags.read(project)
            tables.read(project)
            policies.read(project)

    def contents(self, kind: Kind, on: Address) -> None:
        """Read the grants on an object or its tags, if the list is of such a kind. Raises ApiError."""
        if not self.located.knows(on):
            return
        if kind is Kind.GRANT:
            self.found |= {each.address: each for each in self._grants.on(on)}
        elif kind is Kind.ATTACHMENT:
            self.tags.read_attachments(on)

    def _user(self, address: Address) -> None:
        found = self._api.find(self.located.path(address))
        if found is not None:
            fields = {"name": found["name"], "type": found["user-type"], "email": found.get("email")}
            self._add(address, found["id"], fields)

    def _project(self, project: Resource, listed: Iterable[Mapping[str, Any]]) -> None:
        names = {"project-id": project.id} if project.id is not None else {"project-name": project.address.name}
        found = next((each for each in listed if names.items() <= each.items()), None)
        if found is None:
            return
        same = [each.address for each in self.found.values() if each.address.kind is Kind.PROJECT]
        if (other := next((each for each in same if self.located.id(each) == found["project-id"]), None)) is not None:
            # With pruning, the lists under each name would remove what those under the other name declare.
            raise Ambiguous(f"{other} and {project.address} are the same project. Name it in one way in all files.")
        self._add(project.address, found["project-id"], {"name": found["project-name"]})
        self._roles(project.address, found["project-id"])
        self._warehouses(project.address, found["project-id"])

    def _roles(self, project: Address, id: str) -> None:
        wanted = self._children(Kind.ROLE, project)
        scoped = self._wanted.has_scope(Kind.ROLE, project)
        listed = list(self._api.pages(f"{MANAGEMENT}/role", "roles", project=id)) if self._names_roles(project) else []
        for role in listed:
            address = _address(wanted, Kind.ROLE, project, role["id"], role["name"])
            self.located.add_role(project, role["name"], role["id"])
            if address not in self._wanted.resources and not scoped:
                continue
            provider = role["provider-id"]
            keep = None if provider == OWN_PROVIDER else f"the provider {provider} manages it"
            fields = {"name": role["name"], "description": role.get("description"), "provider-id": provider}
            self._add(address, role["id"], {**fields, "source-id": role["source-id"]}, keep=keep)
        for role in wanted:
            if self._wanted.has_scope(Kind.MEMBER, role.address) and self.located.knows(role.address):
                self._members(role.address, id)

    def _names_roles(self, project: Address) -> bool:
        """Return whether the file describes roles of the project, or names principals that may be its roles."""
        return any(
            each.kind in (Kind.ROLE, Kind.GRANT) and project in each.ancestors() for each in self._wanted.resources
        ) or any(on == project or project in on.ancestors() for _, on in self._wanted.scopes)

    def _members(self, role: Address, project: str) -> None:
        keep = self.found[role].keep
        for member in self._api.pages(f"{self.located.path(role)}/members", "members", project=project):
            address = self._grants.address(Kind.MEMBER, role, {member["type"]: member["id"]})
            own = member["id"] == self._grants.caller and "this is the caller"
            self.found[address] = Resource(address, keep=keep or own or None)

    def _warehouses(self, project: Address, id: str) -> None:
        wanted = self._children(Kind.WAREHOUSE, project)
        scoped = self._containers and self._wanted.has_scope(Kind.WAREHOUSE, project)
        if not wanted and not scoped:
            return
        query = {"warehouseStatus": "active,inactive"}
        for row in self._api.get(f"{MANAGEMENT}/warehouse", project=id, query=query)["warehouses"]:
            address = _address(wanted, Kind.WAREHOUSE, project, row["warehouse-id"], row["name"])
            if address not in self._wanted.resources:
                if scoped:
                    self._undeclared_warehouse(address, row)
                continue
            if row["status"] != "active" and self._children(Kind.NAMESPACE, address):
                raise Inactive(
                    f"the {address} is inactive, so its namespaces cannot be read. Activate it first: "
                    f"`lakegate warehouse set {row['warehouse-id']} --status active`."
                )
            queues = "task-queues." in self._wanted.resources[address].open_prefixes
            self._add(address, row["warehouse-id"], warehouse_fields(self._api, row, queues=queues))
            if self._containers and self._wanted.has_scope(Kind.NAMESPACE, address):
                self._undeclared_namespaces(address)

    def _undeclared_warehouse(self, address: Address, row: Mapping[str, Any]) -> None:
        self._add(address, row["warehouse-id"], {"name": row["name"]})
        inactive = row["status"] != "active"
        keep = "it is inactive" if inactive else None
        if not inactive and namespaces_of(self._api, self.located.catalog(address)):
            keep = "it contains namespaces"
        self._add(address, row["warehouse-id"], {"name": row["name"]}, keep=keep)

    def _undeclared_namespaces(self, warehouse: Address) -> None:
        """Add the namespaces that the file leaves out, and keep those with tables or views."""
        for levels, id in namespaces_of(self._api, self.located.catalog(warehouse)):
            address = namespace_address(warehouse, levels)
            if address not in self._wanted.resources:
                used = any(tabulars_of(self._api, self.located, address, kind) for kind in LISTS)
                self._add(address, id, {}, keep="it contains tables or views" if used else None)

    def _namespace(self, address: Address) -> None:
        if not self.located.knows(address.within(Kind.WAREHOUSE)):
            return
        found = self._api.find(self.located.namespace_path(address))
        if found is None:
            return
        properties = found["properties"]
        id = properties["namespace_id"]
        fields = {f"properties.{key}": value for key, value in properties.items() if key not in SYNTHETIC}
        if "properties.location" in self._wanted.resources[address].fields:
            fields["properties.location"] = properties.get("location")
        self._add(address, id, fields)
        protection = self._api.get(f"{self.located.path(address)}/protection")
        access = self._api.get(f"{MANAGEMENT}/permissions/namespace/{id}")
        managed = {"managed-access": access["managed-access"]}
        self._add(address, id, {**fields, "protected": protection["protected"], **managed})

    def _tabulars(self, kind: Kind) -> None:
        """Read the tables or views that the file names, with one list for each namespace."""
        by_namespace: dict[Address, list[Address]] = {}
        for each in self._wanted.of_kind(kind):
            if each.address.parent is not None:
                by_namespace.setdefault(each.address.parent, []).append(each.address)
        for namespace, addresses in by_namespace.items():
            if not self.located.knows(namespace):
                continue
            listed = tabulars_of(self._api, self.located, namespace, kind)
            for address in addresses:
                if (found := listed.get(address.name)) is not None:
                    self._add(address, found.id, {"protected": found.protected})

    def _column(self, address: Address) -> None:
        table = address.parent
        if table is None or not self.located.knows(table):
            return
        if self._api.find(f"{self.located.path(address)}/grants") is not None:
            self._add(address, "", {})

    def _children(self, kind: Kind, parent: Address) -> list[Resource]:
        return self._wanted.children(kind, parent)

    def _add(self, address: Address, id: str, fields: Mapping[str, Any], *, keep: str | None = None) -> None:
        self.located.add(address, id)
        self.found[address] = Resource(address, fields, id=id, keep=keep)


def _address(wanted: Iterable[Resource], kind: Kind, parent: Address, id: str, name: str) -> Address:
    """Return the address under which the file names an object: by its id, or else by its name.

    Raises Ambiguous for an object with a name to which the file gives another id: grants would reach the wrong one.
    """
    named = Address(kind, name, parent)
    for each in wanted:
        if each.id == id:
            return each.address
    for each in wanted:
        if each.address == named and each.id is not None:
            raise Ambiguous(
                f"{named} has the id {each.id} in the file, but an object with this name has the id {id}. Correct the "
                "id, or choose another name."
            )
    return named
