# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of drop, undrop and protection."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.support.stack.world import Person, World, send_until_decided, unique

Kind = str


def soft_world(world: World, seconds: int = 3600) -> World:
    """Return the same stack with a warehouse of its own that keeps dropped tables and views."""
    body = {
        "warehouse-name": unique("soft"),
        "storage-profile": {**world.ready.s3.profile, "bucket": world.bucket, "key-prefix": unique("soft")},
        "storage-credential": {
            "type": "s3",
            "credential-type": "access-key",
            "access-key-id": world.ready.s3.access_key,
            "secret-access-key": world.ready.s3.secret_key,
        },
        "delete-profile": {"type": "soft", "expiration-seconds": seconds},
    }
    made = send_until_decided(lambda: world.admin.post("/management/v1/warehouse", body))
    assert made.status_code == 201, made.text
    soft = World(world.ready)
    soft.warehouse = made.json()["warehouse-id"]
    soft.root = f"/catalog/v1/{soft.warehouse}"
    return soft


def deleted_path(world: World) -> str:
    """Return the path of the list of dropped objects."""
    return f"/management/v1/warehouse/{world.warehouse}/deleted-tabulars"


def deleted(by: Person, world: World, **query: str) -> dict[str, dict[str, Any]]:
    """Return the listed dropped objects by id."""
    found = by.get(deleted_path(world), params=query)
    assert found.status_code == 200, found.text
    return {each["id"]: each for each in found.json()["tabulars"]}


def undrop(by: Person, world: World, *targets: tuple[Kind, str], **more: Any) -> httpx.Response:
    """Undrop (kind, id)."""
    body = {"targets": [{"type": kind, "id": id} for kind, id in targets]}
    return by.post(f"{deleted_path(world)}/undrop", body, **more)


def until(true: Callable[[], bool], description: str, seconds: float = 60.0) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, description
        time.sleep(0.2)


def end_now(world: World, id: str) -> None:
    """End the retention time of a dropped object now."""
    world.sql("update tasks set scheduled_for = now() where entity_id = $1 and queue = 'soft_deletion'", id)
    until(
        lambda: world.sql("select 1 from tables where id = $1", id) == [],
        "the table row was not deleted before the deadline",
    )


def keys(world: World, location: str) -> set[str]:
    """Return the object keys below a location."""
    prefix = location.removeprefix(f"s3://{world.bucket}/").rstrip("/") + "/"
    return {key for key, _ in world.objects(prefix)}


def fill(world: World, location: str, count: int = 3) -> None:
    """Write some files below a location."""
    prefix = location.removeprefix(f"s3://{world.bucket}/").rstrip("/")
    for number in range(count):
        world.s3.put_object(Bucket=world.bucket, Key=f"{prefix}/data/{number}.parquet", Body=b"x")
