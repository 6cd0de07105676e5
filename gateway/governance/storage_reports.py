# SPDX-License-Identifier: Apache-2.0
"""The report on a warehouse that is to be made or changed: each check by its name, with how it ended, how long it took,
and why it failed or was not made.

Rules about rows and settings come first; the store is tried (`storage_validation.py`) only when they hold, so that
nothing is written where somebody else's warehouse lies.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.governance.errors import StorageValidationFailed
from gateway.governance.storage_validation import (
    STORAGE_CHECKS,
    Check,
    CheckStatus,
    ValidationReport,
    validate_warehouse_storage,
)
from gateway.iceberg.errors import CatalogError
from gateway.protocol.warehouse_storage import CheckError, ValidationAnswer, ValidationCheck
from gateway.scope.credential import Credential
from gateway.scope.profile import StorageProfile
from gateway.scope.rules import StorageRules
from gateway.storage.provider import StorageClients
from gateway.storage.registry import decode_credential, decode_profile, require_fitting

#: The checks that need no store, in the order of the report.
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
# With the half of it for cleaning up four fifths of a request are spent; the rest is for the catalog's own work.
_SHARE: Final = 8 / 15
_SWITCHED_OFF: Final = "Storage validation is switched off on this server."

Rule = Callable[[], Awaitable[object]] | str
"""What raises when the rule is broken, or why it is not asked."""


class StorageValidator:
    """Reads profiles and credentials by the operator's rules, and tries them on their store."""

    def __init__(
        self, *, clients: StorageClients, rules: StorageRules, skip: bool, request_seconds: float = 30.0
    ) -> None:
        """`request_seconds`: the longest time of a request; a trial ends before it, so that its report arrives."""
        self._total_seconds = request_seconds * _SHARE
        self._clients = clients
        self._rules = rules
        self._skip = skip

    def profile(self, raw: bytes) -> StorageProfile:
        """A profile as a client gives it. Raises InvalidStorageProfile, StorageTypeNotSupported, InvalidLocation."""
        return decode_profile(raw, rules=self._rules)

    def credential(self, raw: bytes, profile: StorageProfile) -> Credential | None:
        """A credential for `profile` as a client gives it; None for none. Raises 400, and never tells a value."""
        if raw in (b"", b"null"):
            return None
        credential = decode_credential(raw, rules=self._rules)
        require_fitting(profile, credential)
        return credential

    async def tried(self, profile: StorageProfile, credential: Credential | None) -> ValidationReport:
        """Every check of the store, or that none is made."""
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
        """All checks. `subject` gives what the store is tried with, once no rule is broken."""
        checks: list[ValidationCheck] = []
        for name in RULES:
            checks.append(await _ruled(name, rules.get(name, ONLY_CREATION)))
        if any(check.status == CheckStatus.FAILED for check in checks):
            tried = _skipped("A check before it failed.")
        else:
            tried = await self.tried(*subject())
        checks += [_told(check) for check in tried.checks]
        return ValidationAnswer(valid=all(check.status != CheckStatus.FAILED for check in checks), checks=checks)


def require_valid(report: ValidationReport) -> None:
    """Raise StorageValidationFailed with every failed check in its details; not for those that were not made."""
    failed = [check for check in report.checks if check.status is CheckStatus.FAILED]
    if failed:
        raise StorageValidationFailed(
            "The storage is not what a warehouse needs: " + ", ".join(check.name for check in failed),
            detail=tuple(f"{check.name}: {check.error}" for check in failed),
        )


async def _ruled(name: str, rule: Rule) -> ValidationCheck:
    if isinstance(rule, str):
        return ValidationCheck(name=name, status=CheckStatus.SKIPPED, reason=rule)
    started = time.monotonic()
    failure: CatalogError | None = None
    try:
        await rule()
    except CatalogError as broken:
        failure = broken
    return ValidationCheck(
        name=name,
        status=CheckStatus.PASSED if failure is None else CheckStatus.FAILED,
        duration_ms=round((time.monotonic() - started) * 1000),
        error=None if failure is None else CheckError(message=failure.message, type=failure.type, code=failure.code),
    )


def _skipped(reason: str) -> ValidationReport:
    checks = tuple(Check(name=name, status=CheckStatus.SKIPPED, reason=reason) for name in STORAGE_CHECKS)
    return ValidationReport(valid=True, checks=checks)


def _told(check: Check) -> ValidationCheck:
    error = None
    if check.error is not None:
        error = CheckError(message=check.error, type=check.error_type, code=check.error_code)
    return ValidationCheck(
        name=check.name, status=check.status, duration_ms=check.duration_ms, reason=check.reason, error=error
    )
