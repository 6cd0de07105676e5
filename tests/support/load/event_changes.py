# SPDX-License-Identifier: Apache-2.0
"""Clients that change the catalog through several gateways and know the right order of the events of each object.

Each object has one writer, which sends the next change after the outcome of the last one is known. It sends a request
without a known outcome again, with its idempotency key, to another gateway. Tables with two writers are the exception:
their order is that of the snapshots in the catalog.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.load.appends import Ledger, Try, append, check_history, new_snapshot_id
from tests.support.load.lifecycles import definite
from tests.support.stack.world import SCHEMA

PATIENCE = 240.0
"""Seconds within which each outcome must be known after the last fault. The lease of an idempotency key is 60."""

_NAMESPACE_CHANGES = 60
_TABLE_CHANGES = 5
_SNAPSHOTS = 60
_TABLES = 0.03
"""Fraction of the steps that change a table; the other steps change a namespace."""

Step = tuple[str, str]
"""(type of the event, mark of the change in its data), with an empty mark if the data has none."""


@dataclass
class Tally:
    """The number of answers by status (0: no answer), and of the changes that were acknowledged, of all clients."""

    answers: Counter[int] = field(default_factory=Counter)
    changes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, status: int, *, changed: bool) -> None:
        """Count an answer."""
        with self._lock:
            self.answers[status] += 1
            self.changes += changed


@dataclass(frozen=True)
class Request:
    """A change as it is sent, and its event."""

    method: str
    path: str
    body: Any
    step: Step
    last: str = ""
    """The value of the property `last` after the change; empty if the change does not set it."""
    key: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass
class Thing:
    """A namespace or table with one writer. `steps` are its acknowledged changes in order."""

    kind: str
    path: str
    namespace: str
    name: str
    id: str = ""
    steps: list[Step] = field(default_factory=list)
    pending: Request | None = None
    not_before: float = 0.0
    mark: str = ""
    gone: bool = False


class Channel:
    """Connections of one client to all gateways. It uses another gateway after each failure."""

    def __init__(self, bases: Sequence[str], token: str, tally: Tally) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._clients = [httpx.Client(base_url=base, headers=headers, timeout=30, trust_env=False) for base in bases]
        self._tally = tally

    def send(self, method: str, path: str, body: Any, key: str | None = None) -> httpx.Response | None:
        """Send a request to the current gateway; return the answer, None if the connection broke."""
        headers = {} if key is None else {"Idempotency-Key": key}
        try:
            answer = self._clients[0].request(method, path, json=body, headers=headers)
        except httpx.TransportError:
            answer = None
        changed = answer is not None and answer.is_success and method != "GET"
        self._tally.note(0 if answer is None else answer.status_code, changed=changed)
        if answer is None or not definite(answer):
            self._clients.append(self._clients.pop(0))
        return answer

    def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            client.close()


class Writer:
    """One client with objects of its own. It never waits for one of them: it continues with another."""

    def __init__(self, channel: Channel, root: str, name: str, home: str, seed: int) -> None:
        self._channel = channel
        self._root = root
        self._name = name
        self._home = home
        self._random = random.Random(seed)
        self._numbers = itertools.count(1)
        self.things: list[Thing] = []
        self.refused: list[str] = []

    def run(self, over: threading.Event) -> None:
        """Change objects until the event is set, then find out each unknown outcome."""
        while not over.is_set():
            if not self._advance("table" if self._random.random() < _TABLES else "namespace"):
                time.sleep(0.02)
        deadline = time.monotonic() + PATIENCE
        while waiting := [thing for thing in self.things if thing.pending is not None]:
            assert time.monotonic() < deadline, f"the outcome of {waiting[0].pending} stays unknown"
            for thing in waiting:
                self._try(thing)
            time.sleep(0.2)
        self._channel.close()

    def _advance(self, kind: str) -> bool:
        """Make the next change of an object of the kind; return False if a request of each must wait."""
        alive = [thing for thing in self.things if thing.kind == kind and not thing.gone]
        now = time.monotonic()
        free = [thing for thing in alive if thing.pending is None or thing.not_before < now]
        if free and len(alive) >= 4:
            return self._try(self._random.choice(free))
        if len(alive) >= 24:
            return False
        number = next(self._numbers)
        name = f"{self._name}_{number}"
        path = f"{self._root}/namespaces/{name}"
        if kind == "table":
            path = f"{self._root}/namespaces/{self._home}/tables/{name}"
        thing = Thing(kind, path, self._home, name)
        self.things.append(thing)
        return self._try(thing)

    def _try(self, thing: Thing) -> bool:
        """Send the pending request of the object, or its next one; return True if its outcome is known now."""
        if thing.pending is None:
            thing.pending = self._next(thing)
        request = thing.pending
        answer = self._channel.send(request.method, request.path, request.body, request.key)
        if answer is None or not definite(answer):
            thing.not_before = time.monotonic() + self._random.uniform(0.2, 1.0)
            return False
        thing.pending = None
        if not answer.is_success:
            self.refused.append(f"{request.method} {request.path}: {answer.status_code} {answer.text[:300]}")
            thing.gone = True
            return True
        thing.steps.append(request.step)
        if not thing.id:
            made = answer.json()
            thing.id = (
                made["properties"]["namespace_id"] if thing.kind == "namespace" else made["metadata"]["table-uuid"]
            )
        if request.body is not None and "destination" in request.body:
            thing.name = request.body["destination"]["name"]
            thing.path = thing.path.rpartition("/")[0] + f"/{thing.name}"
        elif request.method == "DELETE":
            thing.gone = True
        thing.mark = request.last or thing.mark
        return True

    def _next(self, thing: Thing) -> Request:
        mark = f"m{self._name}x{next(self._numbers)}x"
        properties = {f"change-{mark}": mark, "last": mark}
        if thing.kind == "namespace":
            if not thing.steps:
                body: Any = {"namespace": [thing.name], "properties": properties}
                return Request("POST", f"{self._root}/namespaces", body, ("createNamespace", mark), mark)
            if len(thing.steps) > _NAMESPACE_CHANGES:
                return Request("DELETE", thing.path, None, ("dropNamespace", ""))
            body = {"removals": [f"change-{thing.mark}"], "updates": properties}
            return Request("POST", f"{thing.path}/properties", body, ("updateNamespaceProperties", mark), mark)
        if not thing.steps:
            body = {"name": thing.name, "schema": SCHEMA, "properties": {"last": mark}}
            return Request("POST", thing.path.rpartition("/")[0], body, ("createTable", mark), mark)
        if len(thing.steps) == _TABLE_CHANGES - 1:
            source = {"namespace": [thing.namespace], "name": thing.name}
            body = {"source": source, "destination": {"namespace": [thing.namespace], "name": f"{thing.name}_{mark}"}}
            return Request("POST", f"{self._root}/tables/rename", body, ("renameTable", mark))
        if len(thing.steps) > _TABLE_CHANGES:
            return Request("DELETE", thing.path, None, ("dropTable", ""))
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"last": mark}}]}
        return Request("POST", thing.path, body, ("updateTable", mark), mark)


@dataclass
class Shared:
    """Tables that several clients append to. Each has a ledger; after some snapshots there is a new one."""

    root: str
    home: str
    ledgers: dict[str, Ledger] = field(default_factory=dict)
    created: list[Request] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def append(self, channel: Channel, over: threading.Event, pause: float) -> None:
        """Append to the current table until the event is set; after a conflict, to its new state."""
        while not over.is_set():
            path, ledger = self._current(channel)
            answer = channel.send("GET", path, None)
            if answer is not None and answer.status_code == 200:
                snapshot = new_snapshot_id()
                metadata = answer.json()["metadata"]
                tried = Try(snapshot, path, append(metadata, snapshot), str(uuid.uuid4()))
                ledger.note(tried, channel.send("POST", path, tried.body, tried.key))
            over.wait(pause)
        channel.close()

    def _current(self, channel: Channel) -> tuple[str, Ledger]:
        with self._lock:
            if self.ledgers:
                path, ledger = list(self.ledgers.items())[-1]
                if len(ledger.acknowledged) < _SNAPSHOTS:
                    return path, ledger
            name = f"shared_{len(self.ledgers)}"
            place = f"{self.root}/namespaces/{self.home}/tables"
            request = Request("POST", place, {"name": name, "schema": SCHEMA}, ("createTable", ""))
            deadline = time.monotonic() + PATIENCE
            answer = None
            while answer is None or not definite(answer):
                assert time.monotonic() < deadline, f"the outcome of {request} stays unknown"
                answer = channel.send(request.method, request.path, request.body, request.key)
                time.sleep(0.2)
            assert answer.is_success, answer.text
            self.ledgers[f"{place}/{name}"] = Ledger()
            return f"{place}/{name}", self.ledgers[f"{place}/{name}"]

    def steps(self, channel: Channel) -> dict[str, list[Step]]:
        """Return the changes of each table in the order of its snapshots, which are checked with the ledger."""
        found: dict[str, list[Step]] = {}
        for path, ledger in self.ledgers.items():
            answer = channel.send("GET", path, None)
            assert answer is not None and answer.status_code == 200, path
            metadata = answer.json()["metadata"]
            chain = check_history(metadata, ledger)
            found[metadata["table-uuid"]] = [("createTable", ""), *(("updateTable", str(each)) for each in chain)]
        return found


def state_of(root: str, channel: Channel, things: Sequence[Thing]) -> None:
    """Check that the catalog has exactly the state of the last acknowledged change of each object."""
    for thing in things:
        answer = channel.send("GET", thing.path, None)
        assert answer is not None, thing
        assert answer.status_code == (404 if thing.gone else 200), (thing.path, answer.text)
        if not thing.gone:
            found: Mapping[str, Any] = answer.json()
            properties = found["properties"] if thing.kind == "namespace" else found["metadata"]["properties"]
            assert properties["last"] == thing.mark, f"{thing.path} has a change that no client sent last"
