# SPDX-License-Identifier: Apache-2.0
"""Validate the storage of a warehouse, in particular that vended credentials are confined to one table.

The canary (`gateway/vending/canary.py`) tries to leave the scope of vended credentials. Each of its stages is a check
here. An unclear response fails the check.

Until an endpoint has proved to be a store, every failed check takes the same time and returns the same error. Otherwise
authors of storage profiles could scan the operator's network for open hosts and ports. Checks have the names of
Lakekeeper's checks where these exist.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import Final

import msgspec

from gateway.access.operations.warehouse_bodies import CheckError, ValidationCheck
from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import Credential
from gateway.scope.profile import STRICTEST, NoVending, StorageProfile, StorageRules
from gateway.storage.errors import (
    FileMissing,
    ShortTermCredentialError,
    StorageCheckFailed,
    StorageDenied,
    StorageEndpointRefused,
    StorageUnavailable,
)
from gateway.storage.provider import StorageClients
from gateway.vending.canary import STAGES, Canary
from gateway.vending.scope_verdict import Finding, ScopeReport, Verdict

__all__ = ["STORAGE_CHECKS", "CheckStatus", "ValidationReport", "checked", "skipped", "validate_warehouse_storage"]

TOTAL_SECONDS: Final = 16.0
"""Default time limit of all checks together."""
PATIENCE_SECONDS: Final = 6.0
"""Time limit of the first contact with an endpoint, and the exact duration of its failures."""
_SHOWN: Final = 3


class CheckStatus(StrEnum):
    """Result of one check."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class ValidationReport(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The checks of one run. `valid` is True if none failed. `scope` is the canary's result, if all its stages ran."""

    valid: bool
    checks: tuple[ValidationCheck, ...]
    scope: ScopeReport | None = None


async def validate_warehouse_storage(
    profile: StorageProfile,
    credential: Credential | None,
    *,
    clients: StorageClients,
    rules: StorageRules = STRICTEST,
    total_seconds: float = TOTAL_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
) -> ValidationReport:
    """Run all checks in a temporary folder below the warehouse's base location, and always remove that folder.

    Failures of the store become failed checks and raise nothing. Messages contain no part of the store's responses. The
    checks take at most `total_seconds`, and removal of the folder at most half of that in addition. The first contact
    with an endpoint takes at most `patience_seconds`. If it fails, it takes exactly that time.
    """
    probe = _Probe(profile, credential, clients, rules, patience_seconds)
    try:
        async with asyncio.timeout(total_seconds):
            await probe.run()
    except TimeoutError:
        probe.note_timeout(total_seconds)
    finally:
        # Remove the probe's objects after cancellation or timeout as well.
        await asyncio.shield(probe.clean_up(total_seconds / 2))
    checks = tuple(probe.checks)
    valid = all(check.status is not CheckStatus.FAILED for check in checks)
    return ValidationReport(valid=valid, checks=checks, scope=probe.proof() if valid else None)


