# SPDX-License-Identifier: Apache-2.0
"""Validate the storage of a warehouse, in particular that vended credentials are confined to one table.

A store that ignores session policies gives every vended credential the rights of the whole role, without any error. So
each restriction is tested on the store itself, with downscoped credentials for a temporary table:

Access inside the table must work. In the parent folder and in a sibling whose name has the same prefix, writes and
reads must be denied. Deletes there must leave the object in place, and listings must be denied or empty. A read-only
credential must not write or delete. A vended credential must not drop its policy by assuming the role again. An unclear
response fails the check.

Until an endpoint has proved to be a store, every failed check takes the same time and returns the same error. Otherwise
authors of storage profiles could scan the operator's network for open hosts and ports.

Check names are those of the reference system where it has the check.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final
from uuid import uuid4

import msgspec

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import Credential, TemporaryCredential
from gateway.scope.level import AccessLevel
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
from gateway.vending.session_name import SessionIdentity
from gateway.vending.vendor import FLOOR_SECONDS, NoCredentials, Vendor

__all__ = ["STORAGE_CHECKS", "Check", "CheckStatus", "ValidationReport", "validate_warehouse_storage"]

TOTAL_SECONDS: Final = 16.0
"""Default time limit of all checks together."""
PATIENCE_SECONDS: Final = 6.0
"""Time limit of the first contact with an endpoint, and the exact duration of its failures."""
_PROBE: Final = b"lakegate storage check"
_MAX_PROBES: Final = 100


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
    """All checks of a run. `valid` is True if none failed."""

    valid: bool
    checks: tuple[Check, ...]


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
    return ValidationReport(valid=all(check.status is not CheckStatus.FAILED for check in checks), checks=checks)


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
        self._folder = profile.base_location().child(f"lakegate-check-{uuid4().hex}")
        self._table = self._folder.child("table")
        # The name begins with the table's name: only the final slash in the policy's pattern excludes it.
        self._sibling = self._folder.child("table2")
        self._read_write: TemporaryCredential | None = None
        self._read_only: TemporaryCredential | None = None

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
        if not await self._first_contact("vended-credentials-issued", self._issue):
            return self._skip_rest(*_AFTER_ISSUED, reason="no credentials were issued", all_vended=False)
        await self._check("vended-credentials-read-write", self._inside)
        await self._check("vended-credentials-scope-enforced", self._outside)
        await self._check("vended-credentials-policy-enforced", self._read_only_fence)
        await self._check("vended-credentials-no-role-assumption", self._no_second_role)
        return None

    async def clean_up(self, seconds: float) -> None:
        """Remove every object of the probe with the gateway's own credential, within `seconds`."""
        if not self._wrote:
            self.checks.append(Check(name="cleanup", status=CheckStatus.SKIPPED, reason="nothing was written"))
            return
        try:
            async with asyncio.timeout(seconds):
                await self._check("cleanup", self._remove)
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
        # Create objects that the vended credentials must not reach. Without them, a denial looks like an empty result.
        for key in (
            self._folder.child("parent.txt"),
            self._sibling.child("other.txt"),
            self._table.child("kept.txt"),
        ):
            await self._files.write(self._profile, self._own(), key.text, _PROBE)

    async def _issue(self) -> None:
        self._read_write = await self._vend(AccessLevel.READ_WRITE_DELETE)
        self._read_only = await self._vend(AccessLevel.READ)

    async def _inside(self) -> None:
        vended = _issued(self._read_write)
        await self._round_trip(vended, self._table.child("data", "inside.txt"))
        if not await self._files.list_keys(self._profile, vended, self._table, 1):
            raise StorageCheckFailed("A vended credential cannot list the objects of its own table")

    async def _outside(self) -> None:
        vended, profile, files = _issued(self._read_write), self._profile, self._files
        for key, where in (
            (self._folder, "the parent folder"),
            (self._sibling, "a sibling folder whose name begins the same"),
        ):
            name = "other.txt" if key is self._sibling else "parent.txt"
            known, new = key.child(name).text, key.child("written.txt").text
            await _refused(files.write(profile, vended, new, _PROBE), f"write in {where}")
            await _refused(files.read(profile, vended, known, max_bytes=1024), f"read in {where}")
            await self._not_deleted(vended, known, f"delete in {where}")
            await _refused(files.list_keys(profile, vended, key, 1), f"list {where}", empty_is_accepted=True)

    async def _read_only_fence(self) -> None:
        """Check that a read-only credential cannot write. It can if the store ignores session policies."""
        vended, profile, files = _issued(self._read_only), self._profile, self._files
        known = self._table.child("kept.txt").text
        await files.read(profile, vended, known, max_bytes=1024)
        await _refused(
            files.write(profile, vended, self._table.child("no.txt").text, _PROBE), "write although it is read-only"
        )
        await self._not_deleted(vended, known, "delete although it is read-only")

    async def _no_second_role(self) -> None:
        sessions = self._clients.of(self._profile).sessions
        if sessions is not None:
            await sessions.require_confined(self._profile, _issued(self._read_write))

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

    async def _not_deleted(self, vended: TemporaryCredential, text: str, attempt_text: str) -> None:
        """Check that the object still exists. Stores can report a denied deletion inside a success response."""
        with contextlib.suppress(CatalogError):
            await self._files.delete(self._profile, vended, [text])
        try:
            await self._files.read(self._profile, self._own(), text, max_bytes=1024)
        except FileMissing:
            raise StorageCheckFailed(_NOT_ENFORCED.format(attempt_text)) from None

    async def _vend(self, level: AccessLevel) -> TemporaryCredential:
        # Use the vendor that serves tables, so that the check covers the credentials that clients receive.
        downscoping = self._profile.downscoping
        shortest = 0 if isinstance(downscoping, NoVending) else downscoping.shortest_seconds
        vended = await Vendor(self._clients).vend(
            profile=self._profile,
            profile_version="check",
            credential=self._credential,
            location=self._table,
            level=level,
            seconds=max(FLOOR_SECONDS, shortest),
            session=SessionIdentity(principal="system~storage-check"),
        )
        if isinstance(vended, NoCredentials):
            raise StorageCheckFailed(vended.reason)
        return vended.temporary

    async def _remove(self) -> None:
        keys = await self._files.list_keys(self._profile, self._own(), self._folder, _MAX_PROBES)
        await self._files.delete_below(self._profile, self._own(), self._folder, keys)
        if not await self._files.is_empty(self._profile, self._own(), self._folder):
            raise StorageCheckFailed(
                f"Test objects below {self._folder.prefix_text!r} could not be removed; remove them by hand"
            )

    def _own(self) -> Credential:
        if self._credential is None:
            raise StorageCheckFailed("The warehouse has no storage credential; set one")
        return self._credential


