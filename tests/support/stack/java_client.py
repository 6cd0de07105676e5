# SPDX-License-Identifier: Apache-2.0
"""A client whose requests and commits equal those of the Java library.

It encodes names, asserts requirements and raises exceptions as Java does, and sends no base. Like Java, it returns a
truth value for existence checks and drops.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from urllib.parse import quote_plus

import httpx
import pytest

from tests.support.stack.java_errors import (
    CommitFailedException,
    JavaException,
    Kind,
    NoSuchNamespaceException,
    NoSuchTableException,
    NoSuchViewException,
    java_error,
)
from tests.support.stack.world import Person, World, error_of

JSON = dict[str, Any]
Raised = TypeVar("Raised", bound=JavaException)
Done = TypeVar("Done")

_RETRIES = 4
"""`commit.retry.num-retries`, the default of the library."""


def column(id: int, name: str, type: Any = "long", **more: Any) -> JSON:
    """Return a column in schema JSON."""
    return {"id": id, "name": name, "type": type, "required": False, **more}


def schema(*columns: JSON, **more: Any) -> JSON:
    """Return a schema in JSON."""
    return {"type": "struct", "schema-id": 0, "fields": list(columns), **more}


def spec(*fields: tuple[int, str, str]) -> JSON:
    """Return a partition spec of (source id, transform, name)."""
    return {
        "spec-id": 0,
        "fields": [{"source-id": source, "transform": how, "name": name} for source, how, name in fields],
    }


def order(*sources: int, id: int = 1) -> JSON:
    """Return an ascending sort order by these columns."""
    fields = [
        {"source-id": each, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
        for each in sources
    ]
    return {"order-id": id if sources else 0, "fields": fields}


SCHEMA = schema(column(1, "id", "int"), column(2, "data", "string"))
OTHER_SCHEMA = schema(column(1, "some_id", "int"))

# ---- updates ---------------------------------------------------------------------------------------------------------


def add_schema(requested: JSON) -> JSON:
    """Return the update that adds a schema."""
    return {"action": "add-schema", "schema": requested}


def current_schema(id: int = -1) -> JSON:
    """Return the update that sets the current schema; -1 is the schema that this commit added."""
    return {"action": "set-current-schema", "schema-id": id}


def add_spec(requested: JSON) -> JSON:
    """Return the update that adds a partition spec."""
    return {"action": "add-spec", "spec": requested}


def default_spec(id: int = -1) -> JSON:
    """Return the update that sets the default partition spec."""
    return {"action": "set-default-spec", "spec-id": id}


def add_order(requested: JSON) -> JSON:
    """Return the update that adds a sort order."""
    return {"action": "add-sort-order", "sort-order": requested}


def default_order(id: int = -1) -> JSON:
    """Return the update that sets the default sort order."""
    return {"action": "set-default-sort-order", "sort-order-id": id}


def set_properties(**properties: str) -> JSON:
    """Return the update that sets properties; `__` in a name stands for a dot, `_` for a hyphen."""
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in properties.items()}
    return {"action": "set-properties", "updates": named}


def remove_properties(*names: str) -> JSON:
    """Return the update that removes properties."""
    return {"action": "remove-properties", "removals": list(names)}


def set_ref(snapshot: int, name: str = "main", type: str = "branch") -> JSON:
    """Return the update that sets a branch or tag to a snapshot."""
    return {"action": "set-snapshot-ref", "ref-name": name, "type": type, "snapshot-id": snapshot}


def remove_ref(name: str = "main") -> JSON:
    """Return the update that removes a branch or tag."""
    return {"action": "remove-snapshot-ref", "ref-name": name}


def new_snapshot(base: JSON, *, parent: int | None, operation: str = "append", at_ms: int | None = None) -> JSON:
    """Return the next snapshot of a table in this state, without data."""
    id = random.getrandbits(62)
    made = {
        "snapshot-id": id,
        "timestamp-ms": at_ms or int(time.time() * 1000),
        "sequence-number": base.get("last-sequence-number", 0) + 1,
        "summary": {"operation": operation},
        "manifest-list": f"{base['location']}/metadata/snap-{id}.avro",
        "schema-id": base["current-schema-id"],
    }
    if parent is not None:
        made["parent-snapshot-id"] = parent
    if base["format-version"] >= 3:
        made |= {"first-row-id": base["next-row-id"], "added-rows": 0}
    return {"action": "add-snapshot", "snapshot": made}


# ---- tables and views ------------------------------------------------------------------------------------------------


@dataclass
class JavaThing:
    """A table or view in a client: its name, and the last state that the client loaded."""

    catalog: JavaCatalog = field(repr=False)
    kind: str
    namespace: tuple[str, ...]
    name: str
    metadata: JSON
    metadata_location: str = ""

    @property
    def path(self) -> str:
        """Return the path of the table or view."""
        return self.catalog.path(self.kind, self.namespace, self.name)

    def refresh(self) -> JSON:
        """Load the current state; return it."""
        fresh = self.catalog.load(self.kind, self.namespace, self.name)
        self.metadata, self.metadata_location = fresh.metadata, fresh.metadata_location
        return self.metadata

    def stale(self) -> Self:
        """Return a second client's copy with the same, possibly outdated, state."""
        return copy.copy(self)

    def _send(self, kind: Kind, requirements: Sequence[JSON], updates: Sequence[JSON]) -> None:
        identifier = {"namespace": list(self.namespace), "name": self.name}
        body = {"identifier": identifier, "requirements": list(requirements), "updates": list(updates)}
        answer = self.catalog.send(kind, "POST", self.path, json=body).json()
        self.metadata, self.metadata_location = answer["metadata"], answer["metadata-location"]


