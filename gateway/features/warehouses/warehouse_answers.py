# SPDX-License-Identifier: Apache-2.0
"""Common parts of warehouse use cases: the wire form, format versions and the `managed-by` check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.access.actor import Actor
from gateway.access.management_errors import DefaultFormatVersionNotAllowed, WarehouseManaged
from gateway.access.operations.warehouse_bodies import CreateWarehouseRequest, CredentialType, Warehouse
from gateway.db.pools.rows import AnyRow
from gateway.db.warehouses import warehouses
from gateway.storage.registry import credential_type, stored_profile

#: `managed-by` of a warehouse that only instance admins may change.
INSTANCE_ADMIN = "instance-admin"


#: Fields with the same name in the create request, the row and the response. A new one needs a column and a field in
#: both bodies; this module copies it by name.
STATED: Final = tuple(
    name
    for name in CreateWarehouseRequest.__struct_fields__
    if name in Warehouse.__struct_fields__ and name in warehouses.COLUMNS and name != "project_id"
)


def stated(request: CreateWarehouseRequest) -> dict[str, object]:
    """Return {column: value} for the fields that a request sets directly. Raise DefaultFormatVersionNotAllowed."""
    versions = require_versions(request.allowed_format_versions, request.default_format_version)
    given = {name: msgspec.to_builtins(getattr(request, name)) for name in STATED}
    return {**given, "allowed_format_versions": versions}


def require_manager(actor: Actor, row: AnyRow) -> None:
    """Raise WarehouseManaged unless the caller may change the warehouse in this row.

    The check supplements the relation check and needs the locked row, so that a concurrent change of `managed-by` takes
    effect.
    """
    if row.managed_by == INSTANCE_ADMIN and not actor.instance_admin:
        raise WarehouseManaged(
            "Only instance admins may change this warehouse: its managed-by is instance-admin. The operator names "
            "them in the setting INSTANCE_ADMINS."
        )


def require_versions(allowed: Sequence[int], default: int | None) -> list[int]:
    """Return the allowed versions, sorted and distinct. Raise DefaultFormatVersionNotAllowed."""
    if default is not None and default not in allowed:
        raise DefaultFormatVersionNotAllowed(
            f"The default format version {default} is not among the allowed format versions. Add it to them, or "
            "choose one of them."
        )
    return sorted(set(allowed))


def warehouse_answer(row: AnyRow) -> Warehouse:
    """Return a row of `warehouses` in wire form, without secrets."""
    kind = None
    if row.secret_id is not None and (profile := stored_profile(row.profile)).credential_kind is not None:
        kind = CredentialType(
            type=credential_type(profile), credential_type=row.credential_kind or profile.credential_kind
        )
    return Warehouse(
        warehouse_id=row.id,
        id=row.id,
        name=row.name,
        project_id=row.project_id,
        status="active" if row.active else "inactive",
        protected=row.protected,
        storage_profile=msgspec.Raw(row.profile),
        storage_credential_type=kind,
        updated_at=row.updated_at,
        policy_loss=row.policy_loss,
        **{name: getattr(row, name) for name in STATED},
    )
