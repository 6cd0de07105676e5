# SPDX-License-Identifier: Apache-2.0
"""Mapping tables of projects in `lakegate apply`, and the values that they assign to users and roles."""

from __future__ import annotations

from typing import Any

from gateway.apply.nouns import Collector, Noun, principal_of, stated
from gateway.apply.session import Changing, Reading
from gateway.apply.source import Path
from gateway.apply.state import Address, Change, Kind, NotChangeable, Resource, State


class MappingEntries(Noun):
    """Entries of a mapping table: the values of each principal."""

    kind, member, is_object = Kind.MAPPING_ENTRY, "entries", False

    def state(self, to: Collector, path: Path, on: Address, entry: Any) -> None:
        """Add the values of a principal. Raises InvalidSource."""
        address = Address(Kind.MAPPING_ENTRY, to.principal(path, on, entry), on)
        to.add(path, Resource(address, {"values": sorted(set(entry.values))}))

    def read(self, reading: Reading, on: Address) -> None:
        """Read the entries only if the file contains entries, because they are personal data. Raises ApiError."""
        if reading.wanted.has_scope(Kind.MAPPING_ENTRY, on):
            for row in reading.pages(on, "entries", "entries"):
                address = reading.of_principal(Kind.MAPPING_ENTRY, on, row["principal"])
                reading.found[address] = Resource(address, {"values": sorted(row["values"])})

    def create(self, session: Changing, desired: Resource) -> None:
        """Replace the values of a principal. Raises ApiError and UnknownRole."""
        principal = session.located.principal(desired.address.name, desired.address)
        entry = {"principal": principal, "values": desired.fields["values"]}
        session.change("POST", desired.address.on, "/entries", {"set": [entry]})

    def remove(self, session: Changing, address: Address) -> None:
        """Remove the values of a principal. Raises ApiError and UnknownRole."""
        principal = session.located.principal(address.name, address)
        session.change("POST", address.on, "/entries", {"remove": [principal]})

    def entry(self, state: State, resource: Resource) -> dict[str, Any]:
        """Return the values of a principal in the form of the file."""
        return {**principal_of(resource.address.name), "values": resource.fields["values"]}


class MappingTables(Noun):
    """Mapping tables. A table is found by its name, so the name is not compared."""

    kind, member, folded, may_be_hidden = Kind.MAPPING_TABLE, "mapping-tables", True, True
    fields = ("name", "description")
    contents = (MappingEntries(),)

    def stated(self, to: Collector, path: Path, entry: Any) -> dict[str, Any]:
        """Return the description, if the file contains it."""
        return stated(entry, ("description",))

    def require(self, change: Change, present: Resource | None) -> None:
        """Raise NotChangeable if the description of an existing mapping table would change."""
        if present is not None and change.desired is not None:
            raise NotChangeable(
                f"{change.address}: the description of a mapping table cannot be changed. Leave it out."
            )

    def create(self, session: Changing, desired: Resource) -> None:
        """Create an empty mapping table. Raises ApiError."""
        super().create(session, Resource(desired.address, {"name": desired.spec.name, **desired.fields}))


MAPPING_TABLES = MappingTables()
