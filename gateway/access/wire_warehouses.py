# SPDX-License-Identifier: Apache-2.0
"""Bodies of the operations that change a warehouse or look at its storage (`lakekeeper.md` 3.3)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from gateway.access.wire import Answer, FormatVersions, HardDelete, ManagedBy, Request, SoftDelete, WarehouseName
from gateway.iceberg.codec import absent


class RenameWarehouseRequest(Request, frozen=True):
    """`POST /warehouse/{warehouse_id}/rename`."""

    new_name: WarehouseName


class SetProtectionRequest(Request, frozen=True):
    """`POST …/protection`."""

    protected: bool


class ProtectionAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`…/protection` answers it; its members are written with underscores, as the reference system does."""

    protected: bool
    updated_at: datetime | None = None


class SetManagedByRequest(Request, frozen=True):
    """`POST /warehouse/{warehouse_id}/managed-by`."""

    managed_by: ManagedBy


class DeleteProfileRequest(Request, frozen=True):
    """`POST /warehouse/{warehouse_id}/delete-profile`."""

    delete_profile: HardDelete | SoftDelete


class FormatVersionPolicyRequest(Request, frozen=True):
    """`POST /warehouse/{warehouse_id}/format-version-policy`; without a default, clients that ask for none get 2."""

    allowed_format_versions: FormatVersions
    default_format_version: Literal[1, 2, 3] | None = None


class UpdateStorageRequest(Request, frozen=True):
    """`POST /warehouse/{warehouse_id}/storage` and `…/storage/validate-profile`. Without a credential the warehouse
    has none afterwards.
    """

    storage_profile: msgspec.Raw
    storage_credential: msgspec.Raw = msgspec.field(default_factory=absent)


class UpdateCredentialRequest(Request, frozen=True):
    """`POST /warehouse/{warehouse_id}/storage-credential` and `…/storage/validate-credential`."""

    new_storage_credential: msgspec.Raw = msgspec.field(default_factory=absent)


class CheckError(Answer, frozen=True):
    """What went wrong in a check, as an error of this API."""

    message: str
    type: str
    code: int


class ValidationCheck(Answer, frozen=True, omit_defaults=True):
    """One check of a storage validation; `reason` says why it was skipped."""

    name: str
    status: str
    duration_ms: int | None = None
    reason: str | None = None
    error: CheckError | None = None


class ValidationAnswer(Answer, frozen=True):
    """The report of `POST /warehouse-creation-validation` and `…/storage/validate-*`; `valid` when no check failed."""

    valid: bool
    checks: list[ValidationCheck]
