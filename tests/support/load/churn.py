# SPDX-License-Identifier: Apache-2.0
"""Load on a gateway that is killed meanwhile: users create, rename, drop and register tables and views."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import httpx

from tests.support.load.appends import append, new_snapshot_id
from tests.support.stack.views import body as view_body
from tests.support.stack.views import replace
from tests.support.stack.world import SCHEMA, unique

_PURGE = "purgeRequested"


class Churn:
    """One user's random sequence of the operations that change more than a metadata pointer.

    `places` are locations of tables dropped without their files. `answers` counts statuses, 0 for a broken connection.
    """

    def __init__(self, http: httpx.Client, root: str, namespaces: tuple[str, str], seed: int) -> None:
        self._http = http
        self._root = root
        self._namespaces = namespaces
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.places: set[str] = set()
        self.answers: dict[int, int] = {}

    def run(self, until: threading.Event) -> None:
        """Run random operations until the event is set."""
        steps = (self._table, self._transaction, self._view, self._registered)
        while not until.is_set():
            self._random.choice(steps)()

    def _send(self, method: str, path: str, body: object = None) -> dict[str, Any] | None:
        """Return the body of a successful answer, `{}` if it is empty; None for any other outcome."""
        try:
            answer = self._http.request(method, self._root + path, json=body)
        except httpx.TransportError:
            self._count(0)
            time.sleep(0.3)
            return None
        # CommitStateUnknown is a correct answer for a rename whose tuple delivery took too long.
        honest = answer.status_code == 500 and answer.json()["error"]["type"] == "CommitStateUnknownException"
        self._count(503 if honest else answer.status_code)
        if not answer.is_success:
            return None
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found

    def _count(self, status: int) -> None:
        with self._lock:
            self.answers[status] = self.answers.get(status, 0) + 1

    def _path(self, kind: str, name: str, namespace: int = 0) -> str:
        return f"/namespaces/{self._namespaces[namespace]}/{kind}s/{name}"

    def _rename(self, kind: str, name: str) -> tuple[str, int]:
        """Rename into the other namespace; return the (name, namespace index) to use next, unchanged after an error."""
        source = {"namespace": [self._namespaces[0]], "name": name}
        there = {"namespace": [self._namespaces[1]], "name": f"{name}_moved"}
        moved = self._send("POST", f"/{kind}s/rename", {"source": source, "destination": there})
        return (name, 0) if moved is None else (f"{name}_moved", 1)

    def _table(self) -> None:
        name = unique("t")
        properties = {"write.metadata.previous-versions-max": "1"}
        made = self._send(
            "POST",
            f"/namespaces/{self._namespaces[0]}/tables",
            {"name": name, "schema": SCHEMA, "properties": properties},
        )
        if made is None:
            return
        for number in range(3):
            update = {"action": "set-properties", "updates": {"n": str(number)}}
            self._send("POST", self._path("table", name), {"requirements": [], "updates": [update]})
        name, at = self._rename("table", name)
        if self._random.random() < 0.7:
            self._send("DELETE", self._path("table", name, at))

    def _transaction(self) -> None:
        """Create a staged table in one transaction with an append to it."""
        name = unique("staged")
        staged = self._send(
            "POST",
            f"/namespaces/{self._namespaces[0]}/tables",
            {"name": name, "schema": SCHEMA, "stage-create": True},
        )
        if staged is None:
            return
        metadata = staged["metadata"]
        creation = [
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 2},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": metadata["location"]},
            *append(metadata, new_snapshot_id())["updates"],
        ]
        change = {
            "identifier": {"namespace": [self._namespaces[0]], "name": name},
            "requirements": [{"type": "assert-create"}],
            "updates": creation,
        }
        self._send("POST", "/transactions/commit", {"table-changes": [change]})

    def _view(self) -> None:
        name = unique("v")
        made = self._send("POST", f"/namespaces/{self._namespaces[0]}/views", view_body(name))
        if made is None:
            return
        for number in range(2):
            self._send("POST", self._path("view", name), replace(made["metadata"]["view-uuid"], f"select {number}"))
        name, at = self._rename("view", name)
        if self._random.random() < 0.7:
            self._send("DELETE", self._path("view", name, at))

    def _registered(self) -> None:
        """Create a table, drop it without its files, and register it again."""
        name = unique("left")
        made = self._send("POST", f"/namespaces/{self._namespaces[0]}/tables", {"name": name, "schema": SCHEMA})
        if made is None:
            return
        with self._lock:
            self.places.add(made["metadata"]["location"])
        self._send("DELETE", f"{self._path('table', name)}?{_PURGE}=false")
        body = {"name": f"{name}_again", "metadata-location": made["metadata-location"]}
        self._send("POST", f"/namespaces/{self._namespaces[1]}/register", body)
