# SPDX-License-Identifier: Apache-2.0
"""Read the present settings of a warehouse, under the names of the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from gateway.apply.client import Api
from gateway.apply.located import MANAGEMENT
from gateway.apply.profiles import present_profile_fields
from gateway.protocol.tasks import WarehouseQueue

_HEARTBEAT = "max-seconds-since-last-heartbeat"


def warehouse_fields(api: Api, row: Mapping[str, Any], *, queues: bool) -> dict[str, Any]:
    """Return the fields of a warehouse. `row` is its entry in the list of warehouses.

    With `queues`, the configuration of its task queues is read too: a request for each. Raises ApiError.
    """
    id, kind = row["warehouse-id"], row.get("storage-credential-type")
    return {
        **present_profile_fields(row["storage-profile"]),
        "name": row["name"],
        "credential": f"{kind['type']}/{kind['credential-type']}" if kind else None,
        "delete-profile": row["delete-profile"],
        "managed-by": row["managed-by"],
        "allowed-format-versions": sorted(row["allowed-format-versions"]),
        "default-format-version": row.get("default-format-version"),
        "policy-loss": row["policy-loss"],
        "protected": row["protected"],
        "status": row["status"],
        "managed-access": api.get(f"{MANAGEMENT}/permissions/warehouse/{id}")["managed-access"],
        **(_queue_fields(api, id) if queues else {}),
    }


def _queue_fields(api: Api, warehouse: str) -> dict[str, Any]:
    """Return the configuration of each task queue; None for the server's default."""
    found = {}
    for queue in get_args(WarehouseQueue):
        config = api.get(f"{MANAGEMENT}/warehouse/{warehouse}/task-queue/{queue}/config")
        seconds = config.get(_HEARTBEAT)
        found[f"task-queues.{queue}"] = None if seconds is None else {_HEARTBEAT: seconds}
    return found