@dataclass
class JavaTable(JavaThing):
    """A table."""

    def commit(self, *updates: JSON) -> JavaTable:
        """Commit on the loaded state, with the requirements that the updates rely on."""
        self._send(Kind.COMMIT, _requirements(self.metadata, updates, replacing=False), updates)
        return self

    def replace(self, *updates: JSON) -> JavaTable:
        """Commit a replace transaction: concurrent data is overwritten, but the assigned ids must be free."""
        self._send(Kind.COMMIT, _requirements(self.metadata, updates, replacing=True), updates)
        return self

    def finish(self, *updates: JSON) -> JavaTable:
        """Commit a create transaction of a staged table."""
        self._send(Kind.CREATE_TABLE, [{"type": "assert-create"}], [*_creation(self.metadata), *updates])
        return self

    def append(self, *, branch: str = "main") -> int:
        """Commit one snapshot with the library's retries; return its id."""

        def attempt() -> int:
            ref = self.metadata.get("refs", {}).get(branch)
            added = new_snapshot(self.metadata, parent=None if ref is None else ref["snapshot-id"])
            id: int = added["snapshot"]["snapshot-id"]
            self.commit(added, set_ref(id, branch))
            return id

        return self.retrying(attempt)

    def retrying(self, attempt: Callable[[], Done]) -> Done:
        """Commit as the library does: after a conflict refresh and retry, up to a limit."""
        for _ in range(_RETRIES):
            try:
                return attempt()
            except CommitFailedException:
                self.refresh()
        return attempt()

    def replaced_with(
        self, requested: JSON, *, spec: JSON | None = None, order: JSON | None = None, **properties: str
    ) -> list[JSON]:
        """Return the updates of a replacement: refer to existing parts by id and add the rest."""
        updates: list[JSON] = []
        updates += self._or_existing("schemas", "schema-id", requested, add_schema, current_schema)
        updates += self._or_existing("partition-specs", "spec-id", spec, add_spec, default_spec)
        updates += self._or_existing("sort-orders", "order-id", order, add_order, default_order)
        if "main" in self.metadata.get("refs", {}):
            updates.append(remove_ref())
        if properties:
            updates.append(set_properties(**properties))
        return updates

    def _or_existing(
        self, member: str, id: str, requested: JSON | None, add: Callable[[JSON], JSON], use: Callable[[int], JSON]
    ) -> list[JSON]:
        requested = requested or {"fields": []}
        for known in self.metadata[member]:
            if _plain(known["fields"]) == _plain(requested["fields"]):
                return [use(known[id])]
        return [add(requested), use(-1)]


