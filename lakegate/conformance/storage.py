# SPDX-License-Identifier: Apache-2.0
"""Conformance kit for storage providers: the rules that every provider must keep (`gateway.storage.provider.Provider`).

The kit works in a new folder of one warehouse and removes it. Use a separate warehouse: the test of vended credentials
also tries to leave the folder. The kit includes the rules of file clients (`gateway.storage.provider.FileClient`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import msgspec

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import Credential
from gateway.scope.errors import InvalidLocation, InvalidStorageProfile
from gateway.scope.location import Location
from gateway.scope.profile import STORED, NoVending, StorageProfile
from gateway.storage.errors import FileExists, FileMissing, FileTooLarge
from gateway.storage.files import Files
from gateway.storage.provider import ClientOptions, Provider, StorageClients
from gateway.vending.canary import run_canary
from gateway.vending.scope_verdict import Verdict
from lakegate.conformance.rules import Broken, Rule, require, run_kit

_LARGE: Final = 9 * 1024 * 1024 + 1  # more than one part of a multipart upload
_MANY: Final = 1100  # more than stores delete, or list, with one request
_CONCURRENT: Final = 12

#: Names that are valid in locations and that stores, URLs or shells treat specially.
NAMES: Final = (
    "plain.txt",
    "a=b",
    "a%20b",
    "%C3%BC",
    "a+b",
    "a&b;c",
    "it's",
    'quo"te',
    "<tag>",
    "größe",
    "groesse-o\u0308",
    "表",
    "~tilde",
    "(x),@:!",
    ".hidden",
    "trailing.",
    "n" * 200,
)


@dataclass(frozen=True, slots=True)
class _Place:
    """The files of one warehouse, and a folder in it."""

    files: Files
    profile: StorageProfile
    credential: Credential
    folder: Location

    def path(self, *segments: str) -> str:
        return self.folder.child(*segments, escapes_known=self.profile.escapes_known).text

    async def write(self, data: bytes, *segments: str) -> None:
        await self.files.write(self.profile, self.credential, self.path(*segments), data)

    async def read(self, *segments: str, max_bytes: int = _LARGE) -> bytes:
        return await self.files.read(self.profile, self.credential, self.path(*segments), max_bytes=max_bytes)

    async def delete(self, *texts: str) -> None:
        await self.files.delete(self.profile, self.credential, texts)

    async def keys(self, *segments: str, limit: int = 1000) -> list[str]:
        below = self.folder.child(*segments, escapes_known=self.profile.escapes_known) if segments else self.folder
        return await self.files.list_keys(self.profile, self.credential, below, limit)


@asynccontextmanager
async def _place(subject: StorageSubject, name: str) -> AsyncIterator[_Place]:
    async with subject.opened() as clients:
        yield _Place(Files(clients), subject.decoded(), subject.own_credential(), subject.location(name))


async def _returns_what_was_written(subject: StorageSubject) -> None:
    async with _place(subject, "sizes") as place:
        for size in (0, 1, 1000, _LARGE):
            data = bytes(range(251)) * (size // 251 + 1)
            await place.write(data[:size], f"f{size}")
            found = await place.read(f"f{size}")
            require(found == data[:size], f"a file of {size} bytes is read back with {len(found)} other bytes")
    async with _place(subject, "sizes") as again:
        require(len(await again.read("f1000")) == 1000, "a file is not durable: another client reads other bytes")


async def _missing_file_is_reported(subject: StorageSubject) -> None:
    async with _place(subject, "missing") as place:
        for segments in (("nothing",), ("no", "such", "folder", "nothing")):
            try:
                await place.read(*segments)
            except FileMissing:
                continue
            except CatalogError as other:
                raise Broken(f"a missing file raises {type(other).__name__} and must raise FileMissing") from other
            raise Broken("a missing file is read and must raise FileMissing")
        require(await place.keys() == [], "a list of a folder that does not exist is not empty")


async def _limit_is_kept(subject: StorageSubject) -> None:
    async with _place(subject, "limit") as place:
        await place.write(b"x" * 100, "f")
        require(len(await place.read("f", max_bytes=100)) == 100, "a file of exactly `max_bytes` is not returned")
        try:
            await place.read("f", max_bytes=99)
        except FileTooLarge:
            return
        raise Broken("a file of 100 bytes is returned with a limit of 99 and must raise FileTooLarge")


async def _files_are_never_replaced(subject: StorageSubject) -> None:
    async with _place(subject, "twice") as place:
        await place.write(b"first", "f")
        try:
            await place.write(b"other", "f")
        except FileExists:
            require(await place.read("f") == b"first", "a refused write changed the file")
        else:
            raise Broken("a second write of a file succeeds and must raise FileExists")


async def _one_concurrent_write_succeeds(subject: StorageSubject) -> None:
    async with _place(subject, "race") as place:
        contents = [f"writer {number}".encode() for number in range(_CONCURRENT)]
        results = await asyncio.gather(*(place.write(each, "f") for each in contents), return_exceptions=True)
        winners = [each for each, result in zip(contents, results, strict=True) if result is None]
        others = {type(result).__name__ for result in results if not isinstance(result, FileExists | None)}
        require(not others, f"concurrent writes of one file raise {', '.join(others)} and must raise FileExists")
        require(len(winners) == 1, f"{len(winners)} of {_CONCURRENT} concurrent writes of one file succeed, not one")
        require(await place.read("f") == winners[0], "the file is not that of the write that succeeded")


async def _names_are_exact(subject: StorageSubject) -> None:
    async with _place(subject, "names") as place:
        for name in NAMES:
            await place.write(name.encode(), "t", name)
        for name in NAMES:
            found = await place.read("t", name)
            require(found == name.encode(), f"the file {name!r} is read as that of {found.decode()!r}")
        prefix = f"{place.folder.key_prefix}t/"
        listed, expected = set(await place.keys("t")), {prefix + name for name in NAMES}
        require(listed == expected, f"a list changes names: {sorted(listed ^ expected)}")


async def _lists_are_exact(subject: StorageSubject) -> None:
    async with _place(subject, "lists") as place:
        inside = [("t1", "a"), ("t1", "data", "b"), ("t1", "data", "deep", "c")]
        outside = [("t10", "a"), ("t", "a"), ("t1-x", "a"), ("t0", "a")]
        for segments in (*inside, *outside):
            await place.write(b"x", *segments)
        expected = {f"{place.folder.key_prefix}{'/'.join(segments)}" for segments in inside}
        found = await place.keys("t1")
        require(set(found) == expected, f"the list of one folder differs by {sorted(set(found) ^ expected)}")
        require(len(found) == len(expected), "a list returns a file twice")
        for limit in (1, 2):
            some = await place.keys("t1", limit=limit)
            require(len(some) == limit and set(some) <= expected, f"a list with the limit {limit} returns {len(some)}")


async def _deletion_is_exact(subject: StorageSubject) -> None:
    async with _place(subject, "deletion") as place:
        for segments in (("t1", "a"), ("t1", "b"), ("t1", "a.bak"), ("t10", "a")):
            await place.write(b"x", *segments)
        many = [place.path("t1", f"missing-{number}") for number in range(_MANY)]
        await place.delete(place.path("t1", "a"), *many)
        await place.delete(place.path("t1", "a"))
        await place.delete()
        found = {key.removeprefix(place.folder.key_prefix) for key in await place.keys()}
        require(
            found == {"t1/b", "t1/a.bak", "t10/a"}, f"after a deletion of t1/a these files are left: {sorted(found)}"
        )
        try:
            await place.read("t1", "a")
        except FileMissing:
            return
        raise Broken("a deleted file can still be read")


FILE_RULES: Final = (
    Rule("a file is read back as it was written", _returns_what_was_written),
    Rule("a missing file raises FileMissing", _missing_file_is_reported),
    Rule("a file that is too large raises FileTooLarge", _limit_is_kept),
    Rule("a file is never replaced", _files_are_never_replaced),
    Rule("one of several concurrent writes succeeds", _one_concurrent_write_succeeds),
    Rule("names are exact", _names_are_exact),
    Rule("a list is exactly one folder", _lists_are_exact),
    Rule("a deletion is exact and can be repeated", _deletion_is_exact),
)
"""The rules of files, in the order of their checks."""


_SECRET_LENGTH: Final = 8  # shorter values are numbers, flags and names, not secrets


@dataclass(frozen=True, slots=True)
class StorageSubject:
    """A provider to be checked. `profile` has the JSON fields of a warehouse's profile. `credential` has those of its
    credential, if any.

    `name` is the name of the entry point. `options` are the options with which the client is opened, which the gateway
    takes from its settings.
    """

    name: str
    provider: Provider
    profile: Mapping[str, Any]
    credential: Mapping[str, Any] | None = None
    options: ClientOptions = ClientOptions(rules=STORED)
    folder: str = field(default_factory=lambda: f"lakegate-kit-{uuid4().hex}")

    def decoded(self) -> StorageProfile:
        """Return the storage profile, decoded by the provider."""
        return self.provider.decode_profile({"type": self.name, **self.profile}, STORED)

    def own_credential(self) -> Credential:
        """Return the credential for the gateway's own access: the given one, or that of the profile. Raises Broken if
        there is none.
        """
        if self.credential is not None:
            require(self.provider.decode_credential is not None, "a credential is given, and the provider reads none")
            fields = {key: value for key, value in self.credential.items() if key != "type"}
            decode = self.provider.decode_credential
            return decode(fields, STORED) if decode is not None else self.own_credential()
        own = self.decoded().own_access
        if own is None:
            raise Broken("the profile has no access of its own, so the kit needs a credential")
        return own

    def location(self, *segments: str) -> Location:
        """Return a location in the folder of this run."""
        profile = self.decoded()
        return profile.base_location().child(self.folder, *segments, escapes_known=profile.escapes_known)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[StorageClients]:
        """Open the client of the provider, yield it, and close it after the block."""
        client = self.provider.open(self.options)
        try:
            yield StorageClients({self.provider.tag: client})
        finally:
            client.close()

    async def clean_up(self) -> None:
        """Delete all files that this run of the kit has written."""
        profile, credential = self.decoded(), self.own_credential()
        async with self.opened() as clients:
            files = Files(clients)
            left = await files.list_keys(profile, credential, self.location(), 1000)
            await files.delete_below(profile, credential, self.location(), left)


async def check_storage(subject: StorageSubject, *, passed: Callable[[str], None] = lambda _: None) -> None:
    """Check all rules of storage providers. `passed` is called with the name of each rule that holds.

    Raises ConformanceError with the first broken rule.
    """
    pass

    await run_kit(PROFILE_RULES, subject, passed=passed)
    try:
        await run_kit(FILE_RULES, subject, passed=passed)
        await run_kit(CREDENTIAL_RULES, subject, passed=passed, seconds=240)
    finally:
        await subject.clean_up()


async def _has_its_name(subject: StorageSubject) -> None:
    provider = subject.provider
    require(isinstance(provider, Provider), "the entry point returned no gateway.storage.provider.Provider")
    require(provider.tag == subject.name, f"the type of its profiles is {provider.tag!r} and not {subject.name!r}")
    kind = subject.decoded().provider
    require(kind == subject.name, f"a decoded profile is of the provider {kind!r}")


async def _profile_is_kept(subject: StorageSubject) -> None:
    profile = subject.decoded()
    stored = msgspec.json.decode(msgspec.json.encode(profile))
    require(stored.get("type") == subject.name, "the JSON of a profile lacks its `type`, so it cannot be read again")
    again = subject.provider.decode_profile(stored, STORED)
    require(again == profile, "a profile that was stored as JSON is read back differently")
    require(not profile.moved(again), f"`moved` reports a change of an equal profile: {profile.moved(again)}")


async def _unknown_fields_are_refused(subject: StorageSubject) -> None:
    try:
        subject.provider.decode_profile({"type": subject.name, **subject.profile, "no-such-field": 1}, STORED)
    except InvalidStorageProfile:
        return
    raise Broken("an unknown field of a profile is accepted and must raise InvalidStorageProfile")


async def _locations_are_bounded(subject: StorageSubject) -> None:
    profile = subject.decoded()
    base = profile.base_location()
    inside = subject.location("t1")
    parsed = profile.parse_location(inside.text)
    require(parsed == inside, f"{inside.text} is read as {parsed.text}")
    require(base.contains(parsed, strict=True), f"{inside.text} is not below {base.text}")
    slash = profile.parse_location(inside.text + "/")
    require(slash == inside, "a trailing slash gives another location")
    for text in (
        base.text,
        f"{base.text}-sibling/t1",
        f"{base.text}/../t1",
        f"{base.text}/a/../../t1",
        f"{base.text}//t1",
        f"{base.text}/a?b",
        f"{base.scheme.name}://lakegate-kit-other/{'/'.join(inside.segments)}",
        f"no-such-scheme://{base.authority}/{'/'.join(inside.segments)}",
        "/".join(inside.segments),
    ):
        try:
            found = profile.parse_location(text)
        except InvalidLocation:
            continue
        raise Broken(f"{text} is accepted as {found.text} and must raise InvalidLocation")


async def _files_outside_are_refused(subject: StorageSubject) -> None:
    profile, credential = subject.decoded(), subject.own_credential()
    base = profile.base_location()
    async with subject.opened() as clients:
        for text in (f"{base.text}-sibling/file", f"{base.text}/../file"):
            try:
                await Files(clients).read(profile, credential, text, max_bytes=1)
            except InvalidLocation:
                continue
            except CatalogError as other:
                raise Broken(f"{text} reached the store, which raised {type(other).__name__}") from other
            raise Broken(f"{text} was read and must raise InvalidLocation")


async def _properties_hold_no_secret(subject: StorageSubject) -> None:
    profile = subject.decoded()
    shown = (
        repr(profile.client_properties(None, refresh_endpoint=None)) + repr(profile) + str(dict(profile.endpoints()))
    )
    shown += repr(subject.own_credential()) + subject.own_credential().digest
    for name, value in (subject.credential or {}).items():
        public = name in {"type", "credential-type"} or "id" in name.split("-")
        if isinstance(value, str) and len(value) >= _SECRET_LENGTH and not public:
            require(value not in shown, f"the credential's field {name!r} is visible to clients or in logs")


async def _credentials_are_confined(subject: StorageSubject) -> None:
    profile = subject.decoded()
    if isinstance(profile.downscoping, NoVending):
        require(bool(profile.downscoping.reason), "a provider that vends nothing must give the reason for the audit")
        return
    require(subject.provider.prove is not None, "a provider that vends credentials must prove its policies (`prove`)")
    async with subject.opened() as clients:
        report = await run_canary(profile, subject.own_credential(), clients, seconds=120)
    found = "; ".join(sorted({each.text for each in (*report.findings, *report.unclear)}))
    require(report.verdict is Verdict.PROVEN, f"the verdict is {report.verdict.value}: {report.reason or found}")


async def _policies_are_proven(subject: StorageSubject) -> None:
    profile, prove = subject.decoded(), subject.provider.prove
    if prove is None or isinstance(profile.downscoping, NoVending):
        return
    location, others = subject.location("t1"), [f"{subject.location('t10').key_prefix}f", "f"]
    for level in profile.downscoping.levels:
        profile.downscoping.policy(location, level)
        found = prove(profile, location, level, others)
        require(not found, f"the policy for {level.value} is not exact: {'; '.join(found)}")


PROFILE_RULES: Final = (
    Rule("the type of profiles is the name of the entry point", _has_its_name),
    Rule("a stored profile is read back equal", _profile_is_kept),
    Rule("unknown fields of a profile are refused", _unknown_fields_are_refused),
    Rule("a location is exactly below the base", _locations_are_bounded),
    Rule("secrets stay out of properties and representations", _properties_hold_no_secret),
    Rule("files outside of the warehouse are refused", _files_outside_are_refused),
)
"""The rules of profiles, locations and credentials, which need no store."""

CREDENTIAL_RULES: Final = (
    Rule("policies of vended credentials are exact", _policies_are_proven),
    Rule("vended credentials reach their location and nothing else", _credentials_are_confined),
)
"""The rules of providers that vend credentials. Others give the reason why they vend none."""