class _Probe:
    """One run of the checks. If a check fails, the checks that depend on it are skipped with a reason."""

    def __init__(
        self,
        profile: StorageProfile,
        credential: Credential | None,
        clients: StorageClients,
        rules: StorageRules,
        patience_seconds: float,
    ) -> None:
        self._patience = patience_seconds
        self.checks: list[ValidationCheck] = []
        self._profile = profile
        self._rules = rules
        self._wrote = False
        self._running: str | None = None
        self._canary = Canary(profile, credential, clients)

    async def run(self) -> None:
        """Run all checks in order."""
        if not await self._check("storage-address-allowed", self._address):
            return self._skip_rest(
                "storage-client-initialized", "lakekeeper-read-write", reason="the address is refused"
            )
        if not await self._first_contact("storage-client-initialized", self._canary.own_contact):
            return self._skip_rest("lakekeeper-read-write", reason="the storage client could not be initialized")
        if not await self._check("lakekeeper-read-write", self._own_read_write):
            return self._skip_rest(reason="the gateway itself cannot read and write")
        if isinstance(self._profile.downscoping, NoVending):
            return self._skip_rest(reason=self._profile.downscoping.skipped)
        if not await self._first_contact("vended-credentials-issued", self._canary.issue):
            return self._skip_rest(*_AFTER_ISSUED, reason="no credentials were issued", all_vended=False)
        await self._check("vended-credentials-read-write", self._canary.inside)
        for stage, made in self._canary.stages():
            name = f"vended-credentials-{stage}"
            await self._check(name, partial(self._refused, made))
        return None

    def proof(self) -> ScopeReport | None:
        """Return the canary's result. None if a check failed, or if the warehouse vends no credentials."""
        attempts = self._canary.attempts
        return ScopeReport(verdict=Verdict.PROVEN, attempts=attempts) if attempts else None

    async def clean_up(self, seconds: float) -> None:
        """Remove every object that the checks wrote, with the gateway's own credential, within `seconds`."""
        if not self._wrote:
            self.checks += skipped(("cleanup",), "nothing was written")
            return
        try:
            async with asyncio.timeout(seconds):
                await self._check("cleanup", self._canary.clean_up)
        except TimeoutError:
            self._fail("cleanup", "the storage did not answer in time")

    def note_timeout(self, seconds: float) -> None:
        """Record a failure of the check that was running when the timeout of `seconds` was reached."""
        self._fail(self._running or "storage", f"not finished within {seconds:g} seconds")

    def _fail(self, name: str, text: str) -> None:
        error = CheckError(message=text, type=StorageCheckFailed.type, code=StorageCheckFailed.code)
        self.checks.append(ValidationCheck(name=name, status=CheckStatus.FAILED, error=error))

    # -- checks; each raises its failure -------------------------------------------------------------------------------

    async def _address(self) -> None:
        """Check the address in the profile against the operator's rules, without a connection."""
        self._profile.check(self._rules)

    async def _own_read_write(self) -> None:
        self._wrote = True
        await self._canary.own_round_trip()
        if not isinstance(self._profile.downscoping, NoVending):
            await self._canary.prepare()

    async def _refused(self, stage: Callable[[], Awaitable[list[Finding]]]) -> None:
        """Run a stage of the canary. Raises StorageCheckFailed unless the store rejected every attempt."""
        before = len(self._canary.unclear)
        reached = await stage()
        if reached:
            raise StorageCheckFailed(_not_enforced(reached))
        unclear = self._canary.unclear[before:]
        if unclear:
            raise StorageCheckFailed(
                "The storage answered neither with success nor with a denial when a vended credential tried to "
                f"{_listed(unclear)}; run the validation again"
            )

    # -- helpers -------------------------------------------------------------------------------------------------------

    async def _first_contact(self, name: str, action: Callable[[], Awaitable[None]]) -> bool:
        """Run a check that connects to an endpoint which may not be an object store.

        All failures have the same duration. Every error that could reveal the operator's network gets the same message.
        """

        async def guarded() -> None:
            ends_at = time.monotonic() + self._patience
            failure: CatalogError = StorageCheckFailed(self._profile.no_contact)
            try:
                async with asyncio.timeout(self._patience):
                    return await action()
            except TimeoutError:
                pass
            except CatalogError as raised:
                if isinstance(raised, StorageCheckFailed | StorageDenied) or _is_stores_own(raised):
                    failure = raised
            await asyncio.sleep(ends_at - time.monotonic())
            raise failure

        return await self._check(name, guarded, failure_seconds=self._patience)

    async def _check(
        self, name: str, action: Callable[[], Awaitable[None]], *, failure_seconds: float | None = None
    ) -> bool:
        self._running = name
        check = await checked(name, action)
        self._running = None
        if check.error is not None and failure_seconds is not None:
            check = msgspec.structs.replace(check, duration_ms=round(failure_seconds * 1000))
        self.checks.append(check)
        return check.error is None

    def _skip_rest(self, *names: str, reason: str, all_vended: bool = True) -> None:
        vended = ("vended-credentials-issued", *_AFTER_ISSUED) if all_vended else ()
        self.checks += skipped((*names, *vended), reason)


async def checked(name: str, action: Callable[[], Awaitable[object]]) -> ValidationCheck:
    """Run `action` and return the result of the check `name`: passed, or failed with the CatalogError that was
    raised.
    """
    started = time.monotonic()
    failure: CheckError | None = None
    try:
        await action()
    except CatalogError as raised:
        failure = CheckError(message=raised.message, type=raised.type, code=raised.code)
    return ValidationCheck(
        name=name,
        status=CheckStatus.PASSED if failure is None else CheckStatus.FAILED,
        duration_ms=round((time.monotonic() - started) * 1000),
        error=failure,
    )


def skipped(names: Iterable[str], reason: str) -> tuple[ValidationCheck, ...]:
    """Return the results of checks that are skipped for this reason."""
    return tuple(ValidationCheck(name=name, status=CheckStatus.SKIPPED, reason=reason) for name in names)


_AFTER_ISSUED: Final = ("vended-credentials-read-write", *(f"vended-credentials-{stage}" for stage in STAGES))


#: All checks on the store, in the order of the report.
STORAGE_CHECKS: Final = (
    "storage-address-allowed",
    "storage-client-initialized",
    "lakekeeper-read-write",
    "vended-credentials-issued",
    *_AFTER_ISSUED,
    "cleanup",
)


def _not_enforced(reached: Sequence[Finding]) -> str:
    if reached[0].attempt == "assume-role":
        return reached[0].text
    return (
        f"A vended credential can {_listed(reached)}, which its session policy forbids: the storage does not enforce "
        "session policies"
    )


def _listed(findings: Sequence[Finding]) -> str:
    """Return the first few distinct texts of findings, and the number of further ones."""
    texts = list(dict.fromkeys(finding.text for finding in findings))
    more = f"; and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return "; ".join(texts[:_SHOWN]) + more


def _is_stores_own(error: CatalogError) -> bool:
    """Return True if the error reveals nothing about the network.

    Such an error can only come from a storage service, or was raised before any request was sent.
    """
    if isinstance(error, ShortTermCredentialError):
        return error.reason not in _REASONS_OF_CONNECTIONS
    return not isinstance(error, StorageUnavailable | StorageEndpointRefused | FileMissing)


_REASONS_OF_CONNECTIONS: Final = frozenset({"unreachable", "malformed", "incomplete", "endpoint", "failed"})
