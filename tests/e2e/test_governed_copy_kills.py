# SPDX-License-Identifier: Apache-2.0
"""Runs of a governed copy that are killed (SIGKILL of Spark's process group), and repeated.

The job sends its requests to the gateway through a forwarder of the test, so that it is killed at a known commit. After
the repeated run no object below the copy's location contains a value that the reader may not see any more: readers of
the copy have keys for the whole location.
"""

from __future__ import annotations

import http.client
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import psutil
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog

from gateway.settings import java_home, search_path
from lakegate.local import jdk
from lakegate.spark.jobs.copy_files import REWRITING
from lakegate.spark.session import as_principal
from tests.support.engines.governed_site import MASKED, Site, catalog_of, site
from tests.support.engines.spark import jars
from tests.support.stack.columns import give, take
from tests.support.stack.world import unique

__all__ = ["site"]

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

SECONDS = 240.0


@dataclass
class Forwarder:
    """Forward requests to the gateway. Hold the commit with the number `at`, or its answer if `answered` is true."""

    target: str
    path: str
    at: int = 0
    answered: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    commits: int = 0

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length", 0)))
        mine = request.command == "POST" and request.path.endswith(self.path)
        self.commits += mine
        stop = mine and self.commits == self.at
        if stop and not self.answered:
            self._hold()
            return
        connection = http.client.HTTPConnection(self.target, timeout=60)
        headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        connection.request(request.command, request.path, body, headers)
        answer = connection.getresponse()
        # The configuration names the address of the gateway, which Spark would use from then on.
        content = answer.read().replace(self.target.encode(), request.headers["host"].encode())
        connection.close()
        if stop:
            self._hold()
            return
        request.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                request.send_header(name, value)
        request.send_header("content-length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def _hold(self) -> None:
        self.reached.set()
        self.ended.wait(SECONDS)


@contextmanager
def forwarding(forwarder: Forwarder) -> Iterator[str]:
    """Serve the forwarder on a port of its own, and return its address."""

    class Handler(BaseHTTPRequestHandler):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return lambda: forwarder.handle(self)
            raise AttributeError(name)

        def log_message(self, *args: Any) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        forwarder.ended.set()
        server.shutdown()
        server.server_close()


@dataclass
class Copies:
    """One copy of the site's table, its jobs, and the objects of its location."""

    site: Site
    target: str
    home: Path

    def killed_when(self, reached: Callable[[], bool], forwarder: Forwarder) -> None:
        """Run the job of the command line, and kill its process group when `reached` is true."""
        world = self.site.world
        with forwarding(forwarder) as address:
            catalog = msgspec.structs.replace(catalog_of(world, world.etl), uri=f"{address}/catalog")
            document = {
                "catalog": {"type": "rest", "uri": catalog.uri, "warehouse": catalog.warehouse, "token": catalog.token},
                "engine": {"jars": jars(), "work_dir": str(self.home / "work"), "cores": 1, "shuffle_partitions": 1},
                "source": self.site.source,
                "target": f"{self.site.namespace}.{self.target}",
                "on_behalf_of": {"token": world.carol.token},
            }
            config = self.home / "copy.json"
            config.touch(mode=0o600)
            config.write_bytes(msgspec.json.encode(document))
            with (self.home / "log").open("wb") as log:
                job = subprocess.Popen(
                    [sys.executable, "-m", "lakegate.spark", "copy", "--config", str(config)],
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "JAVA_HOME": str(jdk.find(java_home(), search_path()))},
                    start_new_session=True,
                )
                try:
                    until = time.monotonic() + SECONDS
                    while job.poll() is None and not reached() and time.monotonic() < until:
                        time.sleep(0.01)
                    assert job.poll() is None, (self.home / "log").read_text(errors="replace")[-3000:]
                    assert reached()
                finally:
                    engine = psutil.Process(job.pid).children(recursive=True) if job.poll() is None else []
                    with suppress(ProcessLookupError):
                        os.killpg(job.pid, signal.SIGKILL)
                    job.wait()
                assert engine
                assert not psutil.wait_procs(engine, SECONDS)[1], "Spark runs on"

    @property
    def path(self) -> str:
        return f"/namespaces/{self.site.namespace}/tables/{self.target}"

    def location(self) -> str:
        found = self.site.world.admin.get(self.site.world.root + self.path)
        return str(urlsplit(found.json()["metadata"]["location"]).path).strip("/") + "/"

    def objects(self) -> set[str]:
        """Return the keys of all objects below the location, except for metadata files."""
        world = self.site.world
        pages = world.s3.get_paginator("list_objects_v2").paginate(Bucket=world.bucket, Prefix=self.location())
        keys = {each["Key"] for page in pages for each in page.get("Contents", ())}
        return {key for key in keys if not key.endswith(".metadata.json")}

    def cards(self) -> set[str]:
        """Return the values of `card` in every data file below the location, in snapshots or not."""
        world = self.site.world
        files = [key for key in self.objects() if key.endswith(".parquet")]
        bodies = [world.s3.get_object(Bucket=world.bucket, Key=key)["Body"].read() for key in files]
        return {card for body in bodies for card in pq.read_table(io.BytesIO(body))["card"].to_pylist()}

    def check(self) -> None:
        """Assert that the location has only the files of the current snapshot, and no value of a hidden card."""
        world = self.site.world
        warehouse, token = world.ready.warehouse, world.admin.token
        catalog = load_catalog("kills", type="rest", uri=world.ready.catalog_uri, warehouse=warehouse, token=token)
        table = catalog.load_table((self.site.namespace, self.target))
        used, bounds = set(), []
        for snapshot in table.snapshots():
            used.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(table.io):
                used.add(manifest.manifest_path)
                for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                    used.add(entry.data_file.file_path)
                    bounds += [*entry.data_file.lower_bounds.values(), *entry.data_file.upper_bounds.values()]
        assert {urlsplit(each).path.strip("/") for each in used} == self.objects()
        assert self.cards() <= {"XXXXXXXX"}
        assert not [each for each in bounds if each.startswith(b"4")]
        assert REWRITING not in table.properties


