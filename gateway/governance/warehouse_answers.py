# SPDX-License-Identifier: Apache-2.0
"""What is told of a warehouse, and who may change one: shared by the use cases about warehouses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.access.actor import Actor
from gateway.db import warehouses
from gateway.db.rows import AnyRow
from gateway.governance.errors import DefaultFormatVersionNotAllowed, WarehouseManaged
from gateway.protocol.warehouses import CreateWarehouseRequest, CredentialType, Warehouse
from gateway.storage.registry import stored_profile

#: `managed-by` of a warehouse that only instance admins may change.
INSTANCE_ADMIN = "instance-admin"


#: Fields that a request to create a warehouse, its row and its answer have under one name. A new one is a column and a
#: field of the two bodies; it is written and told by its name.
STATED: Final = tuple(
    name
    for name in CreateWarehouseRequest.__struct_fields__
    if name in Warehouse.__struct_fields__ and name in warehouses.COLUMNS and name != "project_id"
)


def stated(request: CreateWarehouseRequest) -> dict[str, object]:
    """Return the columns that a request fills as they are. Raises DefaultFormatVersionNotAllowed."""
    versions = require_versions(request.allowed_format_versions, request.default_format_version)
    given = {name: msgspec.to_builtins(getattr(request, name)) for name in STATED}
    return {**given, "allowed_format_versions": versions}


def require_manager(actor: Actor, row: AnyRow) -> None:
    """Raise WarehouseManaged unless this caller may change the warehouse in this row.

    Asked beside the relation, of the row as it is locked: who is handed a warehouse while a change of it is under way
    loses no race.
    """
    if row.managed_by == INSTANCE_ADMIN and not actor.instance_admin:
        raise WarehouseManaged("Only instance admins may change this warehouse: it is managed by instance-admin.")


def require_versions(allowed: Sequence[int], default: int | None) -> list[int]:
    """The allowed versions, each once. Raises DefaultFormatVersionNotAllowed."""
    if default is not None and default not in allowed:
        raise DefaultFormatVersionNotAllowed(f"Format version {default} is not among the allowed ones.")
    return sorted(set(allowed))


def warehouse_answer(row: AnyRow) -> Warehouse:
    """A row of `warehouses`, without its secrets."""
    kind = None
    if row.secret_id is not None and (profile := stored_profile(row.profile)).credential_kind is not None:
        kind = CredentialType(type=profile.provider, credential_type=profile.credential_kind)
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
        **{name: getattr(row, name) for name in STATED},
    )
