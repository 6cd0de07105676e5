# SPDX-License-Identifier: Apache-2.0
"""Write the current state of projects as a file for `lakegate apply`. Applying the file changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gateway.apply import ApplyError
from gateway.apply.client import FORBIDDEN, Api, ApiError
from gateway.apply.kinds import CATALOG, KINDS, read_state
from gateway.apply.nouns import Noun
from gateway.apply.session import MANAGEMENT, Located, Session
from gateway.apply.state import SERVER, Address, Kind, Resource, Scope, State, bound_object


class NoSuchProject(ApplyError):
    """The caller can see no project with this id or name."""


def export(api: Api, project: str | None, notes: list[str], *, mappings: bool = False) -> dict[str, Any]:
    """Return the content of a file for one project, or for the server and all projects that the caller can see.

    `notes` is extended by a text for each part that is left out. With `mappings`, the entries of mapping tables are
    included, which are personal data. Raises ApiError and NoSuchProject.
    """
    everything = _Skeleton(api, notes, mappings=mappings).of(project)
    present, _ = read_state(api, everything, refused=notes)
    hidden = (each.address for each in present.of_kind(Kind.BINDING) if bound_object(each.address) is None)
    notes += (f"the {each} is left out, because you do not see the object" for each in hidden)
    users = State({each: Resource(each) for each in sorted(_users(present), key=str)})
    known, _ = read_state(api, users)
    return document_of(State({**known.resources, **present.resources}, present.scopes))


class _Skeleton:
    """Finds the addresses of all objects to export. Their fields are read afterwards, as for `apply`."""

    def __init__(self, api: Api, notes: list[str], *, mappings: bool) -> None:
        self._session = Session(api, Located())
        self._mappings = mappings
        self._notes = notes
        self._resources: dict[Address, Resource] = {}
        self._scopes: set[Scope] = set()

    def of(self, project: str | None) -> State:
        """Return the addresses of a project's objects, each with its grants as a complete list. Raises ApiError and
        NoSuchProject.
        """
        listed = self._session.api.get(f"{MANAGEMENT}/project-list")["projects"]
        if project is None:
            self._add(KINDS[Kind.SERVER], SERVER, "")
        else:
            named = [each for each in listed if project in (each["project-id"], each["project-name"])]
            listed = [each for each in named if each["project-id"] == project] or named
        if project is not None and len(listed) != 1:
            found = "several projects have" if listed else "you see no project with"
            raise NoSuchProject(f"{found} the id or name {project!r}. Leave out --project to export all.")
        for each in listed:
            known = dict(self._resources), set(self._scopes)
            try:
                self._add(KINDS[Kind.PROJECT], Address(Kind.PROJECT, each["project-id"]), each["project-id"])
            except ApiError as error:
                if project is not None or error.status != FORBIDDEN:
                    raise
                self._notes.append(
                    f"the project {each['project-id']} is left out, because you may not list its contents"
                )
                self._resources, self._scopes = known
        return State(self._resources, frozenset(self._scopes))

    def _add(self, noun: Noun, address: Address, id: str, status: str = "active") -> None:
        """Add an object and its contents. The namespaces of an inactive warehouse cannot be listed."""
        self._session.located.add(address, id)
        found = id if noun.kind is Kind.PROJECT else None
        self._resources[address] = Resource(address, id=found, open_prefixes=noun.open_prefixes)
        for content in noun.contents:
            if content.kind is Kind.NAMESPACE and status != "active":
                self._notes.append(f"the namespaces of {address} are left out, because it is inactive")
            elif content.kind is Kind.ATTACHMENT and address.within(Kind.PROJECT) not in self._session.tagged:
                continue
            elif content.kind is not Kind.MAPPING_ENTRY or self._mappings:
                self._list(content, address)

    def _list(self, noun: Noun, on: Address) -> None:
        """Add the objects of a list if the caller may read the list. Raises ApiError."""
        try:
            rows = list(noun.rows(self._session, on)) if noun.is_object else []
        except ApiError as error:
            if error.status != FORBIDDEN or not noun.may_be_hidden:
                raise
            self._notes.append(f"the {noun.member} of {on} are left out, because you may not list them")
            return
        if noun.can_be_complete:
            self._scopes.add((noun.kind, on))
        if noun.kind is Kind.TAG and rows:
            self._session.tagged.add(on)
        for address, id, row in rows:
            self._add(noun, address, id, row.get("status", "active"))


def _users(state: State) -> Iterator[Address]:
    """Yield the users in grants and in members of roles."""
    for each in state.of_kind(Kind.GRANT, Kind.MEMBER):
        name = each.address.name
        principal = name.partition(" ")[2] if each.address.kind is Kind.GRANT else name
        kind, _, id = principal.partition(":")
        if kind == "user":
            yield Address(Kind.USER, id)


def document_of(state: State) -> dict[str, Any]:
    """Return the state in the form of the file."""
    return {"version": 1, **CATALOG.exported_contents(state, SERVER)}
