# SPDX-License-Identifier: Apache-2.0
"""Compute the ETag inputs of load and create answers. Pure."""

from __future__ import annotations

from uuid import UUID

from gateway.access.operation import Operation
from gateway.access.operations.credentials import VendCreationCredentials, VendCredentials
from gateway.access.operations.tables import CreateTable, LoadTable
from gateway.access.permit import Permit
from gateway.access.relations import Can
from gateway.access.resolved import ResolvedWarehouse
from gateway.catalog.credentials import creation_level, load_level
from gateway.catalog.etags import CLIENT_MANAGED, METADATA_ONLY, REMOTE_SIGNING, Representation
from gateway.iceberg.referenced import SnapshotsMode


def load_representation(permit: Permit[LoadTable], vend: Permit[VendCredentials] | None) -> Representation:
    """Return the values on which the answer of a load depends."""
    options = permit.operation.options
    table = permit.table(permit.operation.table)
    access = load_level(vend).value if vend is not None else CLIENT_MANAGED if may_read_data(permit) else METADATA_ONLY
    return Representation(
        table_id=table.id,
        metadata_location=table.metadata_location,
        snapshots=options.snapshots,
        delegation=CLIENT_MANAGED if options.client_managed else _delegation(vend),
        principal=permit.actor.id,
        role=permit.actor.acting_as,
        access=access,
        profile=_profile(table.warehouse),
        obligations=_fingerprint(permit, vend),
        restricted=permit.restriction(permit.operation.table) is not None,
    )


def may_read_data(permit: Permit[LoadTable]) -> bool:
    """Return True if the caller may read data of the table, all of it or some columns."""
    table = permit.operation.table
    return permit.holds(Can.READ_DATA, table) or permit.restriction(table) is not None


def creation_representation(
    permit: Permit[CreateTable], vend: Permit[VendCreationCredentials] | None, table_id: UUID, metadata_location: str
) -> Representation:
    """Return the values on which the answer of a create depends. They equal those of the creator's next load."""
    warehouse = permit.namespace(permit.operation.namespace).warehouse
    return Representation(
        table_id=table_id,
        metadata_location=metadata_location,
        snapshots=SnapshotsMode.ALL,
        delegation=CLIENT_MANAGED if vend is None else _delegation(vend),
        principal=permit.actor.id,
        role=permit.actor.acting_as,
        access=CLIENT_MANAGED if vend is None else creation_level(vend).value,
        profile=_profile(warehouse),
        obligations=_fingerprint(permit, vend),
    )


def _delegation(vend: Permit[VendCredentials] | Permit[VendCreationCredentials] | None) -> str:
    return REMOTE_SIGNING if vend is not None and vend.operation.signing else ""


def _profile(warehouse: ResolvedWarehouse) -> str:
    """Return the profile's version and the canary's verdict, which may forbid credentials."""
    return f"{warehouse.id}/{warehouse.profile_version}/{warehouse.scope_verdict or ''}"


def _fingerprint(permit: Permit[Operation], vend: Permit[Operation] | None) -> bytes:
    """Return the fingerprint of an answer's obligations: the operation's, then the vending's.

    They are kept apart. In a merged fingerprint, a limit that moves from one to the other would not change the ETag.
    """
    return permit.obligations.fingerprint + b"/" + (b"" if vend is None else vend.obligations.fingerprint)
