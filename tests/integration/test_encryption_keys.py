# SPDX-License-Identifier: Apache-2.0
"""Rotation of the key that encrypts stored credentials, under two serving gateways.

The rotation is completed, interrupted, tried with wrong keys, and reverted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import httpx
import psutil
import pytest

from gateway.db.credentials.secrets import Sealer
from tests.support.lakegate_command import run_lakegate
from tests.support.servers.toxic import second_gateway
from tests.support.stack.world import World

NEXT = "the next key, long enough"
WRONG = "a key that was never used here"
KEY, OTHER = "PG_ENCRYPTION_KEY", "PG_ENCRYPTION_KEY_OTHER"
NOT_YET = 3

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(480)]  # several gateways and commands start, one after the other


@pytest.fixture(scope="module")
def first(world: World) -> str:
    """Return the key with which the stack was started."""
    return psutil.Process(world.ready.pids["gateway"][0]).environ()[f"LAKEGATE__{KEY}"]


def _environment(world: World, **keys: str) -> dict[str, str]:
    main = psutil.Process(world.ready.pids["gateway"][0])
    kept = {name: value for name, value in main.environ().items() if not name.startswith(f"LAKEGATE__{KEY}")}
    return kept | {f"LAKEGATE__{name}": value for name, value in keys.items()}


def lakegate(world: World, *arguments: str, **keys: str) -> subprocess.CompletedProcess[str]:
    """Run a `lakegate` command with the settings of the stack's gateway, but with these keys."""
    return run_lakegate(*arguments, environment=_environment(world, **keys))


def sealed(world: World) -> dict[str, bytes]:
    return {str(row["id"]): bytes(row["sealed"]) for row in world.sql("select id, sealed from secrets")}


def opened_by(world: World, *keys: str) -> int:
    sealer = Sealer(keys)
    return sum(sealer.opens(each) for each in sealed(world).values())


@contextmanager
def busy(world: World, bases: list[str], path: str) -> Iterator[list[str]]:
    """Load vended keys from every gateway repeatedly; the yielded list collects the unexpected answers."""
    wrong: list[str] = []
    over = threading.Event()
    requested = [0] * len(bases)

    def send(number: int) -> None:
        token = {"Authorization": f"Bearer {world.admin.token}"}
        with httpx.Client(base_url=bases[number], headers=token, timeout=60, trust_env=False) as client:
            while not over.is_set():
                answer = client.get(path)
                if answer.status_code == 503:  # an overloaded dependency proves nothing about keys
                    time.sleep(0.05)
                    continue
                if answer.status_code != 200 or not answer.json().get("storage-credentials"):
                    wrong.append(f"{answer.status_code} {answer.text[:300]}")
                requested[number] += 1
                time.sleep(0.05)  # the test needs correct answers, not many of them

    threads = [threading.Thread(target=send, args=(number,)) for number in range(len(bases))]
    for thread in threads:
        thread.start()
    try:
        yield wrong
        before = list(requested)
        deadline = time.monotonic() + 60
        while any(now - then < 2 for now, then in zip(requested, before, strict=True)):
            assert time.monotonic() < deadline, "a gateway stopped answering"
            time.sleep(0.05)
    finally:
        over.set()
        for thread in threads:
            thread.join(90)


