# SPDX-License-Identifier: Apache-2.0
"""Direct access to OpenFGA past the gateway, as an attacker with its key would have, and reads of its tuples."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from lakegate.local.ready import Ready
from tests.support.lakegate_command import run_lakegate
from tests.support.stack.world import World

Tuple = tuple[str, str, str]
FOREVER = "2199-01-01T00:00:00Z"
_LAST_LOOK = "lakegate_drift_last_checked_timestamp_seconds"


class Relations:
    """The store of a running stack, and the gateway's environment."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ready: Ready = world.ready
        access = self.ready.openfga
        self._model = access.model_id
        self._http = httpx.Client(
            base_url=f"{access.url}/stores/{access.store_id}",
            headers={"Authorization": f"Bearer {access.token}"},
            timeout=30,
            trust_env=False,
        )

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def write(self, *tuples: Tuple, until: str | None = None, model: str | None = None) -> None:
        """Write tuples, with an expiry if `until` is given."""
        condition = {"condition": {"name": "unexpired", "context": {"expires_at": until}}} if until else {}
        keys = [{"user": u, "relation": r, "object": o, **condition} for u, r, o in tuples]
        self._send({"writes": {"tuple_keys": keys}}, model)

    def delete(self, *tuples: Tuple) -> None:
        """Delete tuples, at most 100."""
        keys = [{"user": u, "relation": r, "object": o} for u, r, o in tuples]
        self._send({"deletes": {"tuple_keys": keys}}, None)

    def push(self, model: Mapping[str, Any]) -> str:
        """Write another model; return its id."""
        answer = self._http.post("/authorization-models", json=dict(model))
        assert answer.status_code == 201, answer.text
        return str(answer.json()["authorization_model_id"])

    def there(self, one: Tuple) -> bool:
        """Return True if the tuple exists."""
        user, relation, on = one
        answer = self._http.post("/read", json={"tuple_key": {"user": user, "relation": relation, "object": on}})
        assert answer.status_code == 200, answer.text
        return bool(answer.json()["tuples"])

    def all(self) -> dict[Tuple, str | None]:
        """Return every tuple with its expiry."""
        found: dict[Tuple, str | None] = {}
        token = ""
        while True:
            answer = self._http.post("/read", json={"page_size": 100, "continuation_token": token})
            assert answer.status_code == 200, answer.text
            for each in answer.json()["tuples"]:
                key = each["key"]
                condition = key.get("condition") or {}
                found[key["user"], key["relation"], key["object"]] = condition.get("context", {}).get("expires_at")
            token = answer.json()["continuation_token"]
            if not token:
                return found

    def empty(self) -> None:
        """Delete every tuple."""
        tuples = list(self.all())
        for start in range(0, len(tuples), 100):
            self.delete(*tuples[start : start + 100])

    def _send(self, body: dict[str, Any], model: str | None) -> None:
        answer = self._http.post("/write", json={"authorization_model_id": model or self._model, **body})
        assert answer.status_code == 200, answer.text

    # ---- the gateway --------------------------------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        """Return the settings with which the running gateway was started."""
        text = Path(f"/proc/{self.ready.pids['gateway'][0]}/environ").read_bytes().decode()
        pairs = (entry.split("=", 1) for entry in text.split("\0") if "=" in entry)
        return {name: value for name, value in pairs if name.startswith("LAKEGATE__")}

    def reconcile(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run `lakegate authz reconcile` with the gateway's own settings, changed by `settings`."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith("LAKEGATE__")}
        changed = {f"LAKEGATE__{name}": value for name, value in settings.items()}
        return run_lakegate("authz", "reconcile", *arguments, environment=plain | self.environment | changed)

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """Suspend the gateway's drift watch until the block ends."""
        hold = "update drift_watch set holder = $1, held_until = now() + interval '1 hour'"
        # Take the watch right after a check: a check that began in between finds nothing to read and ends within a
        # moment.
        before = self.counted(_LAST_LOOK)
        soon(lambda: self.counted(_LAST_LOOK) != before)
        self.world.sql(hold, uuid4())
        time.sleep(1)
        try:
            yield
        finally:
            self.world.sql("update drift_watch set held_until = null")

    def counted(self, name: str) -> float:
        """Return the sum of a metric over its labels."""
        port = self.environment["LAKEGATE__METRICS__PORT"]
        text = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False, timeout=60).text
        lines = (line for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{")))
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def soon(so: Callable[[], bool], *, seconds: float = 30.0) -> float:
    """Wait until the condition is true; return the seconds that it took. Fails after `seconds`."""
    began = time.monotonic()
    while not so():
        assert time.monotonic() - began < seconds, "the condition was not met before the deadline"
        time.sleep(0.02)
    return time.monotonic() - began
