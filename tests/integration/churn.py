# SPDX-License-Identifier: Apache-2.0
"""Users whose gateway dies under them: they make, rename, give up, register and drop tables and views, and go on."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import httpx

from tests.contract.test_views import body as view_body
from tests.contract.test_views import replace
from tests.contract.world import SCHEMA, unique
from tests.integration.appends import append, new_snapshot_id

_PURGE = "purgeRequested"


class Churn:
    """One user's walk through everything that changes more than a pointer, until told to stop.

    `places` are locations given up without their files; `answers` counts statuses, 0 for a broken connection.
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
        """Walk until the event is set."""
        steps = (self._table, self._transaction, self._view, self._registered)
        while not until.is_set():
            self._random.choice(steps)()

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any] | None:
        """The answer of a success, `{}` for an empty one; None for anything else."""
        try:
            answer = self._http.request(method, self._root + path, json=body)
        except httpx.TransportError:
            self._count(0)
            time.sleep(0.3)
            return None
        # An outcome that nobody knows is an honest answer of a rename whose delivery took too long.
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
        """Into the other namespace; where it is afterwards, as far as one can tell."""
        source = {"namespace": [self._namespaces[0]], "name": name}
        there = {"namespace": [self._namespaces[1]], "name": f"{name}_moved"}
        moved = self._ask("POST", f"/{kind}s/rename", {"source": source, "destination": there})
        return (name, 0) if moved is None else (f"{name}_moved", 1)

    def _table(self) -> None:
        name = unique("t")
        properties = {"write.metadata.previous-versions-max": "1"}
        made = self._ask(
            "POST",
            f"/namespaces/{self._namespaces[0]}/tables",
            {"name": name, "schema": SCHEMA, "properties": properties},
        )
        if made is None:
            return
        for number in range(3):
            update = {"action": "set-properties", "updates": {"n": str(number)}}
            self._ask("POST", self._path("table", name), {"requirements": [], "updates": [update]})
        name, at = self._rename("table", name)
        if self._random.random() < 0.7:
            self._ask("DELETE", self._path("table", name, at))

    def _transaction(self) -> None:
        """A staged table, made together with an append to it."""
        name = unique("staged")
        staged = self._ask(
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
        self._ask("POST", "/transactions/commit", {"table-changes": [change]})

    def _view(self) -> None:
        name = unique("v")
        made = self._ask("POST", f"/namespaces/{self._namespaces[0]}/views", view_body(name))
        if made is None:
            return
        for number in range(2):
            self._ask("POST", self._path("view", name), replace(made["metadata"]["view-uuid"], f"select {number}"))
        name, at = self._rename("view", name)
        if self._random.random() < 0.7:
            self._ask("DELETE", self._path("view", name, at))

    def _registered(self) -> None:
        """A table that is given up with its files and taken in again."""
        name = unique("left")
        made = self._ask("POST", f"/namespaces/{self._namespaces[0]}/tables", {"name": name, "schema": SCHEMA})
        if made is None:
            return
        with self._lock:
            self.places.add(made["metadata"]["location"])
        self._ask("DELETE", f"{self._path('table', name)}?{_PURGE}=false")
        body = {"name": f"{name}_again", "metadata-location": made["metadata-location"]}
        self._ask("POST", f"/namespaces/{self._namespaces[1]}/register", body)
