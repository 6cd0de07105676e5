# SPDX-License-Identifier: Apache-2.0
"""Compute what a load of a table depends on: the values in its ETag, the parts that the caller may see, and its labels.

Labels are the tags of tables and views in load responses (REST specification, `LoadTableResult` and `LoadViewResult`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import unavailable
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Excerpt, ResolvedTable, ResolvedView, ResolvedWarehouse
from gateway.access.operation import Operation
from gateway.access.operations.credentials import VendCreationCredentials, VendCredentials
from gateway.access.operations.tables import CreateTable, LoadTable
from gateway.access.operations.views import LoadView
from gateway.access.restrictions.column_restrictions import restriction_under
from gateway.db.policies.table_policies import labels
from gateway.db.tables.documents import Document
from gateway.features.credentials.credential_terms import creation_level, load_level
from gateway.features.kit import Kit, UseCases
from gateway.features.metadata.etags import CLIENT_MANAGED, METADATA_ONLY, REMOTE_SIGNING, Representation
from gateway.iceberg.excerpts import SnapshotsMode
from gateway.obligations.application import restrictions_on
from gateway.obligations.projections import Columns, RestrictionNotExpressible, columns_of
from gateway.offloading import offload

EVERY_COLUMN = range(2**31)


class _Field(msgspec.Struct, frozen=True, rename="kebab"):
    field_id: int
    labels: dict[str, str]


class _Labels(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    object_labels: dict[str, str] | None = None
    fields: list[_Field] | None = None


class Labels(UseCases):
    """Reads the labels of tables and views. Unless `enabled`, it reads nothing and returns no labels."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._enabled = kit.tag_labels

    async def of_table(self, permit: Permit[LoadTable]) -> bytes:
        """Return the JSON of a table's `labels`, empty if there are none. Equal tags give equal bytes.

        Tags of the namespaces above and of the warehouse are included. If several have the same name, the nearest is
        sent. Raises DatabaseUnavailable.
        """
        if not self._enabled:
            return b""
        return await self._read(permit.table(permit.operation.table), _labelled_columns(permit))

    async def of_view(self, permit: Permit[LoadView]) -> bytes:
        """Return the JSON of a view's `labels`, as `of_table` does. Columns of views have no tags."""
        return await self._read(permit.view(permit.operation.view), ()) if self._enabled else b""

    async def _read(self, row: ResolvedTable | ResolvedView, columns: Container[int]) -> bytes:
        nearest_first = (row.id, row.namespace.id, *reversed(row.namespace.ancestors), row.warehouse.id)
        return encoded(await labels(self._database, row.id, nearest_first[1:]), nearest_first, columns)


def encoded(rows: Iterable[Any], nearest_first: Sequence[object], columns: Container[int]) -> bytes:
    """Return the JSON of `labels` for rows of `gateway.db.policies.table_policies`; empty if there are no labels."""
    rank = {id: number for number, id in enumerate(nearest_first)}
    ordered = sorted(rows, key=lambda row: (rank[row.object_id], row.field_id or 0, row.name))
    own: dict[str, str] = {}
    fields: dict[int, dict[str, str]] = {}
    for row in ordered:
        if row.field_id is None:
            own.setdefault(row.name, row.value)
        elif row.field_id in columns:
            fields.setdefault(row.field_id, {})[row.name] = row.value
    if not own and not fields:
        return b""
    found = [_Field(id, labels) for id, labels in fields.items()]
    return msgspec.json.encode(_Labels(dict(sorted(own.items())) or None, found or None))


def _labelled_columns(permit: Permit[LoadTable]) -> Container[int]:
    """Return the field ids of the columns whose labels the caller may see.

    A restricted caller sees labels only of current columns that nothing hides or masks, because a label shows where
    protected data is. A caller that reads no data and that no data policy restricts sees all labels.
    """
    ref = permit.operation.table
    if not shows_data(permit):
        return ()
    readable, verdict = permit.restriction(ref), permit.policy_verdict(ref)
    restrictions = restrictions_on(permit.obligations, str(permit.table(ref).id))
    if restrictions is None:
        return () if verdict is not None and verdict.restricts else EVERY_COLUMN
    columns = () if verdict is None or verdict.columns is None else (field.id for field in verdict.columns.current)
    present = readable.fields if readable is not None else frozenset(columns)
    return present - {each.field_id for each in restrictions.masks}


def load_representation(permit: Permit[LoadTable], vend: Permit[VendCredentials] | None) -> Representation:
    """Return the values on which the response to a load depends."""
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
    """Return False if the response must leave out what is computed from the rows of the table.

    That is the case if the caller may describe the table but not read it, and data policies restrict the caller there.
    """
    verdict = permit.policy_verdict(permit.operation.table)
    return verdict is None or not verdict.restricts or may_read_data(permit)


def creation_representation(
    permit: Permit[CreateTable], vend: Permit[VendCreationCredentials] | None, table_id: UUID, metadata_location: str
) -> Representation:
    """Return the values on which the response to a creation depends. They equal those of the creator's next load."""
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
    """Return the profile's version and the canary's verdict as text. The verdict may forbid credentials."""
    return f"{warehouse.id}/{warehouse.profile_version}/{warehouse.scope_verdict or ''}"


def _fingerprint(permit: Permit[Operation], vend: Permit[Operation] | None) -> bytes:
    """Return the fingerprint of a response's obligations: those of the load, then those of the vending.

    The two are not merged. Otherwise a limit that moves from one to the other would not change the ETag.
    """
    return permit.obligations.fingerprint + b"/" + (b"" if vend is None else vend.obligations.fingerprint)


async def require_same_columns(permit: Permit[LoadTable], document: Document) -> None:
    """Raise the retryable error of an outage if `document` belongs to another commit than the caller's restrictions,
    and could require other restrictions.
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
    # The columns are also compared if there are no restrictions: a policy may apply to a column that a commit has just
    # added.
    if verdict.restrictions is not None and document.metadata_location == verdict.restrictions.metadata_location:
        return
    if await offload(lambda: _columns(document.text), size=len(document.text)) != verdict.columns:
        raise unavailable(False)


def _columns(document: bytes) -> Columns | None:
    try:
        return columns_of(document)
    except RestrictionNotExpressible:
        return None
