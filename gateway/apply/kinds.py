# SPDX-License-Identifier: Apache-2.0
"""All kinds of objects of `lakegate apply`: compare a file with a catalog, and change the catalog.

The first error stops the changes. Another run continues from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from gateway.apply.client import FORBIDDEN, NOT_FOUND, Api, ApiError
from gateway.apply.document import Document, read_document
from gateway.apply.nouns import Collector, Noun
from gateway.apply.profiles import Variables, needed_credential, read_credential
from gateway.apply.projects import PROJECTS, SERVERS, USERS
from gateway.apply.session import Changing, Located, Reading
from gateway.apply.source import InvalidSource, Source, read_source
from gateway.apply.state import SERVER, Action, Address, Change, Kind, Resource, Scope, State
from gateway.apply.tags import keep_used_tags


class Catalog(Noun):
    """The whole file."""

    contents = (SERVERS, USERS, PROJECTS)


CATALOG = Catalog()


def _below(noun: Noun) -> Iterator[Noun]:
    for each in noun.contents:
        yield each
        yield from _below(each)


#: Every kind that a list of the file can contain.
KINDS: Mapping[Kind, Noun] = {each.kind: each for each in _below(CATALOG)}


def read_all(texts: Mapping[str, str]) -> list[tuple[Source, Document]]:
    """Decode the files {name: text}. Return (source, document) of each. Raises InvalidSource, for example if there is
    none.
    """
    if not texts:
        raise InvalidSource("there is no file to apply. A directory needs files that end with .yaml or .yml.")
    sources = [read_source(name, text) for name, text in texts.items()]
    return [(source, read_document(source)) for source in sources]


def desired_state(documents: Sequence[tuple[Source, Document]], *, now: datetime, rotate: bool = False) -> State:
    """Return the state that the documents declare together.

    Grants that have expired at `now` are left out. With `rotate`, credentials of warehouses always differ from the
    current ones. Raises InvalidSource.
    """
    resources: dict[Address, Resource] = {}
    scopes: set[Scope] = set()
    references: set[Address] = set()
    for source, document in documents:
        one = Collector(source, now=now, rotate=rotate)
        CATALOG.collect_contents(one, (), SERVER, document)
        scopes |= one.scopes
        references |= one.references
        for address, resource in one.resources.items():
            resources[address] = _joined(source, resources.get(address), resource)
    for address in references - resources.keys():
        resources[address] = Resource(address, reference=True)
    return State(resources, frozenset(scopes))


def _joined(source: Source, known: Resource | None, other: Resource) -> Resource:
    """Return the resource of an object that two files contain. They may divide its contents, but not both declare its
    fields.
    """
    if known is None or not other.fields or known.fields == other.fields:
        return known or other
    if known.address.kind in (Kind.SERVER, Kind.PROJECT, Kind.WAREHOUSE, Kind.NAMESPACE):
        if set(known.fields) == {"name"}:
            return other
        if set(other.fields) == {"name"} or not known.fields:
            return known if known.fields else other
    raise source.error((), f"{other.address} is described in another file too. State its fields in one file.")


def read_state(
    api: Api, wanted: State, *, containers: bool = False, refused: list[str] | None = None
) -> tuple[State, Located]:
    """Return (current state of everything in `wanted`, the ids of the objects). Raises ApiError, Ambiguous and
    Inactive.

    With `containers`, the state includes warehouses and namespaces that the lists of `wanted` leave out. If `refused`
    is a list, grants and tags that the caller may not read are left out and described in this list.
    """
    reading = Reading(api, Located(), wanted=wanted, containers=containers)
    CATALOG.read_contents(reading, SERVER)
    scopes = set(wanted.scopes)
    for scope in sorted(wanted.scopes, key=lambda each: (each[0], str(each[1]))):
        kind, on = scope
        try:
            if reading.located.knows(on):
                KINDS[kind].read_late(reading, on)
        except ApiError as error:
            if refused is None or error.status != FORBIDDEN:
                raise
            what = "grants" if kind is Kind.GRANT else "tags"
            refused.append(f"the {what} on {on} are left out, because you may not read them")
            scopes.discard(scope)
    keep_used_tags(reading)
    return State(reading.found, frozenset(scopes)), reading.located


class Executor:
    """Makes changes for the caller of `api`.

    `present` is the state from which the plan was computed. `secrets` is the directory of files with secrets, if any.
    `variables` returns environment variables.
    """

    def __init__(
        self, api: Api, present: State, located: Located, *, secrets: Path | None, variables: Variables
    ) -> None:
        self._session = Changing(api, located, present=present)
        self._secrets = secrets
        self._variables = variables

    def prepare(self, changes: Sequence[Change]) -> None:
        """Read all secrets that the changes need, before the first change.

        Raises SecretMissing, IncompleteWarehouse and NotChangeable.
        """
        for change in changes:
            KINDS[change.address.kind].require(change, self._session.present.resources.get(change.address))
            if (credential := needed_credential(change)) is not None:
                self._session.credentials[change.address] = read_credential(
                    credential, secrets=self._secrets, variables=self._variables
                )

    def notes(self) -> tuple[str, ...]:
        """Return the texts about the caller in the responses since the previous call."""
        found = tuple(self._session.api.notes)
        self._session.api.notes.clear()
        return found

    def run(self, changes: Sequence[Change]) -> Iterator[Change]:
        """Make the changes. Yield each change after it was made. Raises ApiError and UnknownRole."""
        for change in changes:
            noun = KINDS[change.address.kind]
            if change.desired is None:
                self._remove(change)
            elif change.action is Action.CREATE:
                noun.create(self._session, change.desired)
            else:
                noun.update(self._session, change.desired, {each.name: each.after for each in change.fields})
            yield change

    def _remove(self, change: Change) -> None:
        """Remove a resource. If another run has already removed it, that is not an error."""
        try:
            KINDS[change.address.kind].remove(self._session, change.address)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
