# SPDX-License-Identifier: Apache-2.0
"""Validation reports for new or changed warehouses: result, duration and failure of each named check.

Rules about rows and settings are checked first. The store is tested (`storage_validation.py`) only if they all pass, so
that no test file is written into the location of another warehouse.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from gateway.access.management_errors import StorageValidationFailed
from gateway.access.operations.warehouse_bodies import ValidationAnswer, ValidationCheck
from gateway.features.credentials.storage_validation import (
    STORAGE_CHECKS,
    CheckStatus,
    ValidationReport,
    checked,
    skipped,
    validate_warehouse_storage,
)
from gateway.features.kit import Kit, UseCases
from gateway.scope.credential import Credential
from gateway.scope.profile import StorageProfile
from gateway.storage.registry import decode_credential, decode_profile, require_same_provider

#: Checks that do not access the store, in the order of the report.
RULES: Final = (
    "profile-well-formed",
    "profile-compatible",
    "warehouse-name-valid",
    "location-exclusive",
    "spec-mutable",
    "format-version-policy-consistent",
    "managed-by-allowed",
)

ONLY_UPDATES: Final = "Only applies when updating an existing warehouse."
ONLY_CREATION: Final = "Only applies when creating a warehouse."
# The share of the request time that the checks may use. Cleanup may use half as much in addition, so together they use
# at most 8/15 + 4/15 = four fifths of the time. The rest is for the catalog's own work.
_SHARE: Final = 8 / 15
_SWITCHED_OFF: Final = "Storage validation is disabled on this server."

Rule = Callable[[], Awaitable[object]] | str
"""A check that raises if the rule is broken, or the reason why it is skipped."""


class StorageValidator(UseCases):
    """Decode storage profiles and credentials by the operator's rules, and test them on the object store."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._total_seconds = kit.request_seconds * _SHARE
        self._clients = kit.clients
        self._rules = kit.rules
        self._skip = kit.skip_storage_validation

    def profile(self, raw: bytes) -> StorageProfile:
        """Return the storage profile of a request, decoded from `raw`.

        Raises InvalidStorageProfile, StorageTypeNotSupported or InvalidLocation.
        """
        return decode_profile(raw, rules=self._rules)

    def credential(self, raw: bytes, profile: StorageProfile) -> Credential | None:
        """Return the credential of a request, decoded from `raw` for `profile`; None if the request has none.

        Raise 400. The message contains no secret value.
        """
        if raw in (b"", b"null"):
            return None
        credential = decode_credential(raw, rules=self._rules)
        require_same_provider(profile, credential)
        return credential

    async def tried(self, profile: StorageProfile, credential: Credential | None) -> ValidationReport:
        """Run every check on the store. If validation is switched off, report all checks as skipped."""
        if self._skip:
            return _skipped(_SWITCHED_OFF)
        return await validate_warehouse_storage(
            profile,
            credential or profile.own_access,
            clients=self._clients,
            rules=self._rules,
            total_seconds=self._total_seconds,
        )

    async def report(
        self, rules: dict[str, Rule], subject: Callable[[], tuple[StorageProfile, Credential | None]]
    ) -> ValidationAnswer:
        """Run all checks. `subject` returns the (profile, credential) to test once all rules have passed."""
        checks: list[ValidationCheck] = []
        for name in RULES:
            checks += await _ruled(name, rules.get(name, ONLY_CREATION))
        if any(check.status == CheckStatus.FAILED for check in checks):
            tried = _skipped("An earlier check failed.")
        else:
            tried = await self.tried(*subject())
        checks += tried.checks
        return ValidationAnswer(valid=all(check.status != CheckStatus.FAILED for check in checks), checks=checks)


def require_valid(report: ValidationReport) -> None:
    """Raise StorageValidationFailed if a check failed, with each failure in the details.

    Skipped checks do not count.
    """
    failed = {check.name: check.error.message for check in report.checks if check.error is not None}
    if failed:
        raise StorageValidationFailed(
            "The storage failed these checks: " + ", ".join(failed),
            detail=tuple(f"{name}: {error}" for name, error in failed.items()),
        )


async def _ruled(name: str, rule: Rule) -> tuple[ValidationCheck, ...]:
    return skipped((name,), rule) if isinstance(rule, str) else (await checked(name, rule),)


def _skipped(reason: str) -> ValidationReport:
    return ValidationReport(valid=True, checks=skipped(STORAGE_CHECKS, reason))
