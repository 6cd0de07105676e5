# SPDX-License-Identifier: Apache-2.0
"""Write the present state of projects as a file that `lakegate apply` accepts and that changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.access.operations.roles import OWN_PROVIDER
from gateway.apply.catalog_lists import LISTS, namespaces_of, tabulars_of
from gateway.apply.client import FORBIDDEN, Api, ApiError
from gateway.apply.export_entries import grants_of, policies_of, principal_of, tags_of
from gateway.apply.located import MANAGEMENT, Located
from gateway.apply.reader import read_state
from gateway.apply.state import (
    DEFAULTS,
    SERVER,
    Address,
    Kind,
    Resource,
    Scope,
    State,
    bound_object,
    namespace_address,
)
from gateway.iceberg.identifiers import fold

#: (kind, path, member of the answer) of the lists of projects about data policies. Tags are the first one, because
#: only projects with tags have tagged objects.
POLICIES: Final = (
    (Kind.TAG, "tag-definition", "tag-definitions"),
    (Kind.MAPPING_TABLE, "mapping-table", "mapping-tables"),
    (Kind.DATA_POLICY, "data-policy", "data-policies"),
)

_OPEN_PREFIXES: Final = {Kind.NAMESPACE: ("properties.",), Kind.WAREHOUSE: ("task-queues.",)}

_TAGGABLE: Final = frozenset({Kind.WAREHOUSE, Kind.NAMESPACE, *LISTS, Kind.COLUMN})


class NoSuchProject(Exception):
    """The caller sees no project with this id or name."""


def export(api: Api, project: str | None, notes: list[str], *, mappings: bool = False) -> dict[str, Any]:
    """Return the content of a file for one project, or for the server and all projects that the caller sees.

    `notes` receives what is left out. With `mappings`, the entries of mapping tables are included: they are personal
    data. Raises ApiError and NoSuchProject.
    """
    everything = _Skeleton(api, notes, mappings=mappings).of(project)
    present, _ = read_state(api, everything, refused=notes)
    hidden = (each.address for each in present.of_kind(Kind.BINDING) if bound_object(each.address) is None)
    notes += (f"the {each} is left out, because you do not see the object" for each in hidden)
    users = State({each: Resource(each) for each in sorted(_users(present), key=str)})
    known, _ = read_state(api, users)
    return document_of(State({**known.resources, **present.resources}, present.scopes))


class _Skeleton:
    """Finds the addresses of everything to export. Their fields are read afterwards, as for `apply`."""

    def __init__(self, api: Api, notes: list[str], *, mappings: bool) -> None:
        self._api = api
        self._lists: dict[Kind, tuple[Kind, ...]] = {
            Kind.TAG: (Kind.GRANT,),
            Kind.MAPPING_TABLE: (Kind.MAPPING_ENTRY,) if mappings else (),
            Kind.DATA_POLICY: (Kind.GRANT, Kind.BINDING),
        }
        self._tagged: set[Address] = set()
        self._notes = notes
        self._located = Located()
        self._resources: dict[Address, Resource] = {}
        self._scopes: set[Scope] = set()

    def of(self, project: str | None) -> State:
        """Return the addresses, each with its grants as a complete list. Raises ApiError and NoSuchProject."""
        listed = self._api.get(f"{MANAGEMENT}/project-list")["projects"]
        if project is None:
            self._add(SERVER, "")
        else:
            named = [each for each in listed if project in (each["project-id"], each["project-name"])]
            listed = [each for each in named if each["project-id"] == project] or named
        if project is not None and len(listed) != 1:
            found = "several projects have" if listed else "you see no project with"
            raise NoSuchProject(f"{found} the id or name {project!r}. `lakegate export` without --project writes all.")
        for each in listed:
            known = dict(self._resources), set(self._scopes)
            try:
                self._project(Address(Kind.PROJECT, each["project-id"]), each["project-id"])
            except ApiError as error:
                if project is not None or error.status != FORBIDDEN:
                    raise
                self._notes.append(
                    f"the project {each['project-id']} is left out, because you may not list its contents"
                )
                self._resources, self._scopes = known
        return State(self._resources, frozenset(self._scopes))

    def _project(self, address: Address, id: str) -> None:
        self._add(address, id)
        self._scopes |= {(Kind.ROLE, address), (Kind.WAREHOUSE, address)}
        for role in self._api.pages(f"{MANAGEMENT}/role", "roles", project=id):
            self._add(here := Address(Kind.ROLE, role["name"], address), role["id"])
            self._scopes.add((Kind.MEMBER, here))
        for kind, path, member in POLICIES:
            self._policies(kind, path, member, address)
        query = {"warehouseStatus": "active,inactive"}
        for row in self._api.get(f"{MANAGEMENT}/warehouse", project=id, query=query)["warehouses"]:
            self._warehouse(Address(Kind.WAREHOUSE, row["name"], address), row)

    def _policies(self, kind: Kind, path: str, member: str, project: Address) -> None:
        """Add the tags, mapping tables or data policies of a project, if the caller may list them."""
        try:
            listed = list(self._api.pages(f"{MANAGEMENT}/{path}", member, project=self._located.id(project)))
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            self._notes.append(f"the {member} of {project} are left out, because you may not list them")
            return
        self._scopes.add((kind, project))
        for each in listed:
            address = Address(kind, fold(each["name"]), project)
            self._resources[address] = Resource(address)
            self._scopes |= {(each, address) for each in self._lists[kind]}
        if kind is Kind.TAG and listed:
            self._tagged.add(project)

    def _warehouse(self, address: Address, row: Mapping[str, Any]) -> None:
        self._add(address, row["warehouse-id"])
        if row["status"] != "active":
            self._notes.append(f"the namespaces of {address} are left out, because it is inactive")
            return
        self._scopes.add((Kind.NAMESPACE, address))
        for levels, namespace_id in namespaces_of(self._api, self._located.catalog(address)):
            namespace = namespace_address(address, levels)
            self._add(namespace, namespace_id)
            for kind in LISTS:
                for name, found in tabulars_of(self._api, self._located, namespace, kind).items():
                    self._add(tabular := Address(kind, name, namespace), found.id)
                    if kind is Kind.TABLE:
                        self._columns(tabular)

    def _columns(self, table: Address) -> None:
        """Add the columns that have grants, if the caller may read them."""
        path = f"{self._located.path(table)}/columns/grants"
        try:
            columns = {each["resource"]["column"] for each in self._api.pages(path, "grants") if _current(each)}
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            return
        if table.within(Kind.PROJECT) in self._tagged:
            tagged = self._api.get(f"{self._located.path(table)}/column-tags")["columns"]
            columns |= {each["name"] for each in tagged if not each.get("dropped", False)}
        for column in sorted(columns):
            self._add(Address(Kind.COLUMN, column, table), "")

    def _add(self, address: Address, id: str) -> None:
        self._located.add(address, id)
        found = id if address.kind is Kind.PROJECT else None
        open_prefixes = _OPEN_PREFIXES.get(address.kind, ())
        self._resources[address] = Resource(address, id=found, open_prefixes=open_prefixes)
        self._scopes.add((Kind.GRANT, address))
        if address.kind in _TAGGABLE and address.within(Kind.PROJECT) in self._tagged:
            self._scopes.add((Kind.ATTACHMENT, address))


def _current(grant: Mapping[str, Any]) -> bool:
    """Return whether the column of a grant still exists."""
    resource = grant["resource"]
    return "column" in resource and not resource.get("dropped", False)


def _users(state: State) -> Iterator[Address]:
    """Yield the users that grants and members name."""
    for each in state.of_kind(Kind.GRANT, Kind.MEMBER):
        name = each.address.name
        principal = name.partition(" ")[2] if each.address.kind is Kind.GRANT else name
        kind, _, id = principal.partition(":")
        if kind == "user":
            yield Address(Kind.USER, id)


def document_of(state: State) -> dict[str, Any]:
    """Return the state in the form of the file."""
    document: dict[str, Any] = {"version": 1}
    if state.has_scope(Kind.GRANT, SERVER):
        document["server"] = grants_of(state, SERVER)
    if users := state.of_kind(Kind.USER):
        document["users"] = [{"id": each.address.name, **_stated(each.fields)} for each in users]
    document["projects"] = [_project(state, each) for each in state.of_kind(Kind.PROJECT)]
    return document


def _project(state: State, project: Resource) -> dict[str, Any]:
    address = project.address
    return {
        "id": project.id,
        "name": project.fields["name"],
        **grants_of(state, address),
        "roles": [_role(state, each) for each in state.children(Kind.ROLE, address)],
        **policies_of(state, address),
        "warehouses": [_warehouse(state, each) for each in state.children(Kind.WAREHOUSE, address)],
    }


def _role(state: State, role: Resource) -> dict[str, Any]:
    fields = dict(role.fields)
    if fields["provider-id"] == OWN_PROVIDER and fields["source-id"] == role.id:
        del fields["provider-id"], fields["source-id"]
    members = [principal_of(each.address.name) for each in state.children(Kind.MEMBER, role.address)]
    # Another provider manages the members of its roles.
    own = {} if role.keep is not None else {"members": members}
    return {**_stated(fields), **own, **grants_of(state, role.address)}


def _warehouse(state: State, warehouse: Resource) -> dict[str, Any]:
    fields = warehouse_settings(warehouse)
    namespaces = [
        _namespace(state, each)
        for each in state.of_kind(Kind.NAMESPACE)
        if each.address.within(Kind.WAREHOUSE) == warehouse.address
    ]
    return {
        **_stated(fields, versions=fields.get("default-format-version") is not None),
        **grants_of(state, warehouse.address),
        **tags_of(state, warehouse.address),
        # Those of an inactive warehouse are unknown, and the file does not state them.
        **({"namespaces": namespaces} if state.has_scope(Kind.NAMESPACE, warehouse.address) else {}),
    }


def warehouse_settings(warehouse: Resource) -> dict[str, Any]:
    """Return the fields of a warehouse in the form of the file, with defaults, without the credential."""
    prefixes = ("storage.", "task-queues.")
    fields = {name: value for name, value in warehouse.fields.items() if not name.startswith(prefixes)}
    # The gateway never returns secrets.
    fields.pop("credential")
    return {
        **fields,
        "storage": _below("storage.", warehouse.fields),
        "task-queues": _below("task-queues.", warehouse.fields),
    }


def _namespace(state: State, namespace: Resource) -> dict[str, Any]:
    levels = namespace.address.levels
    fields = {name: value for name, value in namespace.fields.items() if not name.startswith("properties.")}
    found: dict[str, Any] = {
        "name": levels[0] if len(levels) == 1 else list(levels),
        "properties": _below("properties.", namespace.fields),
        **_stated(fields),
        **grants_of(state, namespace.address),
        **tags_of(state, namespace.address),
    }
    for kind, name in LISTS.items():
        tabulars = [_tabular(state, each) for each in state.children(kind, namespace.address)]
        if stated := [each for each in tabulars if any(value for key, value in each.items() if key != "name")]:
            found[name] = stated
    return found


def _tabular(state: State, tabular: Resource) -> dict[str, Any]:
    address = tabular.address
    columns = {each.address.name: _column(state, each.address) for each in state.children(Kind.COLUMN, address)}
    with_columns = {"columns": columns} if columns else {}
    stated = {**_stated(tabular.fields), **grants_of(state, address), **tags_of(state, address)}
    return {"name": address.name, **stated, **with_columns}


def _column(state: State, column: Address) -> Any:
    """Return the grants of a column, as a list if it has no tags."""
    grants, tags = grants_of(state, column), tags_of(state, column)
    return {**grants, **tags} if tags.get("tags") else grants.get("grants", [])


def _below(prefix: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): value
        for name, value in fields.items()
        if name.startswith(prefix) and value is not None
    }


def _stated(fields: Mapping[str, Any], *, versions: bool = False) -> dict[str, Any]:
    """Return the fields without defaults. With `versions`, the allowed format versions are always stated."""
    return {
        name: value
        for name, value in fields.items()
        if value is not None and (DEFAULTS.get(name) != value or (versions and name == "allowed-format-versions"))
    }
