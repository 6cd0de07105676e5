# SPDX-License-Identifier: Apache-2.0
"""Drift: the gateway detects and repairs changes that another client makes directly in OpenFGA.

On the real stack, with the drift watch of the gateway that serves it. The specified bound is one second. The tests
allow much more for a loaded machine; they detect drift that is never found or never repaired.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.rows.relations import FOREVER, Relations, Tuple, soon
from tests.support.stack.world import SCHEMA, World, send_with_retries, unique

pytestmark = pytest.mark.servers

NOTICED = 30.0


@pytest.fixture(scope="module")
def relations(world: World) -> Iterator[Relations]:
    relations = Relations(world)
    yield relations
    relations.close()


@pytest.fixture(scope="module")
def ns(world: World) -> str:
    return world.namespace()


@pytest.fixture(scope="module")
def ns_id(world: World, ns: str) -> str:
    return world.namespace_id(ns)


def test_grant_written_to_openfga_is_removed_quickly(world: World, relations: Relations, ns: str) -> None:
    table = world.table(ns)
    grant = ("user:oidc~steward", "modify", f"table:{table.uuid}")
    before = world.sql("select revision from warehouses where id = $1", world.warehouse)[0]["revision"]
    relations.write(grant)
    soon(lambda: world.steward.get(table.path).status_code == 404, seconds=NOTICED)
    soon(lambda: not relations.there(grant), seconds=NOTICED)
    soon(
        lambda: bool(
            world.sql(
                "select 1 from audit_log where operation = 'repair_drift' and position($1 in encode(record, "
                "'escape')) > 0",
                table.uuid,
            )
        ),
        seconds=NOTICED,
    )
    assert world.sql("select revision from warehouses where id = $1", world.warehouse)[0]["revision"] != before
    assert world.sql("select 1 from grants where object_id = $1 and principal_id = 'oidc~steward'", table.uuid) == []


@pytest.mark.parametrize("until", [None, FOREVER])
@pytest.mark.parametrize(
    ("user", "relation"),
    [
        ("user:oidc~steward", "select"),
        ("user:oidc~steward", "traverse"),
        ("user:oidc~never-seen", "ownership"),
        ("user:not!as@we-write", "modify"),
        ("role:9a1c5b5e-5f0e-4d5c-8a39-2f1d3c7b6e01#assignee", "manage_grants"),
        ("role:no-uuid#assignee", "manage_grants"),
    ],
)
def test_tuple_without_a_row_is_removed(
    world: World, relations: Relations, ns_id: str, user: str, relation: str, until: str | None
) -> None:
    written = (user, relation, f"namespace:{ns_id}")
    relations.write(written, until=until)
    soon(lambda: not relations.there(written), seconds=NOTICED)


@pytest.mark.parametrize("user", ["user:*", "role:*"])
def test_managed_access_tuple_without_a_row_is_removed(relations: Relations, ns_id: str, user: str) -> None:
    flag = (user, "managed_access", f"namespace:{ns_id}")
    relations.write(flag)
    soon(lambda: not relations.there(flag), seconds=NOTICED)


def test_tuple_on_a_dropped_object_is_removed(world: World, relations: Relations, ns: str) -> None:
    table = world.table(ns)
    assert world.admin.delete(table.path).status_code == 204
    left = [
        ("user:oidc~steward", "select", f"table:{table.uuid}"),
        (f"namespace:{world.namespace_id(ns)}", "parent", f"table:{table.uuid}"),
        ("user:oidc~steward", "select", f"table:{uuid4()}"),
    ]
    relations.write(*left)
    soon(lambda: not any(relations.there(each) for each in left), seconds=NOTICED)


def test_tuple_deleted_in_openfga_is_restored(world: World, relations: Relations, ns: str, ns_id: str) -> None:
    table = world.table(ns)
    world.grant("select", world.analyst, "table", table.uuid)
    expected = [
        ("user:oidc~analyst", "select", f"table:{table.uuid}"),
        ("user:oidc~analyst", "traverse", f"namespace:{ns_id}"),
        (f"namespace:{ns_id}", "parent", f"table:{table.uuid}"),
        (f"project:{world.project}", "project", f"warehouse:{world.warehouse}"),
    ]
    soon(lambda: all(relations.there(each) for each in expected), seconds=NOTICED)
    relations.delete(*expected)
    soon(lambda: all(relations.there(each) for each in expected), seconds=NOTICED)
    soon(lambda: world.analyst.get(table.path).status_code == 200, seconds=NOTICED)


def test_changed_tuple_condition_is_restored_from_the_rows(world: World, relations: Relations, ns: str) -> None:
    table = world.table(ns)
    world.grant("select", world.analyst, "table", table.uuid)
    grant = ("user:oidc~analyst", "select", f"table:{table.uuid}")
    relations.delete(grant)
    relations.write(grant, until=FOREVER)
    soon(lambda: relations.all().get(grant, "absent") is None, seconds=NOTICED)


def test_object_moved_in_openfga_is_moved_back(world: World, relations: Relations, ns_id: str) -> None:
    """The tuple is replaced, and added as a second parent, through which the table would inherit further rights."""
    name = world.namespace()
    table = world.table(name)
    right = (f"namespace:{world.namespace_id(name)}", "parent", f"table:{table.uuid}")
    wrong = (f"namespace:{ns_id}", "parent", f"table:{table.uuid}")
    relations.write(wrong)
    soon(lambda: not relations.there(wrong), seconds=NOTICED)
    assert relations.there(right)
    relations.delete(right)
    relations.write(wrong)
    soon(lambda: relations.there(right) and not relations.there(wrong), seconds=NOTICED)


def _posted_until_decided(world: World, path: str, body: dict[str, Any]) -> httpx.Response:
    """Post a change until it succeeds, and return the answer. A gateway revalidates a decision before COMMIT if a right
    was revoked meanwhile, and gives up if that is overtaken again; under concurrent revocations the request needs a
    retry.
    """
    answer = send_with_retries(lambda: world.admin.post(path, body), seconds=10, pause=0.0)
    assert answer.status_code in (200, 204), answer.text
    return answer


def test_gateway_changes_are_never_detected_as_drift(world: World, relations: Relations) -> None:
    """Grants, revocations, creations and drops run concurrently: no finding, and the outbox becomes empty."""
    found = relations.counted("lakegate_drift_found_total")
    name = world.namespace()
    tables = [world.table(name) for _ in range(3)]

    def attempt(seed: int) -> None:
        chance = Random(seed)
        for _ in range(12):
            table = chance.choice(tables)
            person = chance.choice([world.analyst, world.steward])
            verb = chance.choice(["writes", "deletes"])
            entry = [{"type": chance.choice(["select", "modify"]), "user": person.id}]
            world.admin.post(world.grants_path("table", table.uuid), {verb: entry})
            if chance.random() < 0.3:
                place, short_lived = f"{world.root}/namespaces/{name}/tables", unique("t")
                made = _posted_until_decided(world, place, {"name": short_lived, "schema": SCHEMA})
                grants = world.grants_path("table", made.json()["metadata"]["table-uuid"])
                _posted_until_decided(world, grants, {"writes": [{"type": "select", "user": person.id}]})
                world.admin.delete(f"{place}/{short_lived}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(attempt, range(4)))
    soon(lambda: world.sql("select 1 from outbox") == [], seconds=60)
    # Wait for one more check, whose window covers all of these changes.
    before = relations.counted("lakegate_drift_last_checked_timestamp_seconds")
    soon(lambda: relations.counted("lakegate_drift_last_checked_timestamp_seconds") > before, seconds=60)
    assert relations.counted("lakegate_drift_found_total") == found
    dry = relations.reconcile("--dry-run")
    assert (dry.returncode, dry.stderr) == (0, ""), dry.stdout


def test_concurrent_changes_on_both_sides_converge_to_the_rows(world: World, relations: Relations) -> None:
    """Users grant and revoke through the gateway while another client writes and deletes the same tuples in OpenFGA."""
    name = world.namespace()
    table = world.table(name)
    on = f"table:{table.uuid}"
    keys: list[Tuple] = [
        (f"user:{person.id}", privilege, on)
        for person in (world.analyst, world.steward)
        for privilege in ("select", "modify")
    ]

    def through_the_gateway(seed: int) -> None:
        chance = Random(seed)
        for _ in range(15):
            user, privilege, _ = chance.choice(keys)
            entry = [{"type": privilege, "user": user.removeprefix("user:")}]
            world.admin.post(world.grants_path("table", table.uuid), {chance.choice(["writes", "deletes"]): entry})

    def behind_its_back(seed: int) -> None:
        chance = Random(seed)
        for _ in range(25):
            key = chance.choice(keys)
            try:
                if chance.random() < 0.5:
                    relations.write(key, until=chance.choice([None, FOREVER]))
                else:
                    relations.delete(key)
            except AssertionError:
                continue  # the tuple exists already, or is deleted already

    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(through_the_gateway, seed) for seed in (1, 2)]
        work += [pool.submit(behind_its_back, seed) for seed in (3, 4)]
        for each in work:
            each.result()

    def so() -> bool:
        rows = world.sql("select principal_id, privilege from grants where object_id = $1", table.uuid)
        expected = {(f"user:{row['principal_id']}", row["privilege"], on): None for row in rows}
        present = {key: until for key, until in relations.all().items() if key[2] == on and key[1] != "parent"}
        return present == expected and world.sql("select 1 from outbox where object_id = $1", table.uuid) == []

    soon(so, seconds=60)
