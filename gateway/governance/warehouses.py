# SPDX-License-Identifier: Apache-2.0
"""Use cases of warehouses."""

from __future__ import annotations

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.door import Door
from gateway.access.listing import ReachesInUse, holders_of, reach_of
from gateway.access.operations.warehouses import (
    CreateWarehouse,
    GetWarehouse,
    ListWarehouses,
    ValidateWarehouseCreation,
)
from gateway.access.permit import Permit
from gateway.access.privileges import Privilege
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.relations import Can
from gateway.access.tuples import TupleKey
from gateway.access.wire import (
    CreateWarehouseRequest,
    CredentialType,
    ValidationAnswer,
    ValidationCheck,
    Warehouse,
    WarehouseList,
)
from gateway.db import candidates, grants, outbox, secrets, warehouses
from gateway.db.credentials import StorageCredentials
from gateway.db.delivery import TupleDelivery
from gateway.db.engine import Database
from gateway.db.ownership import owner_of_new
from gateway.db.rows import AnyRow
from gateway.db.wanted import TRAVERSE
from gateway.governance.errors import (
    CreateWarehouseStorageProfileOverlap,
    DefaultFormatVersionNotAllowed,
    ManagedByNotAllowed,
    StorageValidationFailed,
    WarehouseNameAlreadyTaken,
)
from gateway.governance.storage_validation import CheckStatus, ValidationReport, validate_warehouse_storage
from gateway.iceberg.errors import BadRequestException
from gateway.scope.credential import S3AccessKey, S3Credential, decode_credential
from gateway.scope.endpoint import EndpointRules
from gateway.scope.profile import S3Profile, decode_profile
from gateway.storage.files import Files
from gateway.vending.sts import Sts


