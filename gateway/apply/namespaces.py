# SPDX-License-Identifier: Apache-2.0
"""Namespaces of warehouses in `lakegate apply`, and the tables, views, generic tables and columns in them.

Only namespaces are created. Of the other objects, grants, tags and policies are changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from gateway.apply.client import FORBIDDEN, ApiError
from gateway.apply.document import Column
from gateway.apply.grants import GRANTS
from gateway.apply.nouns import MANAGED_ACCESS, PROTECTION, Collector, Noun, Row, below, stated, without_defaults
from gateway.apply.session import MANAGEMENT, Changing, Reading, Session
from gateway.apply.source import Path
from gateway.apply.state import Address, Kind, Resource, State, namespace_address
from gateway.apply.tags import ATTACHMENTS

#: Properties that the server sets. They are never written.
SYNTHETIC: Final = frozenset({"namespace_id", "managed_access", "location"})

_PROPERTIES: Final = "properties."


class Columns(Noun):
    """Columns of a table that have grants or tags, by name."""

    kind, member, can_be_complete = Kind.COLUMN, "columns", False
    contents = (GRANTS, ATTACHMENTS)

    def collect(self, to: Collector, path: Path, on: Address, entries: Any) -> None:
        """Add columns from the file. Each entry is a list of grants, or has lists of grants and tags. Raises
        InvalidSource.
        """
        for name, entry in (entries or {}).items():
            column, at = Address(Kind.COLUMN, name, on), (*path, name)
            to.add(at, Resource(column))
            if isinstance(entry, Column):
                self.collect_contents(to, at, column, entry)
            else:
                GRANTS.collect(to, at, column, entry)

    def rows(self, session: Session, on: Address) -> Iterator[Row]:
        """Yield the columns that have grants or tags, as far as the caller may read these. Raises ApiError."""
        try:
            grants = session.pages(on, "columns/grants", "grants")
            found = {each["resource"]["column"] for each in grants if _is_current(each["resource"])}
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            return
        if on.within(Kind.PROJECT) in session.tagged:
            tagged = session.api.get(f"{session.located.path(on)}/column-tags")["columns"]
            found |= {each["name"] for each in tagged if not each.get("dropped", False)}
        for name in sorted(found):
            yield Address(Kind.COLUMN, name, on), "", {}

    def read(self, reading: Reading, on: Address) -> None:
        """Find the columns that the file names. Raises ApiError."""
        for column in reading.wanted.children(Kind.COLUMN, on):
            if reading.api.find(f"{reading.located.path(column.address)}/grants") is not None:
                reading.add(Resource(column.address, id=""))

    def exported(self, state: State, on: Address) -> dict[str, Any]:
        """Return the columns of a table in the form of the file. A column without tags is a list of grants."""
        found = {}
        for each in state.children(Kind.COLUMN, on):
            entry = self.entry(state, each)
            found[each.address.name] = entry if entry.get("tags") else entry.get("grants", [])
        return {"columns": found} if found else {}


class Tabulars(Noun):
    """Tables, views or generic tables. A file contains only those with grants, tags or other settings."""

    fields, can_be_complete = ("protected",), False
    requests: ClassVar[Mapping[str, tuple[str, str]]] = {"protected": PROTECTION}
    contents: tuple[Noun, ...] = (GRANTS, ATTACHMENTS)
    #: True for generic tables: the path of their list is below `/lakekeeper/`, and the entries of the list contain the
    #: ids.
    _generic: ClassVar[bool] = False

    def rows(self, session: Session, on: Address) -> Iterator[Row]:
        """Yield the tables or views in a namespace that the caller can see. Raises ApiError."""
        path = f"{session.located.namespace_path(on)}/{self.member}"
        path = path.replace("/catalog/", "/lakekeeper/", 1) if self._generic else path
        query = {"returnProtectionStatus": "true", **({} if self._generic else {"returnUuids": "true"})}
        for page in session.api.answers(path, query=query):
            entries = page["identifiers"]
            ids = [each["id"] for each in entries] if self._generic else page["table-uuids"]
            for entry, id, protected in zip(entries, ids, page["protection-status"], strict=True):
                yield Address(self.kind, entry["name"], on), id, {"protected": protected}

    def exported(self, state: State, on: Address) -> dict[str, Any]:
        """Return the entries that contain more than a name."""
        entries = [self.entry(state, each) for each in state.children(self.kind, on)]
        found = [each for each in entries if any(value for key, value in each.items() if key != "name")]
        return {self.member: found} if found else {}

    def entry(self, state: State, resource: Resource) -> dict[str, Any]:
        """Return a table or view in the form of the file."""
        return {"name": resource.address.name, **super().entry(state, resource)}


class Tables(Tabulars):
    """Tables."""

    kind, member = Kind.TABLE, "tables"
    contents = (GRANTS, ATTACHMENTS, Columns())


class Views(Tabulars):
    """Views."""

    kind, member = Kind.VIEW, "views"


class GenericTables(Tabulars):
    """Generic tables."""

    kind, member, _generic = Kind.GENERIC_TABLE, "generic-tables", True


TABULARS: Final = (Tables(), Views(), GenericTables())


class Namespaces(Noun):
    """The namespaces of a warehouse, on all levels."""

    kind, member = Kind.NAMESPACE, "namespaces"
    fields = ("managed-access", "protected")
    requests: ClassVar[Mapping[str, tuple[str, str]]] = {"managed-access": MANAGED_ACCESS, "protected": PROTECTION}
    open_prefixes = (_PROPERTIES,)
    contents = (GRANTS, ATTACHMENTS, *TABULARS)

    def state(self, to: Collector, path: Path, on: Address, entry: Any) -> None:
        """Add a namespace. Raises InvalidSource."""
        if not entry.levels:
            raise to.source.error((*path, "name"), "a namespace needs at least one level.")
        address = namespace_address(on, entry.levels)
        to.scopes.add((Kind.NAMESPACE, address))
        self.add(to, path, address, entry)

    def stated(self, to: Collector, path: Path, entry: Any) -> dict[str, Any]:
        """Return the fields that the file sets. Each namespace property is a field of its own."""
        properties = {f"{_PROPERTIES}{key}": value for key, value in (entry.properties or {}).items()}
        return {**stated(entry, self.fields), **properties}

    def rows(self, session: Session, on: Address) -> Iterator[Row]:
        """Yield every namespace of a warehouse that the caller can see, parents before children. Raises ApiError."""
        yield from _rows_below(session, on, ())

    def read(self, reading: Reading, on: Address) -> None:
        """Read the namespaces of a warehouse: those in the file, and those that the file leaves out. Raises
        ApiError.
        """
        if reading.containers and reading.wanted.has_scope(Kind.NAMESPACE, on):
            for address, id, _ in [each for each in self.rows(reading, on) if each[0] not in reading.wanted.resources]:
                used = any(any(noun.rows(reading, address)) for noun in TABULARS)
                reading.add(Resource(address, id=id, keep="it contains tables or views" if used else None))
        for namespace in _in_warehouse(reading.wanted, on):
            found = reading.api.find(reading.located.namespace_path(namespace.address))
            if found is not None:
                self._add(reading, namespace, found["properties"])
                self.read_contents(reading, namespace.address)

    def _add(self, reading: Reading, namespace: Resource, properties: Mapping[str, Any]) -> None:
        address, id = namespace.address, properties["namespace_id"]
        fields = {f"{_PROPERTIES}{key}": value for key, value in properties.items() if key not in SYNTHETIC}
        if f"{_PROPERTIES}location" in namespace.fields:
            fields[f"{_PROPERTIES}location"] = properties.get("location")
        reading.located.add(address, id)
        protection = reading.api.get(f"{reading.located.path(address)}/protection")
        access = reading.api.get(f"{MANAGEMENT}/permissions/namespace/{id}")
        fields |= {"protected": protection["protected"], "managed-access": access["managed-access"]}
        reading.add(Resource(address, fields, id=id))

    def create(self, session: Changing, desired: Resource) -> None:
        """Create a namespace, then set the fields that the creation request does not have. Raises ApiError."""
        address = desired.address
        body = {"namespace": list(address.levels), "properties": below(_PROPERTIES, desired.fields)}
        made = session.api.change("POST", f"{session.located.catalog(address)}/namespaces", body)
        session.located.add(address, made["properties"]["namespace_id"])
        # A new namespace is neither protected nor managed, so only settings that are true need a request.
        self.update(session, desired, {name: desired.fields[name] for name in self.fields if desired.fields.get(name)})

    def update(self, session: Changing, desired: Resource, changed: Mapping[str, Any]) -> None:
        """Change the properties, the managed access and the protection. Raises ApiError."""
        address, located = desired.address, session.located
        properties = below(_PROPERTIES, changed)
        if properties:
            removals = [name for name, value in properties.items() if value is None]
            updates = {name: value for name, value in properties.items() if value is not None}
            path = f"{located.namespace_path(address)}/properties"
            session.api.change("POST", path, {"updates": updates, "removals": removals})
        super().update(session, desired, changed)

    def remove(self, session: Changing, address: Address) -> None:
        """Remove an empty namespace. Raises ApiError."""
        session.api.change("DELETE", session.located.namespace_path(address))

    def exported(self, state: State, on: Address) -> dict[str, Any]:
        """Return the namespaces of a warehouse. Those of an inactive warehouse cannot be read, so they are left out."""
        if not state.has_scope(Kind.NAMESPACE, on):
            return {}
        return {"namespaces": [self.entry(state, each) for each in _in_warehouse(state, on)]}

    def entry(self, state: State, resource: Resource) -> dict[str, Any]:
        """Return a namespace in the form of the file."""
        levels, properties = resource.address.levels, below(_PROPERTIES, resource.fields)
        fields = {name: value for name, value in resource.fields.items() if not name.startswith(_PROPERTIES)}
        return {
            "name": levels[0] if len(levels) == 1 else list(levels),
            "properties": {name: value for name, value in properties.items() if value is not None},
            **without_defaults(fields),
            **self.exported_contents(state, resource.address),
        }


NAMESPACES = Namespaces()


def _in_warehouse(state: State, warehouse: Address) -> list[Resource]:
    return [each for each in state.of_kind(Kind.NAMESPACE) if warehouse in each.address.ancestors()]


def _rows_below(session: Session, warehouse: Address, parent: tuple[str, ...]) -> Iterator[Row]:
    query = {"returnUuids": "true", **({"parent": "\x1f".join(parent)} if parent else {})}
    for page in session.api.answers(f"{session.located.catalog(warehouse)}/namespaces", query=query):
        for levels, id in zip(page["namespaces"], page["namespace-uuids"], strict=True):
            yield namespace_address(warehouse, levels), id, {}
            yield from _rows_below(session, warehouse, tuple(levels))


def _is_current(column: Mapping[str, Any]) -> bool:
    """Return whether the column of a grant still exists."""
    return "column" in column and not column.get("dropped", False)
