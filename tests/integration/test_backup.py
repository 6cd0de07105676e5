# SPDX-License-Identifier: Apache-2.0
"""Restore a backup of PostgreSQL beside a newer OpenFGA and beside a fresh one, with the commands of docs/backup.md.
A grant that was revoked after the backup returns only if the operator decides so; everything else works as before.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from lakegate.local import account
from lakegate.local.postgres import programs_directory
from lakegate.local.ready import Ready
from tests.integration.conftest import StartStack
from tests.support.docs_commands import blocks, commands
from tests.support.rows.relations import soon
from tests.support.servers.toxic import second_gateway
from tests.support.stack.world import Loop, Person, Table, World

DIFFERS = 3
DATABASE = "PG_DATABASE_URL_WRITE"

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]


def documented(program: str, *, restored: str = "", dump: Path | None = None) -> list[str]:
    """Return the words of the one command of docs/backup.md that calls `program`, with names of the test."""
    own = {"$DATABASE_URL": "lakegate", "restored": restored, "lakegate.dump": str(dump)}
    found = [
        words
        for block in blocks()
        if block.page == "docs/backup.md"
        for words in commands(block.script)
        if words[0] == program
    ]
    [words] = found
    return [own.get(word, word) for word in words]


@dataclass(frozen=True)
class Site:
    """A separate stack and its data directory."""

    ready: Ready
    data: Path

    def program(self, name: str, *arguments: str, url: str | None = None) -> None:
        """Run one of PostgreSQL's own programs. The password is passed in the environment."""
        to = urlsplit(url or self.ready.postgres)
        environment = {"PGPASSWORD": to.password or "", "PGHOST": to.hostname or "", "PGPORT": str(to.port)}
        subprocess.run(
            [str(programs_directory(None) / "bin" / name), "--username", to.username or "", *arguments],
            env=os.environ | environment,
            check=True,
            capture_output=True,
            timeout=60,
        )

    def superuser(self) -> str:
        """Return the URL of the superuser, who may create databases."""
        made = json.loads((self.data / "secrets.json").read_text())
        at = urlsplit(self.ready.postgres)
        return f"postgresql://postgres:{made['postgres_superuser']}@{at.hostname}:{at.port}/postgres"

    def restored(self, dump: Path, name: str) -> str:
        """Restore the dump into a new database and return its URL."""
        self.program(*documented("createdb", restored=name), url=self.superuser())
        self.program(*documented("pg_restore", restored=name, dump=dump))
        return self.ready.postgres.rsplit("/", 1)[0] + f"/{name}"

    def lakegate(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a `lakegate` command with the gateway's settings, changed by these."""
        environment = psutil.Process(self.ready.pids["gateway"][0]).environ()
        changed = {f"LAKEGATE__{name}": value for name, value in settings.items()}
        return subprocess.run(
            [sys.executable, "-m", "gateway.cli", *arguments],
            env=environment | changed,
            cwd=os.sep,
            capture_output=True,
            text=True,
            timeout=90,
        )

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Suspend the stack's own gateways: the restore procedure demands that they are stopped."""
        for pid in self.ready.pids["gateway"]:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in self.ready.pids["gateway"]:
                os.kill(pid, signal.SIGCONT)


@pytest.fixture
def site(start_stack: StartStack, tmp_path: Path) -> Iterator[Site]:
    data = tmp_path / "data"
    yield Site(start_stack(data=data), data)


@pytest.fixture
def world(site: Site) -> Iterator[World]:
    world = World(site.ready)
    yield world
    world.close()


@pytest.fixture(autouse=True)
def cleaned(tmp_path: Path) -> Iterator[None]:
    yield
    account.remove_data(tmp_path / "data" / "postgres")


def revisions(url: str) -> set[str]:
    import asyncpg

    async def read() -> set[str]:
        connection = await asyncpg.connect(url)
        try:
            rows = await connection.fetch("select revision from server union all select revision from warehouses")
            return {str(row["revision"]) for row in rows}
        finally:
            await connection.close()

    loop = Loop()
    try:
        return loop.run(read())
    finally:
        loop.close()


def loads(world: World, base: str, table: Table) -> dict[str, int]:
    """Return each user's status for loading the table."""
    found = {}
    for name in ("admin", "analyst", "steward", "carol"):
        person = Person(name, world.people[name].id, world.people[name].token, base)
        found[name] = person.get(table.path).status_code
        person.http.close()
    return found


def test_restored_database_serves_after_the_operator_chooses_the_authority(
    site: Site, world: World, tmp_path: Path
) -> None:
    namespace = world.namespace()
    table = world.table(namespace)
    for person in (world.analyst, world.steward):
        world.grant("select", person, "table", table.uuid)
    soon(lambda: world.sql("select 1 from outbox") == [], seconds=20)
    before = loads(world, world.base, table)
    assert before == {"admin": 200, "analyst": 200, "steward": 200, "carol": 404}
    dump = tmp_path / "lakegate.dump"
    site.program(*documented("pg_dump", dump=dump))
    world.revoke("select", world.steward, "table", table.uuid)
    world.grant("select", world.carol, "table", table.uuid)
    later = world.table(namespace)
    soon(lambda: world.sql("select 1 from outbox") == [], seconds=20)
    seen = revisions(site.ready.postgres)
    with site.halted():
        url = site.restored(dump, "restored")
        seen |= revisions(url)
        refused_until_decided(site, url, table)
        newer_relations(site, world, url, table, later, seen, tmp_path)
        fresh_relations(site, world, site.restored(dump, "again"), table, before, tmp_path)


def refused_until_decided(site: Site, url: str, table: Table) -> None:
    """Check that no command serves or repairs the database before a decision; the dry run lists the differences."""
    for verb in (["serve"], ["authz", "reconcile"], ["secrets", "rotate"]):
        refused = site.lakegate(*verb, **{DATABASE: url})
        assert refused.returncode == 1, refused.stdout
        assert "restored from a backup, or moved" in refused.stderr
        assert "authz reconcile --dry-run" in refused.stderr
    reported = site.lakegate("authz", "reconcile", "--dry-run", **{DATABASE: url})
    assert reported.returncode == DIFFERS, reported.stderr
    lines = {" ".join(line.split()) for line in reported.stdout.splitlines()}
    assert f"missing user:oidc~steward select table:{table.uuid}" in lines
    assert f"unwanted user:oidc~carol select table:{table.uuid}" in lines


def newer_relations(
    site: Site, world: World, url: str, table: Table, later: Table, seen: set[str], scratch: Path
) -> None:
    """Choose OpenFGA as the authority: grants revoked since the backup stay revoked, and every revision is new."""
    settled = site.lakegate("authz", "reconcile", "--restored", "revoke", **{DATABASE: url})
    assert settled.returncode == 0, settled.stderr
    assert site.lakegate("authz", "reconcile", "--dry-run", **{DATABASE: url}).returncode == 0
    assert revisions(url).isdisjoint(seen), (
        "a restored server must not repeat a revision, because cached decisions are keyed by it"
    )
    with second_gateway(site.ready, scratch / "newer.log", **{DATABASE: url}) as (base, _):
        assert loads(world, base, table) == {"admin": 200, "analyst": 200, "steward": 404, "carol": 404}
        person = Person("admin", world.admin.id, world.admin.token, base)
        assert person.get(later.path).status_code == 404, "a table created after the backup must be gone"
        history = person.get(f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants/history")
        assert history.status_code == 200, history.text
        assert "oidc~steward" in history.text, "the history must contain the end of the grant"
        person.http.close()


def fresh_relations(site: Site, world: World, url: str, table: Table, before: dict[str, int], scratch: Path) -> None:
    """Check that a new store, which knows no revocations, refuses `revoke`; `give-back` restores every grant."""
    fresh = {DATABASE: url, "OPENFGA__STORE_NAME": "fresh"}
    migrated = site.lakegate("migrate", **fresh)
    assert migrated.returncode == 0, migrated.stderr
    refused = site.lakegate("authz", "reconcile", "--restored", "revoke", **fresh)
    assert refused.returncode == 1
    assert "does not show which grants were revoked" in refused.stderr
    settled = site.lakegate("authz", "reconcile", "--restored", "give-back", **fresh)
    assert settled.returncode == 0, settled.stderr
    with second_gateway(site.ready, scratch / "fresh.log", **fresh) as (base, _):
        assert loads(world, base, table) == before
