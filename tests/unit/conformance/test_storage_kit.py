# SPDX-License-Identifier: Apache-2.0
"""The kit for storage providers: it accepts correct ones, and each of its rules detects a provider that breaks it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.scope.errors import InvalidLocation, InvalidStorageProfile
from gateway.scope.location import Location
from gateway.scope.profile import Downscoping
from gateway.storage.errors import FileExists, FileMissing
from gateway.storage.provider import Provider, StorageClient
from gateway.storage.registry import provider_named
from lakegate.conformance.rules import ConformanceError
from lakegate.conformance.storage import CREDENTIAL_RULES, FILE_RULES, PROFILE_RULES, StorageSubject, check_storage
from tests.extensions.installing import forget, install
from tests.support.kits import conformance

NAMES = [rule.name for rule in (*PROFILE_RULES, *FILE_RULES, *CREDENTIAL_RULES)]


@pytest.fixture(autouse=True)
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the package on the import path, with one volume."""
    site, volume = tmp_path / "site", tmp_path / "volume"
    site.mkdir()
    volume.mkdir()
    install(site, "folders")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("LAKEGATE_FOLDERS_VOLUMES", f"v={volume}")
    yield volume
    forget("lakegate_folders")


def folder() -> Provider:
    from lakegate_folders.storage import provider  # type: ignore[import-not-found]  # the fixture installs it

    found: Provider = provider()
    return found


def subject(provider: Provider, **more: Any) -> StorageSubject:
    return StorageSubject("folder", provider, {"volume": "v", "path": "base"}, **more)


def with_files(**methods: Callable[..., Any]) -> Provider:
    """Return the provider with other methods of its files; each receives the files first."""
    original = folder()

    def opened(options: Any) -> StorageClient:
        client = original.open(options)
        changed = type("Changed", (type(client.files),), methods)
        return dataclasses.replace(client, files=changed(seconds=30))

    return dataclasses.replace(original, open=opened)


def with_profile(**members: Any) -> Provider:
    """Return the provider with other members of its profiles."""
    original = folder()
    changed = type("Changed", (original.profile,), members, frozen=True, kw_only=True, tag="folder")

    def decode(fields: dict[str, Any], _: Any) -> Any:
        try:
            return msgspec.convert(fields, type=changed)
        except msgspec.ValidationError as error:
            raise InvalidStorageProfile(f"invalid: {error}") from None

    return dataclasses.replace(original, profile=changed, decode_profile=decode)


def _original(files: Any) -> Any:
    """Return the unchanged class of files, whose methods a broken one calls."""
    return type(files).__mro__[1]


async def _replacing_put(files: Any, profile: Any, credential: Any, key: str, data: bytes) -> None:
    await files.delete(profile, credential, [key])
    await _original(files).put(files, profile, credential, key, data)


async def _checked_put(files: Any, profile: Any, credential: Any, key: str, data: bytes) -> None:
    """Check and write in two steps, so that concurrent writes of one file all succeed."""
    volume = next(iter(files._volumes.values()))
    if (volume / key).exists():
        raise FileExists("exists")
    await asyncio.sleep(0.01)
    (volume / key).parent.mkdir(parents=True, exist_ok=True)
    (volume / key).write_bytes(data)


async def _cut_put(files: Any, profile: Any, credential: Any, key: str, data: bytes) -> None:
    await _original(files).put(files, profile, credential, key, data[: 8 * 1024 * 1024])


async def _empty_for_missing(files: Any, profile: Any, credential: Any, key: str, max_bytes: int) -> bytes:
    try:
        found: bytes = await _original(files).get(files, profile, credential, key, max_bytes)
    except FileMissing:
        return b""
    return found


async def _whole_get(files: Any, profile: Any, credential: Any, key: str, max_bytes: int) -> bytes:
    found: bytes = await _original(files).get(files, profile, credential, key, 1 << 25)
    return found


async def _decoding_put(files: Any, profile: Any, credential: Any, key: str, data: bytes) -> None:
    await _original(files).put(files, profile, credential, key.replace("%20", " "), data)


async def _prefix_list(files: Any, profile: Any, credential: Any, prefix: str, limit: int) -> list[str]:
    """List by a text prefix without the slash, as a bucket does: `t1` also finds `t10`."""
    parent, _, _ = prefix.removesuffix("/").rpartition("/")
    found = await _original(files).list(files, profile, credential, f"{parent}/", 10_000)
    return [key for key in found if key.startswith(prefix.removesuffix("/"))][:limit]


async def _prefix_delete(files: Any, profile: Any, credential: Any, keys: Sequence[str]) -> None:
    for key in keys[:2]:
        parent, _, _ = key.rpartition("/")
        below = await _original(files).list(files, profile, credential, f"{parent}/", 10_000)
        await _original(files).delete(files, profile, credential, [each for each in below if each.startswith(key)])


