# SPDX-License-Identifier: Apache-2.0
"""Warehouses of projects in `lakegate apply`. Each setting of an existing warehouse has its own endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, get_args

import msgspec

from gateway.access.operations.task_bodies import WarehouseQueue
from gateway.apply import ApplyError
from gateway.apply.client import Api
from gateway.apply.document import SecretRef, Warehouse
from gateway.apply.grants import GRANTS
from gateway.apply.namespaces import NAMESPACES
from gateway.apply.nouns import MANAGED_ACCESS, PROTECTION, Collector, Noun, Row, below, stated, without_defaults
from gateway.apply.profiles import VARIABLE_PREFIX, is_secret, present_profile_fields, profile_fields, reference_fault
from gateway.apply.session import MANAGEMENT, Changing, Reading, Session
from gateway.apply.source import Path
from gateway.apply.state import Address, Change, Kind, Resource, State
from gateway.apply.tags import ATTACHMENTS
from gateway.iceberg.errors import CatalogError

_VERSIONS: Final = ("allowed-format-versions", "default-format-version")

#: Fields that the request of a creation sets.
_OF_CREATION: Final = ("delete-profile", "managed-by", *_VERSIONS)

_STORAGE, _QUEUES = "storage.", "task-queues."
_HEARTBEAT: Final = "max-seconds-since-last-heartbeat"


class IncompleteWarehouse(ApplyError):
    """The file lacks a field that is needed to create or change a warehouse."""


class Inactive(ApplyError):
    """The file has contents of an inactive warehouse, which the catalog does not serve."""


class Warehouses(Noun):
    """Warehouses. Apply removes only empty warehouses, and only if it may remove containers."""

    kind, member = Kind.WAREHOUSE, "warehouses"
    fields = ("name", "delete-profile", "managed-by", "policy-loss", "managed-access", "protected", "status")
    #: `managed-by` is the last one, because only instance administrators may change a warehouse that they manage.
    requests: ClassVar[Mapping[str, tuple[str, str]]] = {
        "name": ("{path}/rename", "new-name"),
        "delete-profile": ("{path}/delete-profile", "delete-profile"),
        "policy-loss": ("{path}/policy-loss", "policy-loss"),
        "managed-access": MANAGED_ACCESS,
        "protected": PROTECTION,
        "managed-by": ("{path}/managed-by", "managed-by"),
    }
    open_prefixes = (_QUEUES,)
    contents = (GRANTS, ATTACHMENTS, NAMESPACES)

    def stated(self, to: Collector, path: Path, entry: Any) -> dict[str, Any]:
        """Return the fields that the file sets. Raises InvalidSource for fields that contradict each other."""
        fields = stated(entry, self.fields)
        if entry.status == "inactive" and entry.namespaces is not None:
            text = "the namespaces of an inactive warehouse cannot be read. Remove the list."
            raise to.source.error((*path, "namespaces"), text)
        if entry.allowed_format_versions is not None:
            fields["allowed-format-versions"] = sorted(set(entry.allowed_format_versions))
            fields["default-format-version"] = entry.default_format_version
        elif entry.default_format_version is not None:
            text = "this field needs allowed-format-versions. State both."
            raise to.source.error((*path, "default-format-version"), text)
        fields |= _stated_storage(to, path, entry)
        queues = (entry.task_queues or {}).items()
        return fields | {f"{_QUEUES}{queue}": msgspec.to_builtins(config) or None for queue, config in queues}

    def rows(self, session: Session, on: Address) -> Iterator[Row]:
        """Yield the warehouses of a project. Raises ApiError."""
        query = {"warehouseStatus": "active,inactive"}
        path, project = f"{MANAGEMENT}/warehouse", session.located.id(on)
        for row in session.api.list(path, "warehouses", project=project, query=query):
            yield Address(Kind.WAREHOUSE, row["name"], on), row["warehouse-id"], row

    def is_complete(self, reading: Reading, on: Address) -> bool:
        """Return True if warehouses that the file leaves out are read too, which is so only if they may be removed."""
        return reading.containers and super().is_complete(reading, on)

    def present(self, reading: Reading, address: Address, id: str, row: Mapping[str, Any]) -> Resource:
        """Return a warehouse with its settings. A warehouse that the file leaves out has only its name. Raises
        Inactive.
        """
        wanted, active = reading.wanted.resources.get(address), row["status"] == "active"
        if wanted is None:
            reading.located.add(address, id)
            keep = None if active else "it is inactive"
            if active and any(NAMESPACES.rows(reading, address)):
                keep = "it contains namespaces"
            return Resource(address, {"name": row["name"]}, id=id, keep=keep)
        if not active and reading.wanted.children(Kind.NAMESPACE, address):
            raise Inactive(
                f"the {address} is inactive, so its namespaces cannot be read. Activate it first: "
                f"`lakegate warehouse set {id} --status active`."
            )
        return Resource(address, warehouse_fields(reading.api, row, queues=_QUEUES in wanted.open_prefixes), id=id)

    def require(self, change: Change, present: Resource | None) -> None:
        """Raise IncompleteWarehouse if the file lacks a field that is needed to create or change a warehouse."""
        spec = None if change.desired is None else change.desired.spec
        if spec is None:
            return
        if present is None and spec.storage is None:
            raise IncompleteWarehouse(f"{change.address} does not exist, and its creation needs `storage`.")
        changes_storage = any(each.name.startswith(_STORAGE) for each in change.fields)
        has_credential = present is not None and present.fields.get("credential") is not None
        # One request replaces the profile and the credential. Without a credential, it would remove the current
        # credential.
        if changes_storage and has_credential and spec.credential is None:
            raise IncompleteWarehouse(
                f"{change.address}: a change of `storage` needs `credential` too. They are stored together."
            )

    def create(self, session: Changing, desired: Resource) -> None:
        """Create a warehouse, then set the fields that the creation request does not have. Raises ApiError."""
        address, spec = desired.address, desired.spec
        credential = {"storage-credential": session.credentials.get(address)}
        sent = {name: desired.fields.get(name) for name in _OF_CREATION}
        fields = {"warehouse-name": spec.name, "storage-profile": spec.storage, **credential, **sent}
        made = session.api.change(
            "POST",
            f"{MANAGEMENT}/warehouse",
            self.body(session, address, fields),
            project=session.located.project(address),
        )
        session.located.add(address, made["warehouse-id"])
        # Fields with the values of a new warehouse are left out: a request for them could need a right that its creator
        # lacks.
        rest = without_defaults(desired.fields)
        done = (*_OF_CREATION, "name", "credential")
        self.update(session, desired, {k: v for k, v in rest.items() if k not in done and not k.startswith(_STORAGE)})

    def update(self, session: Changing, desired: Resource, changed: Mapping[str, Any]) -> None:
        """Change the fields of a warehouse. Raises ApiError."""
        address, credential = desired.address, session.credentials.get(desired.address)
        if any(name.startswith(_STORAGE) for name in changed):
            both = {"storage-profile": desired.spec.storage, "storage-credential": credential or None}
            session.change("POST", address, "/storage", self.body(session, address, both))
        elif "credential" in changed:
            session.change("POST", address, "/storage-credential", {"new-storage-credential": credential})
        if any(name in changed for name in _VERSIONS):
            versions = {name: desired.fields.get(name) for name in _VERSIONS}
            session.change("POST", address, "/format-version-policy", self.body(session, address, versions))
        for queue, config in below(_QUEUES, changed).items():
            session.change("POST", address, f"/task-queue/{queue}/config", {"queue-config": {}, **(config or {})})
        if "status" in changed:
            session.change("POST", address, "/activate" if changed["status"] == "active" else "/deactivate")
        super().update(session, desired, changed)

    def entry(self, state: State, resource: Resource) -> dict[str, Any]:
        """Return a warehouse in the form of the file. If the default format version is included, so are the allowed
        versions.
        """
        fields = warehouse_settings(resource)
        shown = {*without_defaults(fields), *(_VERSIONS if fields.get("default-format-version") is not None else ())}
        stated = {name: value for name, value in fields.items() if name in shown}
        return {**stated, **self.exported_contents(state, resource.address)}


WAREHOUSES = Warehouses()


def warehouse_fields(api: Api, row: Mapping[str, Any], *, queues: bool) -> dict[str, Any]:
    """Return the fields of a warehouse. `row` is its entry in the list of warehouses.

    With `queues`, the configuration of each task queue is read too, by one request each. Raises ApiError.
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
    """Return the configuration of each task queue; None if a queue has the server's default."""
    found = {}
    for queue in get_args(WarehouseQueue):
        config = api.get(f"{MANAGEMENT}/warehouse/{warehouse}/task-queue/{queue}/config")
        seconds = config.get(_HEARTBEAT)
        found[f"task-queues.{queue}"] = None if seconds is None else {_HEARTBEAT: seconds}
    return found


