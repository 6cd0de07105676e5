# SPDX-License-Identifier: Apache-2.0
"""Measure the memory of gateway workers: at the start, in the mix of users, and in attacks on memory.

`python -m tests.bench.memory` starts a stack. Each line has, in MB and for each worker: resident memory at the end of
the stage, its maximum within the stage, and the part that no other process shares. `--set LAKEGATE__NAME=VALUE` changes
a setting. `--python PATH` runs the stack in another environment: that of the tests has packages that the gateway does
not need but loads if they are installed, for example pydantic (8 MB).
"""

from __future__ import annotations

import argparse
import gzip
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import httpx
import psutil

from tests.bench import people
from tests.bench.catalogs import Catalog, Prepared
from tests.bench.generator import Generator
from tests.bench.options import selects
from tests.bench.seeding import ManyTables
from tests.bench.stacks import OURS, Running, stack
from tests.bench.versions import setting
from tests.support.load.load_generators import large_batch
from tests.support.stack.large_tables import about, make_large
from tests.support.stack.registrations import adopt, foreign
from tests.support.stack.world import Person, Table, World, unique

_AT_ONCE = 8
_MIB = 1024 * 1024
_EVERY_SECONDS = 0.02
_MAPS = ("Rss", "Private_Clean", "Private_Dirty")


