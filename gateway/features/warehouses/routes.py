# SPDX-License-Identifier: Apache-2.0
"""Endpoints for warehouses, their storage, and projects."""

from __future__ import annotations

from uuid import UUID

from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.operations.deletion import ProtectionAnswer
from gateway.access.operations.projects import (
    CreatedProject,
    CreateProject,
    DeleteProject,
    GetProject,
    ListProjects,
    RenameProject,
)
from gateway.access.operations.warehouse_bodies import Warehouse
from gateway.access.operations.warehouses import (
    ActivateWarehouse,
    CreateWarehouse,
    DeactivateWarehouse,
    DeleteWarehouse,
    GetScopeReport,
    GetWarehouse,
    ListWarehouses,
    RenameWarehouse,
    RunScopeCanary,
    SetWarehouseDeleteProfile,
    SetWarehouseFormatVersionPolicy,
    SetWarehouseManagedBy,
    SetWarehousePolicyLoss,
    SetWarehouseProtection,
    UpdateWarehouseStorage,
    UpdateWarehouseStorageCredential,
    ValidateWarehouseCreation,
    ValidateWarehouseStorageAccess,
    ValidateWarehouseStorageCredential,
    ValidateWarehouseStorageProfile,
)
from gateway.api.context import Ctx
from gateway.api.serves import replay_by, serve
from gateway.features.credentials.credential_scope import CredentialScope
from gateway.features.warehouses.projects import Projects
from gateway.features.warehouses.warehouse_changes import WarehouseChanges
from gateway.features.warehouses.warehouse_storage import WarehouseStorage
from gateway.features.warehouses.warehouses import Warehouses


async def replay_warehouse_creation(ctx: Ctx, recorded_success: RecordedSuccess) -> Warehouse:
    """Return the current warehouse."""
    created = WarehouseRef(UUID(recorded_success.detail["warehouse_id"]))
    return await ctx.use(Warehouses).get(await ctx.admit(GetWarehouse(created)))


async def replay_protection(ctx: Ctx, recorded_success: RecordedSuccess) -> ProtectionAnswer:
    """Return the current protection of the warehouse."""
    warehouse = await ctx.use(Warehouses).get(await ctx.admit(await ctx.read(GetWarehouse)))
    return ProtectionAnswer(protected=warehouse.protected, updated_at=warehouse.updated_at)


#: Returns the current warehouse, which includes the change and any later ones.
_AS_IT_IS = replay_by(GetWarehouse, Warehouses.get)
serve(CreateWarehouse, Warehouses.create, replay=replay_warehouse_creation)
serve(ValidateWarehouseCreation, Warehouses.validate_creation)
serve(ListWarehouses, Warehouses.list)
serve(GetWarehouse, Warehouses.get)
serve(RenameWarehouse, WarehouseChanges.rename, replay=_AS_IT_IS)
serve(ActivateWarehouse, WarehouseChanges.activate)
serve(DeactivateWarehouse, WarehouseChanges.deactivate)
serve(DeleteWarehouse, WarehouseChanges.delete)
serve(SetWarehouseProtection, WarehouseChanges.protect, replay=replay_protection)
serve(SetWarehouseManagedBy, WarehouseChanges.set_managed_by, replay=_AS_IT_IS)
serve(SetWarehouseDeleteProfile, WarehouseChanges.set_delete_profile, replay=_AS_IT_IS)
serve(SetWarehousePolicyLoss, WarehouseChanges.set_policy_loss, replay=_AS_IT_IS)
serve(SetWarehouseFormatVersionPolicy, WarehouseChanges.set_format_version_policy, replay=_AS_IT_IS)


serve(UpdateWarehouseStorage, WarehouseStorage.update, replay=_AS_IT_IS)
serve(UpdateWarehouseStorageCredential, WarehouseStorage.update_credential, replay=_AS_IT_IS)
serve(ValidateWarehouseStorageProfile, WarehouseStorage.validate_profile)
serve(ValidateWarehouseStorageCredential, WarehouseStorage.validate_credential)
serve(ValidateWarehouseStorageAccess, WarehouseStorage.validate_access)
serve(GetScopeReport, CredentialScope.report)
serve(RunScopeCanary, CredentialScope.run, replay=replay_by(GetScopeReport, CredentialScope.report))


async def replay_project_creation(ctx: Ctx, recorded_success: RecordedSuccess) -> CreatedProject:
    """Return the project's id. Raises 404 if the caller cannot see the project."""
    created = ProjectRef(recorded_success.detail["project_id"])
    project = await ctx.use(Projects).get(await ctx.admit(GetProject(created)))
    return CreatedProject(project_id=project.project_id)


serve(CreateProject, Projects.create, replay=replay_project_creation)
serve(ListProjects, Projects.list)
serve(GetProject, Projects.get)
serve(RenameProject, Projects.rename)
serve(DeleteProject, Projects.delete)
