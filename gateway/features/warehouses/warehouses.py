# SPDX-License-Identifier: Apache-2.0
"""Use cases to create, validate, list and read warehouses, and what all use cases of warehouses share.

The shared parts are the response body, the format versions, and the check of `managed-by`, which reserves changes of a
warehouse to instance administrators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.actor import Actor
from gateway.access.door.list_visibility import holders_of, reach_of
from gateway.access.door.permit import Permit
from gateway.access.management_errors import (
    CreateWarehouseStorageProfileOverlap,
    DefaultFormatVersionNotAllowed,
    InstanceAdminRequired,
    WarehouseManaged,
    WarehouseNameAlreadyTaken,
)
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.project import ResolvedProject
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operations.warehouse_bodies import (
    CreateWarehouseRequest,
    CredentialType,
    ValidationAnswer,
    Warehouse,
    WarehouseList,
)
from gateway.access.operations.warehouses import (
    CreateWarehouse,
    GetWarehouse,
    ListWarehouses,
    ValidateWarehouseCreation,
)
from gateway.access.tuples import TupleKey
from gateway.db.engine import list_candidates
from gateway.db.grants import grants
from gateway.db.tuples import outbox
from gateway.db.tuples.desired_tuples import TRAVERSE
from gateway.db.tuples.ownership import owner_of_new
from gateway.db.warehouses import warehouses
from gateway.db.warehouses.warehouses import WarehouseRow
from gateway.features.credentials.credential_scope import FIRST_VERSION, record_scope
from gateway.features.credentials.storage_reports import ONLY_UPDATES, StorageValidator, require_valid
from gateway.features.kit import Kit, UseCases
from gateway.scope.credential import Credential
from gateway.scope.profile import StorageProfile, key_seconds
from gateway.storage.registry import credential_kind, credential_type, stored_profile

#: `managed-by` of a warehouse that only instance admins may change.
INSTANCE_ADMIN = "instance-admin"


#: Fields with the same name in the create request, the row and the response. A new field needs a column and a member of
#: both bodies; this module copies it by name.
STATED: Final = tuple(
    name
    for name in CreateWarehouseRequest.__struct_fields__
    if name in Warehouse.__struct_fields__ and name in warehouses.COLUMNS and name != "project_id"
)


def stated(request: CreateWarehouseRequest) -> dict[str, object]:
    """Return {column: value} for the fields that a request sets directly. Raises DefaultFormatVersionNotAllowed."""
    versions = require_versions(request.allowed_format_versions, request.default_format_version)
    given = {name: msgspec.to_builtins(getattr(request, name)) for name in STATED}
    return {**given, "allowed_format_versions": versions}


def require_manager(actor: Actor, row: WarehouseRow) -> None:
    """Raise WarehouseManaged unless the caller may change the warehouse, according to `managed-by` in its row.

    The check supplements the relation check and needs the locked row, so that a concurrent change of `managed-by` takes
    effect.
    """
    if row.managed_by == INSTANCE_ADMIN and not actor.instance_admin:
        raise WarehouseManaged(
            "Only instance admins may change this warehouse: its managed-by is instance-admin. The operator names "
            "them in the setting INSTANCE_ADMINS."
        )


def require_versions(allowed: Sequence[int], default: int | None) -> list[int]:
    """Return the allowed format versions, sorted and distinct. Raises DefaultFormatVersionNotAllowed."""
    if default is not None and default not in allowed:
        raise DefaultFormatVersionNotAllowed(
            f"The default format version {default} is not among the allowed format versions. Add it to them, or "
            "choose one of them."
        )
    return sorted(set(allowed))


def warehouse_answer(row: WarehouseRow) -> Warehouse:
    """Return a row of `warehouses` in wire form. It contains no secrets."""
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
        **{name: row.columns[name] for name in STATED},
    )


class Warehouses(UseCases):
    """Create, list and read the warehouses of a project."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._storage = kit.storage
        self._trials = StorageValidator(kit)

    async def create(self, permit: Permit[CreateWarehouse]) -> Warehouse:
        """Validate the storage on the store, then create the warehouse.

        The creator gets `ownership` and `manage_storage`. Raise 400 with every failed check in the details; then
        nothing was created and the probe's objects are removed.
        """
        request = permit.operation.request
        project = permit.row(permit.operation.project, ResolvedProject)
        _require_instance_admin(permit.actor, request.managed_by)
        fields = stated(request)
        profile = self._trials.profile(request.storage_profile)
        credential = self._trials.credential(bytes(request.storage_credential), profile)
        # Check for overlaps first: the probe must not write into the location of another warehouse.
        await self._require_free_base(profile)
        tried = await self._trials.tried(profile, credential)
        require_valid(tried)
        id = uuid7()
        warehouse = ObjectKey(ObjectType.WAREHOUSE, str(id))
        owner = owner_of_new(permit.actor)
        permit.pending_audit.add_details(warehouse_id=str(id), base=profile.base_location().prefix_text)
        async with self._storage.written(credential) as written, self._database.change(permit) as connection:
            base_key = profile.base_location().overlap_key
            if not await warehouses.claim_base(connection, base_key):
                raise _overlaps(profile)
            secret_id = await written.use(connection)
            try:
                created = await warehouses.create(
                    connection,
                    id=id,
                    project_id=project.id,
                    name=request.warehouse_name,
                    profile=msgspec.json.encode(profile),
                    key_seconds=key_seconds(profile),
                    base_key=base_key,
                    secret_id=secret_id,
                    credential_kind=credential_kind(credential),
                    stated=fields,
                )
            except warehouses.ProjectGone as gone:
                raise not_found(permit.operation.project) from gone
            if not created:
                raise _taken(request.warehouse_name)
            await record_scope(connection, id, tried, profile_version=FIRST_VERSION)
            await grants.grant(
                connection, privilege=Privilege.OWNERSHIP, principal=owner, on=warehouse, by=permit.actor.id
            )
            # Ownership does not imply `manage_storage`: a later owner does not receive it.
            await grants.grant(
                connection, privilege=Privilege.MANAGE_STORAGE, principal=owner, on=warehouse, by=permit.actor.id
            )
            keys = [
                TupleKey(project.key, "project", warehouse),
                TupleKey(owner, Privilege.OWNERSHIP.value, warehouse),
                TupleKey(owner, Privilege.MANAGE_STORAGE.value, warehouse),
                TupleKey(owner, TRAVERSE, project.key),
            ]
            pending = await outbox.enqueue(connection, keys, takes_away=False, warehouse_id=id)
            row = await warehouses.get(connection, id)
        await self._delivery.deliver_or_defer(pending)
        if row is None:
            raise LookupError("the warehouse was not found in the transaction that created it")
        return warehouse_answer(row)

    async def validate_creation(self, permit: Permit[ValidateWarehouseCreation]) -> ValidationAnswer:
        """Run every check of `create` and return the results. Nothing is created."""
        request = permit.operation.request
        project = permit.row(permit.operation.project, ResolvedProject)
        trials = self._trials

        def decode_profile_and_credential() -> tuple[StorageProfile, Credential | None]:
            profile = trials.profile(request.storage_profile)
            return profile, trials.credential(bytes(request.storage_credential), profile)

        async def well_formed() -> None:
            decode_profile_and_credential()

        async def exclusive() -> None:
            await self._require_free_base(trials.profile(request.storage_profile))

        async def require_free_name() -> None:
            await self._require_free_name(project.id, request.warehouse_name)

        async def versions() -> None:
            require_versions(request.allowed_format_versions, request.default_format_version)

        async def managed() -> None:
            _require_instance_admin(permit.actor, request.managed_by)

        return await trials.report(
            {
                "profile-well-formed": well_formed,
                "profile-compatible": ONLY_UPDATES,
                "warehouse-name-valid": require_free_name,
                "location-exclusive": exclusive,
                "spec-mutable": ONLY_UPDATES,
                "format-version-policy-consistent": versions,
                "managed-by-allowed": managed,
            },
            decode_profile_and_credential,
        )

    async def list(self, permit: Permit[ListWarehouses]) -> WarehouseList:
        """Return the project's warehouses that the caller can see. Inactive ones are included only if requested."""
        operation = permit.operation
        project_id = operation.project.project_id
        reach = await reach_of(self._reaches, ObjectType.WAREHOUSE)
        by: list[str | None] = []
        async with self._database.read() as connection:
            rows = await warehouses.of_project(connection, project_id, active=operation.active)
            if reach is not None:
                holders = holders_of(permit.actor, permit.resolution)
                found = await list_candidates.warehouses(connection, holders, reach, project_id=project_id)
                rows = [row for row in rows if row.id in found]
                by = [found[row.id] for row in rows]
        keys = [ObjectKey(ObjectType.WAREHOUSE, str(row.id)) for row in rows]
        seen = await self._door.visible(permit, Can.INCLUDE_IN_LIST, keys, by)
        return WarehouseList(warehouses=[warehouse_answer(row) for row, yes in zip(rows, seen, strict=True) if yes])

    async def get(self, permit: Permit[GetWarehouse]) -> Warehouse:
        """Return one warehouse."""
        resolved = permit.warehouse(permit.operation.warehouse)
        async with self._database.read() as connection:
            row = await warehouses.get(connection, resolved.id)
        if row is None:
            raise not_found(permit.operation.warehouse)
        return warehouse_answer(row)

    async def _require_free_base(self, profile: StorageProfile) -> None:
        async with self._database.read() as connection:
            if not await warehouses.base_is_free(connection, profile.base_location().overlap_key):
                raise _overlaps(profile)

    async def _require_free_name(self, project_id: str, name: str) -> None:
        async with self._database.read() as connection:
            if not await warehouses.name_is_free(connection, project_id, name):
                raise _taken(name)


def _overlaps(profile: StorageProfile) -> CreateWarehouseStorageProfileOverlap:
    return CreateWarehouseStorageProfileOverlap(
        f"The base location {profile.base_location().prefix_text} overlaps the base location of another warehouse. "
        "Choose another base location."
    )


def _taken(name: str) -> WarehouseNameAlreadyTaken:
    return WarehouseNameAlreadyTaken(
        f"A warehouse with the name {name} already exists in the project. Choose another name."
    )


def _require_instance_admin(actor: Actor, managed_by: str) -> None:
    if managed_by == INSTANCE_ADMIN and not actor.instance_admin:
        raise InstanceAdminRequired(
            "Only instance admins may create a warehouse with managed-by set to instance-admin. Leave managed-by out."
        )
