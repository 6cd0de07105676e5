# SPDX-License-Identifier: Apache-2.0
"""Validate the storage of a warehouse, in particular that vended credentials are confined to one table.

The canary (`gateway/vending/canary.py`) makes the attempts with vended credentials; each of its stages is a check here.
An unclear response fails the check.

Until an endpoint has proved to be a store, every failed check takes the same time and returns the same error. Otherwise
authors of storage profiles could scan the operator's network for open hosts and ports.

Check names are those of the reference system where it has the check.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import Final

import msgspec

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import Credential
from gateway.scope.location import Location
from gateway.scope.profile import NoVending, StorageProfile
from gateway.scope.rules import STRICTEST, StorageRules
from gateway.storage.errors import (
    FileMissing,
    ShortTermCredentialError,
    StorageCheckFailed,
    StorageDenied,
    StorageEndpointRefused,
    StorageUnavailable,
)
from gateway.storage.files import Files
from gateway.storage.provider import StorageClients
from gateway.vending.canary import Canary, check_folder
from gateway.vending.scope_verdict import Finding, ScopeReport, Verdict

__all__ = ["STORAGE_CHECKS", "Check", "CheckStatus", "ValidationReport", "validate_warehouse_storage"]

TOTAL_SECONDS: Final = 16.0
"""Default time limit of all checks together."""
PATIENCE_SECONDS: Final = 6.0
"""Time limit of the first contact with an endpoint, and the exact duration of its failures."""
_PROBE: Final = b"lakegate storage check"
_SHOWN: Final = 3


class CheckStatus(StrEnum):
    """Result of a check."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class Check(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """One check and its result.

    `reason` explains why it was skipped. `error`, `error_type` and `error_code` describe the failure. The duration is
    in milliseconds.
    """

    name: str
    status: CheckStatus
    duration_ms: int | None = None
    reason: str | None = None
    error: str | None = None
    error_type: str = "StorageCheckFailed"
    error_code: int = 400


class ValidationReport(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """All checks of a run. `valid` is True if none failed. `scope` is the canary's result if all its stages ran."""

    valid: bool
    checks: tuple[Check, ...]
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
    with an endpoint takes at most `patience_seconds`, and exactly that time if it fails.
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
    """One run of the checks. A check that depends on a failed one is skipped with a reason."""

    def __init__(
        self,
        profile: StorageProfile,
        credential: Credential | None,
        clients: StorageClients,
        rules: StorageRules,
        patience_seconds: float,
    ) -> None:
        self._patience = patience_seconds
        self.checks: list[Check] = []
        self._profile = profile
        self._credential = credential
        self._files = Files(clients)
        self._clients = clients
        self._rules = rules
        self._wrote = False
        self._running: str | None = None
        self._folder = check_folder(profile)
        self._canary = Canary(profile, credential, clients, self._folder)

    async def run(self) -> None:
        """Run all checks in order."""
        if not await self._check("storage-address-allowed", self._address):
            return self._skip_rest(
                "storage-client-initialized", "lakekeeper-read-write", reason="the address is refused"
            )
        if not await self._first_contact("storage-client-initialized", self._client):
            return self._skip_rest("lakekeeper-read-write", reason="the storage client could not be initialized")
        if not await self._check("lakekeeper-read-write", self._own_read_write):
            return self._skip_rest(reason="the gateway itself cannot read and write")
        if isinstance(self._profile.downscoping, NoVending):
            return self._skip_rest(reason=self._profile.downscoping.skipped)
        if not await self._first_contact("vended-credentials-issued", self._canary.issue):
            return self._skip_rest(*_AFTER_ISSUED, reason="no credentials were issued", all_vended=False)
        await self._check("vended-credentials-read-write", self._canary.inside)
        for name, stage in (
            ("vended-credentials-scope-enforced", self._canary.outside),
            ("vended-credentials-policy-enforced", self._canary.above_level),
            ("vended-credentials-no-role-assumption", self._canary.role_again),
            ("vended-credentials-control-plane", self._canary.control_plane),
        ):
            await self._check(name, partial(self._refused, stage))
        return None

    def proof(self) -> ScopeReport | None:
        """Return the canary's result after a run without a failed check; None if the warehouse vends no credentials."""
        attempts = self._canary.attempts
        return ScopeReport(verdict=Verdict.PROVEN, attempts=attempts) if attempts else None

    async def clean_up(self, seconds: float) -> None:
        """Remove every object of the probe with the gateway's own credential, within `seconds`."""
        if not self._wrote:
            self.checks.append(Check(name="cleanup", status=CheckStatus.SKIPPED, reason="nothing was written"))
            return
        try:
            async with asyncio.timeout(seconds):
                await self._check("cleanup", self._canary.clean_up)
        except TimeoutError:
            self.checks.append(
                Check(name="cleanup", status=CheckStatus.FAILED, error="the storage did not answer in time")
            )

    def note_timeout(self, seconds: float) -> None:
        """Record the check that was running at the timeout as failed."""
        error = f"not finished within {seconds:g} seconds"
        self.checks.append(Check(name=self._running or "storage", status=CheckStatus.FAILED, error=error))

    # -- checks; each raises its failure -------------------------------------------------------------------------------

    async def _address(self) -> None:
        """Check the address in the profile by the operator's rules, without a connection."""
        self._profile.check(self._rules)

    async def _client(self) -> None:
        if self._credential is None:
            raise StorageCheckFailed("The warehouse has no storage credential; set one")
        await self._files.list_keys(self._profile, self._credential, self._folder, 1)

    async def _own_read_write(self) -> None:
        self._wrote = True
        await self._round_trip(self._own(), self._folder.child("own.txt"))
        if not isinstance(self._profile.downscoping, NoVending):
            await self._canary.prepare()

    async def _refused(self, stage: Callable[[], Awaitable[list[Finding]]]) -> None:
        """Run a stage of the canary. Raise StorageCheckFailed unless the store refused every attempt."""
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
        """Run a check on an endpoint that may not be a store.

        All failures have the same duration. Errors that could reveal the operator's network are replaced by one
        message.
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
        started, self._running = time.monotonic(), name
        failure: CatalogError | None = None
        try:
            await action()
        except CatalogError as raised:
            failure = raised
        self._running = None
        took = round((time.monotonic() - started) * 1000)
        if failure is None:
            self.checks.append(Check(name=name, status=CheckStatus.PASSED, duration_ms=took))
            return True
        self.checks.append(
            Check(
                name=name,
                status=CheckStatus.FAILED,
                duration_ms=took if failure_seconds is None else round(failure_seconds * 1000),
                error=failure.message,
                error_type=failure.type,
                error_code=failure.code,
            )
        )
        return False

    def _skip_rest(self, *names: str, reason: str, all_vended: bool = True) -> None:
        for name in (*names, *(("vended-credentials-issued", *_AFTER_ISSUED) if all_vended else ())):
            self.checks.append(Check(name=name, status=CheckStatus.SKIPPED, reason=reason))

    async def _round_trip(self, credential: Credential, key: Location) -> None:
        await self._files.write(self._profile, credential, key.text, _PROBE)
        if await self._files.read(self._profile, credential, key.text, max_bytes=1024) != _PROBE:
            raise StorageCheckFailed("The storage returned other bytes than were written")
        await self._files.delete(self._profile, credential, [key.text])

    def _own(self) -> Credential:
        if self._credential is None:
            raise StorageCheckFailed("The warehouse has no storage credential; set one")
        return self._credential


_AFTER_ISSUED: Final = (
    "vended-credentials-read-write",
    "vended-credentials-scope-enforced",
    "vended-credentials-policy-enforced",
    "vended-credentials-no-role-assumption",
    "vended-credentials-control-plane",
)


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
    """Return the first few different texts of findings."""
    texts = list(dict.fromkeys(finding.text for finding in findings))
    more = f"; and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return "; ".join(texts[:_SHOWN]) + more


def _is_stores_own(error: CatalogError) -> bool:
    """Return whether the error reveals nothing about the network.

    Such an error can only come from a storage service, or was raised before any request was sent.
    """
    if isinstance(error, ShortTermCredentialError):
        return error.reason not in _REASONS_OF_CONNECTIONS
    return not isinstance(error, StorageUnavailable | StorageEndpointRefused | FileMissing)


_REASONS_OF_CONNECTIONS: Final = frozenset({"unreachable", "malformed", "incomplete", "endpoint", "failed"})
