# SPDX-License-Identifier: Apache-2.0
"""Load on a gateway that is killed meanwhile: users create, rename, drop, undrop and move tables and whole trees of
namespaces. They record the acknowledged state of every object.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from tests.support.stack.views import body as view_body
from tests.support.stack.world import SCHEMA, unique

_PATIENCE = 60.0

LIVE, KEPT, GONE = "live", "kept", "gone"
_KINDS = ("table", "view", "generic-table")


@dataclass(frozen=True)
class State:
    """The expected state of an object: its name and namespace, and, if it is gone, whether its files are deleted."""

    state: str
    namespace: tuple[str, ...]
    name: str
    purged: bool = False


@dataclass(frozen=True)
class Request:
    """A request as it was sent. It is safe to repeat, by its idempotency key or because it is idempotent."""

    method: str
    path: str
    body: Any = None
    key: str | None = None


@dataclass
class Thing:
    """A table, view, generic table or namespace, and its expected state.

    While a request is `pending`, the state may be `now` or `after`.
    """

    kind: str
    now: State | None
    id: str | None = None
    location: str = ""
    pending: Request | None = None
    after: State | None = None
    within: Thing | None = None
    """The namespace that is dropped together with this object."""
    done: list[str] = field(default_factory=list)

    @property
    def type(self) -> str:
        """Return its type in the relationship model, which is also its kind in the database."""
        return self.kind.replace("-", "_")

    def settle(self, answer: httpx.Response) -> bool:
        """Apply a definite answer to the pending request; return True if it was a success."""
        self.pending = None
        if answer.is_success:
            self.now = self.after
            if self.id is None:
                self._name(answer.json())
        self.after = None
        return answer.is_success

    def _name(self, made: Mapping[str, Any]) -> None:
        if self.kind == "namespace":
            self.id = made["properties"]["namespace_id"]
            return
        if self.kind == "generic-table":
            # A location that the server chose ends with the id.
            self.location = made["table"]["base-location"].rstrip("/")
            self.id = str(uuid.UUID(self.location[-36:]))
            return
        self.id = made["metadata"].get("table-uuid") or made["metadata"]["view-uuid"]
        self.location = made["metadata"]["location"]


def definite(answer: httpx.Response | None) -> bool:
    """Return True if the answer determines the outcome. No answer, a server error and "request in progress" do not."""
    if answer is None or answer.status_code >= 500 or answer.status_code == 429:
        return False
    return not (answer.status_code == 409 and answer.json()["error"]["type"] == "RequestInProgress")


def in_path(namespace: tuple[str, ...]) -> str:
    """Return a namespace as it is encoded in paths."""
    return "%1F".join(namespace)


class Walker:
    """One user's random sequence of operations, with two namespaces, in a warehouse with soft deletion."""

    def __init__(
        self,
        http: httpx.Client,
        warehouse: str,
        namespaces: tuple[str, str],
        end_now: Callable[[str], None],
        fill: Callable[[str], None],
        seed: int,
    ) -> None:
        self._http = http
        self._roots = dict.fromkeys(("table", "view", "namespace"), f"/catalog/v1/{warehouse}")
        self._roots["generic-table"] = f"/lakekeeper/v1/{warehouse}"
        self._fill = fill
        self._management = f"/management/v1/warehouse/{warehouse}"
        self._homes = namespaces
        self._end_now = end_now
        self._random = random.Random(seed)
        self.things: list[Thing] = []
        self.answers: dict[tuple[str, int], int] = {}
        self.acknowledged = 0

    def run(self, until: threading.Event) -> None:
        """Run random operations until the event is set."""
        while not until.is_set():
            if self._random.random() < 0.3:
                self._tree()
            else:
                self._tabular(self._random.choices(_KINDS, (6, 2, 2))[0])

    # ---- requests -----------------------------------------------------------------------------------------------

    def send(self, request: Request) -> httpx.Response | None:
        """Send a request; return the answer, None if the connection broke."""
        headers = {} if request.key is None else {"Idempotency-Key": request.key}
        try:
            return self._http.request(request.method, request.path, json=request.body, headers=headers)
        except httpx.TransportError:
            return None

    def _try(self, action: str, thing: Thing, request: Request, after: State) -> bool:
        """Send the request until its outcome is known; return True for a success. If the outcome is still unknown at
        the deadline, return False and leave the request pending.
        """
        thing.pending, thing.after = request, after
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            answer = self.send(request)
            status = 0 if answer is None else answer.status_code
            self.answers[action, status] = self.answers.get((action, status), 0) + 1
            if answer is not None and definite(answer):
                done = self.settle(thing, answer)
                self.acknowledged += 1
                thing.done.append(f"{action} {status}")
                return done
            if answer is not None and status == 409:
                return False
            time.sleep(0.3)
        return False

    def settle(self, thing: Thing, answer: httpx.Response) -> bool:
        """Apply the answer as `Thing.settle` does, and write a file into each new generic table, which is empty."""
        new = thing.id is None
        done = thing.settle(answer)
        if done and new and thing.kind == "generic-table":
            self._fill(thing.location)
        return done

    # ---- tables, views and generic tables -----------------------------------------------------------------------

    def _create(self, kind: str, namespace: tuple[str, ...], within: Thing | None = None) -> Thing | None:
        name = unique(kind[0])
        thing = Thing(kind, None, within=within)
        self.things.append(thing)
        bodies = {
            "table": {"name": name, "schema": SCHEMA},
            "view": view_body(name),
            "generic-table": {"name": name, "format": "csv"},
        }
        body = bodies[kind]
        path = f"{self._roots[kind]}/namespaces/{in_path(namespace)}/{kind}s"
        made = self._try(
            f"create {kind}", thing, Request("POST", path, body, str(uuid.uuid4())), State(LIVE, namespace, name)
        )
        return thing if made else None

    def _tabular(self, kind: str) -> None:
        thing = self._create(kind, (self._homes[0],))
        steps = 0
        while thing is not None and thing.pending is None and steps < 5:
            steps += 1
            assert thing.now is not None
            if thing.now.state == LIVE:
                step = self._random.choice((self._rename, self._drop, self._drop, self._force))
            elif thing.now.state == KEPT:
                step = self._random.choice((self._undrop, self._undrop, self._end))
            else:
                return
            step(thing)

    def _path(self, thing: Thing) -> str:
        assert thing.now is not None
        return f"{self._roots[thing.kind]}/namespaces/{in_path(thing.now.namespace)}/{thing.kind}s/{thing.now.name}"

    def _rename(self, thing: Thing) -> None:
        before = thing.now
        assert before is not None
        other = self._homes[1] if before.namespace == (self._homes[0],) else self._homes[0]
        after = replace(before, namespace=(other,), name=unique("renamed"))
        body = {
            "source": {"namespace": before.namespace, "name": before.name},
            "destination": {"namespace": after.namespace, "name": after.name},
        }
        request = Request("POST", f"{self._roots[thing.kind]}/{thing.kind}s/rename", body, str(uuid.uuid4()))
        self._try("rename", thing, request, after)

    def _drop(self, thing: Thing) -> None:
        assert thing.now is not None
        purge = self._random.random() < 0.5
        path = f"{self._path(thing)}?purgeRequested={str(purge).lower()}"
        after = replace(thing.now, state=KEPT, purged=purge)
        self._try("drop", thing, Request("DELETE", path, None, str(uuid.uuid4())), after)

    def _force(self, thing: Thing) -> None:
        assert thing.now is not None
        path = f"{self._path(thing)}?purgeRequested=true&force=true"
        after = replace(thing.now, state=GONE, purged=True)
        self._try("drop for good", thing, Request("DELETE", path, None, str(uuid.uuid4())), after)

    def _undrop(self, thing: Thing) -> None:
        assert thing.now is not None
        body = {"targets": [{"type": thing.kind, "id": thing.id}]}
        request = Request("POST", f"{self._management}/deleted-tabulars/undrop", body)
        self._try("undrop", thing, request, replace(thing.now, state=LIVE, purged=False))

    def _end(self, thing: Thing) -> None:
        """Let the soft deletion of an object expire now, so that the background task purges it."""
        assert thing.now is not None
        assert thing.id is not None
        self._end_now(thing.id)
        thing.now = replace(thing.now, state=GONE)
        thing.done.append("ended")

    # ---- trees --------------------------------------------------------------------------------------------------

    def _namespace(self, *levels: str, within: Thing | None = None) -> Thing | None:
        thing = Thing("namespace", None, within=within)
        self.things.append(thing)
        request = Request("POST", f"{self._roots['namespace']}/namespaces", {"namespace": levels}, str(uuid.uuid4()))
        made = self._try("create namespace", thing, request, State(LIVE, levels, levels[-1]))
        return thing if made else None

    def _tree(self) -> None:
        """Create namespaces with tables in them, move the tree, and drop all of it at once."""
        top = self._namespace(self._homes[0], unique("tree"))
        if top is None or top.now is None:
            return
        inner = self._namespace(*top.now.namespace, "inner", within=top)
        for namespace in (top, inner):
            if namespace is not None and namespace.now is not None:
                self._create(self._random.choices(_KINDS, (3, 1, 1))[0], namespace.now.namespace, within=top)
        if self._random.random() < 0.5 and not self._move(top):
            return
        if self._random.random() < 0.7:
            path = f"{self._roots['namespace']}/namespaces/{in_path(top.now.namespace)}?recursive=true&force=true"
            request = Request("DELETE", path, None, str(uuid.uuid4()))
            self._try("drop tree", top, request, replace(top.now, state=GONE, purged=True))

    def _move(self, top: Thing) -> bool:
        assert top.now is not None
        destination = (self._homes[1], unique("moved"))
        request = Request("POST", f"{self._management}/namespace/{top.id}/move", {"destination": list(destination)})
        return self._try("move", top, request, replace(top.now, namespace=destination, name=destination[-1]))