@pytest.fixture
def copies(site: Site, tmp_path: Path) -> Copies:
    """Split the source into several files, of which each becomes a file of the copy."""
    site.admin("ALTER TABLE {t} SET TBLPROPERTIES ('read.split.target-size'='1', 'read.split.open-file-cost'='1')")
    for number in range(4):
        site.admin(f"INSERT INTO {{t}} VALUES ({number}, 'p{number}', '4{number}', NULL)")
    return Copies(site, unique("copy"), tmp_path)


ROWS = sorted([*MASKED, *((0, f"p{number}", "XXXXXXXX", None) for number in range(4))], key=lambda row: row[1])

#: The commits of a rewrite: the mark of its beginning, the rows, the removal of snapshots, the end of the mark.
ROWS_COMMIT, REMOVAL = 2, 3


@pytest.mark.parametrize(
    ("at", "answered"),
    [
        # Tests below kill rewrites before these two commits too; each kill starts a Spark.
        pytest.param(ROWS_COMMIT, False, id="before the rows", marks=pytest.mark.long),
        pytest.param(ROWS_COMMIT, True, id="after the rows"),
        pytest.param(REMOVAL, False, id="before the removal", marks=pytest.mark.long),
        pytest.param(REMOVAL, True, id="after the removal"),
    ],
)
def test_a_rewrite_killed_at_a_commit_is_repeated(copies: Copies, at: int, answered: bool) -> None:
    site = copies.site
    with_cards(copies)
    forwarder = Forwarder(urlsplit(site.world.base).netloc, copies.path, at, answered)
    copies.killed_when(forwarder.reached.is_set, forwarder)
    shown = site.copied(copies.target)
    assert shown == ROWS if (at, answered) != (ROWS_COMMIT, False) else all(row[2].startswith("4") for row in shown)
    site.copy(copies.target)
    assert site.copied(copies.target) == ROWS
    copies.check()


