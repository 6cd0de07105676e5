# SPDX-License-Identifier: Apache-2.0
"""A gateway keeps serving while the database gets the additions of the next version (docs/backup.md, "Upgrades"). A
gateway does not start on a database of another version.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import psutil
import pytest

from tests.support.stack.views import body as view_body
from tests.support.stack.world import SCHEMA, World, unique

pytestmark = pytest.mark.chaos

#: Several at once and more than once, to reach many pool connections whose statements were prepared before.
AT_ONCE, TIMES = 4, 3


class Stopped(Exception):
    """A request failed; the message has the status and the text of the answer."""

    def __init__(self, requested: str, answer: httpx.Response) -> None:
        super().__init__(f"{requested}: {answer.status_code} {answer.text[:300]}")
        #: Responses of an overloaded server, which prove nothing about the schema.
        self.busy = answer.status_code in (429, 503)


@dataclass(frozen=True)
class Day:
    """The usual requests of all kinds, in one sequence."""

    world: World
    client: httpx.Client

    def send(self, method: str, path: str, body: object = None) -> httpx.Response:
        answer = self.client.request(method, path, json=body)
        if not answer.is_success:
            raise Stopped(f"{method} {path}", answer)
        return answer

    def catalog(self, ns: str, table: str) -> str:
        """Create and change catalog objects; return the id of the table."""
        root = self.world.root
        space = f"{root}/namespaces/{ns}"
        self.send("POST", f"{root}/namespaces", {"namespace": [ns]})
        made = self.send("POST", f"{space}/tables", {"name": table, "schema": SCHEMA})
        self.send("POST", f"{space}/views", view_body("view"))
        change = [{"action": "set-properties", "updates": {"a": "b"}}]
        self.send("POST", f"{space}/tables/{table}", {"requirements": [], "updates": change})
        self.send("POST", f"{space}/properties", {"updates": {"a": "b"}, "removals": []})
        for listed in (root + "/namespaces", space + "/tables", space + "/views", f"{space}/tables/{table}"):
            self.send("GET", listed)
        return str(made.json()["metadata"]["table-uuid"])

    def grants(self, id: str) -> None:
        """Create, list and revoke grants."""
        carol, at = self.world.carol.id, f"warehouse/{self.world.warehouse}/table/{id}"
        assignments = f"/management/v1/permissions/{at}/assignments"
        self.send("POST", assignments, {"writes": [{"type": "select", "user": carol}]})
        self.send("GET", f"/management/v1/{at}/grants")
        self.send("POST", assignments, {"deletes": [{"type": "select", "user": carol}]})
        self.send("GET", f"/management/v1/{at}/grants/history")
        self.send("GET", f"/management/v1/grants?principalUser={self.world.admin.id}")
        self.send("POST", f"/management/v1/{at}/protection", {"protected": False})

    def roles(self, name: str) -> None:
        """Create, fill, search and delete a role."""
        at = f"/management/v1/role/{self.send('POST', '/management/v1/role', {'name': name}).json()['id']}"
        self.send("POST", at, {"name": name, "description": "d"})
        self.send("POST", f"{at}/members", {"members": [{"type": "user", "id": self.world.carol.id}]})
        for listed in (f"{at}/members", f"{at}/members/transitive", "/management/v1/role", "/management/v1/user"):
            self.send("GET", listed)
        for kind in ("role", "user"):
            self.send("POST", f"/management/v1/search/{kind}", {"search": name})
        self.send("DELETE", at)

    def looks(self, ns: str, table: str, id: str) -> None:
        """Send searches, permission checks and lists."""
        management = f"/management/v1/warehouse/{self.world.warehouse}"
        for text in (table, f"{ns}.{table}"):
            self.send("POST", f"{management}/search-tabular", {"search": text})
        check = {"table": {"warehouse-id": self.world.warehouse, "table-id": id, "action": {"action": "read_data"}}}
        self.send("POST", "/management/v1/action/batch-check", {"checks": [{"operation": check}, {"operation": check}]})
        listed = ("", "/statistics", "/deleted-tabulars")
        for path in (
            *(management + each for each in listed),
            "/management/v1/warehouse",
            "/management/v1/project-list",
        ):
            self.send("GET", path)
        self.send("POST", f"{management}/task/list", {})

    def ends(self, ns: str) -> None:
        """Move and drop the objects."""
        root, moved = self.world.root, f"{ns}_moved"
        id = self.send("GET", f"{root}/namespaces/{ns}").json()["properties"]["namespace_id"]
        at = f"/management/v1/warehouse/{self.world.warehouse}/namespace/{id}"
        self.send("POST", f"{at}/move", {"destination": [moved]})
        self.send("DELETE", f"{root}/namespaces/{moved}/views/view")
        self.send("DELETE", f"{root}/namespaces/{moved}?recursive=true")


def _work(world: World) -> str | None:
    """Run the sequence. Return "" for success, the first failed answer as text, or None if a server was overloaded."""
    token = {"Authorization": f"Bearer {world.admin.token}"}
    ns, table = unique("ns"), unique("t")
    with httpx.Client(base_url=world.base, headers=token, timeout=60, trust_env=False) as client:
        day = Day(world, client)
        try:
            id = day.catalog(ns, table)
            day.grants(id)
            day.roles(unique("r"))
            day.looks(ns, table, id)
            day.ends(ns)
        except Stopped as stopped:
            return None if stopped.busy else str(stopped)
    return ""


def _require_served(world: World) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda _: _work(world), range(AT_ONCE)))
    assert [each for each in results if each] == []
    assert "" in results, "no sequence of requests completed"


@contextmanager
def _ahead(world: World) -> Iterator[None]:
    """Apply what a migration may add: columns with a default or without a value, in every table, and a new table."""
    version = world.sql("select version_num from alembic_version")[0]["version_num"]
    tables = [
        row["tablename"]
        for row in world.sql(
            "select relname as tablename from pg_class where relnamespace = 'public'::regnamespace "
            "and relkind in ('r', 'p') and not relispartition"
        )
        if row["tablename"] != "alembic_version"
    ]
    try:
        for table in tables:
            world.sql(f"alter table {table} add column next_text text, add column next_number int not null default 7")
        world.sql("create table next_table (id int primary key)")
        world.sql("update alembic_version set version_num = '9999'")
        yield
    finally:
        world.sql("update alembic_version set version_num = $1", version)
        world.sql("drop table if exists next_table")
        for table in tables:
            world.sql(f"alter table {table} drop column if exists next_text, drop column if exists next_number")


def _serve(world: World) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gateway.cli", "serve"],
        env=psutil.Process(world.ready.pids["gateway"][0]).environ(),
        cwd=os.sep,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.timeout(300)
def test_gateway_keeps_serving_after_a_newer_migration_but_cannot_restart(world: World) -> None:
    _require_served(world)
    with _ahead(world):
        for _ in range(TIMES):
            _require_served(world)
        refused = _serve(world)
        assert refused.returncode == 1
        assert "cannot serve: the database has schema 9999, which a newer version created" in refused.stderr
    # Serve again with the columns removed: a version removes only what the previous version no longer uses.
    _require_served(world)


def test_gateway_refuses_an_unmigrated_database_with_the_remedy(world: World) -> None:
    version = world.sql("select version_num from alembic_version")[0]["version_num"]
    world.sql("update alembic_version set version_num = '0001'")
    try:
        refused = _serve(world)
    finally:
        world.sql("update alembic_version set version_num = $1", version)
    assert refused.returncode == 1
    assert "the database has schema 0001, but this version upgrades only from schema 0056 or later" in refused.stderr
    assert "Traceback" not in refused.stderr