def test_key_rotation_under_two_gateways_fails_no_load(
    world: World, first: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = world.table(world.namespace())
    logs = tmp_path_factory.mktemp("keys")
    count = len(sealed(world))
    never = {"MEMORY__CREDENTIALS": "0"}
    with ExitStack() as held:
        # A knows the new key and encrypts with the old one; B is already restarted and encrypts with the new one.
        a, _ = held.enter_context(second_gateway(world.ready, logs / "a", **{OTHER: NEXT}, **never))
        b, _ = held.enter_context(second_gateway(world.ready, logs / "b", **{KEY: NEXT, OTHER: first}, **never))
        with busy(world, [a, b], f"{table.path}/credentials") as wrong:
            dry = lakegate(world, "secrets", "rotate", "--dry-run", **{KEY: NEXT, OTHER: first})
            assert (dry.returncode, opened_by(world, first)) == (NOT_YET, count), dry.stderr
            done = lakegate(world, "secrets", "rotate", **{KEY: NEXT, OTHER: first})
            assert done.returncode == 0, done.stderr
            assert f"{count} encrypted again, 0 still need the other key" in done.stdout
            assert (opened_by(world, NEXT), opened_by(world, first)) == (count, 0)
            # The old key is no longer configured: a gateway with only the new key decrypts everything.
            alone = lakegate(world, "secrets", "rotate", "--dry-run", **{KEY: NEXT})
            assert (alone.returncode, "0 still need the other key" in alone.stdout) == (0, True), alone.stderr
            back = lakegate(world, "secrets", "rotate", **{KEY: first, OTHER: NEXT})
            assert back.returncode == 0, back.stderr
        assert wrong == []
    assert opened_by(world, first) == count
    recorded = world.sql("select operation from audit_log where operation = 'change_encryption_key'")
    assert len(recorded) == 2


def test_gateway_and_rotation_with_a_wrong_key_fail_without_a_change(world: World, first: str) -> None:
    before = sealed(world)
    served = lakegate(world, "serve", **{KEY: WRONG})
    assert served.returncode == 1
    assert "PG_ENCRYPTION_KEY is not the key with which they were encrypted" in served.stderr
    for keys in ({KEY: WRONG}, {KEY: NEXT, OTHER: WRONG}):
        refused = lakegate(world, "secrets", "rotate", **keys)
        assert refused.returncode == 1
        assert f"{len(before)} of {len(before)} stored credentials" in refused.stderr
        assert "Nothing was changed" in refused.stderr
        assert first not in refused.stderr + refused.stdout
        assert WRONG not in refused.stderr + refused.stdout
    short = lakegate(world, "secrets", "rotate", **{KEY: "short"})
    assert (short.returncode, "at least 16 characters" in short.stderr) == (1, True)
    missing = lakegate(world, "secrets", "rotate")
    assert (missing.returncode, "LAKEGATE__PG_ENCRYPTION_KEY must be set" in missing.stderr) == (1, True)
    assert sealed(world) == before


def test_killed_rotation_resumes(world: World, first: str) -> None:
    before = set(sealed(world))
    old = Sealer([first])
    many = [uuid4() for _ in range(1500)]
    for id in many:
        world.sql("insert into secrets (id, sealed) values ($1, $2)", id, old.seal(b"{}"))
    world.sql("begin")
    world.sql("select 1 from secrets where id = $1 for update", max(many))
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "gateway.cli", "secrets", "rotate"],
            env=_environment(world, **{KEY: NEXT, OTHER: first}),
            cwd=os.sep,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # The rotation waits for this row, with most rows re-encrypted, until it is killed.
        waiting = "select 1 from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))"
        deadline = time.monotonic() + 60
        while world.sql(waiting) == [] and time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.05)
        child.kill()
        child.wait(60)
        world.sql("rollback")
        half = opened_by(world, NEXT)
        assert 0 < half < len(before) + len(many), (
            "the rotation was not killed in its middle, so the test proves nothing"
        )
        assert half + opened_by(world, first) == len(before) + len(many), (
            "each secret must be sealed with exactly one key"
        )
        done = lakegate(world, "secrets", "rotate", **{KEY: NEXT, OTHER: first})
        assert done.returncode == 0, done.stderr
        assert f"{len(before) + len(many) - half} encrypted again" in done.stdout
        assert opened_by(world, NEXT) == len(before) + len(many)
    finally:
        world.sql("rollback")
        world.sql("delete from secrets where id = any($1)", many)
        assert lakegate(world, "secrets", "rotate", **{KEY: first, OTHER: NEXT}).returncode == 0
    assert opened_by(world, first) == len(before)