def _plain(fields: Sequence[JSON]) -> list[JSON]:
    return [{name: value for name, value in each.items() if name != "field-id"} for each in fields]


@dataclass
class JavaView(JavaThing):
    """A view."""

    def commit(self, *updates: JSON) -> JavaView:
        """Commit on the loaded state."""
        uuid = {"type": "assert-view-uuid", "uuid": self.metadata["view-uuid"]}
        self._send(Kind.COMMIT_VIEW, [uuid], updates)
        return self

    def replace(self, *sql: tuple[str, str], schema: JSON | None = None, **more: Any) -> JavaView:
        """Commit another version, of (dialect, text) pairs, numbered after the loaded one."""
        return self.commit(*self.replacement(*sql, schema=schema, **more))

    def replacement(self, *sql: tuple[str, str], schema: JSON | None = None, **more: Any) -> list[JSON]:
        """Return the updates of such a replacement."""
        number = max(each["version-id"] for each in self.metadata["versions"]) + 1
        id = -1 if schema else self.current["schema-id"]
        made = version(*sql, number=number, schema_id=id, operation="replace", **more)
        updates: list[JSON] = [{"action": "add-view-version", "view-version": made}]
        updates.append({"action": "set-current-view-version", "view-version-id": -1})
        return [add_schema(schema), *updates] if schema else updates

    @property
    def current(self) -> JSON:
        """Return the current version."""
        id = self.metadata["current-version-id"]
        found: JSON = next(each for each in self.metadata["versions"] if each["version-id"] == id)
        return found


def version(*sql: tuple[str, str], number: int = 1, schema_id: int = 0, operation: str = "create", **more: Any) -> JSON:
    """Return a view version of (dialect, text) pairs."""
    return {
        "version-id": number,
        "timestamp-ms": int(time.time() * 1000),
        "schema-id": schema_id,
        "summary": {"operation": operation},
        "representations": [{"type": "sql", "sql": text, "dialect": dialect} for dialect, text in sql],
        "default-namespace": ["ns"],
        **more,
    }


SQL = ("spark", "select * from ns.tbl")


