# SPDX-License-Identifier: Apache-2.0
"""Endpoints of the management API for the storage of a warehouse."""

from __future__ import annotations

from gateway.access.operations.warehouses import (
    GetScopeReport,
    GetWarehouse,
    RunScopeCanary,
    UpdateWarehouseStorage,
    UpdateWarehouseStorageCredential,
    ValidateWarehouseStorageAccess,
    ValidateWarehouseStorageCredential,
    ValidateWarehouseStorageProfile,
)
from gateway.api.serves import replay_by, serve
from gateway.governance.credential_scope import CredentialScope
from gateway.governance.warehouse_storage import WarehouseStorage
from gateway.governance.warehouses import Warehouses

_AS_IT_IS = replay_by(GetWarehouse, Warehouses.get)
serve(UpdateWarehouseStorage, WarehouseStorage.update, replay=_AS_IT_IS)
serve(UpdateWarehouseStorageCredential, WarehouseStorage.update_credential, replay=_AS_IT_IS)
serve(ValidateWarehouseStorageProfile, WarehouseStorage.validate_profile)
serve(ValidateWarehouseStorageCredential, WarehouseStorage.validate_credential)
serve(ValidateWarehouseStorageAccess, WarehouseStorage.validate_access)
serve(GetScopeReport, CredentialScope.report)
serve(RunScopeCanary, CredentialScope.run, replay=replay_by(GetScopeReport, CredentialScope.report))
