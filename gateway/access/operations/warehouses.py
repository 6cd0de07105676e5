# SPDX-License-Identifier: Apache-2.0
"""Operations on warehouses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration, NoEvent
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, QuestionOperation, ReadOperation
from gateway.access.operations.deletion import SetProtectionRequest
from gateway.access.operations.warehouse_bodies import (
    CreateWarehouseRequest,
    DeleteProfileRequest,
    FormatVersionPolicyRequest,
    HardDelete,
    PolicyLossRequest,
    RenameWarehouseRequest,
    SetManagedByRequest,
    SoftDelete,
    UpdateCredentialRequest,
    UpdateStorageRequest,
)
from gateway.access.request import Body, InBody, InPath, OfRequest, Query, RequestProject
from gateway.iceberg.errors import BadRequestException


def parse_states(given: Sequence[str]) -> tuple[bool, ...]:
    """Return the states by which warehouses are listed: True for active and False for inactive warehouses.

    Raises BadRequestException for an unknown state.
    """
    if not given:
        return (True,)
    states = {part.lower() for part in given}
    if not states <= {"active", "inactive"}:
        raise BadRequestException(
            "The query parameter warehouseStatus must be `active`, `inactive`, or both, separated by a comma."
        )
    return tuple(state == "active" for state in sorted(states))


@dataclass(frozen=True)
class CreateWarehouse(ChangeOperation):
    """Create a warehouse in a project after its storage was validated. The creator owns it."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="project", new="warehouse_id", named="request.warehouse_name")
    returns: ClassVar[int] = 201
    project: Annotated[ProjectRef, RequestProject(in_body=True)]
    request: InBody[CreateWarehouseRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_WAREHOUSE, self.project),)

    def facts(self) -> Facts:
        return {"warehouse_name": self.request.warehouse_name}


@dataclass(frozen=True)
class ValidateWarehouseCreation(QuestionOperation):
    """Run the checks of a creation and report each result. Nothing is created."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse-creation-validation"
    # Read-only: the operation only tests the storage, and removes its test file again.
    project: Annotated[ProjectRef, RequestProject(in_body=True)]
    request: InBody[CreateWarehouseRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_WAREHOUSE, self.project),)


@dataclass(frozen=True)
class ListWarehouses(ReadOperation):
    """List the warehouses of a project that the caller sees."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse"
    project: OfRequest
    active: Annotated[tuple[bool, ...], Query("warehouseStatus", parse=parse_states)] = (True,)

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_WAREHOUSES, self.project),)


@dataclass(frozen=True)
class GetWarehouse(ReadOperation):
    """Return a warehouse without its secrets."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}"
    warehouse: InPath[WarehouseRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.warehouse),)


@dataclass(frozen=True)
class _Changing:
    """Mixin of operations that change the warehouse itself."""

    warehouse: InPath[WarehouseRef]


@dataclass(frozen=True)
class RenameWarehouse(_Changing, ChangeOperation):
    """Rename a warehouse. The prefix, which is its id, stays."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/rename"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")
    new_name: Annotated[str, Body(RenameWarehouseRequest, "new_name")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.RENAME, self.warehouse),)

    def facts(self) -> Facts:
        return {"new_name": self.new_name}


@dataclass(frozen=True)
class ActivateWarehouse(_Changing, ChangeOperation):
    """Let the catalog serve a warehouse again."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/activate"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.ACTIVATE, self.warehouse),)


@dataclass(frozen=True)
class DeactivateWarehouse(_Changing, ChangeOperation):
    """Hide a warehouse from the catalog, for every request that begins afterwards."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/deactivate"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DEACTIVATE, self.warehouse),)


@dataclass(frozen=True)
class DeleteWarehouse(_Changing, ChangeOperation):
    """Delete an empty warehouse with every grant on it. No file of its storage is deleted.

    `force` overrides protection. `abandon_files` also deletes a warehouse with files that wait for their removal: those
    files stay permanently.
    """

    endpoint: ClassVar[str] = "DELETE /management/v1/warehouse/{warehouse_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")
    returns: ClassVar[int] = 204
    force: Annotated[bool, Query("force")] = False
    abandon_files: Annotated[bool, Query("abandon-files")] = False

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DELETE, self.warehouse),)

    def facts(self) -> Facts:
        return {"force": self.force, "abandon_files": self.abandon_files}


