# SPDX-License-Identifier: Apache-2.0
"""Helpers that create warehouses in the stack's bucket."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.stack.world import SCHEMA, Person, World, send_until_decided, unique

WAREHOUSE = "/management/v1/warehouse"


def profile(world: World, prefix: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a storage profile; the default key prefix is unique."""
    return {**world.ready.s3.profile, "bucket": world.bucket, "key-prefix": prefix or unique("wh"), **more}


def credential(world: World) -> dict[str, str]:
    """Return the access key of the stack."""
    return {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": world.ready.s3.access_key,
        "secret-access-key": world.ready.s3.secret_key,
    }


def creation(world: World, **more: Any) -> dict[str, Any]:
    """Return the body that creates a warehouse; `more` are further members."""
    return {
        "warehouse-name": unique("w"),
        "storage-profile": profile(world),
        "storage-credential": credential(world),
        **more,
    }


def stored_at(world: World, prefix: str) -> dict[str, Any]:
    """Return the member of a creation that names a key prefix of the stack's bucket."""
    return {"storage-profile": profile(world, prefix)}


@dataclass(frozen=True)
class Made:
    """A warehouse that a test created."""

    id: str
    name: str
    answer: dict[str, Any]

    @property
    def path(self) -> str:
        """Return the warehouse's path in the management API."""
        return f"{WAREHOUSE}/{self.id}"

    @property
    def root(self) -> str:
        """Return the warehouse's path in the catalog API."""
        return f"/catalog/v1/{self.id}"

    def table(self, by: Person) -> str:
        """Create a table in a new namespace; return its path."""
        namespace, name = unique("ns"), unique("t")
        space, body = {"namespace": [namespace]}, {"name": name, "schema": SCHEMA}
        assert send_until_decided(lambda: by.post(f"{self.root}/namespaces", space)).status_code == 200
        made = send_until_decided(lambda: by.post(f"{self.root}/namespaces/{namespace}/tables", body))
        assert made.status_code == 200, made.text
        return f"{self.root}/namespaces/{namespace}/tables/{name}"

    def empty(self, world: World) -> None:
        """Drop everything in the warehouse and wait until its tasks have ended."""
        listed: httpx.Response = world.admin.get(f"{self.root}/namespaces")
        for [name] in listed.json()["namespaces"]:
            space = f"{self.root}/namespaces/{name}"
            for table in world.admin.get(f"{space}/tables").json()["identifiers"]:
                assert world.admin.delete(f"{space}/tables/{table['name']}").status_code == 204
            assert world.admin.delete(space).status_code == 204
        world.tasks_ended(self.id)


def make(world: World, by: Person | None = None, *, headers: dict[str, str] | None = None, **more: Any) -> Made:
    """Create a warehouse."""
    body = creation(world, **more)
    made = send_until_decided(lambda: (by or world.admin).post(WAREHOUSE, body, headers=headers))
    assert made.status_code == 201, made.text
    return Made(made.json()["warehouse-id"], body["warehouse-name"], made.json())


def project(world: World) -> str:
    """Create a project of the administrator; return its id."""
    body = {"project-name": unique("project")}
    made = send_until_decided(lambda: world.admin.post("/management/v1/project", body))
    assert made.status_code == 201, made.text
    return str(made.json()["project-id"])


def until(done: Callable[[], bool], *, seconds: float = 60.0) -> None:
    """Wait until the condition holds; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "the condition was not met before the deadline"
        time.sleep(0.3)
