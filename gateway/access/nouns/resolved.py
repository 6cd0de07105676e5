# SPDX-License-Identifier: Apache-2.0
"""The database rows of the objects that a request names.

The permit (the proof of the decision) carries them, so that no use case reads them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

import msgspec

from gateway.access.actor import Actor
from gateway.access.delegate_grants import DelegateGrant
from gateway.access.engine_probes import EngineProbes
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.refs import ObjectType, Ref
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.scope.profile import StorageProfile


class ResolvedWarehouse(Resolved, frozen=True, kw_only=True):
    """A warehouse row.

    `profile` is the stored storage profile (JSON), which `decode` reads. `credential_id` is the id of the stored
    credential. `scope_verdict` is the verdict of the canary for this profile version, None if there is none.
    """

    type: ClassVar[ObjectType] = ObjectType.WAREHOUSE
    id: UUID
    project_id: str
    name: str
    active: bool
    profile: bytes
    decode: Callable[[bytes], StorageProfile]
    profile_version: int
    revision: UUID | None = None
    """Changes whenever a right in this warehouse may have ended."""
    credential_id: UUID | None
    allowed_format_versions: tuple[int, ...]
    default_format_version: int | None
    scope_verdict: str | None = None
    soft_deletion: bool = False
    """True if dropped tables and views can be restored for a time."""
    data_policy_revision: UUID | None = None
    """None while no data policy can apply to a table of the warehouse. Changes whenever their set may have changed."""

    @property
    def in_project(self) -> str | None:
        return self.project_id

    @property
    def storage_profile(self) -> StorageProfile:
        """The decoded storage profile. Raises the errors of `decode`.

        It is decoded on demand: not every decision needs it, and the provider of the profile may not be installed any
        more.
        """
        return self.decode(self.profile)

    @property
    def new_table_format(self) -> int:
        """The format version of a new table if the request has none.

        It is the warehouse's default, or else 2, or the highest allowed version if 2 is not allowed.
        """
        if self.default_format_version is not None:
            return self.default_format_version
        return 2 if 2 in self.allowed_format_versions else max(self.allowed_format_versions)


MAX_FORMER_NAMES = 20
"""Maximum number of former names of one object that policies receive, the newest first. `former_names.sql` copies one
more from a namespace to an object that leaves it, so raise both limits together.
"""


class FormerNames(msgspec.Struct, frozen=True, kw_only=True):
    """The full names that an object had before renames and moves. `complete` is False if there are more of them."""

    names: tuple[tuple[str, ...], ...] = ()
    complete: bool = True


NO_FORMER_NAMES = FormerNames()


class ResolvedNamespace(Resolved, frozen=True, kw_only=True):
    """A namespace row.

    `namespace` has the creator's spelling. `ancestors` are the ids from the top level down to the parent. `former` are
    the former names of the namespace and its ancestors.

    The row has no properties, because resolution precedes the decision. `gateway.db.tables.namespaces` reads them
    later.
    """

    type: ClassVar[ObjectType] = ObjectType.NAMESPACE
    id: UUID
    warehouse: ResolvedWarehouse
    namespace: Namespace
    ancestors: tuple[UUID, ...]
    former: FormerNames = NO_FORMER_NAMES

    @property
    def in_project(self) -> str | None:
        return self.warehouse.project_id


class _ResolvedTabular(Resolved, frozen=True, kw_only=True):
    """The fields that rows of tables, views and generic tables have in common."""

    id: UUID
    namespace: ResolvedNamespace
    identifier: TableIdentifier
    location: str
    former: FormerNames = NO_FORMER_NAMES

    @property
    def warehouse(self) -> ResolvedWarehouse:
        return self.namespace.warehouse

    @property
    def in_project(self) -> str | None:
        return self.namespace.warehouse.project_id


class ResolvedTable(_ResolvedTabular, frozen=True, kw_only=True):
    """A table row; `version` counts its changes. Documents are read after the decision (`gateway.db.tables.documents`).

    `purged_by` is None for a live table. For a dropped table that can be restored, it is the user that dropped it;
    after a day it is empty.
    """

    type: ClassVar[ObjectType] = ObjectType.TABLE
    metadata_location: str
    version: int
    purged_by: str | None = None


class ResolvedView(_ResolvedTabular, frozen=True, kw_only=True):
    """A view row. It has the fields of a table row."""

    type: ClassVar[ObjectType] = ObjectType.VIEW
    metadata_location: str
    version: int


class ResolvedGenericTable(_ResolvedTabular, frozen=True, kw_only=True):
    """A generic table row. Its other properties are read after the decision (`gateway.db.tables.documents`)."""

    type: ClassVar[ObjectType] = ObjectType.GENERIC_TABLE
    format: str


class NewTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table or generic table that a request creates.

    Data policies decide about it as part of its namespace, so `id` is that of the namespace.
    """

    namespace: ResolvedNamespace
    name: str

    @property
    def id(self) -> UUID:
        return self.namespace.id

    @property
    def warehouse(self) -> ResolvedWarehouse:
        return self.namespace.warehouse


