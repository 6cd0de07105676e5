# SPDX-License-Identifier: Apache-2.0
"""Each server of a stack stops answering and resumes: no request is allowed meanwhile, and recovery needs no restart.

A server is stopped with SIGSTOP, which is harder to detect than a crash: its connections stay open and nothing answers.
The module has its own stack.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import msgspec
import psutil
import pytest

from lakegate.local.ready import Ready
from tests.integration.conftest import _up
from tests.support.processes import suspended
from tests.support.stack.world import SCHEMA, Table, World, error_of, unique

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

_SOON = 60.0


@pytest.fixture(scope="module")
def outage_stack() -> Iterator[Ready]:
    """Start a stack whose servers the tests stop."""
    with _up() as running:
        yield running


@pytest.fixture(scope="module")
def world(outage_stack: Ready) -> Iterator[World]:
    """Return the users and objects of the stack."""
    world = World(outage_stack)
    yield world
    world.close()


@pytest.fixture(scope="module")
def ns(world: World) -> str:
    """Create a namespace before the outage."""
    return world.namespace()


@pytest.fixture(scope="module")
def table(world: World, ns: str) -> Table:
    """Create a table and load it as alice before the outage."""
    made = world.table(ns)
    assert world.alice.get(made.path).status_code == 200
    return made


def _soon(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _SOON
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def _well(world: World, table: Table) -> None:
    """Wait until the stack serves again."""
    _soon(lambda: world.alice.get(table.path).status_code == 200, "it did not recover")
    _soon(lambda: world.unauthenticated.get("/health").status_code == 200, "health did not recover")


def _refused_read(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    error_of(answer)
    assert int(answer.headers["retry-after"]) >= 1


def _refused_change(answer: httpx.Response) -> None:
    """Check for 429 and never 5xx: clients read a 5xx of a commit as "state unknown"."""
    assert answer.status_code == 429, answer.text
    error_of(answer)
    assert int(answer.headers["retry-after"]) >= 1


Send = Callable[[], httpx.Response]


def _at_once(*groups: list[Send]) -> list[list[httpx.Response]]:
    """Send the requests of all groups concurrently, since each waits for a timeout; return the answers by group."""
    with ThreadPoolExecutor(sum(map(len, groups))) as pool:
        sent = [[pool.submit(send) for send in group] for group in groups]
        return [[answer.result() for answer in group] for group in sent]


def _changes(world: World, ns: str, table: Table) -> list[Send]:
    tables = f"{world.root}/namespaces/{ns}/tables"
    staged = {"name": unique("new"), "schema": SCHEMA, "stage-create": True}
    return [
        lambda: world.commit(world.admin, table.path, {"action": "set-properties", "updates": {"a": "b"}}),
        lambda: world.admin.post(tables, {"name": unique("new"), "schema": SCHEMA}),
        lambda: world.admin.post(tables, staged),
        lambda: world.admin.post(f"{world.root}/namespaces", {"namespace": [unique("new")]}),
        lambda: world.admin.post(f"{world.root}/namespaces/{ns}/properties", {"updates": {"a": "b"}}),
        lambda: world.admin.delete(table.path),
        lambda: world.admin.delete(f"{world.root}/namespaces/{ns}"),
    ]


def _reads(world: World, ns: str, table: Table) -> list[Send]:
    paths = [
        table.path,
        f"{table.path}/credentials",
        f"{world.root}/namespaces",
        f"{world.root}/namespaces/{ns}/tables",
        "/catalog/v1/config?warehouse=demo",
        f"/management/v1/warehouse/{world.warehouse}",
    ]
    return [partial(world.alice.get, path) for path in paths]


def _refused(world: World, ns: str, table: Table) -> None:
    """Check that every read and every change is refused, and that no answer contains a key."""
    reads, changes, [head] = _at_once(
        _reads(world, ns, table), _changes(world, ns, table), [lambda: world.alice.head(table.path)]
    )
    for answer in reads:
        _refused_read(answer)
        assert "s3.secret-access-key" not in answer.text
    for answer in changes:
        _refused_change(answer)
    assert head.status_code == 503


def _cached_answers_end(world: World, table: Table) -> None:
    """Wait until no worker process uses cached answers of OPA: one second after the last read of OPA's revision."""
    time.sleep(1.5)
    _soon(lambda: world.alice.head(table.path).status_code == 503, "cached answers of OPA are used after their end")


@pytest.mark.parametrize("part", ["openfga", "opa"])
def test_decision_engine_outage_denies_all_without_a_change(world: World, ns: str, table: Table, part: str) -> None:
    # Invalidate every cached decision; `test_dependency_failures.py` tests the decisions that are cached.
    world.sql("update server set revision = gen_random_uuid()")
    before = world.rows(), world.objects()
    with suspended(world.ready.pids[part]):
        if part == "opa":
            _cached_answers_end(world, table)
        _refused(world, ns, table)
        _soon(lambda: world.unauthenticated.get("/health").status_code == 503, "health does not tell")
        assert f'"{part}"' in world.unauthenticated.get("/health").text
        assert (world.rows(), world.objects()) == before
    _well(world, table)


def test_revocation_during_an_openfga_stall_fails_and_can_be_retried(world: World, ns: str) -> None:
    table = world.table(ns)
    world.grant("select", world.analyst, "table", table.uuid)
    with suspended(world.ready.pids["openfga"]):
        for _ in ("first", "repeated"):
            _refused_read(world.revoke("select", world.analyst, "table", table.uuid, expect=503))
        assert world.analyst.get(table.path).status_code == 503
    _soon(lambda: world.analyst.get(table.path).status_code in (200, 404), "it did not recover")
    entry = {"deletes": [{"type": "select", "user": world.analyst.id}]}

    def ended() -> bool:
        """Repeat the revocation. Each answer but 503 tells the caller that the grant is not in force any more."""
        answer = world.admin.post(world.grants_path("table", table.uuid), entry)
        if answer.status_code == 503:
            return False
        assert answer.status_code in (204, 404), answer.text
        assert world.analyst.get(table.path).status_code == 404
        return True

    _soon(ended, "the repeated revocation is still pending")


