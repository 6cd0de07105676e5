# SPDX-License-Identifier: Apache-2.0
"""Concurrent load that reads, vends keys, commits, grants and revokes, and records every answer.

The answers are judged against a simple record of the acknowledged grants, which uses neither the model nor a cache.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import httpx

from tests.support.load.appends import Ledger, Try, append, load, new_snapshot_id, send
from tests.support.stack.world import Person, Table

KEY = "secret-access-key"

NO = "no"
MAYBE = "maybe"
YES = "yes"


class Account:
    """The reader's right by the acknowledged changes: yes, no, or unknown while a change is in flight."""

    def __init__(self) -> None:
        self.state = NO
        self._version = 0

    def change(self, state: str) -> None:
        """Set the state."""
        self.state = state
        self._version += 1

    def read(self) -> tuple[str, int]:
        """Return (state, version). Equal values before and after a request prove that the state held all the time."""
        return self.state, self._version


@dataclass(frozen=True)
class Seen:
    """One recorded answer. `status` is 0 if the connection to the gateway broke."""

    action: str
    status: int
    seconds: float
    type: str
    retry_after: str | None
    state: str
    had_key: bool


@dataclass
class Mixed:
    """The load. Enter `running` around the failure that is tested."""

    base: str
    root: str
    reader: Person
    admin: Person
    granted: Table
    never: Table
    written: Table
    grants: str
    warehouse: str
    ledger: Ledger = field(default_factory=Ledger)
    account: Account = field(default_factory=Account)
    seen: list[Seen] = field(default_factory=list)
    broken: list[BaseException] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the threads of the load until the block ends; check that all of them end without an error."""
        over = threading.Event()
        work: list[Callable[[threading.Event], None]] = [self._read, self._read, self._grant, self._write, self._manage]
        threads = [threading.Thread(target=self._guarded, args=(each, over), daemon=True) for each in work]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join(90)
        assert not any(thread.is_alive() for thread in threads), "a request did not end"
        assert self.broken == []

    def _guarded(self, work: Callable[[threading.Event], None], over: threading.Event) -> None:
        try:
            work(over)
        except BaseException as error:
            self.broken.append(error)

    def _client(self, person: Person) -> httpx.Client:
        return httpx.Client(
            base_url=self.base, headers={"Authorization": f"Bearer {person.token}"}, timeout=60, trust_env=False
        )

    def note(
        self, action: str, send: Callable[[], httpx.Response | None], account: Account | None = None
    ) -> httpx.Response | None:
        """Send a request and record its answer."""
        before = account.read() if account is not None else (MAYBE, 0)
        started = time.monotonic()
        try:
            answer = send()
        except httpx.TransportError:
            answer = None
        seconds = time.monotonic() - started
        state = before[0] if account is None or account.read() == before else MAYBE
        if answer is None:
            self.seen.append(Seen(action, 0, seconds, "", None, state, False))
            return None
        failed = answer.status_code >= 400 and answer.content
        error_type = answer.json()["error"]["type"] if failed else ""
        retry = answer.headers.get("retry-after")
        self.seen.append(Seen(action, answer.status_code, seconds, error_type, retry, state, KEY in answer.text))
        return answer

    def _read(self, over: threading.Event) -> None:
        plain = {"X-Iceberg-Access-Delegation": "client-managed"}
        refused = Account()
        with self._client(self.reader) as http:
            while not over.is_set():
                self.note("load", lambda: http.get(self.granted.path, headers=plain), self.account)
                self.note("vend", lambda: http.get(self.granted.path), self.account)
                self.note("keys", lambda: http.get(f"{self.granted.path}/credentials"), self.account)
                self.note("never", lambda: http.get(self.never.path), refused)
                self.note("list", lambda: http.get(f"{self.root}/namespaces/{self.never.namespace}/tables"), refused)
                time.sleep(0.02)

    def _grant(self, over: threading.Event) -> None:
        entry = {"privilege": "select", "principal": {"user": self.reader.id}}
        with self._client(self.admin) as http:
            while not over.is_set():
                self.account.change(MAYBE)
                given = self.note("grant", lambda: http.post(self.grants, json={"writes": [entry]}))
                if given is not None and given.status_code == 204:
                    self.account.change(YES)
                time.sleep(0.15)
                self.account.change(MAYBE)
                taken = self.note("revoke", lambda: http.post(self.grants, json={"deletes": [entry]}))
                if taken is not None and taken.status_code == 204:
                    self.account.change(NO)
                time.sleep(0.15)

    def _write(self, over: threading.Event) -> None:
        with self._client(self.admin) as http:
            while not over.is_set():
                metadata = load(http, self.written.path, time.monotonic() + 0.3)
                if metadata is None:
                    continue
                snapshot = new_snapshot_id()
                tried = Try(snapshot, self.written.path, append(metadata, snapshot), str(uuid.uuid4()))
                answer = self.note("commit", partial(send, http, tried))
                self.ledger.note(tried, answer)
                time.sleep(0.05)

    def _manage(self, over: threading.Event) -> None:
        with self._client(self.admin) as http:
            while not over.is_set():
                self.note("manage", lambda: http.get(f"/management/v1/warehouse/{self.warehouse}"))
                time.sleep(0.1)

    def counted(self) -> dict[str, dict[int, int]]:
        """Return the number of answers by request and status."""
        found: dict[str, Counter[int]] = {}
        for each in self.seen:
            found.setdefault(each.action, Counter())[each.status] += 1
        return {action: dict(sorted(statuses.items())) for action, statuses in sorted(found.items())}

    def judge(self, *, longest: float, unknown_may_happen: bool) -> None:
        """Check that every recorded answer was allowed and took less than `longest` seconds; clear the record."""
        for each in self.seen:
            assert each.status != 0, f"no answer to {each}"
            assert each.seconds < longest, each
            if each.status == 200 and each.action in ("load", "vend", "keys", "never", "list"):
                assert each.state != NO, f"allowed without a grant: {each}"
            assert not (each.had_key and each.status != 200), each
            if each.state == YES:
                assert each.status in (200, 503), f"a granted request was refused: {each}"
            if each.status in (429, 503):
                assert each.retry_after is not None and int(each.retry_after) >= 1, each
            allowed = {
                "commit": {200, 409, 429, 500},
                "grant": {204, 500, 503},
                "revoke": {204, 500, 503},
                "manage": {200, 503},
                "never": {404, 503},
                "list": {404, 503},
            }.get(each.action, {200, 404, 503})
            if each.action in ("load", "vend", "keys") and each.state == MAYBE:
                # The checks of one request run one after the other. If the right changes between them, an object may be
                # visible and not readable.
                allowed.add(403)
            assert each.status in allowed, each
            if each.status == 500:
                assert (each.type, unknown_may_happen) == ("CommitStateUnknownException", True), each
        self.seen.clear()
