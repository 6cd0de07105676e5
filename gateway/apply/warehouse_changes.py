# SPDX-License-Identifier: Apache-2.0
"""Read the settings of warehouses, create warehouses, and change them: each setting has an endpoint of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from gateway.access.operations.task_bodies import WarehouseQueue
from gateway.apply.changes import Change
from gateway.apply.client import Api
from gateway.apply.located import MANAGEMENT, Located
from gateway.apply.profiles import present_profile_fields
from gateway.apply.state import DEFAULTS, Resource

#: Fields that the request of a creation sets.
_OF_CREATION: Final = ("delete-profile", "managed-by", "allowed-format-versions", "default-format-version")

#: Fields with a request of their own: its path, and the member of its body. `managed-by` is the last one, because only
#: instance administrators may change a warehouse that they manage.
_OWN_REQUESTS: Final = {
    "name": ("warehouse/{}/rename", "new-name"),
    "delete-profile": ("warehouse/{}/delete-profile", "delete-profile"),
    "policy-loss": ("warehouse/{}/policy-loss", "policy-loss"),
    "managed-access": ("permissions/warehouse/{}/managed-access", "managed-access"),
    "protected": ("warehouse/{}/protection", "protected"),
    "managed-by": ("warehouse/{}/managed-by", "managed-by"),
}

_HEARTBEAT = "max-seconds-since-last-heartbeat"


class IncompleteWarehouse(Exception):
    """The file lacks a field that the creation or change of a warehouse needs."""


def require_complete(change: Change, present: Resource | None) -> None:
    """Raise IncompleteWarehouse if the file lacks a field that the creation or change of a warehouse needs."""
    spec = None if change.desired is None else change.desired.spec
    if spec is None:
        return
    if present is None and spec.storage is None:
        raise IncompleteWarehouse(f"{change.address} does not exist, and its creation needs `storage`.")
    changes_storage = any(each.name.startswith("storage.") for each in change.fields)
    has_credential = present is not None and present.fields.get("credential") is not None
    # The request replaces both. Without a credential it would remove the present one.
    if changes_storage and has_credential and spec.credential is None:
        raise IncompleteWarehouse(
            f"{change.address}: a change of `storage` needs `credential` too. They are stored together."
        )


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


def create_warehouse(api: Api, located: Located, desired: Resource, credential: Mapping[str, str] | None) -> None:
    """Create a warehouse, then set the fields that a creation cannot set. Raises ApiError."""
    spec = desired.spec
    body = {"warehouse-name": spec.name, "storage-profile": spec.storage}
    if credential is not None:
        body["storage-credential"] = credential
    body |= {name: desired.fields[name] for name in _OF_CREATION if desired.fields.get(name) is not None}
    made = api.change("POST", f"{MANAGEMENT}/warehouse", body, project=located.project(desired.address))
    located.add(desired.address, made["warehouse-id"])
    rest = {
        name: value
        for name, value in desired.fields.items()
        if name not in (*_OF_CREATION, "name", "credential") and not name.startswith("storage.")
    }
    # Requests for the values of a new warehouse could need a right that its creator lacks.
    rest = {name: value for name, value in rest.items() if value is not None and DEFAULTS.get(name) != value}
    update_warehouse(api, located, desired, rest, None)


def update_warehouse(
    api: Api, located: Located, desired: Resource, changed: Mapping[str, Any], credential: Mapping[str, str] | None
) -> None:
    """Change the fields of a warehouse. Raises ApiError."""
    address = desired.address
    path = located.path(address)
    _update_storage(api, path, desired, changed, credential)
    if "allowed-format-versions" in changed or "default-format-version" in changed:
        versions = ("allowed-format-versions", "default-format-version")
        stated = {name: desired.fields[name] for name in versions if desired.fields.get(name) is not None}
        api.change("POST", f"{path}/format-version-policy", stated)
    for name, value in changed.items():
        if name.startswith("task-queues."):
            body = {"queue-config": {}, **(value or {})}
            api.change("POST", f"{path}/task-queue/{name.removeprefix('task-queues.')}/config", body)
    if "status" in changed:
        api.change("POST", f"{path}/{'activate' if changed['status'] == 'active' else 'deactivate'}")
    for name, (path, member) in _OWN_REQUESTS.items():
        if name in changed:
            api.change("POST", f"{MANAGEMENT}/{path.format(located.id(address))}", {member: changed[name]})


def _update_storage(
    api: Api, path: str, desired: Resource, changed: Mapping[str, Any], credential: Mapping[str, str] | None
) -> None:
    if any(name.startswith("storage.") for name in changed):
        body = {"storage-profile": desired.spec.storage, **({"storage-credential": credential} if credential else {})}
        api.change("POST", f"{path}/storage", body)
    elif "credential" in changed:
        api.change("POST", f"{path}/storage-credential", {"new-storage-credential": credential})