Governed = ResolvedTable | ResolvedGenericTable | ResolvedNamespace | NewTable
"""A table, a generic table, a new table, or the namespace of a new table: data policies can apply to it."""


class Excerpt(msgspec.Struct, frozen=True):
    """The part of a metadata document that decisions need (`gateway.iceberg.excerpts`), with the location of the
    document.
    """

    metadata_location: str
    text: bytes


class AbsentLocation(msgspec.Struct, frozen=True):
    """The location at which an absent object would be.

    `namespaces` are the existing namespaces of its path, from the top level down.
    """

    project_id: str
    namespaces: tuple[UUID, ...]


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """The rows behind all references of one request, read at `now` by the database's clock.

    `caller_roles` are the caller's roles, direct and through other roles. Policies about a role bind all of its
    members.
    """

    rows: Mapping[Any, Resolved]
    now: datetime
    caller_roles: tuple[str, ...] = ()
    revision: UUID | None = None
    """The revision of the server. It changes whenever a right outside of warehouses may have ended."""
    time_boxes: UUID | None = None
    """Changes whenever a grant with an expiry is made."""
    revocations_pending: bool = False
    """True if a tuple that OpenFGA must not have any more is in the outbox."""
    next_expiry: datetime | None = None
    """The first expiry of the grants to the caller, or to one of the caller's roles."""
    engine_next_expiry: datetime | None = None
    """As `next_expiry`, for the engine that acts for the caller."""
    delegations: tuple[DelegateGrant, ...] = ()
    """The recorded grants of `delegate` to the engine that acts for the caller, on the warehouses and projects of the
    rows.
    """
    probes: EngineProbes = EngineProbes()
    """The probes of the engine that acts for the caller, in the warehouses of the rows."""
    deactivated: bool = False
    """True if the provider's directory (SCIM) deactivated the caller or the engine that acts for it."""
    break_glass: tuple[tuple[str, str], ...] = ()
    """(id, id of the object) of each active break-glass activation of the caller."""
    absent: Mapping[Any, AbsentLocation] = {}
    """The locations of absent objects by reference, as far as they are known."""
    group_roles: tuple[tuple[str, str], ...] = ()
    """(role, project of the role) for each role that a group in the caller's token maps to. It contains the projects of
    the references only, or all projects if the references are in none.
    """

    def acting(self, actor: Actor) -> Actor:
        """Return the caller with the roles that the groups in its token map to in the projects of the request.

        A caller that acts as a role has that role alone.
        """
        if not actor.groups or actor.assumed_role is not None:
            return actor
        return msgspec.structs.replace(actor, group_roles=tuple(sorted(role for role, _ in self.group_roles)))

    def get(self, ref: Ref) -> Resolved | None:
        """Return the row behind `ref`; None if the object does not exist."""
        return self.rows.get(ref)

    def seen_by(self, actor: Actor, roles: tuple[str, ...]) -> Resolution:
        """Return the resolution without the objects outside of the project that the assumed role or the token is
        limited to.

        Objects outside of it are treated like absent objects, in the response and in its duration. `roles` are added to
        the caller's roles.
        """
        if actor.within is None:
            return self
        rows = {ref: row for ref, row in self.rows.items() if row.in_project in (None, actor.within)}
        if actor.project_token:
            rows = {ref: row for ref, row in rows.items() if row.type is not ObjectType.SERVER}
        absent = {ref: where for ref, where in self.absent.items() if where.project_id == actor.within}
        held = tuple(sorted({*self.caller_roles, *roles}))
        by_group = tuple(pair for pair in self.group_roles if pair[1] == actor.within)
        return msgspec.structs.replace(self, rows=rows, absent=absent, caller_roles=held, group_roles=by_group)

    def warehouses(self) -> dict[UUID, UUID | None]:
        """Return the revision of each warehouse that contains one of the rows, by the id of the warehouse."""
        found = (warehouse_of(row) for row in self.rows.values())
        return {warehouse.id: warehouse.revision for warehouse in found if warehouse is not None}

    def data_policy_revisions(self) -> dict[UUID, UUID | None]:
        """Return the data policy revision of each warehouse that contains one of the rows, by the id of the
        warehouse.
        """
        found = (warehouse_of(row) for row in self.rows.values())
        return {warehouse.id: warehouse.data_policy_revision for warehouse in found if warehouse is not None}


def warehouse_of(row: Resolved | None) -> ResolvedWarehouse | None:
    """Return the warehouse that contains a row's object, or that the row itself is; None for other rows."""
    if isinstance(row, ResolvedWarehouse):
        return row
    if isinstance(row, (ResolvedNamespace, ResolvedTable, ResolvedView, ResolvedGenericTable)):
        return row.warehouse
    return None