class Warehouses:
    """Warehouses of a project."""

    def __init__(
        self,
        *,
        database: Database,
        door: Door,
        delivery: TupleDelivery,
        files: Files,
        sts: Sts,
        storage: StorageCredentials,
        endpoints: EndpointRules,
        skip_validation: bool,
        reaches: ReachesInUse,
    ) -> None:
        self._reaches = reaches
        self._database = database
        self._door = door
        self._delivery = delivery
        self._files = files
        self._sts = sts
        self._storage = storage
        self._endpoints = endpoints
        self._skip_validation = skip_validation

    async def create(self, permit: Permit[CreateWarehouse]) -> Warehouse:
        """Validate the storage on the store itself, then create the warehouse; its creator owns it.

        Raises 400 with every failed check in its details; then nothing was created and the probes are gone.
        """
        request = permit.operation.request
        project = permit.project(permit.operation.project)
        profile, credential = self._decoded(request)
        if not self._skip_validation:
            report = await self._report(profile, credential)
            if not report.valid:
                raise _failed(report)
        id = uuid7()
        warehouse = ObjectKey(ObjectType.WAREHOUSE, str(id))
        owner = owner_of_new(permit.actor)
        permit.trail.tell(warehouse_id=str(id), base=profile.base_location().prefix_text)
        async with self._database.change(permit) as connection:
            base_key = profile.base_location().overlap_key
            if await warehouses.overlapping(connection, base_key):
                raise CreateWarehouseStorageProfileOverlap(
                    f"The base location {profile.base_location().prefix_text} overlaps that of another warehouse."
                )
            secret_id = None
            if credential is not None:
                plain = msgspec.json.encode({"type": "s3", **msgspec.to_builtins(credential)})
                secret_id = await secrets.store(connection, self._storage.sealer, plain)
            created = await warehouses.create(
                connection,
                id=id,
                project_id=project.id,
                name=request.warehouse_name,
                profile=msgspec.json.encode(profile),
                base_key=base_key,
                secret_id=secret_id,
                delete_profile=msgspec.to_builtins(request.delete_profile),
                managed_by=request.managed_by,
                allowed_format_versions=sorted(set(request.allowed_format_versions)),
                default_format_version=request.default_format_version,
            )
            if not created:
                raise WarehouseNameAlreadyTaken(f"A warehouse with name {request.warehouse_name} exists.")
            await grants.give(
                connection, privilege=Privilege.OWNERSHIP, principal=owner, on=warehouse, by=permit.actor.id
            )
            keys = [
                TupleKey(project.key, "project", warehouse),
                TupleKey(owner, Privilege.OWNERSHIP.value, warehouse),
                TupleKey(owner, TRAVERSE, project.key),
            ]
            pending = await outbox.enqueue(connection, keys, takes_away=False, warehouse_id=id)
            row = await warehouses.get(connection, id)
        await self._delivery.deliver_or_leave(pending)
        return _wire(row)

    async def validate_creation(self, permit: Permit[ValidateWarehouseCreation]) -> ValidationAnswer:
        """Every check of a creation with its result; nothing is created."""
        report = await self._report(*self._decoded(permit.operation.request))
        return ValidationAnswer(
            valid=report.valid,
            checks=[
                ValidationCheck(
                    name=check.name,
                    status=check.status.value,
                    duration_ms=check.duration_ms,
                    reason=check.reason,
                    error=check.error,
                )
                for check in report.checks
            ],
        )

    async def list(self, permit: Permit[ListWarehouses]) -> WarehouseList:
        """The project's warehouses the caller sees, active ones unless asked otherwise."""
        operation = permit.operation
        project_id = operation.project.project_id
        reach = await reach_of(self._reaches, ObjectType.WAREHOUSE)
        by: list[str | None] = []
        async with self._database.read() as connection:
            rows = await warehouses.of_project(connection, project_id, active=operation.active)
            if reach is not None:
                holders = holders_of(permit.actor, permit.resolution)
                found = await candidates.warehouses(connection, holders, reach, project_id=project_id)
                rows = [row for row in rows if row.id in found]
                by = [found[row.id] for row in rows]
        keys = [ObjectKey(ObjectType.WAREHOUSE, str(row.id)) for row in rows]
        seen = await self._door.visible(permit, Can.INCLUDE_IN_LIST, keys, by)
        return WarehouseList(warehouses=[_wire(row) for row, yes in zip(rows, seen, strict=True) if yes])

    async def get(self, permit: Permit[GetWarehouse]) -> Warehouse:
        """One warehouse."""
        resolved = permit.warehouse(permit.operation.warehouse)
        async with self._database.read() as connection:
            return _wire(await warehouses.get(connection, resolved.id))

    def _decoded(self, request: CreateWarehouseRequest) -> tuple[S3Profile, S3Credential | None]:
        if request.managed_by != "self-managed":
            raise ManagedByNotAllowed("Only instance admins may create warehouses managed by instance-admin.")
        version = request.default_format_version
        if version is not None and version not in request.allowed_format_versions:
            raise DefaultFormatVersionNotAllowed(f"Format version {version} is not among the allowed ones.")
        profile = decode_profile(request.storage_profile, endpoints=self._endpoints)
        given = bytes(request.storage_credential)
        credential = None if given in (b"", b"null") else decode_credential(given)
        if credential is not None and not isinstance(credential, S3AccessKey):
            raise BadRequestException("System identities are not enabled on this server: give an access key.")
        return profile, credential

    async def _report(self, profile: S3Profile, credential: S3Credential | None) -> ValidationReport:
        return await validate_warehouse_storage(
            profile, credential, files=self._files, sts=self._sts, endpoints=self._endpoints
        )


def _failed(report: ValidationReport) -> StorageValidationFailed:
    failed = [check for check in report.checks if check.status is CheckStatus.FAILED]
    return StorageValidationFailed(
        "The storage is not what a warehouse needs: " + ", ".join(check.name for check in failed),
        detail=tuple(f"{check.name}: {check.error}" for check in failed),
    )


def _wire(row: AnyRow) -> Warehouse:
    kind = None
    if row.secret_id is not None:
        kind = CredentialType(type="s3", credential_type="access-key")
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
