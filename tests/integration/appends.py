# SPDX-License-Identifier: Apache-2.0
"""Writers that append snapshots over plain HTTP and keep a ledger, and what a table's history must say afterwards.

The catalog never opens a manifest list, so a snapshot here has one by name only; everything else about it is what an
engine would send, its sequence number, its parent and, in format version 3, its row ids included.
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
"""Rows that each snapshot says it added."""

_LONGER_SECONDS = 60.0


@dataclass(frozen=True)
class Try:
    """One request as it was sent: its snapshot, and how to send it again."""

    snapshot: int
    path: str
    body: Body
    key: str


@dataclass
class Ledger:
    """What became of each try, from the writers' point of view."""

    acknowledged: list[Try] = field(default_factory=list)
    refused: list[tuple[Try, int, str]] = field(default_factory=list)
    unknown: list[Try] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, tried: Try, answer: httpx.Response | None) -> bool:
        """Write down an answer, None for none; whether it acknowledged the try. 5xx does not say what happened."""
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
        """The snapshots that were acknowledged, in no order."""
        return [tried.snapshot for tried in self.acknowledged]


def client(base: str, token: str) -> httpx.Client:
    """A client of its own for one writer: its connections reach whichever worker takes them."""
    return httpx.Client(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False)


def append(metadata: Body, snapshot: int) -> Body:
    """A commit that appends on top of a table as `metadata` tells it, as the Java client words it."""
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
    """An id nobody else takes."""
    return random.getrandbits(62)


def send(http: httpx.Client, tried: Try) -> httpx.Response | None:
    """The answer, or None when the connection broke."""
    try:
        return http.post(tried.path, json=tried.body, headers={"Idempotency-Key": tried.key})
    except httpx.TransportError:
        return None


def load(http: httpx.Client, path: str, until: float) -> Body | None:
    """The table's metadata as it is now; None when nobody answers until then."""
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


def goes_on(until: float, done: int, enough: int) -> bool:
    """Whether somebody works on: until then, and for a while longer where not enough was done on a busy machine."""
    now = time.monotonic()
    return now < until or (done < enough and now < until + _LONGER_SECONDS)


def append_until(http: httpx.Client, path: str, until: float, ledger: Ledger, *, enough: int = 0) -> None:
    """Append again and again; who lost reads the table and builds on what it is now."""
    metadata = load(http, path, until + _LONGER_SECONDS)
    while metadata is not None and goes_on(until, len(ledger.acknowledged), enough):
        snapshot = new_snapshot_id()
        tried = Try(snapshot, path, append(metadata, snapshot), str(uuid.uuid4()))
        answer = send(http, tried)
        done = ledger.note(tried, answer)
        metadata = (
            answer.json()["metadata"] if done and answer is not None else load(http, path, until + _LONGER_SECONDS)
        )


def at_once(writers: Sequence[Callable[[], None]]) -> None:
    """Run all of them side by side; raises what one of them raised."""
    with ThreadPoolExecutor(len(writers)) as pool:
        for running in [pool.submit(writer) for writer in writers]:
            running.result()


def check_history(metadata: Body, ledger: Ledger) -> list[int]:
    """Every acknowledged append is there once, no refused one is, and numbers and row ids follow each other.

    Returns the snapshots from the first to the last.
    """
    snapshots = {each["snapshot-id"]: each for each in metadata["snapshots"]}
    assert len(snapshots) == len(metadata["snapshots"]), "a snapshot is there twice"
    chain: list[int] = []
    at = metadata.get("current-snapshot-id")
    while at not in (None, -1):
        chain.insert(0, at)
        at = snapshots[at].get("parent-snapshot-id")
    assert set(chain) == set(snapshots), "every snapshot is an ancestor of main"
    acknowledged = ledger.snapshots()
    assert len(set(acknowledged)) == len(acknowledged)
    assert set(acknowledged) <= set(chain), "an acknowledged append is lost"
    assert set(chain) - set(acknowledged) <= {tried.snapshot for tried in ledger.unknown}, "a refused append happened"
    ordered = [snapshots[each] for each in chain]
    assert [each["sequence-number"] for each in ordered] == list(range(1, len(chain) + 1))
    assert metadata["last-sequence-number"] == len(chain)
    assert [each["snapshot-id"] for each in metadata["snapshot-log"]] == chain
    if metadata["format-version"] >= 3:
        assert [each["first-row-id"] for each in ordered] == [ROWS * number for number in range(len(chain))]
        assert metadata["next-row-id"] == ROWS * len(chain)
    return chain