def _requirements(base: JSON, updates: Sequence[JSON], *, replacing: bool) -> list[JSON]:
    """Return the requirements that the library asserts of the base state, each once."""
    asserted: list[JSON] = [{"type": "assert-table-uuid", "uuid": base["table-uuid"]}]
    refs = base.get("refs", {})

    def ref(name: str) -> JSON:
        return {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": refs.get(name, {}).get("snapshot-id")}

    def same(type: str, member: str) -> JSON:
        return {"type": f"assert-{type}", type: base[member]}

    current = same("current-schema-id", "current-schema-id")
    default = same("default-spec-id", "default-spec-id")
    for update in updates:
        match update["action"]:
            case "add-schema":
                asserted.append(same("last-assigned-field-id", "last-column-id"))
            case "add-spec":
                asserted.append(same("last-assigned-partition-id", "last-partition-id"))
            case "set-snapshot-ref" if not replacing:
                asserted.append(ref(update["ref-name"]))
            case "set-current-schema" if not replacing:
                asserted.append(current)
            case "set-default-spec" if not replacing:
                asserted.append(default)
            case "set-default-sort-order" if not replacing:
                asserted.append(same("default-sort-order-id", "default-sort-order-id"))
            case "remove-partition-specs" | "remove-schemas" as action:
                asserted.append(default if action == "remove-partition-specs" else current)
                asserted += [ref(name) for name, of in refs.items() if of["type"] == "branch" and name != "main"]
    return [each for i, each in enumerate(asserted) if each not in asserted[:i]]


def _creation(staged: JSON) -> list[JSON]:
    """Return the updates that create a staged table."""
    orders = [each for each in staged["sort-orders"] if each["order-id"] == staged["default-sort-order-id"]]
    return [
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": staged["format-version"]},
        {"action": "add-schema", "schema": staged["schemas"][0], "last-column-id": staged["last-column-id"]},
        current_schema(),
        add_spec(staged["partition-specs"][0]),
        default_spec(),
        add_order(orders[0]),
        default_order(),
        {"action": "set-location", "location": staged["location"]},
        {"action": "set-properties", "updates": staged["properties"]},
    ]


# ---- the catalog -----------------------------------------------------------------------------------------------------


class JavaCatalog:
    """The catalog through the client of one user."""

    def __init__(self, world: World, person: Person | None = None) -> None:
        self.root = world.root
        self._person = person or world.admin

    def send(self, kind: Kind, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request; raise the exception that the library raises for the response."""
        answer = self._person.send(method, path, **more)
        if answer.is_success:
            return answer
        if method == "HEAD":
            raise java_error(kind, answer.status_code, "", "")
        error = error_of(answer)
        raise java_error(kind, error["code"], error["type"], error["message"])

    def path(self, kind: str, namespace: Sequence[str], name: str = "") -> str:
        """Return the path of the tables or views of a namespace, or of one of them, with names encoded as Java does."""
        above = f"{self.root}/namespaces/{'%1F'.join(map(quote_plus, namespace))}"
        return f"{above}/{kind}/{quote_plus(name)}" if name else f"{above}/{kind}".rstrip("/")

    # namespaces

    def create_namespace(self, *levels: str, **properties: str) -> JSON:
        """Create a namespace; return the response."""
        body = {"namespace": list(levels), "properties": properties}
        answer: JSON = self.send(Kind.NAMESPACE, "POST", f"{self.root}/namespaces", json=body).json()
        return answer

    def load_namespace(self, *levels: str) -> dict[str, str]:
        """Return the properties of a namespace."""
        found: dict[str, str] = self.send(Kind.NAMESPACE, "GET", self.path("", levels)).json()["properties"]
        return found

    def namespace_exists(self, *levels: str) -> bool:
        """Return True if the namespace exists."""
        with _absent_is_false(NoSuchNamespaceException) as there:
            self.send(Kind.NAMESPACE, "HEAD", self.path("", levels))
        return bool(there)

    def change_namespace(self, *levels: str, removals: Sequence[str] = (), **updates: str) -> JSON:
        """Set and remove properties; return the response."""
        body = {"removals": list(removals), "updates": updates}
        answer: JSON = self.send(Kind.NAMESPACE, "POST", self.path("properties", levels), json=body).json()
        return answer

    def drop_namespace(self, *levels: str) -> bool:
        """Drop a namespace; return False if it did not exist."""
        with _absent_is_false(NoSuchNamespaceException) as dropped:
            self.send(Kind.DROP_NAMESPACE, "DELETE", self.path("", levels))
        return bool(dropped)

    def list_namespaces(self, *parent: str) -> list[tuple[str, ...]]:
        """List the direct children."""
        query = {"parent": "\x1f".join(parent)} if parent else {}
        found = self.send(Kind.NAMESPACE, "GET", f"{self.root}/namespaces", params=query).json()["namespaces"]
        return [tuple(levels) for levels in found]

    def list(self, kind: str, *namespace: str) -> list[str]:
        """List the names of the tables or views of a namespace."""
        found = self.send(Kind.NAMESPACE, "GET", self.path(kind, namespace)).json()["identifiers"]
        assert all(each["namespace"] == list(namespace) for each in found)
        return [each["name"] for each in found]

    # tables and views

    def create_table(self, namespace: str, name: str, requested: JSON = SCHEMA, **more: Any) -> JavaTable:
        """Create a table; `more` holds further members of the request."""
        return self._made(namespace, name, {"name": name, "schema": requested, **more})

    def stage(self, namespace: str, name: str, requested: JSON = SCHEMA, **more: Any) -> JavaTable:
        """Begin a create transaction."""
        return self._made(namespace, name, {"name": name, "schema": requested, "stage-create": True, **more})

    def _made(self, namespace: str, name: str, body: JSON) -> JavaTable:
        path = self.path("tables", [namespace])
        answer = self.send(Kind.CREATE_TABLE, "POST", path, json=body).json()
        return JavaTable(self, "tables", (namespace,), name, answer["metadata"], answer.get("metadata-location") or "")

    def create_view(
        self, namespace: str, name: str, *sql: tuple[str, str], requested: JSON = SCHEMA, **more: Any
    ) -> JavaView:
        """Create a view of (dialect, text) pairs."""
        body = {"name": name, "schema": requested, "view-version": version(*(sql or (SQL,))), "properties": {}, **more}
        answer = self.send(Kind.VIEW, "POST", self.path("views", [namespace]), json=body).json()
        return JavaView(self, "views", (namespace,), name, answer["metadata"], answer["metadata-location"])

    def load(self, kind: str, namespace: Sequence[str], name: str) -> JavaThing:
        """Load a table or view."""
        requested = Kind.TABLE if kind == "tables" else Kind.VIEW
        answer = self.send(requested, "GET", self.path(kind, namespace, name)).json()
        made = JavaTable if kind == "tables" else JavaView
        return made(self, kind, tuple(namespace), name, answer["metadata"], answer["metadata-location"])

    def load_table(self, *path: str) -> JavaTable:
        """Load a table by the levels of its namespace and its name."""
        found = self.load("tables", path[:-1], path[-1])
        assert isinstance(found, JavaTable)
        return found

    def load_view(self, *path: str) -> JavaView:
        """Load a view by the levels of its namespace and its name."""
        found = self.load("views", path[:-1], path[-1])
        assert isinstance(found, JavaView)
        return found

    def exists(self, kind: str, namespace: str, name: str) -> bool:
        """Return True if a table or view of this name exists."""
        requested, absent = (Kind.TABLE, NoSuchTableException) if kind == "tables" else (Kind.VIEW, NoSuchViewException)
        with _absent_is_false(absent) as there:
            self.send(requested, "HEAD", self.path(kind, [namespace], name))
        return bool(there)

    def drop(self, kind: str, namespace: str, name: str, *, purge: bool | None = None) -> bool:
        """Drop a table or view; return False if it did not exist.

        The library omits `purgeRequested` where this passes false (see `docs/protocol.md`).
        """
        requested, absent = (Kind.TABLE, NoSuchTableException) if kind == "tables" else (Kind.VIEW, NoSuchViewException)
        query = {} if purge is None else {"purgeRequested": str(purge).lower()}
        with _absent_is_false(absent) as dropped:
            self.send(requested, "DELETE", self.path(kind, [namespace], name), params=query)
        return bool(dropped)

    def rename(self, kind: str, source: tuple[str, str], destination: tuple[str, str]) -> None:
        """Rename a table or view."""
        body = {
            end: {"namespace": [namespace], "name": name}
            for end, (namespace, name) in (("source", source), ("destination", destination))
        }
        self.send(Kind.TABLE if kind == "tables" else Kind.VIEW, "POST", f"{self.root}/{kind}/rename", json=body)

    def register(self, kind: str, namespace: str, name: str, metadata_location: str) -> JavaThing:
        """Register a table or view from a metadata file."""
        requested, where = (Kind.TABLE, "register") if kind == "tables" else (Kind.VIEW, "register-view")
        body = {"name": name, "metadata-location": metadata_location}
        answer = self.send(requested, "POST", self.path(where, [namespace]), json=body).json()
        made = JavaTable if kind == "tables" else JavaView
        return made(self, kind, (namespace,), name, answer["metadata"], answer["metadata-location"])


@contextmanager
def _absent_is_false(absent: type[JavaException]) -> Iterator[list[bool]]:
    """Set True unless the body raises `absent`; other exceptions pass."""
    outcome: list[bool] = []
    try:
        yield outcome
        outcome.append(True)
    except absent:
        outcome.clear()


@contextmanager
def raises(
    kind: type[JavaException], *, starts: str = "", contains: str = "", is_: str | None = None
) -> Iterator[None]:
    """Require that the body raises exactly this class, with this text in the server's message."""
    with pytest.raises(JavaException) as caught:
        yield
    raised = caught.value
    assert type(raised) is kind, f"{type(raised).__name__}: {raised}"
    assert raised.sent.startswith(starts), raised.sent
    assert contains in raised.sent, raised.sent
    assert is_ is None or raised.sent == is_, raised.sent