def _anywhere(profile: Any, text: str) -> Location:
    location: Location = profile.base_location().scheme.parse(text, escapes_known=True)
    return location


class WideLocation(Location):
    """A base location that claims to contain its siblings too."""

    def contains(self, other: Any, *, strict: bool = False) -> bool:
        return True


def _wide_base(profile: Any) -> Location:
    return WideLocation(folder().scheme, profile.volume, (profile.path,))


def _strictly_inside(profile: Any, text: str) -> Location:
    location = _anywhere(profile, text)
    if (location.authority, location.segments[:1]) != (profile.volume, (profile.path,)) or len(location.segments) == 1:
        raise InvalidLocation("outside")
    return location


def _unconfined(_: Any) -> Downscoping:
    return Downscoping(seconds=3600, role=None, policy=lambda location, level: "{}")


def _ignoring(provider: Provider) -> Provider:
    def decode(fields: dict[str, Any], rules: Any) -> Any:
        return provider.decode_profile({name: fields[name] for name in fields if name != "no-such-field"}, rules)

    return dataclasses.replace(provider, decode_profile=decode)


def _disclosing() -> StorageSubject:
    from lakegate_folders.storage import FolderAccess

    secret = "correct-horse-battery"
    provider = with_profile(client_properties=lambda profile, temporary, *, refresh_endpoint: {"folder.key": secret})
    provider = dataclasses.replace(provider, decode_credential=lambda fields, rules: FolderAccess())
    return subject(provider, credential={"type": "folder", "key": secret})


def _proven(text: str) -> Provider:
    vending = with_profile(downscoping=property(_unconfined))
    return dataclasses.replace(vending, prove=lambda *_: [text] if text else [])


BROKEN: dict[str, Callable[[], StorageSubject]] = {
    "the type of profiles is the name of the entry point": lambda: StorageSubject("other", folder(), {}),
    "a stored profile is read back equal": lambda: subject(with_profile(moved=lambda profile, new: ["path"])),
    "unknown fields of a profile are refused": lambda: subject(_ignoring(folder())),
    "a location is exactly below the base": lambda: subject(with_profile(parse_location=_anywhere)),
    "secrets stay out of properties and representations": _disclosing,
    "files outside of the warehouse are refused": lambda: subject(
        with_profile(base_location=_wide_base, parse_location=_strictly_inside)
    ),
    "a file is read back as it was written": lambda: subject(with_files(put=_cut_put)),
    "a missing file raises FileMissing": lambda: subject(with_files(get=_empty_for_missing)),
    "a file that is too large raises FileTooLarge": lambda: subject(with_files(get=_whole_get)),
    "a file is never replaced": lambda: subject(with_files(put=_replacing_put)),
    "one of several concurrent writes succeeds": lambda: subject(with_files(put=_checked_put)),
    "names are exact": lambda: subject(with_files(put=_decoding_put)),
    "a list is exactly one folder": lambda: subject(with_files(list=_prefix_list)),
    "a deletion is exact and can be repeated": lambda: subject(with_files(delete=_prefix_delete)),
    "policies of vended credentials are exact": lambda: subject(_proven("all tables can be read")),
    "vended credentials reach their location and nothing else": lambda: subject(_proven("")),
}


def test_every_rule_has_a_provider_that_breaks_it() -> None:
    assert list(BROKEN) == NAMES


async def test_storage_of_another_package_keeps_all_rules_and_no_file_remains(volume: Path) -> None:
    passed = list[str]()
    await check_storage(subject(folder()), passed=passed.append)
    assert passed == NAMES
    assert [path for path in volume.rglob("*") if path.is_file()] == []


async def test_storage_in_local_directories_keeps_all_rules(tmp_path: Path) -> None:
    local = provider_named("local")
    assert local is not None
    (tmp_path / "wh").mkdir()
    await check_storage(StorageSubject("local", local, {"directory": str(tmp_path / "wh")}))


@pytest.mark.parametrize("rule", NAMES)
async def test_each_rule_detects_a_provider_that_breaks_it(rule: str) -> None:
    with pytest.raises(ConformanceError) as error:
        await check_storage(BROKEN[rule]())
    assert error.value.rule == rule, error.value.detail


def test_the_command_checks_an_installed_provider(tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps({"type": "folder", "volume": "v", "path": "base"}))
    done = conformance(tmp_path / "site", "storage", "folder", "--profile", str(profile))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"holds   {name}" for name in NAMES]
    done = conformance(tmp_path / "site", "storage", "nothing", "--profile", str(profile))
    assert done.returncode == 1 and "no installed package provides the storage type 'nothing'" in done.stderr
