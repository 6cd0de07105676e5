# SPDX-License-Identifier: Apache-2.0
"""Base class of the kinds of objects in `lakegate apply`, such as projects or tags.

A kind declares its list in the file and in the API, its fields, its requests and the kinds that it contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

import msgspec

from gateway.apply import ApplyError
from gateway.apply.document import Grant, MappingEntry, Member
from gateway.apply.session import MANAGEMENT, Changing, Reading, Session, is_uuid, usual_id
from gateway.apply.source import Path, Source
from gateway.apply.state import DEFAULTS, Address, Change, Kind, Resource, Scope, State
from gateway.iceberg.identifiers import fold

#: Requests that several kinds of resources have (`Noun.requests`).
PROTECTION = ("{path}/protection", "protected")
MANAGED_ACCESS = (f"{MANAGEMENT}/permissions/{{kind}}/{{id}}/managed-access", "managed-access")

Row = tuple[Address, str, Mapping[str, Any]]
"""An entry of a list of the API: its address by its name, its id, and the entry."""


class Ambiguous(ApplyError):
    """The file contains an object twice, or an id and a name that contradict each other."""


class Collector:
    """Collects the resources and complete lists of one document. `references` are objects that it only refers to.

    Grants that have expired at `now` are left out. With `rotate`, credentials in the file always differ from the
    current ones.
    """

    def __init__(self, source: Source, *, now: datetime, rotate: bool = False) -> None:
        self.source = source
        self.resources: dict[Address, Resource] = {}
        self.scopes: set[Scope] = set()
        self.references: set[Address] = set()
        self.now = now
        self.rotate = rotate

    def add(self, path: Path, resource: Resource) -> None:
        """Add a resource. Raises InvalidSource if the file declares it twice."""
        if resource.address in self.resources:
            raise self.source.error(path, f"{resource.address} is stated twice. Keep one entry.")
        self.resources[resource.address] = resource

    def list(self, kind: Kind, parent: Address, entries: object) -> None:
        """Record that the file declares the list completely. Record nothing if the file does not contain the list."""
        if entries is not None:
            self.scopes.add((kind, parent))

    def principal(self, path: Path, on: Address, given: Grant | Member | MappingEntry) -> str:
        """Return the principal as `user:<id>` or `role:<name or UUID>`."""
        if (given.user is None) == (given.role is None):
            raise self.source.error(path, "give exactly one of user and role.")
        if given.user is not None:
            return f"user:{given.user}"
        if on.kind is Kind.SERVER and not is_uuid(given.role or ""):
            raise self.source.error(
                (*path, "role"), "a role on the server is given by its UUID, because names are per project."
            )
        # The id is converted to the canonical form of a UUID, as in responses of the gateway. Another form would look
        # like another role.
        return f"role:{usual_id(given.role or '')}"

    def uuid(self, path: Path, id: str | None) -> str | None:
        """Return the `id` of an entry in canonical form. Raises InvalidSource if it is not a UUID."""
        if id is not None and not is_uuid(id):
            raise self.source.error((*path, "id"), f"{id!r} is not a UUID.")
        return None if id is None else str(UUID(id))


class Noun:
    """A kind of objects. Class attributes declare it. A method is overridden only if the kind differs from the others.

    `member` is the name of its list in the entry that contains it, and in responses of the API. `fields` are compared
    and exported. `new` has the values that a creation sends for fields that the file does not set. `contents` are the
    kinds of the lists inside the entry, in the order of an exported file.
    """

    kind: ClassVar[Kind]
    member: ClassVar[str]
    fields: ClassVar[tuple[str, ...]] = ()
    new: ClassVar[Mapping[str, Any]] = {}
    #: Fields that a separate request changes: {field: (path of the request, field of its body)}. The requests are sent
    #: in this order.
    requests: ClassVar[Mapping[str, tuple[str, str]]] = {}
    #: One field of the file declares all fields whose names begin with one of these prefixes.
    open_prefixes: ClassVar[tuple[str, ...]] = ()
    #: True if the letter case of names is ignored.
    folded: ClassVar[bool] = False
    #: True if a file can declare the list completely: objects that are not in it shall not exist.
    can_be_complete: ClassVar[bool] = True
    #: True if an export leaves the list out for a caller that may not read it.
    may_be_hidden: ClassVar[bool] = False
    #: True for objects that the API lists with ids. False for entries of an object.
    is_object: ClassVar[bool] = True
    contents: tuple[Noun, ...] = ()

    def key(self, name: str) -> str:
        """Return the name by which an object's address identifies it."""
        return fold(name) if self.folded else name

    # The file

    def collect(self, to: Collector, path: Path, on: Address, entries: Any) -> None:
        """Add the objects in a list of the file, if the file contains the list. Raises InvalidSource."""
        if self.can_be_complete:
            to.list(self.kind, on, entries)
        for place, entry in enumerate(entries or ()):
            self.state(to, (*path, place), on, entry)

    def state(self, to: Collector, path: Path, on: Address, entry: Any) -> None:
        """Add the object that an entry of the file describes, and its contents. Raises InvalidSource."""
        id = to.uuid(path, getattr(entry, "id", None))
        self.add(to, path, Address(self.kind, self.key(entry.name), on), entry, id)

    def add(self, to: Collector, path: Path, address: Address, entry: Any, id: str | None = None) -> None:
        """Add an object with this address and id, and the contents of its entry. Raises InvalidSource."""
        fields = self.stated(to, path, entry)
        open = tuple(
            each for each in self.open_prefixes if getattr(entry, each[:-1].replace("-", "_"), None) is not None
        )
        to.add(path, Resource(address, fields, id=id, spec=entry, open_prefixes=open))
        self.collect_contents(to, path, address, entry)

    def collect_contents(self, to: Collector, path: Path, address: Address, entry: Any) -> None:
        """Add the objects in the lists of an entry. Raises InvalidSource."""
        for noun in self.contents:
            noun.collect(to, (*path, noun.member), address, getattr(entry, noun.member.replace("-", "_")))

    def stated(self, to: Collector, path: Path, entry: Any) -> dict[str, Any]:
        """Return the fields that an entry of the file sets. Raises InvalidSource."""
        return stated(entry, self.fields)

    # The present state

    def rows(self, session: Session, on: Address) -> Iterator[Row]:
        """Yield the entries of this kind's list in the API. Raises ApiError."""
        path, project = f"{MANAGEMENT}/{self.kind.path}", session.located.id(on)
        for row in session.api.pages(path, self.member, project=project):
            yield Address(self.kind, self.key(row["name"]), on), row["id"], row

    def is_complete(self, reading: Reading, on: Address) -> bool:
        """Return True if objects that the file leaves out are read too."""
        return reading.wanted.has_scope(self.kind, on)

    def is_read(self, reading: Reading, on: Address) -> bool:
        """Return True if the list of the API must be read."""
        return self.is_complete(reading, on) or bool(reading.wanted.children(self.kind, on))

    def read(self, reading: Reading, on: Address) -> None:
        """Read the objects that the file contains. If its list is complete, read the other objects of the list too.

        Raises ApiError, and Ambiguous if the file has another id than the API for the name of an object.
        """
        if not self.is_read(reading, on):
            return
        wanted, all = reading.wanted.children(self.kind, on), self.is_complete(reading, on)
        found = []
        for named, id, row in self.rows(reading, on):
            address = _by_id(wanted, named, id)
            self.note(reading, address, id, row)
            if all or address in reading.wanted.resources:
                reading.add(self.present(reading, address, id, row))
                found.append(address)
        for address in found:
            self.read_contents(reading, address)

    def read_contents(self, reading: Reading, address: Address) -> None:
        """Read the contents of an object in the order of creation, because later kinds need the ids of earlier ones."""
        for noun in sorted(self.contents, key=lambda each: each.kind.rank):
            noun.read(reading, address)

    def note(self, reading: Reading, address: Address, id: str, row: Mapping[str, Any]) -> None:
        """Process an entry of the API's list, which the file may not contain. Do nothing by default."""

    def present(self, reading: Reading, address: Address, id: str, row: Mapping[str, Any]) -> Resource:
        """Return the resource for an entry of the API's list. Raises ApiError."""
        return Resource(address, {name: row.get(name) for name in self.fields}, id=id)

    def read_late(self, reading: Reading, on: Address) -> None:
        """Read a complete list of an object that exists, after all objects were read. Raises ApiError."""

    # The changes

    def require(self, change: Change, present: Resource | None) -> None:
        """Raise an error if the gateway would refuse the change in the middle of the run. Accept every change by
        default.
        """

    def body(self, session: Session, address: Address, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields as a request body. Raises UnknownRole."""
        return {name: value for name, value in fields.items() if value is not None}

    def create(self, session: Changing, desired: Resource) -> None:
        """Create an object. Raises ApiError and UnknownRole."""
        address = desired.address
        body = self.body(session, address, {**self.new, **desired.fields})
        path, project = f"{MANAGEMENT}/{self.kind.path}", session.located.project(address)
        session.located.add(address, session.api.change("POST", path, body, project=project)["id"])

    def update(self, session: Changing, desired: Resource, changed: Mapping[str, Any]) -> None:
        """Change the fields of an object. For an entry of an object, write the entry again. Raises ApiError and
        UnknownRole.
        """
        if not self.is_object:
            self.create(session, desired)
        for name, (path, member) in self.requests.items():
            if name in changed:
                located, address = session.located, desired.address
                path = path.format(path=located.path(address), kind=address.kind, id=located.id(address))
                session.api.change("POST", path, {member: changed[name]}, project=located.project(address))

    def remove(self, session: Changing, address: Address) -> None:
        """Remove an object. Raises ApiError and UnknownRole."""
        session.change("DELETE", address)

    # The exported file

    def exported(self, state: State, on: Address) -> dict[str, Any]:
        """Return the list of this kind for an exported entry; nothing if the list was not read."""
        if not state.has_scope(self.kind, on):
            return {}
        return {self.member: [self.entry(state, each) for each in state.children(self.kind, on)]}

    def entry(self, state: State, resource: Resource) -> dict[str, Any]:
        """Return an object in the form of the file, without fields that have their defaults."""
        return {**without_defaults(resource.fields), **self.exported_contents(state, resource.address)}

    def exported_contents(self, state: State, address: Address) -> dict[str, Any]:
        """Return the lists inside an exported entry."""
        found: dict[str, Any] = {}
        for noun in self.contents:
            found |= noun.exported(state, address)
        return found


def without_defaults(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields whose values differ from those of a new object."""
    return {name: value for name, value in fields.items() if value is not None and DEFAULTS.get(name) != value}


def below(prefix: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields whose names begin with a prefix. The prefix is removed from the names."""
    return {name.removeprefix(prefix): value for name, value in fields.items() if name.startswith(prefix)}


def principal_of(text: str) -> dict[str, str]:
    """Return the field `user` or `role` of an entry. `text` is `user:<id>` or `role:<name or UUID>`."""
    kind, _, name = text.partition(":")
    return {kind: name}


def _by_id(wanted: Iterable[Resource], named: Address, id: str) -> Address:
    """Return the address by which the file identifies an object: by its id, or else by its name.

    Raises Ambiguous if the file has another id for this name: grants would be on the wrong object.
    """
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


def stated(entry: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of an entry, as JSON, that have one of these names and are set in the file."""
    found = {name: getattr(entry, name.replace("-", "_")) for name in names}
    return {name: msgspec.to_builtins(value) for name, value in found.items() if value is not None}
