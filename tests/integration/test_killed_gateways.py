# SPDX-License-Identifier: Apache-2.0
"""A gateway that is killed under load loses no acknowledged commit and leaves no partial change (invariant 5).

One worker, the main process or all processes of the gateway get SIGKILL, again and again. Meanwhile some clients
append, and some create, rename, register and drop. Afterwards the content of the database, the store and OpenFGA is
read directly and compared.
"""

from __future__ import annotations

import gzip
import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.load.appends import Ledger, Try, append, check_history, client, load, new_snapshot_id, send
from tests.support.load.churn import Churn
from tests.support.load.kills import SOON, Killable, no_principal_is_left, soon
from tests.support.runs.retries import RETRIES
from tests.support.stack.world import Table, World

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


@pytest.fixture
def world(restarted_gateway: Killable) -> Iterator[World]:
    """Return the users and objects of the stack."""
    world = World(restarted_gateway.ready)
    yield world
    world.close()


@pytest.mark.parametrize(
    "kills",
    [
        # Each kind of kill at least once: see `_kill_again_and_again`.
        pytest.param(4, id="short", marks=pytest.mark.timeout(800)),
        pytest.param(60, id="long", marks=[pytest.mark.long, pytest.mark.timeout(5400)]),
    ],
)
def test_gateway_killed_under_load_loses_no_change_and_leaves_no_residue(
    world: World, restarted_gateway: Killable, kills: int
) -> None:
    others = {row["id"] for row in world.sql("select id::text from tables")}
    files_of_others = world.objects("demo/")
    namespaces = (world.namespace(), world.namespace())
    tables = [world.table(namespaces[0], properties={"format-version": version}) for version in ("2", "3", "2")]
    ledgers = [Ledger() for _ in tables]
    over = threading.Event()
    churns = [Churn(client(world.base, world.admin.token), world.root, namespaces, seed) for seed in range(3)]
    work: list[Callable[[], None]] = [partial(churn.run, over) for churn in churns]
    for table, ledger in zip(tables, ledgers, strict=True):
        work += [partial(_append, world, table, ledger, over) for _ in range(2)]
    threads = [threading.Thread(target=each, daemon=True) for each in work]
    for thread in threads:
        thread.start()
    _kill_again_and_again(restarted_gateway, kills)
    over.set()
    for thread in threads:
        thread.join(150)
        assert not thread.is_alive()
    # Kill the processes that run now too, so that none drains: what remains is the state after a kill.
    restarted_gateway.kill()
    no_principal_is_left(world)
    left = {name: world.sql(f"select count(*) as n from {name}")[0]["n"] for name in ("pending_files", "outbox")}
    restarted_gateway.start(METADATA_CLEANUP_WINDOW="1s")
    acknowledged = [len(ledger.acknowledged) for ledger in ledgers]
    print(f"{kills} kills; acknowledged {acknowledged}, unknown {[len(each.unknown) for each in ledgers]}, left {left}")
    print(f"others: {[dict(sorted(churn.answers.items())) for churn in churns]}")
    assert all(acknowledged)
    for table, ledger in zip(tables, ledgers, strict=True):
        _keys_match_outcomes(world, table, ledger)
        check_history(world.admin.get(table.path).json()["metadata"], ledger)
    assert not any(status >= 500 and status != 503 for churn in churns for status in churn.answers)
    soon(lambda: world.sql("select 1 from outbox") == [], "the outbox does not empty")
    soon(lambda: world.sql("select 1 from pending_files") == [], "files are still noted")
    world.quiet()
    assert world.sql("select * from tasks where status = 'failed'") == []
    _every_file_is_named(world, set().union(*(churn.places for churn in churns)), others, files_of_others)
    _grants_and_things_agree(world, others)


def _append(world: World, table: Table, ledger: Ledger, over: threading.Event) -> None:
    http = client(world.base, world.admin.token)
    while not over.is_set():
        metadata = load(http, table.path, time.monotonic() + 30)
        if metadata is None:
            continue
        snapshot = new_snapshot_id()
        tried = Try(snapshot, table.path, append(metadata, snapshot), str(uuid.uuid4()))
        ledger.note(tried, send(http, tried))