def warehouse_settings(warehouse: Resource) -> dict[str, Any]:
    """Return the fields of a warehouse in the form of the file, with defaults, without the credential."""
    fields = {name: value for name, value in warehouse.fields.items() if not name.startswith((_STORAGE, _QUEUES))}
    # The gateway never returns secrets, so the credential of the file cannot be compared.
    del fields["credential"]
    stored = {name: value for name, value in warehouse.fields.items() if value is not None}
    return {**fields, "storage": below(_STORAGE, stored), "task-queues": below(_QUEUES, stored)}


def _stated_storage(to: Collector, path: Path, warehouse: Warehouse) -> dict[str, Any]:
    """Return the fields of the storage profile and credential in the file. The secrets themselves are not compared."""
    fields: dict[str, Any] = {}
    if warehouse.storage is not None:
        try:
            fields |= profile_fields(warehouse.storage)
        except CatalogError as error:
            raise to.source.error((*path, "storage"), str(error)) from None
    credential = warehouse.credential
    if credential is None:
        return fields
    for name, value in credential.items():
        at = (*path, "credential", name)
        if isinstance(value, SecretRef) and (fault := reference_fault(name, value)):
            raise to.source.error(at, fault)
        if isinstance(value, str) and is_secret(name):
            text = f"secrets do not belong into this file. Write `{name}: {{env: {VARIABLE_PREFIX}NAME}}` or "
            raise to.source.error(at, f"{text}`{{file: PATH}}`.")
    kind = "/".join(str(credential[name]) for name in ("type", "credential-type") if name in credential)
    return {**fields, "credential": f"{kind} (new secrets)" if to.rotate else kind}