def with_cards(copies: Copies) -> None:
    """Make a copy with the cards, which carol may not read any more after it."""
    world, table = copies.site.world, copies.site.table
    assert give(world, table, "card", world.carol).status_code == 204
    copies.site.copy(copies.target)
    assert take(world, table, "card", world.carol).status_code == 204
    assert "4111-1" in copies.cards()


def test_a_rewrite_killed_between_its_files_is_repeated(copies: Copies) -> None:
    with_cards(copies)
    before = copies.objects()
    forwarder = Forwarder(urlsplit(copies.site.world.base).netloc, copies.path, ROWS_COMMIT)
    # The mark is committed first. Objects are listed only from then on, since each list costs processor time.
    copies.killed_when(lambda: forwarder.commits >= ROWS_COMMIT - 1 and bool(copies.objects() - before), forwarder)
    copies.site.copy(copies.target)
    assert copies.site.copied(copies.target) == ROWS
    copies.check()


def test_a_removal_killed_between_its_files_is_repeated(copies: Copies) -> None:
    with_cards(copies)
    before = copies.objects()
    forwarder = Forwarder(urlsplit(copies.site.world.base).netloc, copies.path, REMOVAL)
    copies.killed_when(lambda: forwarder.commits >= REMOVAL - 1 and bool(before - copies.objects()), forwarder)
    copies.site.copy(copies.target)
    assert copies.site.copied(copies.target) == ROWS
    copies.check()


def test_rows_of_a_killed_rewrite_do_not_stay_when_the_old_restrictions_return(copies: Copies) -> None:
    world, table = copies.site.world, copies.site.table
    copies.site.copy(copies.target)
    assert give(world, table, "card", world.carol).status_code == 204
    forwarder = Forwarder(urlsplit(world.base).netloc, copies.path, ROWS_COMMIT)
    copies.killed_when(forwarder.reached.is_set, forwarder)
    assert "4111-1" in copies.cards()
    assert take(world, table, "card", world.carol).status_code == 204
    assert copies.site.copy(copies.target).change == "none"
    copies.check()


@pytest.mark.parametrize(
    "answered",
    [
        pytest.param(False, id="before the rows", marks=pytest.mark.long),
        pytest.param(True, id="after the rows"),
    ],
)
def test_an_append_killed_at_its_commit_is_repeated(copies: Copies, answered: bool) -> None:
    copies.site.copy(copies.target)
    copies.site.admin("INSERT INTO {t} VALUES (9, 'zoe', '49', NULL)")
    forwarder = Forwarder(urlsplit(copies.site.world.base).netloc, copies.path, 1, answered)
    copies.killed_when(forwarder.reached.is_set, forwarder)
    assert copies.site.copy(copies.target).change == ("none" if answered else "append")
    assert copies.site.copied(copies.target) == [*ROWS, (0, "zoe", "XXXXXXXX", None)]
    assert copies.cards() == {"XXXXXXXX"}


@pytest.mark.parametrize("suffix", [".parquet", ".avro"])
def test_a_copy_whose_files_an_overlapping_run_deleted_is_rewritten(copies: Copies, suffix: str) -> None:
    """To another run, files that are not committed yet look like those of a killed run."""
    site, world = copies.site, copies.site.world
    site.copy(copies.target)
    mark = f"ALTER TABLE lake.{site.namespace}.{copies.target} SET TBLPROPERTIES ('{REWRITING}' = 'true')"
    as_principal(site.root, catalog_of(world, world.admin)).sql(mark)
    for key in copies.objects():
        if key.endswith(suffix):
            world.s3.delete_object(Bucket=world.bucket, Key=key)
    assert site.copy(copies.target).change == "rewrite"
    assert site.copied(copies.target) == ROWS
    copies.check()
