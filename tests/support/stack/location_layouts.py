# SPDX-License-Identifier: Apache-2.0
"""Layouts of locations, and warehouses with each."""

from __future__ import annotations

from typing import Any

from tests.support.stack.world import World, unique


def warehouse(world: World, **more: Any) -> str:
    """Create a warehouse and return its root path."""
    credential = {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": world.ready.s3.access_key,
        "secret-access-key": world.ready.s3.secret_key,
    }
    profile = {**world.ready.s3.profile, "bucket": world.bucket, "key-prefix": unique("wh"), **more}
    body = {"warehouse-name": unique("wh"), "storage-profile": profile, "storage-credential": credential}
    made = world.admin.post("/management/v1/warehouse", body)
    assert made.status_code == 201, made.text
    return f"/catalog/v1/{made.json()['warehouse-id']}"


#: Layouts of the default locations of a warehouse's tables.
LAYOUTS: dict[str, dict[str, Any]] = {
    "default": {},
    "tabular-only": {"storage-layout": {"type": "tabular-only", "tabular": "{name}-{uuid}"}},
    "full-hierarchy": {
        "storage-layout": {"type": "full-hierarchy", "namespace": "{name}-{uuid}", "tabular": "{name}-{uuid}"}
    },
}
