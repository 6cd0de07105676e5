# SPDX-License-Identifier: Apache-2.0
"""Declare the kinds of objects for the command line: what is listed and shown, and how objects are created and changed.

Lists and removals are those of `gateway.apply`, so that the kinds have one implementation of their requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import click

from gateway.apply.client import segment
from gateway.apply.references import Finder, NotFound, Reference, parse_reference
from gateway.apply.session import MANAGEMENT
from gateway.apply.state import SERVER, Address, Kind, namespace_address
from gateway.cli.exit_codes import ExitCode, Failure
from gateway.cli.output import Row

Listed = tuple[Address, str, Mapping[str, Any]]
Values = Mapping[str, Any]


@dataclass(frozen=True)
class New:
    """The command that creates an object. `body` returns the request body for its name and the given options."""

    help: str
    example: str
    body: Callable[[str, Values], dict[str, Any]]
    #: Functions that return an option, because each command needs its own.
    options: Sequence[Callable[[], click.Option]] = ()


@dataclass(frozen=True)
class NounCard:
    """A kind of objects. Subclasses differ in their paths and lists.

    `columns` are columns of tables beside the name and the id. `named` is an example of a name. `rename` is the end of
    the path that renames an object. Lists name one of the `containers`.
    """

    kind: Kind
    columns: tuple[str, ...] = ()
    named: str = ""
    new: New | None = None
    rename: str | None = None
    deletable: bool = True
    consequence: str = ""
    delete_flags: Mapping[str, str] = field(default_factory=dict)
    containers: tuple[Kind, ...] = ()
    container_form: str = ""

    @property
    def plural(self) -> str:
        """Return the name of the group, such as `data-policies`."""
        return f"{self.kind}s".replace("ys", "ies")

    @property
    def form(self) -> str:
        """Return the form of a reference, for the usage line."""
        return "NAME"

    @property
    def renamed(self) -> str:
        """Return an example of a new name."""
        return f"new-{self.named}"

    @property
    def list_help(self) -> str:
        """Return the help of the list."""
        return f"List {self.plural}.\n\nExample: lakegate {self.plural} list"

    def example(self, verb: str, *further: str) -> str:
        """Return an example of a command."""
        return f"Example: lakegate {' '.join((self.plural, verb, self.named, *further))}"

    def reference(self, address: Address) -> Reference:
        """Return the reference to an object."""
        return Reference(self.kind, (address.name,))

    def rows(self, finder: Finder, within: Reference | None) -> Iterator[Listed]:
        """Yield the objects that the caller sees."""
        yield from finder.rows(self.kind, finder.project())

    def listed(self, row: Mapping[str, Any]) -> Row:
        """Return the members of an entry that are printed beside its name and id."""
        return {name: value for name, value in row.items() if name not in ("name", "id")}

    def shown(self, finder: Finder, address: Address, *, full: bool) -> Row:
        """Return the members of an object. With `full`, nothing is left out for people."""
        located = finder.session.located
        found: Row = finder.session.api.get(located.path(address), project=located.project(address))
        return found

    def creation_path(self, finder: Finder, reference: Reference) -> str:
        """Return the path of the request that creates an object."""
        return f"{MANAGEMENT}/{self.kind.path}"

    def create(self, finder: Finder, reference: Reference, values: Values) -> str | None:
        """Create an object. Return its id, or None if the response has none."""
        if self.new is None:
            raise LookupError(f"the command line cannot create a {self.kind}")
        path = self.creation_path(finder, reference)
        project = None if self.kind in (Kind.USER, Kind.PROJECT) else finder.session.located.id(finder.project())
        made = finder.session.api.change("POST", path, self.new.body(self.new_name(reference), values), project=project)
        return self.new_id(made)

    def new_name(self, reference: Reference) -> str:
        """Return the name of a new object."""
        return reference.names[-1]

    def new_id(self, made: Mapping[str, Any]) -> str | None:
        """Return the id in the response to a creation."""
        found = made.get("id") or made.get(f"{self.kind}-id")
        return None if found is None else str(found)

    def rename_to(self, finder: Finder, address: Address, new: str) -> None:
        """Change the name of an object."""
        path = f"{finder.session.located.path(address)}{self.rename}"
        finder.session.api.change("POST", path, {"new-name": new}, project=finder.session.located.project(address))

    def delete(self, finder: Finder, address: Address, query: Mapping[str, str]) -> None:
        """Delete an object."""
        located = finder.session.located
        path = _with_query(self.deletion_path(finder, address), query)
        finder.session.api.change("DELETE", path, project=located.project(address))

    def deletion_path(self, finder: Finder, address: Address) -> str:
        """Return the path of the request that deletes an object."""
        return finder.session.located.path(address)


class OfServer(NounCard):
    """Declare projects and users. They are in no project."""

    def rows(self, finder: Finder, within: Reference | None) -> Iterator[Listed]:
        """Yield the objects that the caller sees."""
        yield from finder.rows(self.kind, SERVER)

    def listed(self, row: Mapping[str, Any]) -> Row:
        """Return the members of an entry without its name, except that of a user."""
        return {name: value for name, value in row.items() if name not in ("id", "name")} | (
            {"full-name": row["name"]} if self.kind is Kind.USER else {}
        )


class Projects(OfServer):
    """Declare projects. Their path in the API has no id if the request names the project."""

    def shown(self, finder: Finder, address: Address, *, full: bool) -> Row:
        """Return the name and the id of the project."""
        found: Row = finder.session.api.get(self.deletion_path(finder, address))
        return found

    def rename_to(self, finder: Finder, address: Address, new: str) -> None:
        """Change the name of the project."""
        finder.session.api.change("POST", f"{self.deletion_path(finder, address)}/rename", {"new-name": new})

    def deletion_path(self, finder: Finder, address: Address) -> str:
        """Return the path of the project."""
        return f"{MANAGEMENT}/project/{segment(finder.session.located.id(address))}"


class Warehouses(NounCard):
    """Declare warehouses. Their references have no other names."""

    def reference(self, address: Address) -> Reference:
        """Return the reference to a warehouse."""
        return Reference(Kind.WAREHOUSE, (), address.name)

    def new_name(self, reference: Reference) -> str:
        """Return the name of a new warehouse."""
        return reference.warehouse or ""


class Roles(NounCard):
    """Declare roles. A change needs the description."""

    def rename_to(self, finder: Finder, address: Address, new: str) -> None:
        """Change the name of a role. A request without the description would remove it."""
        before = self.shown(finder, address, full=True)
        kept = {"description": before["description"]} if before.get("description") else {}
        located = finder.session.located
        project = located.project(address)
        finder.session.api.change("POST", located.path(address), {"name": new, **kept}, project=project)


class Tags(NounCard):
    """Declare tags. A change needs the scope and the description."""

    def rename_to(self, finder: Finder, address: Address, new: str) -> None:
        """Change the name of a tag. The other members stay as they are."""
        before = self.shown(finder, address, full=True)
        kept = {name: before[name] for name in ("scope", "description") if name in before}
        located = finder.session.located
        project = located.project(address)
        finder.session.api.change("POST", located.path(address), {"name": new, **kept}, project=project)


class Namespaces(NounCard):
    """Declare namespaces. A warehouse contains them."""

    @property
    def form(self) -> str:
        """Return the form of a reference, for the usage line."""
        return "WAREHOUSE/LEVEL.LEVEL"

    @property
    def list_help(self) -> str:
        """Return the help of the list."""
        return "List the namespaces of a warehouse, on all levels.\n\nExample: lakegate namespaces list demo"

    def reference(self, address: Address) -> Reference:
        """Return the reference to a namespace."""
        return Reference(self.kind, address.levels, address.within(Kind.WAREHOUSE).name)

    def rows(self, finder: Finder, within: Reference | None) -> Iterator[Listed]:
        """Yield the namespaces of a warehouse."""
        yield from finder.rows(self.kind, finder.find(_given(within)))

    def shown(self, finder: Finder, address: Address, *, full: bool) -> Row:
        """Return the properties of a namespace."""
        located = finder.session.located
        found = finder.session.api.get(located.namespace_path(address))
        return {"name": str(self.reference(address)), "id": located.id(address), "properties": found["properties"]}

    def creation_path(self, finder: Finder, reference: Reference) -> str:
        """Return the path of the namespaces of the warehouse."""
        return f"{finder.session.located.catalog(finder.warehouse(reference))}/namespaces"

    def create(self, finder: Finder, reference: Reference, values: Values) -> str | None:
        """Create a namespace. Return its id."""
        body = {"namespace": list(reference.names), "properties": pairs(values.get("property", ()))}
        made = finder.session.api.change("POST", self.creation_path(finder, reference), body)
        return str(made["properties"]["namespace_id"])

    def rename_to(self, finder: Finder, address: Address, new: str) -> None:
        """Move a namespace to another path of its warehouse."""
        destination = parse_reference(f"namespace/x/{new}").names
        path = f"{finder.session.located.path(address)}/move"
        finder.session.api.change("POST", path, {"destination": list(destination)})

    def deletion_path(self, finder: Finder, address: Address) -> str:
        """Return the path of the namespace in the catalog."""
        return finder.session.located.namespace_path(address)


@dataclass(frozen=True)
class Tabulars(NounCard):
    """Declare tables, views and generic tables. A namespace contains them."""

    #: The root of the paths: generic tables are an API of their own.
    root: str = "/catalog"

    @property
    def form(self) -> str:
        """Return the form of a reference, for the usage line."""
        return "WAREHOUSE/NAMESPACE.NAME"

    @property
    def list_help(self) -> str:
        """Return the help of the list."""
        return (
            f"List the {self.plural} of a namespace, or of all namespaces of a warehouse.\n\n"
            f"Example: lakegate {self.plural} list demo/hr"
        )

    def reference(self, address: Address) -> Reference:
        """Return the reference to an object of a namespace."""
        return Reference(self.kind, (*address.levels, address.name), address.within(Kind.WAREHOUSE).name)

    def rows(self, finder: Finder, within: Reference | None) -> Iterator[Listed]:
        """Yield the objects of a namespace, or of all namespaces of a warehouse."""
        on = finder.find(_given(within))
        if on.kind is Kind.NAMESPACE:
            yield from finder.rows(self.kind, on)
            return
        for namespace, _, _ in finder.rows(Kind.NAMESPACE, on):
            yield from finder.rows(self.kind, namespace)

    def shown(self, finder: Finder, address: Address, *, full: bool) -> Row:
        """Return the metadata of an object, in short for people."""
        found: Row = finder.session.api.get(self.deletion_path(finder, address))
        metadata = _metadata(found)
        named = {"name": str(self.reference(address)), "id": finder.session.located.id(address)}
        return {**named, **(metadata if full else _short(metadata))}

    def creation_path(self, finder: Finder, reference: Reference) -> str:
        """Return the path of the list of the namespace."""
        namespace = namespace_address(finder.warehouse(reference), reference.names[:-1])
        return self._in(f"{finder.session.located.namespace_path(namespace)}/{self.plural}")

    def new_id(self, made: Mapping[str, Any]) -> str | None:
        """Return the id of the metadata, which is that of the object."""
        metadata = _metadata(made)
        return metadata.get("table-uuid") or metadata.get("view-uuid") or super().new_id(metadata)

    def rename_to(self, finder: Finder, address: Address, new: str) -> None:
        """Rename an object in its namespace, or move it to NAMESPACE.NAME."""
        *levels, name = parse_reference(f"namespace/x/{new}").names
        body = {
            "source": {"namespace": list(address.levels), "name": address.name},
            "destination": {"namespace": levels or list(address.levels), "name": name},
        }
        path = self._in(f"{finder.session.located.catalog(address)}/{self.plural}/rename")
        finder.session.api.change("POST", path, body)

    def deletion_path(self, finder: Finder, address: Address) -> str:
        """Return the path of an object in the catalog. Raises NotFound for an object that is given by its id."""
        if not address.levels:
            # The catalog has no paths with ids.
            raise NotFound(f"{self.reference(address)} by its name; give {self.kind}/{self.form}")
        return self._in(f"{finder.session.located.namespace_path(address)}/{self.plural}/{segment(address.name)}")

    def _in(self, path: str) -> str:
        return path.replace("/catalog", self.root, 1)


def _given(within: Reference | None) -> Reference:
    """Return the container, which the command line requires."""
    if within is None:
        raise Failure("name the warehouse or namespace, such as demo/hr", ExitCode.USAGE)
    return within


def _with_query(path: str, query: Mapping[str, str]) -> str:
    """Return a path with a query. Names of options become those of the API, such as `purgeRequested`."""
    parts = "&".join(f"{_QUERY_NAMES.get(name, name)}={value}" for name, value in query.items())
    return f"{path}?{parts}" if parts else path


_QUERY_NAMES: Final = {"purge": "purgeRequested"}


def pairs(given: Sequence[str]) -> dict[str, str]:
    """Return options of the form `NAME=VALUE`."""
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise Failure(f"{each!r} is not of the form NAME=VALUE", ExitCode.USAGE)
        found[name] = value
    return found


def _metadata(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata in the response about a table, view or generic table."""
    found: Mapping[str, Any] = answer.get("metadata") or answer.get("table") or answer
    return found


def _short(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of metadata that are single values, and the columns of the present schema."""
    found: dict[str, Any] = {name: value for name, value in metadata.items() if isinstance(value, (str, int, bool))}
    present = metadata.get("current-schema-id", 0)
    schemas = [each for each in metadata.get("schemas", ()) if each.get("schema-id", 0) == present]
    for each in schemas:
        found["columns"] = [f"{column['name']} {_type(column['type'])}" for column in each["fields"]]
    return found | ({"properties": metadata["properties"]} if metadata.get("properties") else {})


def _type(type: Any) -> str:
    return type if isinstance(type, str) else str(type["type"])