def test_undelivered_tuples_of_a_killed_gateway_are_delivered_later(world: World, ns: str) -> None:
    """Simulate a crash before the delivery: the rows and the outbox row exist, and OpenFGA has no tuple."""
    id = world.namespace_id(ns)
    world.sql(
        "insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by) "
        "values (gen_random_uuid(), 'describe', 'user', 'oidc~steward', 'namespace', $1, 'oidc~admin')",
        id,
    )
    world.sql(
        "insert into outbox (subject_type, subject_id, relation, object_type, object_id, takes_away) "
        "values ('user', 'oidc~steward', 'describe', 'namespace', $1, false)",
        id,
    )
    _soon(lambda: ("user:oidc~steward", "describe") in world.tuples(f"namespace:{id}"), "never delivered")
    _soon(lambda: world.sql("select 1 from outbox") == [], "never marked as done")
    assert world.steward.get(f"{world.root}/namespaces/{ns}").status_code == 200


def test_outbox_is_delivered_after_openfga_recovers(world: World, ns: str, table: Table) -> None:
    id = world.namespace_id(ns)
    with suspended(world.ready.pids["openfga"]):
        world.sql("delete from grants where object_id = $1 and principal_id = 'oidc~steward'", id)
        world.sql(
            "insert into outbox (subject_type, subject_id, relation, object_type, object_id, takes_away) "
            "values ('user', 'oidc~steward', 'describe', 'namespace', $1, true)",
            id,
        )
        time.sleep(3)
        assert world.sql("select 1 from outbox") != []
    _soon(lambda: world.sql("select 1 from outbox") == [], "never delivered")
    assert ("user:oidc~steward", "describe") not in world.tuples(f"namespace:{id}")
    _well(world, table)


def test_database_outage_denies_all(world: World, ns: str, table: Table) -> None:
    with suspended(world.ready.pids["postgres"]):
        change = {"action": "set-properties", "updates": {"while": "down"}}
        [read], [changed] = _at_once(
            [lambda: world.alice.get(table.path)], [lambda: world.commit(world.admin, table.path, change)]
        )
        _refused_read(read)
        _refused_change(changed)
        _soon(lambda: world.unauthenticated.get("/health").status_code == 503, "health does not tell")
    _well(world, table)
    assert "while" not in world.admin.get(table.path).json()["metadata"]["properties"]


def test_store_outage_serves_metadata_and_refuses_changes(world: World, ns: str, table: Table) -> None:
    before = world.rows()
    # A row is added before a file is written and deleted with the file after an hour, since the outcome of the write is
    # unknown.
    del before["pending_files"]
    with suspended(world.ready.pids["object-store"]):
        managed = world.alice.get(table.path, headers={"X-Iceberg-Access-Delegation": "client-managed"})
        assert managed.status_code == 200
        assert world.alice.head(table.path).status_code == 204
        change = {"action": "set-properties", "updates": {"x": "y"}}
        [fresh], [changed] = _at_once(
            [lambda: world.bob.get(f"{table.path}/credentials")],
            [lambda: world.commit(world.admin, table.path, change)],
        )
        assert fresh.status_code == 503, fresh.text
        _refused_change(changed)
        after = world.rows()
        del after["pending_files"]
        assert after == before
    _well(world, table)


def test_table_creation_succeeds_if_only_vending_fails(world: World, ns: str) -> None:
    """The table's row is committed by then; a client would read any error as "nothing happened"."""
    (row,) = world.sql("select profile from warehouses where id = $1::text::uuid", world.warehouse)
    profile = msgspec.json.decode(row["profile"])
    profile["sts-endpoint"] = "http://127.0.0.1:9/"
    change = "update warehouses set profile = $2, profile_version = profile_version + 1 where id = $1::text::uuid"
    world.sql(change, world.warehouse, msgspec.json.encode(profile))
    try:
        name = unique("keyless")
        made = world.bob.post(f"{world.root}/namespaces/{ns}/tables", {"name": name, "schema": SCHEMA})
        assert made.status_code == 200, made.text
        assert not made.json().get("storage-credentials")
        _refused_read(world.bob.get(f"{world.root}/namespaces/{ns}/tables/{name}/credentials"))
    finally:
        world.sql(change, world.warehouse, row["profile"])
    assert world.bob.get(f"{world.root}/namespaces/{ns}/tables/{name}").json()["storage-credentials"]


def test_provider_outage_keeps_known_keys_and_refuses_unknown_tokens(world: World, ns: str, table: Table) -> None:
    with suspended(world.ready.pids["identity-provider"]):
        assert world.alice.get(table.path).status_code == 200
        header, claims, signature = world.alice.token.split(".")
        forged = world.unauthenticated.get(
            table.path, headers={"Authorization": f"Bearer {header}.{claims}.{signature[::-1]}"}
        )
        assert forged.status_code == 401
    _well(world, table)


def test_crashed_decision_engine_is_an_outage_and_no_permission(world: World, ns: str, table: Table) -> None:
    """This must be the last test: nothing restarts OPA in this stack."""
    psutil.Process(world.ready.pids["opa"][0]).kill()
    _cached_answers_end(world, table)
    _refused(world, ns, table)