class Workers:
    """The worker processes of a gateway. A thread records the maximum of the resident memory of each."""

    def __init__(self, running: Running) -> None:
        main = psutil.Process(running.ready.pids["gateway"][0])
        self._workers = [each for each in main.children() if "resource_tracker" not in " ".join(each.cmdline())]
        self._peaks: dict[int, int] = {}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Context manager. Record the maximum while the block runs."""
        ended = threading.Event()
        self._peaks = {each.pid: 0 for each in self._workers}

        def watch() -> None:
            while not ended.wait(_EVERY_SECONDS):
                for each in self._workers:
                    self._peaks[each.pid] = max(self._peaks[each.pid], each.memory_info().rss)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def line(self) -> str:
        """Return resident memory, its maximum and the unshared memory of each worker in MB."""
        shown = []
        for each in self._workers:
            text = Path(f"/proc/{each.pid}/smaps_rollup").read_text()
            kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
            rss, clean, dirty = (kilobytes[name] / 1024 for name in _MAPS)
            shown.append(f"{rss:4.0f} (max {self._peaks[each.pid] / _MIB:4.0f}, own {clean + dirty:4.0f})")
        return "  ".join(shown)


class Attacks:
    """Requests that try to fill the memory of the workers. All of them end by themselves."""

    def __init__(self, world: World, running: Running, *, tables: int, callers: int) -> None:
        self._world = world
        self._running = running
        self._tables = tables
        self._callers = callers
        self._namespace = world.namespace(unique("memory"))

    def all(self) -> dict[str, Callable[[], Counter[int]]]:
        """Return the attacks by name."""
        return {
            "large documents, named": self._named_documents,
            "large batch-checks": self._batches,
            "large bodies, stranger": lambda: self._bodies(self._world.stranger()),
            "metadata bombs": self._bombs,
            "many callers": self._many_callers,
            "large lists": self._lists,
            "large documents, loaded": self._loaded_documents,
            "large bodies, owner": lambda: self._bodies(self._world.admin),
        }

    def _together(
        self, send: Callable[[httpx.Client, int], httpx.Response], count: int, person: Person
    ) -> Counter[int]:
        """Send `count` requests, eight at a time. Return the number of responses of each status."""

        def one(number: int) -> int:
            # A connection of its own for each request spreads the requests over the workers.
            with httpx.Client(
                base_url=person.http.base_url,
                headers=person.http.headers,
                trust_env=False,
                verify=False,  # noqa: S501 - plain HTTP on loopback
                timeout=120,
            ) as client:
                return send(client, number).status_code

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return Counter(pool.map(one, range(count)))

    def _large_tables(self, count: int) -> list[Table]:
        tables = [self._world.table(self._namespace) for _ in range(count)]
        make_large(self._world, *tables)
        return tables

    def _named_documents(self) -> Counter[int]:
        """Send checks about twenty invisible tables with documents of 8 MiB, eight at a time."""
        tables, stranger = self._large_tables(20), self._world.stranger()
        checks = {"checks": [about(self._world, table) for table in tables]}
        path = "/management/v1/action/batch-check"
        return self._together(lambda client, _: client.post(path, json=checks), 64, stranger)

    def _loaded_documents(self) -> Counter[int]:
        """Load thirty documents of 8 MiB, eight at a time, four times each."""
        tables = self._large_tables(30)
        return self._together(lambda client, number: client.get(tables[number % 30].path), 120, self._world.admin)

    def _batches(self) -> Counter[int]:
        """Send forty batches of a thousand checks about invisible tables, eight at a time."""
        tables = [self._world.table(self._namespace) for _ in range(50)]
        body = large_batch(self._world, tables)
        stranger = self._world.stranger()
        path = "/management/v1/action/batch-check"
        return self._together(lambda client, _: client.post(path, json=body), 40, stranger)

    def _bodies(self, sender: Person) -> Counter[int]:
        """Send commits near the limit of values, and commits near the limit of bytes, eight at a time."""
        table = self._world.table(self._namespace)
        many = {f"k{number}": "v" * 20 for number in range(190_000)}
        long = {"k": "v" * (30 * _MIB)}

        def send(client: httpx.Client, number: int) -> httpx.Response:
            updates = [{"action": "set-properties", "updates": long if number % 2 else many}]
            return client.post(table.path, json={"requirements": [], "updates": updates})

        return self._together(send, 24, sender)

    def _bombs(self) -> Counter[int]:
        """Register files that are larger decompressed than any document may be."""
        location, _ = foreign(self._world, self._namespace)
        file = f"{location}/metadata/00000-{unique('x')}.metadata.json"
        content = gzip.compress(b" " * (200 * _MIB) + b"{}")
        self._world.s3.put_object(
            Bucket=self._world.bucket, Key=file.removeprefix(f"s3://{self._world.bucket}/"), Body=content
        )
        return self._together(
            lambda _client, _number: adopt(self._world.admin, self._world, self._namespace, unique("x"), file),
            16,
            self._world.admin,
        )

    def _many_callers(self) -> Counter[int]:
        """Send one request of each of many callers, whose tokens are valid."""
        table = self._world.table(self._namespace)
        issuer = people.Issuer(self._running.ready, self._running.data)
        tokens = [issuer.token(f"caller{number}") for number in range(self._callers)]

        def send(client: httpx.Client, number: int) -> httpx.Response:
            for token in tokens[number::_AT_ONCE]:
                last = client.head(table.path, headers={"Authorization": f"Bearer {token}"})
            return last

        return self._together(send, _AT_ONCE, self._world.admin)

    def _lists(self) -> Counter[int]:
        """List a namespace of many tables as its owner and as a reader of half of them."""
        name = unique("listed")
        admin = self._world.admin
        client = httpx.Client(base_url=admin.http.base_url, headers=admin.http.headers, trust_env=False, timeout=600)
        namespaces = f"{self._running.ready.catalog_uri}/v1/{self._world.warehouse}/namespaces"
        with client:
            ManyTables(self._running.ready, client, namespaces, count=self._tables).make(name, {"carol": 3})
        path = f"{self._world.root}/namespaces/{name}/tables"
        return self._together(lambda client, _: client.get(path), 16, admin)


def main() -> None:
    """Start a stack, and print the memory of the workers after each stage."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.memory", description=__doc__)
    parser.add_argument("--checkout", type=Path, default=OURS, help="checkout of Lakegate to run")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the stack")
    parser.add_argument("--set", type=setting, action="append", default=[], dest="settings", help="a setting")
    parser.add_argument("--mix", type=float, default=240.0, help="seconds of the mix")
    parser.add_argument("--tables", type=int, default=100_000, help="number of listed tables")
    parser.add_argument("--callers", type=int, default=10_000, help="number of callers")
    parser.add_argument("--only", default="", help="attacks with one of these words in their names")
    options = parser.parse_args()
    with ExitStack() as held:
        running = held.enter_context(stack(options.checkout, dict(options.settings), python=options.python))
        workers, world = Workers(running), World(running.ready)
        held.callback(world.close)

        def stage(name: str, run: Callable[[], object]) -> None:
            with workers.watched():
                result = run()
                time.sleep(2)
            statuses = f"  statuses {dict(result)}" if isinstance(result, Counter) else ""
            print(f"{name:28} {workers.line()}{statuses}", flush=True)

        stage("start", lambda: None)
        if options.mix:
            ready = running.ready
            token = ready.users["admin"].token
            catalog = Catalog(name="ours", url=ready.catalog_uri, token=token, warehouse=ready.warehouse)
            prepared = Prepared(catalog)
            mixes = people.Company(ready, running.data, prepared.client, prepared.namespaces).mixes()
            generator = Generator()
            held.callback(generator.close)
            for quarter in range(4):
                load = mixes.sent[people.NEW]
                stage(f"mix, quarter {quarter + 1}", partial(generator.send, load, 8, seconds=options.mix / 4))
        attacks = Attacks(world, running, tables=options.tables, callers=options.callers)
        for name, run in attacks.all().items():
            if selects(options.only, name):
                stage(name, run)
        stage("ten seconds later", lambda: time.sleep(10))


if __name__ == "__main__":
    main()
