# SPDX-License-Identifier: Apache-2.0
"""Files in a lake that tests register or adopt."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.support.stack.world import Person, World, unique


def register(by: Person, world: World, ns: str, file: str, name: str | None = None, **more: Any) -> httpx.Response:
    """Register a table; `headers` are request headers, all other arguments members of the body."""
    headers = more.pop("headers", {})
    body = {"name": name or unique("again"), "metadata-location": file, **more}
    return by.post(f"{world.root}/namespaces/{ns}/register", body, headers=headers)


def register_view(by: Person, world: World, ns: str, file: str, **more: Any) -> httpx.Response:
    """Register a view."""
    body = {"name": unique("again"), "metadata-location": file}
    return by.post(f"{world.root}/namespaces/{ns}/register-view", body, **more)


def key(world: World, location: str) -> str:
    """Return the object key of a location."""
    return location.removeprefix(f"s3://{world.bucket}/")


def write(world: World, location: str, document: Any) -> str:
    """Write a file directly to the store; return its location."""
    world.s3.put_object(Bucket=world.bucket, Key=key(world, location), Body=json.dumps(document).encode())
    return location


def lake_location(world: World) -> str:
    """Return an empty location."""
    return f"s3://{world.bucket}/demo/{unique('raw')}"


def brought(world: World) -> tuple[str, str]:
    """Return (location, metadata file) of a table that another catalog created."""
    sample = world.table(world.namespace())
    at = lake_location(world)
    return at, write(world, f"{at}/metadata/00003-a.metadata.json", {**sample.answer["metadata"], "location": at})
