# SPDX-License-Identifier: Apache-2.0
"""Create warehouses and change their fields: each field has an endpoint of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.apply.changes import Change
from gateway.apply.client import Api
from gateway.apply.located import MANAGEMENT, Located
from gateway.apply.state import Address, Resource


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


def create_warehouse(api: Api, located: Located, desired: Resource, credential: Mapping[str, str] | None) -> None:
    """Create a warehouse, then set the fields that a creation cannot set. Raises ApiError."""
    spec = desired.spec
    body = {"warehouse-name": spec.name, "storage-profile": spec.storage}
    if credential is not None:
        body["storage-credential"] = credential
    for name in ("delete-profile", "managed-by", "allowed-format-versions", "default-format-version"):
        if desired.fields.get(name) is not None:
            body[name] = desired.fields[name]
    made = api.change("POST", f"{MANAGEMENT}/warehouse", body, project=located.project(desired.address))
    located.add(desired.address, made["warehouse-id"])
    # A new warehouse is neither protected nor managed.
    rest = {name: True for name in ("managed-access", "protected") if desired.fields.get(name)}
    update_warehouse(api, located, desired, rest, None)


def update_warehouse(
    api: Api, located: Located, desired: Resource, changed: Mapping[str, Any], credential: Mapping[str, str] | None
) -> None:
    """Change the fields of a warehouse. Raises ApiError."""
    address = desired.address
    path = located.path(address)
    if "name" in changed:
        api.change("POST", f"{path}/rename", {"new-name": changed["name"]})
    _update_storage(api, path, desired, changed, credential)
    if "delete-profile" in changed:
        api.change("POST", f"{path}/delete-profile", {"delete-profile": changed["delete-profile"]})
    if "allowed-format-versions" in changed or "default-format-version" in changed:
        versions = ("allowed-format-versions", "default-format-version")
        stated = {name: desired.fields[name] for name in versions if desired.fields.get(name) is not None}
        api.change("POST", f"{path}/format-version-policy", stated)
    if "managed-access" in changed:
        _set_managed_access(api, located, address, changed["managed-access"])
    if "protected" in changed:
        api.change("POST", f"{path}/protection", {"protected": changed["protected"]})
    # Last, because only instance administrators may change a warehouse that they manage.
    if "managed-by" in changed:
        api.change("POST", f"{path}/managed-by", {"managed-by": changed["managed-by"]})


def _update_storage(
    api: Api, path: str, desired: Resource, changed: Mapping[str, Any], credential: Mapping[str, str] | None
) -> None:
    if any(name.startswith("storage.") for name in changed):
        body = {"storage-profile": desired.spec.storage, **({"storage-credential": credential} if credential else {})}
        api.change("POST", f"{path}/storage", body)
    elif "credential" in changed:
        api.change("POST", f"{path}/storage-credential", {"new-storage-credential": credential})


def _set_managed_access(api: Api, located: Located, address: Address, managed: bool) -> None:
    path = f"{MANAGEMENT}/permissions/warehouse/{located.id(address)}/managed-access"
    api.change("POST", path, {"managed-access": managed})
