# SPDX-License-Identifier: Apache-2.0
"""What is told of a warehouse, and who may change one: shared by the use cases about warehouses."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gateway.access.actor import Actor
from gateway.db.rows import AnyRow
from gateway.governance.errors import DefaultFormatVersionNotAllowed, WarehouseManaged
from gateway.protocol.warehouses import CredentialType, Warehouse
from gateway.storage.registry import stored_profile

#: `managed-by` of a warehouse that only instance admins may change.
INSTANCE_ADMIN = "instance-admin"


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
        delete_profile=row.delete_profile,
        managed_by=row.managed_by,
        allowed_format_versions=list(row.allowed_format_versions),
        default_format_version=row.default_format_version,
        updated_at=row.updated_at,
    )
