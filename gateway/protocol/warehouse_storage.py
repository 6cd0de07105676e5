# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints that replace or validate the storage of a warehouse."""

from __future__ import annotations

import msgspec

from gateway.iceberg.codec import absent
from gateway.protocol.base import Answer, StrictRequest


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