_AFTER_ISSUED: Final = (
    "vended-credentials-read-write",
    "vended-credentials-scope-enforced",
    "vended-credentials-policy-enforced",
    "vended-credentials-no-role-assumption",
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


_NOT_ENFORCED: Final = (
    "A vended credential can {}, which its session policy forbids: the storage does not enforce session policies"
)


def _is_stores_own(error: CatalogError) -> bool:
    """Return whether the error reveals nothing about the network.

    Such an error can only come from a storage service, or was raised before any request was sent.
    """
    if isinstance(error, ShortTermCredentialError):
        return error.reason not in _REASONS_OF_CONNECTIONS
    return not isinstance(error, StorageUnavailable | StorageEndpointRefused | FileMissing)


_REASONS_OF_CONNECTIONS: Final = frozenset({"unreachable", "malformed", "incomplete", "endpoint", "failed"})


def _issued(credential: TemporaryCredential | None) -> TemporaryCredential:
    if credential is None:
        raise StorageCheckFailed("The storage issued no credential")
    return credential


async def _refused(attempt: Awaitable[object], attempt_text: str, *, empty_is_accepted: bool = False) -> None:
    try:
        answer = await attempt
    except StorageDenied:
        return
    except CatalogError:
        raise StorageCheckFailed(
            "The storage answered neither with success nor with a denial when a vended credential tried to "
            f"{attempt_text}; run the validation again"
        ) from None
    if empty_is_accepted and not answer:
        return
    raise StorageCheckFailed(_NOT_ENFORCED.format(attempt_text))
