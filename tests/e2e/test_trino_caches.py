# SPDX-License-Identifier: Apache-2.0
"""Exposure through Trino's caches when the metadata of one table references files of another.

A user can write any content into the metadata files of a table that the user owns. Its manifests may therefore name
files of any other table. The object store refuses such reads with the keys of the attacker's table. A cache that one
user fills and another user reads has no such check.

Opt-in by `make test-trino`, which sets LAKEGATE_TEST_TRINO: see `tests/support/engines/trino.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, write_manifest_list
from pyiceberg.typedef import Record

from tests.support.engines.lake import catalog_of
from tests.support.engines.trino import Missing, Refused, Trino, trino_server
from tests.support.stack.exchanging import delegating
from tests.support.stack.trino_bridge import bridged
from tests.support.stack.world import Person, World, unique

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_TRINO"), reason="needs Trino: run `make test-trino`"),
]


@dataclass(frozen=True)
class Site:
    """A Trino, the victim's schema and the attacker's schema; neither user may see the other's schema."""

    trino: Trino
    victim: Person
    attacker: Person
    theirs: str
    own: str

    def requested(self, person: Person, sql: str) -> list[list[Any]] | None:
        """Return the rows of a statement, None if Trino or the store refuses it."""
        try:
            return self.trino.run(person, sql)
        except Refused as refused:
            print(f"REFUSED {sql}: {str(refused)[:400]}")
            return None


@contextmanager
def site(world: World, folder: Path, **properties: str) -> Iterator[Site]:
    """Run Trino with these properties of its Iceberg catalog. Raises Missing."""
    service, bridge_service, victim, attacker = world.alice, world.etl, world.steward, world.bob
    for person in (service, bridge_service, victim, attacker):
        world.strip(person)
    theirs, own = world.namespace(unique("victim")), world.namespace(unique("attacker"))
    world.grant("ownership", victim, "namespace", world.namespace_id(theirs))
    world.grant("ownership", attacker, "namespace", world.namespace_id(own))
    world.grant("describe", service, "namespace", world.namespace_id(world.namespace()))
    with ExitStack() as stack:
        for each in (service, bridge_service):
            stack.enter_context(delegating(world, each, "warehouse", world.warehouse))
        bridge = stack.enter_context(bridged(world, folder))
        trino = stack.enter_context(trino_server(world, bridge, folder, service, **properties))
        yield Site(trino, victim, attacker, theirs, own)


def filled(site: Site, person: Person, schema: str, name: str, word: str) -> None:
    site.trino.run(person, f"create table {schema}.{name} (id bigint, word varchar)")
    site.trino.run(person, f"insert into {schema}.{name} values (1, '{word}')")


def data_file(world: World, schema: str, name: str) -> Any:
    """Return the only data file of a table, as its manifest describes it."""
    (task,) = catalog_of(world, world.admin).load_table((schema, name)).scan().plan_files()
    return task.file


def names_a_data_file(world: World, attacker: Person, schema: str, name: str, file: Any) -> None:
    """Append another table's data file to the attacker's table, so that a manifest of the attacker names its path."""
    copied = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.file_path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
    )
    copied.spec_id = 0
    own = catalog_of(world, attacker).load_table((schema, name))
    with own.transaction() as change, change.update_snapshot().fast_append() as append:
        append.append_data_file(copied)


def names_a_manifest(world: World, attacker: Person, schema: str, name: str, manifests: list[Any]) -> None:
    """Commit a snapshot to the attacker's table whose manifest list names another table's manifests."""
    own = catalog_of(world, attacker).load_table((schema, name))
    before = own.metadata
    id, number = int(time.time_ns() % 10**15), before.last_sequence_number + 1
    place = f"{before.location}/metadata/{unique('snap')}.avro"
    parent = before.current_snapshot_id
    with write_manifest_list(2, own.io.new_output(place), id, parent, number, "deflate") as listing:
        listing.add_manifests(manifests)
    snapshot = {
        "snapshot-id": id,
        "parent-snapshot-id": parent,
        "sequence-number": number,
        "timestamp-ms": int(time.time() * 1000),
        "manifest-list": place,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id}
    path = f"{world.root}/namespaces/{schema}/tables/{name}"
    done = world.commit(attacker, path, {"action": "add-snapshot", "snapshot": snapshot}, ref)
    assert done.status_code == 200, done.text


def read_by_the_attacker(world: World, at: Site, name: str) -> dict[str, bool]:
    """Return, for each attack that uses an own table, whether the attacker reads the victim's secret."""
    for way in ("data", "manifest"):
        filled(at, at.attacker, at.own, f"{way}_{name}", "own")
    names_a_data_file(world, at.attacker, at.own, f"data_{name}", data_file(world, at.theirs, name))
    loaded = catalog_of(world, world.admin).load_table((at.theirs, name))
    names_a_manifest(world, at.attacker, at.own, f"manifest_{name}", loaded.current_snapshot().manifests(loaded.io))
    ways = {
        "the table itself": f"select word from {at.theirs}.{name}",
        "rows by a data file": f"select word from {at.own}.data_{name}",
        "rows by a manifest": f"select word from {at.own}.manifest_{name}",
        "statistics by a manifest": f'select cast(lower_bounds as json) from {at.own}."manifest_{name}$files"',
    }
    return {way: f"secret of {name}" in str(at.requested(at.attacker, sql)) for way, sql in ways.items()}


def tried(world: World, folder: Path, **properties: str) -> dict[str, dict[str, bool]]:
    """Return the outcome of each attack, by the state of the attacked table.

    `cold` is a table that was never read through Trino. `warm` is one that its owner has just read.
    """
    try:
        with site(world, folder, **properties) as at:
            for name in ("cold", "warm"):
                filled(at, at.victim, at.theirs, name, f"secret of {name}")
            assert at.requested(at.victim, f"select word from {at.theirs}.warm where id = 1") == [["secret of warm"]]
            return {name: read_by_the_attacker(world, at, name) for name in ("cold", "warm")}
    except Missing as missing:
        pytest.fail(str(missing))


NOTHING = {
    "the table itself": False,
    "rows by a data file": False,
    "rows by a manifest": False,
    "statistics by a manifest": False,
}
ALL = NOTHING | {"rows by a data file": True, "rows by a manifest": True, "statistics by a manifest": True}


def test_without_caches_the_store_refuses_files_of_another_table(world: World, people: None, tmp_path: Path) -> None:
    """Use the configuration of `docs/trino.md`."""
    assert tried(world, tmp_path) == {"cold": NOTHING, "warm": NOTHING}


def test_default_metadata_cache_exposes_data_that_the_owner_has_read(
    world: World, people: None, tmp_path: Path
) -> None:
    """`docs/trino.md` disables this cache for that reason. If fewer attacks succeed, update that page."""
    found = tried(world, tmp_path, iceberg__metadata_cache__enabled="true")
    assert found == {"cold": NOTHING, "warm": ALL}


def test_file_cache_exposes_data_that_the_owner_has_read(world: World, people: None, tmp_path: Path) -> None:
    """The same for the cache on disk."""
    (tmp_path / "cache").mkdir()
    found = tried(
        world,
        tmp_path,
        fs__cache__enabled="true",
        fs__cache__directories=str(tmp_path / "cache"),
        fs__cache__max_sizes="200MB",
    )
    assert found == {"cold": NOTHING, "warm": ALL}