@dataclass(frozen=True)
class SetWarehouseProtection(_Changing, ChangeOperation):
    """Set whether a deletion needs `force`."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/protection"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")
    protected: Annotated[bool, Body(SetProtectionRequest, "protected")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SET_PROTECTION, self.warehouse),)

    def facts(self) -> Facts:
        return {"protected": self.protected}


@dataclass(frozen=True)
class SetWarehouseManagedBy(_Changing, ChangeOperation):
    """Set whether only instance administrators may change a warehouse.

    Only instance administrators may set it, on warehouses that they can see. A setting defines them, not a relation, so
    the use case checks this.
    """

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/managed-by"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")
    managed_by: Annotated[str, Body(SetManagedByRequest, "managed_by")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.warehouse),)

    def facts(self) -> Facts:
        return {"managed_by": self.managed_by}


@dataclass(frozen=True)
class SetWarehouseDeleteProfile(_Changing, ChangeOperation):
    """Set the handling of tables and views that are dropped from now on, and of their files."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/delete-profile"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")
    profile: Annotated[HardDelete | SoftDelete, Body(DeleteProfileRequest, "delete_profile")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.MODIFY_SOFT_DELETION, self.warehouse),)

    def facts(self) -> Facts:
        seconds = self.profile.expiration_seconds if isinstance(self.profile, SoftDelete) else None
        absent = self.profile.absent_purge_requested
        kind = "hard" if seconds is None else "soft"
        return {"type": kind, "expiration_seconds": seconds, "absent_purge_requested": absent}


@dataclass(frozen=True)
class SetWarehouseFormatVersionPolicy(_Changing, ChangeOperation):
    """Set the format versions that tables may be created in, registered with and upgraded to."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/format-version-policy"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")
    request: InBody[FormatVersionPolicyRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SET_FORMAT_VERSION_POLICY, self.warehouse),)

    def facts(self) -> Facts:
        return {"allowed_format_versions": tuple(str(each) for each in self.request.allowed_format_versions)}


@dataclass(frozen=True)
class SetWarehousePolicyLoss(_Changing, ChangeOperation):
    """Set the handling of changes after which a name has fewer data policies than the object that held it before.

    It can lift data policies, so it needs the right that trust in engines needs. Owners of the warehouse lack it.
    """

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/policy-loss"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")
    policy_loss: Annotated[str, Body(PolicyLossRequest, "policy_loss")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GRANT_ENFORCER, self.warehouse),)

    def facts(self) -> Facts:
        return {"policy_loss": self.policy_loss}


@dataclass(frozen=True)
class _OfStorage:
    """Mixin of operations on the storage of a warehouse."""

    warehouse: InPath[WarehouseRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.UPDATE_STORAGE, self.warehouse),)


@dataclass(frozen=True)
class UpdateWarehouseStorage(_OfStorage, ChangeOperation):
    """Change the storage profile of the same location, and the credential, after both were validated."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/storage"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")
    request: InBody[UpdateStorageRequest]


@dataclass(frozen=True)
class UpdateWarehouseStorageCredential(_OfStorage, ChangeOperation):
    """Change the storage credential after it was validated."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/storage-credential"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")
    request: InBody[UpdateCredentialRequest]


@dataclass(frozen=True)
class ValidateWarehouseStorageProfile(_OfStorage, QuestionOperation):
    """Run the checks of a storage update and report each result. Nothing is changed."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/storage/validate-profile"
    # Read-only: the operation tests the storage, and removes its test file again.
    request: InBody[UpdateStorageRequest]


@dataclass(frozen=True)
class ValidateWarehouseStorageCredential(_OfStorage, QuestionOperation):
    """Run the checks of a credential update and report each result. Nothing is changed."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/storage/validate-credential"
    # Read-only: the operation tests the storage, and removes its test file again.
    request: InBody[UpdateCredentialRequest]


@dataclass(frozen=True)
class ValidateWarehouseStorageAccess(_OfStorage, QuestionOperation):
    """Validate the storage with the profile and the credential of the warehouse."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/storage/validate-access"
    # Read-only: the operation tests the storage, and removes its test file again.


@dataclass(frozen=True)
class GetScopeReport(_OfStorage, ReadOperation):
    """Return the canary's verdict: does the store confine vended credentials?"""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/scope-report"


@dataclass(frozen=True)
class RunScopeCanary(_OfStorage, ChangeOperation):
    """Run the canary on the store now, and store its verdict."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/scope-report"
    event: ClassVar[EventDeclaration] = NoEvent("it tests the storage and changes no object")


ChangeWarehouse = (
    RenameWarehouse
    | ActivateWarehouse
    | DeactivateWarehouse
    | SetWarehouseProtection
    | SetWarehouseManagedBy
    | SetWarehouseDeleteProfile
    | SetWarehouseFormatVersionPolicy
    | SetWarehousePolicyLoss
)
