# SPDX-License-Identifier: Apache-2.0
"""A gateway that is killed during drops, undrops, moves and purges applies each of them completely or not at all
(invariant 5).

One worker or the whole gateway, including its task workers, gets SIGKILL again and again. Meanwhile users create
tables, views, generic tables and trees of namespaces; they rename, move, drop and undrop them, and let soft deletions
expire. Afterwards every request with an unknown outcome is sent again. Then the content of the database, the store and
OpenFGA is compared with the acknowledged changes and with each other.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support.load.appends import client
from tests.support.load.kills import Killable, no_principal_is_left, soon
from tests.support.load.lifecycles import GONE, KEPT, LIVE, Thing, Walker, definite
from tests.support.stack.lifecycle import fill, keys, soft_world
from tests.support.stack.world import World

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


@pytest.fixture
def world(restarted_gateway: Killable) -> Iterator[World]:
    """Return the users of the stack, and a warehouse with soft deletion."""
    own = World(restarted_gateway.ready)
    soft = soft_world(own)
    yield soft
    soft.close()
    own.close()


@pytest.mark.parametrize(
    "kills",
    [
        # Each kind of kill at least once: see `_kill_again_and_again`.
        pytest.param(4, id="short", marks=pytest.mark.timeout(800)),
        pytest.param(80, id="long", marks=[pytest.mark.long, pytest.mark.timeout(5400)]),
    ],
)
def test_acknowledged_changes_apply_exactly_once_after_any_kill(
    world: World, restarted_gateway: Killable, kills: int
) -> None:
    one_at_a_time = threading.Lock()

    def end_now(id: str) -> None:
        with one_at_a_time:
            world.sql("update tasks set scheduled_for = now() where entity_id = $1 and queue = 'soft_deletion'", id)

    def keep_keys() -> None:
        # Idempotency keys expire after half an hour, but the tests repeat requests with them after all kills.
        with one_at_a_time:
            world.sql("update idempotency set expires_at = now() + interval '1 day' where status is not null")

    walkers = [
        Walker(
            client(world.base, world.admin.token),
            world.warehouse,
            (world.namespace(), world.namespace()),
            end_now,
            lambda location: fill(world, location, 1),
            seed,
        )
        for seed in range(4)
    ]
    over = threading.Event()
    threads = [threading.Thread(target=walker.run, args=(over,), daemon=True) for walker in walkers]
    for thread in threads:
        thread.start()
    _kill_again_and_again(restarted_gateway, kills, lambda: sum(walker.acknowledged for walker in walkers), keep_keys)
    over.set()
    for thread in threads:
        thread.join(150)
        assert not thread.is_alive()
    # Kill the processes that run now too, so that none drains: what remains is the state after a kill.
    restarted_gateway.kill()
    no_principal_is_left(world)
    restarted_gateway.start(METADATA_CLEANUP_WINDOW="1s")
    _report(walkers, kills)
    for walker in walkers:
        _settle(walker)
    things = [thing for walker in walkers for thing in walker.things]
    assert not any(status >= 500 and status not in (500, 503) for walker in walkers for _, status in walker.answers)
    soon(lambda: world.sql("select 1 from outbox") == [], "the outbox does not empty")
    soon(lambda: world.sql("select 1 from pending_files") == [], "files are still noted")
    world.quiet()
    assert [dict(row) for row in world.sql("select queue, last_error from tasks where status = 'failed'")] == []
    for thing in things:
        _as_acknowledged(world, thing)
    _every_file_has_an_owner(world, things)
    _nothing_lies_in_nothing(world)
    compared = restarted_gateway.run("authz", "reconcile", "--dry-run")
    assert compared.returncode == 0, compared.stdout
    _lists_agree(world)


def _kill_again_and_again(
    gateway: Killable, kills: int, acknowledged: Callable[[], int], meanwhile: Callable[[], None]
) -> None:
    """Kill a worker after each few acknowledged changes, and every fourth time the whole gateway."""
    chance = random.Random(20)
    for number in range(kills):
        enough, deadline = acknowledged() + chance.randint(3, 25), time.monotonic() + 15
        while acknowledged() < enough and time.monotonic() < deadline:
            time.sleep(0.05)
        if number % 4 == 3:
            gateway.kill()
            gateway.start()
        else:
            gateway.kill_worker(chance)
        meanwhile()


def _settle(walker: Walker) -> None:
    """Repeat the requests with an unknown outcome, in their original order, until each outcome is known."""
    for thing in walker.things:
        while thing.pending is not None:
            answer = walker.send(thing.pending)
            if answer is not None and definite(answer):
                walker.settle(thing, answer)
                thing.done.append(f"settled {answer.status_code}")
            else:
                time.sleep(0.5)


def _report(walkers: list[Walker], kills: int) -> None:
    answers: Counter[tuple[str, int]] = Counter()
    for walker in walkers:
        answers.update(walker.answers)
    things = [thing for walker in walkers for thing in walker.things]
    unknown = sum(thing.pending is not None for thing in things)
    print(f"{kills} kills, {len(things)} things, {unknown} of unknown end; {dict(sorted(answers.items()))}")


def _as_acknowledged(world: World, thing: Thing) -> None:
    """Check that the row, its tuples and its files are as the last acknowledged change left them."""
    if thing.now is None or thing.id is None:
        return
    state = thing.now.state
    taken_along = thing.within is not None and thing.within.now is not None and thing.within.now.state == GONE
    label = f"{thing.kind} {thing.id}: {thing.done}"
    if thing.kind == "namespace":
        found = world.sql("select levels from namespaces where id = $1", thing.id)
        assert len(found) == (0 if state == GONE or taken_along else 1), label
        if found and thing.within is None:
            assert tuple(found[0]["levels"]) == thing.now.namespace, label
        assert bool(world.tuples(f"namespace:{thing.id}")) == bool(found), label
        return
    rows = world.sql(
        "select t.name, t.deleted_at is not null as deleted, n.levels from tables t "
        "join namespaces n on n.id = t.namespace_id where t.id = $1",
        thing.id,
    )
    if state == GONE or taken_along:
        assert rows == [], label
        assert world.tuples(f"{thing.type}:{thing.id}") == set(), label
        assert world.sql("select 1 from grants where object_id = $1", thing.id) == [], label
        if thing.now.purged or taken_along:
            soon(lambda: keys(world, thing.location) == set(), f"files are left: {label}")
        else:
            assert keys(world, thing.location), f"files are missing: {label}"
        return
    [row] = rows
    assert row["deleted"] == (state == KEPT), label
    assert row["name"] == thing.now.name, label
    if thing.within is None:
        assert tuple(row["levels"]) == thing.now.namespace, label
    held = {relation for _, relation in world.tuples(f"{thing.type}:{thing.id}")}
    assert held == {"parent", "ownership"}, label
    assert keys(world, thing.location), f"files are missing: {label}"
    ends = world.sql(
        "select 1 from tasks where entity_id = $1 and queue = 'soft_deletion' and status = 'scheduled'", thing.id
    )
    assert len(ends) == (1 if state == KEPT else 0), label
    assert state in (LIVE, KEPT), label


def _every_file_has_an_owner(world: World, things: list[Thing]) -> None:
    """Check that every stored file is in the location of a row, or of an object that was dropped without its files."""
    left = {thing.location for thing in things if thing.location and thing.now and not thing.now.purged}
    locations = left | {row["location"] for row in world.sql("select location from tables")}
    base = world.admin.get(f"/management/v1/warehouse/{world.warehouse}").json()["storage-profile"]["key-prefix"]
    strays = {
        key
        for key, _ in world.objects(f"{base}/")
        if not any(f"s3://{world.bucket}/{key}".startswith(f"{location}/") for location in locations)
    }
    assert strays == set()


def _nothing_lies_in_nothing(world: World) -> None:
    """Check that no grant is on an object that does not exist, and that every table and view has an owner."""
    orphans = """
        select g.object_type, g.object_id from grants g where
            g.object_type in ('table', 'view', 'generic_table')
                and not exists (select 1 from tables t where t.id::text = g.object_id)
            or g.object_type = 'namespace' and not exists (select 1 from namespaces n where n.id::text = g.object_id)
    """
    assert world.sql(orphans) == []
    unowned = """
        select id from tables where staged_by is null
            and not exists (select 1 from grants g where g.object_id = tables.id::text and g.privilege = 'ownership')
    """
    assert world.sql(unowned) == []


def _lists_agree(world: World) -> None:
    """Check that the list of dropped objects equals the marked rows, and that each of them can be undropped."""
    path = f"/management/v1/warehouse/{world.warehouse}/deleted-tabulars"
    listed = {each["id"]: each["typ"] for each in world.admin.get(path).json()["tabulars"]}
    marked = {
        row["id"]: row["kind"].replace("_", "-")
        for row in world.sql("select id::text, kind from tables where deleted_at is not null")
    }
    assert listed == marked
    for id, kind in list(listed.items())[:20]:
        back: httpx.Response = world.admin.post(f"{path}/undrop", {"targets": [{"type": kind, "id": id}]})
        assert back.status_code == 204, back.text
