# SPDX-License-Identifier: Apache-2.0
"""Deleted and deactivated users have no rights when they return, whatever they created concurrently (LG-DIS-05).

Users are deleted by an administrator and by a directory, without faults and after outages.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest
from asyncpg.exceptions import DeadlockDetectedError

from tests.support.servers.toxic import GONE
from tests.support.stack.attacked_directories import Attacked, attacked, entra
from tests.support.stack.directories import USERS, Directory, scim_error
from tests.support.stack.world import SCHEMA, Person, World, error_triple, unique

pytestmark = pytest.mark.servers

__all__ = ["attacked", "entra"]

_ROUNDS = 12
_AT_ONCE = 4
_USER = "/management/v1/user"
_INACTIVE = {"op": "replace", "path": "active", "value": False}


def test_deleted_user_owns_no_concurrent_creation_after_returning(world: World, ns: str) -> None:
    space = world.namespace_id(ns)
    created = 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for number in range(_ROUNDS):
            leaver = world.stranger()
            world.grant("create", leaver, "namespace", space)
            # At the deletion, some creations are complete, some are authorized but not committed, and some begin later.
            creating = [pool.submit(_create_until_refused, world, leaver, ns) for _ in range(_AT_ONCE)]
            time.sleep(0.2 + 0.02 * number)
            assert world.admin.delete(f"/management/v1/user/{leaver.id}").status_code == 204
            created += sum(each.result() for each in creating)
            assert world.sql("select * from grants where principal_id = $1", leaver.id) == []
            for kind in ("table", "namespace", "warehouse"):
                assert world.tuples_of(f"user:{leaver.id}", kind) == set()
            assert leaver.get(f"{world.root}/namespaces/{ns}/tables").status_code == 404
    assert created > 0


def _create_until_refused(world: World, person: Person, ns: str) -> int:
    """Return the number of tables that the user created before the first refusal."""
    made = 0
    with httpx.Client(base_url=world.base, trust_env=False, timeout=60) as http:
        while True:
            body = {"name": unique("t"), "schema": SCHEMA}
            headers = {"Authorization": f"Bearer {person.token}"}
            answer = http.post(f"{world.root}/namespaces/{ns}/tables", json=body, headers=headers)
            if answer.status_code in (403, 404):
                return made
            # 429: the user's grants change during each decision.
            assert answer.status_code in (200, 429), answer.text
            made += answer.status_code == 200


@pytest.mark.chaos
def test_user_deletion_after_an_outage_completes_by_retry(world: World, attacked: Attacked, ns: str) -> None:
    admin = Person("admin", world.admin.id, world.admin.token, attacked.shaky.base)
    leaver = world.stranger()
    world.grant("create", leaver, "namespace", world.namespace_id(ns))
    path = f"{_USER}/{leaver.id}"
    assert error_triple(admin.delete(f"{_USER}/oidc~nobody"))[:2] == (404, "UserNotFound"), (
        "expected 404; the request caches the caller's right to delete users"
    )
    _leaves_something(world, attacked, leaver, ns, lambda: admin.delete(path))
    assert error_triple(admin.delete(path))[0] == 503, "the deletion must not be reported as done"
    attacked.shaky.well()
    again = _send_until_success(lambda: admin.delete(path))
    assert again.status_code == 204, "the repeated deletion must succeed"
    _nothing_is_left(world, leaver)
    assert error_triple(admin.delete(path))[:2] == (404, "UserNotFound")
    _deliver_the_rest(world)


@pytest.mark.chaos
def test_user_deletion_after_an_outage_completes_in_the_background(world: World, attacked: Attacked, ns: str) -> None:
    """No client retries the deletion, as after a kill."""
    admin = Person("admin", world.admin.id, world.admin.token, attacked.shaky.base)
    leaver = world.stranger()
    world.grant("create", leaver, "namespace", world.namespace_id(ns))
    assert error_triple(admin.delete(f"{_USER}/oidc~nobody"))[0] == 404
    _leaves_something(world, attacked, leaver, ns, lambda: admin.delete(f"{_USER}/{leaver.id}"))
    attacked.shaky.well()
    _deliver_the_rest(world)
    deadline = time.monotonic() + 90
    while world.sql("select 1 from grants where principal_id = $1", leaver.id):
        assert time.monotonic() < deadline, "the deletion was not completed before the deadline"
        time.sleep(0.5)
    while world.tuples_of(f"user:{leaver.id}", "table"):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert world.sql("select 1 from departures where user_id = $1", leaver.id) == []


def test_user_returning_during_deletion_loses_all_rights(world: World, attacked: Attacked, ns: str) -> None:
    """The second deletion must see the pending revocations although a new user row exists."""
    admin = Person("admin", world.admin.id, world.admin.token, attacked.shaky.base)
    leaver = world.stranger()
    world.grant("create", leaver, "namespace", world.namespace_id(ns))
    path = f"{_USER}/{leaver.id}"
    assert error_triple(admin.delete(f"{_USER}/oidc~nobody"))[0] == 404
    attacked.shaky.parts["openfga"].become(GONE)
    try:
        assert error_triple(admin.delete(path))[0] == 503
        _hold_delivery(world)
        assert leaver.post(_USER, {"name": "again", "user-type": "human"}).status_code == 201
        assert error_triple(admin.delete(path))[0] == 503, (
            "the repeated deletion must not be reported as done before the first one is delivered"
        )
    finally:
        attacked.shaky.well()
    assert _send_until_success(lambda: admin.delete(path)).status_code == 204
    _nothing_is_left(world, leaver)
    _deliver_the_rest(world)


def test_retried_role_deletion_waits_for_the_first(world: World, attacked: Attacked, ns: str) -> None:
    """Without an idempotency key the retry returns 404: the right to delete the role ended with the role."""
    admin = Person("admin", world.admin.id, world.admin.token, attacked.shaky.base)
    made = admin.post("/management/v1/role", {"name": unique("r"), "project-id": world.project})
    assert made.status_code == 201, made.text
    role, key = made.json()["id"], {"Idempotency-Key": str(uuid.uuid4())}
    entry = {"writes": [{"type": "select", "role": role}]}
    assert admin.post(world.grants_path("namespace", world.namespace_id(ns)), entry).status_code == 204
    path, holder = f"/management/v1/role/{role}", (f"role:{role}#assignee", "select")
    held = f"namespace:{world.namespace_id(ns)}"
    assert holder in world.tuples(held)
    assert admin.get(f"{path}/actions").status_code == 200, (
        "expected 200; the request caches the caller's rights on the role"
    )
    attacked.shaky.parts["openfga"].become(GONE)
    try:
        deleted = admin.send("DELETE", path, headers=key)
        _hold_delivery(world)
        assert error_triple(deleted)[0] == 503 and holder in world.tuples(held)
        assert error_triple(admin.send("DELETE", path, headers=key))[0] == 503
    finally:
        attacked.shaky.well()
    assert _send_until_success(lambda: admin.send("DELETE", path, headers=key)).status_code == 204
    assert holder not in world.tuples(held)
    _deliver_the_rest(world)


def test_user_deleted_by_a_directory_owns_no_concurrent_creation(world: World, entra: Directory, ns: str) -> None:
    user, leaver = _kept(world, entra, ns)
    with (
        _slow(world, "audit_log", f"new.operation = 'create_table' and {_about(leaver)}"),
        ThreadPoolExecutor() as pool,
    ):
        creating = _begun(world, pool, leaver, ns)
        assert entra.scim.delete(f"{USERS}/{user['id']}").status_code == 204
        assert world.sql("select 1 from grants where principal_id = $1", leaver.id) == []
        assert creating.result().status_code == 200, "the deletion must wait for the creation, which was allowed"
    _nothing_is_left(world, leaver)


@pytest.mark.chaos
def test_directory_deletion_after_an_outage_completes_by_retry(world: World, attacked: Attacked, ns: str) -> None:
    user, leaver = _kept(world, attacked.entra, ns)
    scim, path = attacked.entra.scim, f"{USERS}/{user['id']}"
    assert scim.get(path).status_code == 200
    _leaves_something(world, attacked, leaver, ns, lambda: scim.delete(path))
    attacked.shaky.well()
    again = _send_until_success(lambda: scim.delete(path))
    assert scim_error(again)[0] == 404
    _nothing_is_left(world, leaver)
    _deliver_the_rest(world)


def test_deactivated_user_has_no_right_to_concurrent_creations(world: World, entra: Directory, ns: str) -> None:
    user, leaver = _kept(world, entra, ns)
    # The deactivation has read the user's grants but is not committed; the creation is committed and delivered.
    held = f"new.takes_away and new.subject_id = '{leaver.id}' and new.relation = 'create'"
    with _slow(world, "outbox", held), ThreadPoolExecutor() as pool:
        deactivating = pool.submit(entra.patch, user, _INACTIVE)
        _wait_for_a_sleeper(world)
        made = leaver.post(f"{world.root}/namespaces/{ns}/tables", {"name": unique("t"), "schema": SCHEMA})
        assert made.status_code == 200, made.text
        assert not deactivating.done(), "the deactivation ended before the creation, so the test proves nothing"
        assert deactivating.result().status_code == 200
        assert world.tuples_of(f"user:{leaver.id}", "table") == set()
    assert len(world.sql("select 1 from grants where principal_id = $1 and object_type = 'table'", leaver.id)) == 1
    entra.patch(user, {"op": "replace", "path": "active", "value": True})
    assert [relation for relation, _ in world.tuples_of(f"user:{leaver.id}", "table")] == ["ownership"]


# ---- helpers --------------------------------------------------------------------------------------------------------


def _kept(world: World, directory: Directory, ns: str) -> tuple[dict[str, Any], Person]:
    """Return a directory user with `create` on the namespace."""
    user = directory.user()
    person = directory.sign_in(user["externalId"])
    world.grant("create", person, "namespace", world.namespace_id(ns))
    return user, person


def _leaves_something(
    world: World, attacked: Attacked, leaver: Person, ns: str, deletion: Callable[[], httpx.Response]
) -> None:
    """Delete the user during an OpenFGA outage, and commit a creation of the user afterwards.

    The deletion returns 503. The outbox entries of the deletion are held back: the other gateway of this stack reaches
    OpenFGA and would deliver them.
    """
    with (
        _slow(world, "audit_log", f"new.operation = 'create_table' and {_about(leaver)}"),
        ThreadPoolExecutor() as pool,
    ):
        creating = _begun(world, pool, leaver, ns)
        attacked.shaky.parts["openfga"].become(GONE)
        answer = deletion()
        _hold_delivery(world)
        assert answer.status_code == 503, answer.text
        assert creating.result().status_code == 200
    rows = world.sql("select privilege from grants where principal_id = $1", leaver.id)
    assert [row["privilege"] for row in rows] == ["ownership"], (
        "the ownership must have been written after the deletion began"
    )


def _begun(world: World, pool: ThreadPoolExecutor, person: Person, ns: str) -> Future[httpx.Response]:
    """Begin a creation; return when it is authorized and waits before its commit."""
    body = {"name": unique("t"), "schema": SCHEMA}
    creating = pool.submit(person.post, f"{world.root}/namespaces/{ns}/tables", body)
    _wait_for_a_sleeper(world)
    return creating


def _about(person: Person) -> str:
    return f"position('{person.id}' in convert_from(new.record, 'UTF8')) > 0"


@contextmanager
def _slow(world: World, table: str, when: str) -> Iterator[None]:
    """Delay each transaction for some seconds when it inserts a row into `table` that matches `when`."""
    world.sql(
        "create or replace function stand_still() returns trigger language plpgsql as $$ begin "
        "perform pg_sleep(3); return null; end $$"
    )
    world.sql(
        f"create trigger stands_still after insert on {table} for each row when ({when}) execute function stand_still()"
    )
    try:
        yield
    finally:
        _drop_trigger(world, table)
        world.sql("drop function stand_still()")


def _drop_trigger(world: World, table: str) -> None:
    """Drop the trigger. It locks the partitions one by one, so a statement of a gateway can deadlock with it."""
    for _ in range(10):
        with suppress(DeadlockDetectedError):
            world.sql(f"drop trigger stands_still on {table}")
            return
    raise AssertionError("each attempt to drop the trigger met a deadlock")


def _wait_for_a_sleeper(world: World) -> None:
    deadline = time.monotonic() + 30
    while not world.sql("select 1 from pg_stat_activity where wait_event = 'PgSleep'"):
        assert time.monotonic() < deadline, "no transaction waited before the deadline"
        time.sleep(0.02)


def _hold_delivery(world: World) -> None:
    world.sql("update outbox set not_before = clock_timestamp() + interval '1 hour'")


def _deliver_the_rest(world: World) -> None:
    world.sql("update outbox set not_before = clock_timestamp()")


def _send_until_success(send: Callable[[], httpx.Response]) -> httpx.Response:
    deadline = time.monotonic() + 60
    while (answer := send()).status_code == 503:
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.3)
    return answer


def _nothing_is_left(world: World, person: Person) -> None:
    assert world.sql("select * from grants where principal_id = $1", person.id) == []
    for kind in ("table", "namespace", "warehouse"):
        assert world.tuples_of(f"user:{person.id}", kind) == set()
