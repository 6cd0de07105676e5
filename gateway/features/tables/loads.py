# SPDX-License-Identifier: Apache-2.0
"""Compute the ETag inputs of load and create answers, and what a load shows to its caller."""

from __future__ import annotations

from uuid import UUID

from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import unavailable
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Excerpt, ResolvedWarehouse
from gateway.access.operation import Operation
from gateway.access.operations.credentials import VendCreationCredentials, VendCredentials
from gateway.access.operations.tables import CreateTable, LoadTable
from gateway.access.restrictions.column_restrictions import restriction_under
from gateway.db.tables.documents import Document
from gateway.features.credentials.credential_terms import creation_level, load_level
from gateway.features.metadata.etags import CLIENT_MANAGED, METADATA_ONLY, REMOTE_SIGNING, Representation
from gateway.iceberg.referenced import SnapshotsMode
from gateway.obligations.columns import Columns, RestrictionNotExpressible, columns_of
from gateway.offloading import offload


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
        restricted=permit.restricted(permit.operation.table),
    )


def may_read_data(permit: Permit[LoadTable]) -> bool:
    """Return True if the caller may read data of the table, all of it or some columns."""
    table = permit.operation.table
    return permit.holds(Can.READ_DATA, table) or permit.restriction(table) is not None


def shows_data(permit: Permit[LoadTable]) -> bool:
    """Return False if the answer must leave out what is computed from the rows of the table.

    That is so for a caller that may describe a table and not read it, if data policies restrict the caller there.
    """
    verdict = permit.policy_verdict(permit.operation.table)
    return verdict is None or not verdict.restricts or may_read_data(permit)


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


async def require_same_columns(permit: Permit[LoadTable], document: Document) -> None:
    """Raise the retryable error of an outage if `document` is of another commit than the restrictions of the caller,
    and could need other restrictions.
    """
    table = permit.table(permit.operation.table)
    restriction = permit.restriction(permit.operation.table)
    if restriction is not None and document.metadata_location != restriction.metadata_location:
        found = Excerpt(document.metadata_location, document.text)
        now = await offload(lambda: restriction_under(table.id, found, restriction.fields), size=len(document.text))
        if now != restriction:
            raise unavailable(False)
    verdict = permit.policy_verdict(permit.operation.table)
    if verdict is None or verdict.columns is None:
        return
    # Without restrictions the columns are compared too: a policy may apply to a column that a commit has just added.
    if verdict.restrictions is not None and document.metadata_location == verdict.restrictions.metadata_location:
        return
    if await offload(lambda: _columns(document.text), size=len(document.text)) != verdict.columns:
        raise unavailable(False)


def _columns(document: bytes) -> Columns | None:
    try:
        return columns_of(document)
    except RestrictionNotExpressible:
        return None
