# SPDX-License-Identifier: Apache-2.0
"""Bodies of the requests and responses for warehouses, their storage, and the canary.

The canary tests that vended credentials cannot leave their scope (`gateway/vending/canary.py`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, FormatVersions, ManagedBy, ProjectId, Request, StrictRequest, WarehouseName
from gateway.iceberg.codec import absent


class RenameWarehouseRequest(Request, frozen=True):
    """Request of `POST /warehouse/{warehouse_id}/rename`."""

    new_name: WarehouseName


class SetManagedByRequest(StrictRequest, frozen=True):
    """Request of `POST /warehouse/{warehouse_id}/managed-by`."""

    managed_by: ManagedBy


class DeleteProfileRequest(StrictRequest, frozen=True):
    """Request of `POST /warehouse/{warehouse_id}/delete-profile`."""

    delete_profile: HardDelete | SoftDelete


class FormatVersionPolicyRequest(StrictRequest, frozen=True):
    """Request of `POST /warehouse/{warehouse_id}/format-version-policy`. Without a `default-format-version`, a new
    table without a stated version has version 2, or the highest allowed version if 2 is not allowed.
    """

    allowed_format_versions: FormatVersions
    default_format_version: Literal[1, 2, 3] | None = None


PolicyLoss = Literal["refuse", "refuse-restricted", "announce"]


class PolicyLossRequest(StrictRequest, frozen=True):
    """Request of `POST /warehouse/{warehouse_id}/policy-loss`.

    It is about changes after which a name has fewer data policies than the object that held it before. `refuse` refuses
    them to principals that do not manage these policies, `refuse-restricted` only to those that they restrict, and
    `announce` to none. Permitted changes are announced.
    """

    policy_loss: PolicyLoss


class _DeleteProfile(StrictRequest, frozen=True, kw_only=True, omit_defaults=True):
    """`absent-purge-requested` determines whether a drop without `purgeRequested` deletes the files."""

    absent_purge_requested: Literal["purge", "keep"] = "purge"


class HardDelete(_DeleteProfile, frozen=True, tag_field="type", tag="hard"):
    """Dropped tables and views are deleted at once. With `absent-purge-requested` set to `keep`, their files stay
    unless the drop sends `purgeRequested=true`.
    """


class SoftDelete(_DeleteProfile, frozen=True, tag_field="type", tag="soft"):
    """Dropped tables and views can be restored for `expiration-seconds`. `absent-purge-requested` is as for `hard`."""

    expiration_seconds: Annotated[int, msgspec.Meta(ge=0, le=31_536_000)]


class CreateWarehouseRequest(StrictRequest, frozen=True):
    """Request of `POST /warehouse` and `POST /warehouse-creation-validation`."""

    warehouse_name: WarehouseName
    storage_profile: msgspec.Raw
    storage_credential: msgspec.Raw = msgspec.field(default_factory=absent)
    delete_profile: HardDelete | SoftDelete = HardDelete()
    project_id: ProjectId | None = None
    managed_by: ManagedBy = "self-managed"
    allowed_format_versions: FormatVersions = (1, 2, 3)
    default_format_version: Literal[1, 2, 3] | None = None


class CredentialType(Answer, frozen=True):
    """The kind of a warehouse's credential, without the credential itself."""

    type: str
    credential_type: str


class Warehouse(Answer, frozen=True, omit_defaults=True):
    """A warehouse. `id` repeats `warehouse-id` for older clients."""

    warehouse_id: UUID
    id: UUID
    name: str
    project_id: str
    status: str
    protected: bool
    storage_profile: msgspec.Raw
    delete_profile: dict[str, Any]
    managed_by: str
    allowed_format_versions: list[int]
    policy_loss: PolicyLoss
    storage_credential_type: CredentialType | None = None
    default_format_version: int | None = None
    updated_at: datetime | None = None


class WarehouseList(Answer, frozen=True):
    """Response of `GET /warehouse`."""

    warehouses: list[Warehouse]


class UpdateStorageRequest(StrictRequest, frozen=True):
    """Request of `POST /warehouse/{warehouse_id}/storage` and `…/storage/validate-profile`. Without a
    `storage-credential`, the warehouse has no credential afterwards.
    """

    storage_profile: msgspec.Raw
    storage_credential: msgspec.Raw = msgspec.field(default_factory=absent)


class UpdateCredentialRequest(StrictRequest, frozen=True):
    """Request of `POST /warehouse/{warehouse_id}/storage-credential` and `…/storage/validate-credential`."""

    new_storage_credential: msgspec.Raw = msgspec.field(default_factory=absent)


class CheckError(Answer, frozen=True):
    """The error of a failed check, in the form of this API's errors."""

    message: str
    type: str
    code: int


class ValidationCheck(Answer, frozen=True, omit_defaults=True):
    """One check of a storage validation. `reason` is the reason why the check was skipped."""

    name: str
    status: str
    duration_ms: int | None = None
    reason: str | None = None
    error: CheckError | None = None


class ValidationAnswer(Answer, frozen=True):
    """Response of `POST /warehouse-creation-validation` and `…/storage/validate-*`. `valid` is true unless a check
    failed.
    """

    valid: bool
    checks: list[ValidationCheck]


class ScopeFinding(Answer, frozen=True):
    """One attempt that was not refused.

    `level` is the access level of the credential, `attempt` the kind of the request, `place` where it acted.
    """

    level: str
    attempt: str
    place: str
    text: str


class ScopeReportAnswer(Answer, frozen=True):
    """Response of `GET` and `POST /warehouse/{warehouse_id}/scope-report`.

    `verdict` is for the current storage profile, `inconclusive` if there is none. The other fields describe the last
    run. An inconclusive run does not replace an earlier verdict at once, so `last-run-verdict` can differ from it.
    `findings` are attempts that the store carried out, `unclear` those with neither a success nor a refusal.
    """

    warehouse_id: UUID
    verdict: str
    verdict_at: datetime | None
    last_run_at: datetime | None
    last_run_verdict: str | None
    attempts: int
    findings: list[ScopeFinding]
    unclear: list[ScopeFinding]
    reason: str
