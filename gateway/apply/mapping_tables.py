# SPDX-License-Identifier: Apache-2.0
"""Read the mapping tables of projects, and create them and change their entries."""

from __future__ import annotations

from gateway.apply.changes import Change, NotChangeable
from gateway.apply.client import Api
from gateway.apply.grant_reading import GrantReader
from gateway.apply.located import MANAGEMENT, Located
from gateway.apply.state import Address, Kind, Resource, State
from gateway.iceberg.identifiers import fold


class MappingTableReader:
    """Reads the mapping tables of one project. `found` receives them, with the entries of those that state some."""

    def __init__(
        self, api: Api, wanted: State, located: Located, found: dict[Address, Resource], grants: GrantReader
    ) -> None:
        self._api = api
        self._wanted = wanted
        self._located = located
        self._found = found
        self._grants = grants

    def read(self, project: Address) -> None:
        """Read the tables if the file states the list. Raises ApiError."""
        if not self._wanted.has_scope(Kind.MAPPING_TABLE, project):
            return
        id = self._located.id(project)
        for row in self._api.pages(f"{MANAGEMENT}/mapping-table", "mapping-tables", project=id):
            address = Address(Kind.MAPPING_TABLE, fold(row["name"]), project)
            self._located.add(address, row["id"])
            fields = {"name": row["name"], "description": row.get("description")}
            self._found[address] = Resource(address, fields, id=row["id"])
            if self._wanted.has_scope(Kind.MAPPING_ENTRY, address):
                self._entries(address, id)

    def _entries(self, table: Address, project: str) -> None:
        for row in self._api.pages(f"{self._located.path(table)}/entries", "entries", project=project):
            address = self._grants.address(Kind.MAPPING_ENTRY, table, row["principal"])
            self._found[address] = Resource(address, {"values": sorted(row["values"])})


def create_mapping_table(api: Api, located: Located, desired: Resource) -> None:
    """Create an empty mapping table. Raises ApiError."""
    body = {"name": desired.spec.name, **desired.fields}
    made = api.change("POST", f"{MANAGEMENT}/mapping-table", body, project=located.project(desired.address))
    located.add(desired.address, made["id"])


def set_entry(api: Api, located: Located, desired: Resource) -> None:
    """Replace the values of a principal. Raises ApiError and UnknownRole."""
    entry = {"principal": located.principal(desired.address.name, desired.address), "values": desired.fields["values"]}
    _change_entries(api, located, desired.address, {"set": [entry]})


def remove_entry(api: Api, located: Located, address: Address) -> None:
    """Remove the values of a principal. Raises ApiError and UnknownRole."""
    _change_entries(api, located, address, {"remove": [located.principal(address.name, address)]})


def require_same_description(change: Change, present: Resource | None) -> None:
    """Raise NotChangeable for another description of a mapping table that exists."""
    if present is not None and change.desired is not None:
        raise NotChangeable(f"{change.address}: the description of a mapping table cannot be changed. Leave it out.")


def _change_entries(api: Api, located: Located, entry: Address, body: object) -> None:
    path = f"{located.path(entry.within(Kind.MAPPING_TABLE))}/entries"
    api.change("POST", path, body, project=located.project(entry))
