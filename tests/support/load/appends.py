# SPDX-License-Identifier: Apache-2.0
"""Concurrent writers that append snapshots over plain HTTP and record each outcome, and the checks of a table's
history.

The catalog never opens a manifest list, so the manifest list of a snapshot here is only a name. Everything else is as
an engine would send it: sequence number, parent and, in format version 3, row ids.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx

Body = dict[str, Any]

ROWS = 7
"""Number of rows that each snapshot declares as added."""

_LONGER_SECONDS = 60.0


@dataclass(frozen=True)
class Try:
    """One append request as it was sent, with its snapshot id and its idempotency key for a retry."""

    snapshot: int
    path: str
    body: Body
    key: str


@dataclass
class Ledger:
    """The outcome of every append, as the writers observed it."""

    acknowledged: list[Try] = field(default_factory=list)
    refused: list[tuple[Try, int, str]] = field(default_factory=list)
    unknown: list[Try] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, tried: Try, answer: httpx.Response | None) -> bool:
        """Record an answer, None for a broken connection; return True if it acknowledged the append.

        A 5xx is recorded as an unknown outcome.
        """
        with self._lock:
            if answer is None or answer.status_code >= 500:
                self.unknown.append(tried)
            elif answer.status_code in (200, 204):
                self.acknowledged.append(tried)
                return True
            else:
                self.refused.append((tried, answer.status_code, answer.json()["error"]["message"]))
        return False

    def snapshots(self) -> list[int]:
        """Return the acknowledged snapshots, unordered."""
        return [tried.snapshot for tried in self.acknowledged]


def client(base: str, token: str) -> httpx.Client:
    """Return an HTTP client for one writer; any worker process may accept its connections."""
    return httpx.Client(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False)


def append(metadata: Body, snapshot: int) -> Body:
    """Return a commit that appends to the table with this `metadata`, in the form that the Java client sends."""
    parent = metadata.get("current-snapshot-id")
    parent = None if parent == -1 else parent
    added: Body = {
        "snapshot-id": snapshot,
        "sequence-number": metadata["last-sequence-number"] + 1,
        "timestamp-ms": time.time_ns() // 1_000_000,
        "manifest-list": f"{metadata['location']}/metadata/snap-{snapshot}.avro",
        "summary": {"operation": "append", "added-records": str(ROWS)},
        "schema-id": 0,
    }
    if parent is not None:
        added["parent-snapshot-id"] = parent
    if metadata["format-version"] >= 3:
        added |= {"first-row-id": metadata["next-row-id"], "added-rows": ROWS}
    return {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": added},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot},
        ],
    }


def new_snapshot_id() -> int:
    """Return a random snapshot id."""
    return random.getrandbits(62)


def send(http: httpx.Client, tried: Try) -> httpx.Response | None:
    """Send an append; return the answer, None if the connection broke."""
    try:
        return http.post(tried.path, json=tried.body, headers={"Idempotency-Key": tried.key})
    except httpx.TransportError:
        return None


def load(http: httpx.Client, path: str, until: float) -> Body | None:
    """Return the table's current metadata; None if the gateway does not answer before `until`."""
    while time.monotonic() < until:
        try:
            answer = http.get(path)
        except httpx.TransportError:
            answer = None
        if answer is not None and answer.status_code == 200:
            metadata: Body = answer.json()["metadata"]
            return metadata
        time.sleep(0.2)
    return None


def continues(until: float, done: int, enough: int) -> bool:
    """Return True until the deadline, and for a limited time after it if fewer than `enough` appends succeeded."""
    now = time.monotonic()
    return now < until or (done < enough and now < until + _LONGER_SECONDS)


def append_until(http: httpx.Client, path: str, until: float, ledger: Ledger, *, enough: int = 0) -> None:
    """Append repeatedly. After a lost race, read the table again and append to its current state."""
    metadata = load(http, path, until + _LONGER_SECONDS)
    while metadata is not None and continues(until, len(ledger.acknowledged), enough):
        snapshot = new_snapshot_id()
        tried = Try(snapshot, path, append(metadata, snapshot), str(uuid.uuid4()))
        answer = send(http, tried)
        done = ledger.note(tried, answer)
        metadata = (
            answer.json()["metadata"] if done and answer is not None else load(http, path, until + _LONGER_SECONDS)
        )


def at_once(writers: Sequence[Callable[[], None]]) -> None:
    """Run all writers concurrently; re-raise the first exception."""
    with ThreadPoolExecutor(len(writers)) as pool:
        for running in [pool.submit(writer) for writer in writers]:
            running.result()


def check_history(metadata: Body, ledger: Ledger) -> list[int]:
    """Check that each acknowledged append exists once, no refused one exists, and sequence numbers and row ids are
    contiguous.

    Returns the snapshots from the first to the last.
    """
    snapshots = {each["snapshot-id"]: each for each in metadata["snapshots"]}
    assert len(snapshots) == len(metadata["snapshots"]), "two snapshots have the same id"
    chain: list[int] = []
    at = metadata.get("current-snapshot-id")
    while at not in (None, -1):
        chain.insert(0, at)
        at = snapshots[at].get("parent-snapshot-id")
    assert set(chain) == set(snapshots), "each snapshot must be an ancestor of main"
    acknowledged = ledger.snapshots()
    assert len(set(acknowledged)) == len(acknowledged)
    assert set(acknowledged) <= set(chain), "an acknowledged append is lost"
    assert set(chain) - set(acknowledged) <= {tried.snapshot for tried in ledger.unknown}, (
        "main contains an append that was refused"
    )
    ordered = [snapshots[each] for each in chain]
    assert [each["sequence-number"] for each in ordered] == list(range(1, len(chain) + 1))
    assert metadata["last-sequence-number"] == len(chain)
    assert [each["snapshot-id"] for each in metadata["snapshot-log"]] == chain
    if metadata["format-version"] >= 3:
        assert [each["first-row-id"] for each in ordered] == [ROWS * number for number in range(len(chain))]
        assert metadata["next-row-id"] == ROWS * len(chain)
    return chain