def _kill_again_and_again(gateway: Killable, kills: int) -> None:
    chance = random.Random(20)
    for number in range(kills):
        time.sleep(chance.uniform(0.3, 1.2))
        if number % 2 == 0:
            gateway.kill_worker(chance)
            continue
        if number % 4 == 1:
            gateway.kill()
        else:
            gateway.kill_main()
        gateway.start()


def _keys_match_outcomes(world: World, table: Table, ledger: Ledger) -> None:
    """Check that a repeated append succeeds if it was applied before, and that none is applied twice."""

    def there() -> set[int]:
        metadata = world.admin.get(table.path).json()["metadata"]
        return {each["snapshot-id"] for each in metadata["snapshots"]}

    before = there()
    http = client(world.base, world.admin.token)
    for tried in list(ledger.unknown):
        answer = _sent_again(http, tried)
        if tried.snapshot in before:
            assert answer.status_code == 200, f"the repeated request must report the first effect: {answer.text}"
        else:
            assert (answer.status_code == 200) == (tried.snapshot in there()), answer.text
    for tried in ledger.acknowledged[-5:]:
        again = _sent_again(http, tried)
        assert again.status_code == 200, again.text


def _sent_again(http: httpx.Client, tried: Try) -> httpx.Response:
    """Send an append again until the gateway answers with neither 429 nor 503; return the answer."""
    deadline = time.monotonic() + SOON
    while True:
        answer = send(http, tried)
        if answer is None or answer.status_code in (429, 503):
            RETRIES.note()
        if answer is not None and answer.status_code not in (429, 503):
            return answer
        assert time.monotonic() < deadline, "the gateway did not answer before the deadline"
        time.sleep(0.5)


def _every_file_is_named(
    world: World, left: set[str], others: set[str], files_of_others: frozenset[tuple[str, str]]
) -> None:
    """Check that the store holds exactly the files that tables and views reference.

    Locations that were dropped without their files are exempt, and the objects and files that existed before the test.
    """
    base = f"s3://{world.bucket}/"
    named: set[str] = set()
    for row in world.sql("select id::text, metadata_location, metadata from tables where staged_by is null"):
        if row["id"] in others:
            continue
        document: dict[str, Any] = json.loads(row["metadata"])
        named |= {row["metadata_location"], *(each["metadata-file"] for each in document.get("metadata-log", ()))}
    stored = {base + key for key, _ in world.objects("demo/") - files_of_others}
    missing = {file for file in named if file not in stored}
    assert missing == set(), "a file that a metadata pointer or log names is missing"
    strays = {file for file in stored - named if not any(file.startswith(f"{location}/") for location in left)}
    assert strays == set()
    for file in sorted(named)[:50]:
        raw = world.s3.get_object(Bucket=world.bucket, Key=file.removeprefix(base))["Body"].read()
        json.loads(gzip.decompress(raw) if ".gz." in file else raw)


def _grants_and_things_agree(world: World, others: set[str]) -> None:
    """Check that tables and views have their namespace as parent in OpenFGA, and dropped ones no tuple or grant."""
    found = world.sql("select id::text, kind, namespace_id::text from tables where staged_by is null")
    rows = [row for row in found if row["id"] not in others]
    kinds = {row["id"]: row["kind"] for row in rows}
    for row in rows:
        object = f"{row['kind']}:{row['id']}"
        parents = {user for user, relation in world.tuples(object) if relation == "parent"}
        assert parents == {f"namespace:{row['namespace_id']}"}, object
    for kind in ("table", "view"):
        for _, object in world.tuples_of("user:oidc~admin", kind):
            id = object.partition(":")[2]
            assert id in others or kinds.get(id) == kind, f"{object} is gone and still has an owner"
    granted = [row for row in _granted(world) if row["object_id"] not in others]
    assert {row["object_id"] for row in granted} <= set(kinds)
    owned = {row["object_id"] for row in granted if row["privilege"] == "ownership"}
    assert owned == set(kinds), "each created object must have an owner"


def _granted(world: World) -> list[Any]:
    return world.sql("select privilege, object_id from grants where object_type in ('table', 'view')")
