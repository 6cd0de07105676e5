# SPDX-License-Identifier: Apache-2.0
"""The canary: try to leave the scope of vended credentials, on the live store of a warehouse.

A store that ignores session policies gives every vended credential the rights of the whole role, without any error. So
the canary vends a credential of each access level for a temporary folder, by the vendor that serves tables. With each
it makes attempts that must be refused: outside of the folder, beyond the access level, to assume the role again, and on
the control plane of the store. Other attempts must succeed: they show that the store works.

The canary writes only objects whose names contain a new UUID, and it deletes and overwrites only objects that it wrote
itself. It sends no change of a setting of the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from uuid import uuid4

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import AccessLevel, Credential, TemporaryCredential
from gateway.scope.profile import NoVending, StorageProfile
from gateway.spans import span
from gateway.storage.errors import FileMissing, StorageCheckFailed
from gateway.storage.files import Files
from gateway.storage.provider import StorageClients
from gateway.storage.trials import PROBE, Act, Attempt, FileTrials, Outcome, Trials
from gateway.vending.canary_attempts import ACT_TEXTS, TABLE, Place, attempts_at, expected_inside, places
from gateway.vending.scope_verdict import Finding, ScopeReport, Verdict
from gateway.vending.vendor import FLOOR_SECONDS, NoCredentials, SessionIdentity, Vendor

__all__ = ["CANARY_SECONDS", "STAGES", "Canary", "run_canary"]

CANARY_SECONDS: Final = 60.0
"""Default time limit of a run, without its cleanup."""
STAGES: Final = ("scope-enforced", "policy-enforced", "no-role-assumption", "control-plane")
"""The stages of attempts that must be refused: outside of the folder, inside of it above the level of a credential, to
remove the policy by assuming the role again, and on the control plane of the store."""
Stage = Callable[[], Awaitable[list[Finding]]]
_MAX_OBJECTS: Final = 200
_CONCURRENT: Final = 12
"""The number of requests to the store that are sent at the same time."""
_LEVELS: Final = (AccessLevel.READ, AccessLevel.READ_WRITE, AccessLevel.READ_WRITE_DELETE)


@dataclass(slots=True)
class _Session:
    """A vended credential and the results of its attempts."""

    level: AccessLevel
    temporary: TemporaryCredential
    places: tuple[Place, ...]
    reached: list[Finding] = field(default_factory=list)
    unclear: list[Finding] = field(default_factory=list)
    attempts: int = 0


class Canary:
    """One run. The caller awaits the stages in the order of the methods, and in every case `clean_up` at the end."""

    def __init__(self, profile: StorageProfile, credential: Credential | None, clients: StorageClients) -> None:
        """Create a run in a new folder below the warehouse's base location."""
        self._profile = profile
        self._credential = credential
        self._clients = clients
        self._files = Files(clients)
        client = clients.of(profile)
        self._client_trials: Trials = client.trials or FileTrials(client.files)
        self._trials = self._client_trials
        self._unique = f"lakegate-check-{uuid4().hex}"
        self._folder = profile.base_location().child(f"lakegate-check-{uuid4().hex}")
        self._table = self._folder.child(TABLE)
        self._sessions: list[_Session] = []
        self._slots = asyncio.Semaphore(_CONCURRENT)
        self._outside_base: set[str] = set()

    async def own_contact(self) -> None:
        """List the new folder with the gateway's own credential. Raises the errors of the store."""
        await self._files.list_keys(self._profile, self._own(), self._folder, 1)

    async def own_round_trip(self) -> None:
        """Write, read and delete an object with the gateway's own credential. Raises the errors of `prepare`."""
        key = self._folder.child("own.txt")
        await self._write_sentinel("/".join(key.segments))
        await self._files.delete(self._profile, self._own(), [key.text])

    async def prepare(self) -> None:
        """Write the sentinels and read them back. Raises the errors of the store, and StorageCheckFailed for other
        content.
        """
        sentinels = [self._kept(level) for level in _LEVELS]
        sentinels += [place.sentinel for level in _LEVELS for place in self._places(level) if place.exists]
        await _all([self._write_sentinel(key) for key in sentinels])

    async def issue(self) -> None:
        """Vend a credential of each access level. Raises the errors of vending, and StorageCheckFailed."""
        for level in _LEVELS:
            self._sessions.append(_Session(level, await self._vend(level), self._places(level)))

    async def inside(self) -> None:
        """Make the requests that each credential must permit. Raises StorageCheckFailed if one of them fails."""
        await self._each(self._inside)

    def stages(self) -> Iterator[tuple[str, Stage]]:
        """Yield (name, function) of each stage. The function makes the attempts, and returns those that succeeded."""
        attempts = (self._outside, self._above_level, self._role_again, self._control_plane)
        for name, stage in zip(STAGES, attempts, strict=True):
            yield name, partial(self._stage, stage)

    @property
    def unclear(self) -> tuple[Finding, ...]:
        """Return all attempts so far whose response was neither a success nor a refusal."""
        return tuple(finding for session in self._sessions for finding in session.unclear)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return all attempts so far that the store carried out although it should have refused them."""
        return tuple(finding for session in self._sessions for finding in session.reached)

    @property
    def attempts(self) -> int:
        """Return the number of attempts so far whose result was conclusive."""
        return sum(session.attempts for session in self._sessions)

    async def clean_up(self) -> None:
        """Remove every object of the run with the gateway's own credential.

        Raises StorageCheckFailed if objects are left, and the errors of the store.
        """
        keys = await self._files.list_keys(self._profile, self._own(), self._folder, _MAX_OBJECTS)
        await self._files.delete_below(self._profile, self._own(), self._folder, keys)
        if self._outside_base:
            # Objects outside of the base exist only if a credential escaped. Their names contain the id of this run.
            try:
                await self._delete_outside(self._own())
            except CatalogError:
                # The gateway's own credential may have no right there. The escaped credential has the right.
                await self._delete_outside(self._sessions[-1].temporary)
        if not await self._files.is_empty(self._profile, self._own(), self._folder):
            raise StorageCheckFailed(
                f"Test objects below {self._folder.prefix_text!r} could not be removed; remove them by hand"
            )

    async def _delete_outside(self, credential: Credential) -> None:
        keys = sorted(self._outside_base)
        with span("store.delete", {"lakegate.store": self._profile.provider, "lakegate.files": len(keys)}):
            await self._clients.of(self._profile).files.delete(self._profile, credential, keys)

    # -- stages of one credential --------------------------------------------------------------------------------------

    async def _inside(self, session: _Session) -> None:
        level = session.level
        expected = expected_inside(level, inside=self._table.key_prefix, own=self._kept(level))
        for attempt in expected:
            result = await self._send(session, attempt)
            if result not in (Outcome.REACHED, Outcome.ACKNOWLEDGED):
                raise StorageCheckFailed(
                    f"A vended {level} credential cannot {ACT_TEXTS[attempt.act]} in its own location"
                )

    async def _outside(self, session: _Session) -> None:
        # Each place has its own sentinel object, so attempts at different places do not disturb each other.
        await _all([*(self._at_place(session, place) for place in session.places), self._listings(session)])

    async def _at_place(self, session: _Session, place: Place) -> None:
        for attempt in attempts_at(place, session.level, inside=self._table.key_prefix, own=self._kept(session.level)):
            await self._attempt(session, attempt, place.name, place.text)
        for act in (Act.OVERWRITE, Act.DELETE, Act.DELETE_BATCH) if place.exists else (Act.DELETE,):
            await self._destroy(session, act, place.sentinel, place.name, place.text, exists=place.exists)

    async def _listings(self, session: _Session) -> None:
        for prefix, name, text in (
            ("", "whole-store", "in the whole store"),
            ("/".join(self._table.segments), "own-name-without-slash", "by its own prefix without the final slash"),
        ):
            for act in (Act.LIST, Act.LIST_FOLDERS):
                attempt = Attempt(act=act, key=prefix, inside=self._table.key_prefix)
                await self._attempt(session, attempt, name, text)

    async def _above_level(self, session: _Session) -> None:
        level, kept, inside = session.level, self._kept(session.level), self._table.key_prefix
        place, text = "own-location", f"in its own location, although its level is {level}"
        if level is AccessLevel.READ:
            for act in (Act.WRITE, Act.MULTIPART, Act.COPY):
                target = self._inside_key(f"above-{act}.txt")
                await self._attempt(session, Attempt(act=act, key=target, inside=inside, source=kept), place, text)
            await self._destroy(session, Act.OVERWRITE, kept, place, text, exists=True)
        if level is not AccessLevel.READ_WRITE_DELETE:
            for act in (Act.DELETE, Act.DELETE_BATCH):
                await self._destroy(session, act, kept, place, text, exists=True)

    async def _role_again(self, session: _Session) -> None:
        sessions = self._clients.of(self._profile).sessions
        if sessions is None:
            return
        session.attempts += 1
        finding = Finding(
            level=session.level, attempt="assume-role", place="session-service", text="assume the role again"
        )
        try:
            with span("store.require_confined", {"lakegate.store": self._profile.provider}):
                await sessions.require_confined(self._profile, session.temporary)
        except StorageCheckFailed as escaped:
            session.reached.append(
                Finding(level=session.level, attempt=finding.attempt, place=finding.place, text=escaped.message)
            )
        except CatalogError:
            session.unclear.append(finding)

    async def _control_plane(self, session: _Session) -> None:
        sentinel = session.places[0].sentinel
        calls = self._trials.control_plane(
            self._profile,
            session.temporary,
            sentinel=sentinel,
            inside=self._table.key_prefix,
            unique=f"{self._unique}-{session.level.replace('-', '')}"[:63],
        )

        async def made(name: str, call: Callable[[], Awaitable[Outcome]]) -> None:
            async with self._slots:
                result = await call()
            self._note(session, result, name, "control-plane", f"have the store carry out `{name}`")

        await _all([made(name, call) for name, call in calls])

    # -- attempts ------------------------------------------------------------------------------------------------------

    async def _send(self, session: _Session, attempt: Attempt) -> Outcome:
        async with self._slots:
            return await self._trials.attempt(self._profile, session.temporary, attempt)

    async def _attempt(self, session: _Session, attempt: Attempt, place: str, text: str) -> None:
        writes = attempt.act in (Act.WRITE, Act.MULTIPART, Act.COPY, Act.COPY_PART)
        if writes and not attempt.key.startswith(self._folder.key_prefix):
            self._outside_base.add(attempt.key)
        result = await self._send(session, attempt)
        self._note(session, result, attempt.act, place, f"{ACT_TEXTS[attempt.act]} {text}")
        if attempt.key in self._outside_base and result is Outcome.REFUSED:
            self._outside_base.discard(attempt.key)

    async def _destroy(self, session: _Session, act: Act, key: str, place: str, text: str, *, exists: bool) -> None:
        """Try to delete or overwrite a sentinel, then read it: the object shows whether the attempt succeeded."""
        attempt = Attempt(act=act, key=key, inside=self._table.key_prefix, exists=exists)
        result = await self._send(session, attempt)
        if exists and result is not Outcome.UNTESTED:
            intact = await self._intact(key)
            if not intact:
                result = Outcome.REACHED
                await self._files.delete(self._profile, self._own(), [self._text(key)])
                await self._write_sentinel(key)
        if result is Outcome.ACKNOWLEDGED:
            result = Outcome.REFUSED if exists else Outcome.UNTESTED
        self._note(session, result, act, place, f"{ACT_TEXTS[act]} {text}")

    def _note(self, session: _Session, result: Outcome, attempt: str, place: str, text: str) -> None:
        if result is Outcome.UNTESTED:
            return
        session.attempts += 1
        finding = Finding(level=session.level, attempt=attempt, place=place, text=text)
        if result is Outcome.REACHED:
            session.reached.append(finding)
        elif result is not Outcome.REFUSED:
            session.unclear.append(finding)

    async def _stage(self, stage: Callable[[_Session], Coroutine[None, None, None]]) -> list[Finding]:
        before = set(self.findings)
        await self._each(stage)
        return [finding for finding in self.findings if finding not in before]

    async def _each(self, stage: Callable[[_Session], Coroutine[None, None, None]]) -> None:
        """Run a stage for all credentials concurrently. Each credential has its own objects."""
        async with self._client_trials.connected() as self._trials:
            await _all([stage(session) for session in self._sessions])

    # -- the gateway's own access --------------------------------------------------------------------------------------

    def _places(self, level: AccessLevel) -> tuple[Place, ...]:
        # If the warehouse is the whole store, no folder is outside of the warehouse.
        top = self._unique if self._profile.base_location().segments else None
        return places(self._folder, level, top=top)

    def _kept(self, level: AccessLevel) -> str:
        return self._inside_key(f"kept-{level}.txt")

    def _inside_key(self, name: str) -> str:
        return self._table.key_prefix + name

    def _text(self, key: str) -> str:
        return self._folder.text + "/" + key.removeprefix(self._folder.key_prefix)

    async def _write_sentinel(self, key: str) -> None:
        await self._files.write(self._profile, self._own(), self._text(key), self._content(key))
        if not await self._intact(key):
            raise StorageCheckFailed("The storage returned other bytes than were written")

    async def _intact(self, key: str) -> bool:
        try:
            found = await self._files.read(self._profile, self._own(), self._text(key), max_bytes=1024)
        except FileMissing:
            return False
        return found == self._content(key)

    def _content(self, key: str) -> bytes:
        return PROBE + b" " + key.encode()

    async def _vend(self, level: AccessLevel) -> TemporaryCredential:
        # The vendor of tables is used, so that the verdict is about the credentials of clients.
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

    def _own(self) -> Credential:
        if self._credential is None:
            raise StorageCheckFailed("The warehouse has no storage credential; set one")
        return self._credential


async def _all(work: Sequence[Coroutine[None, None, None]]) -> None:
    """Run everything to its end, then raise the first error, so that no request runs on after the return."""
    for failure in await asyncio.gather(*work, return_exceptions=True):
        if failure is not None:
            raise failure


async def run_canary(
    profile: StorageProfile,
    credential: Credential | None,
    clients: StorageClients,
    *,
    seconds: float = CANARY_SECONDS,
) -> ScopeReport:
    """Run all stages and return the verdict. Failures of the store make it inconclusive and raise nothing.

    A run takes at most `seconds`, and its cleanup at most half of that in addition.
    """
    if isinstance(profile.downscoping, NoVending):
        return ScopeReport(verdict=Verdict.NOT_VENDED, reason=profile.downscoping.reason)
    canary = Canary(profile, credential, clients)
    reason = ""
    try:
        async with asyncio.timeout(seconds):
            await canary.prepare()
            await canary.issue()
            # Escapes are attempted even if the credential does not work in its own location.
            try:
                await canary.inside()
            except StorageCheckFailed as unusable:
                reason = unusable.message
            for _, stage in canary.stages():
                await stage()
    except TimeoutError:
        reason = f"the canary did not finish within {seconds:g} seconds"
    except CatalogError as failed:
        reason = failed.message
    finally:
        # Clean up after a cancellation, too.
        left = await asyncio.shield(_clean_up(canary, seconds / 2))
    return _report(canary, reason or left)


async def _clean_up(canary: Canary, seconds: float) -> str:
    """Remove the objects of a run. If that fails, return the reason; otherwise an empty text."""
    try:
        async with asyncio.timeout(seconds):
            await canary.clean_up()
    except TimeoutError:
        return "the storage did not answer in time while test objects were removed"
    except CatalogError as failed:
        return failed.message
    return ""


def _report(canary: Canary, reason: str) -> ScopeReport:
    if canary.findings:
        verdict = Verdict.ESCAPED
    elif canary.unclear or reason or not canary.attempts:
        verdict = Verdict.INCONCLUSIVE
    else:
        verdict = Verdict.PROVEN
    return ScopeReport(
        verdict=verdict,
        attempts=canary.attempts,
        findings=canary.findings,
        unclear=canary.unclear,
        reason=reason,
    )
