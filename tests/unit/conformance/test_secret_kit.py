# SPDX-License-Identifier: Apache-2.0
"""The kit for secret stores: it accepts correct stores, and each of its rules detects a store that breaks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from gateway.secret_stores.port import SecretUnreadable
from gateway.secret_stores.vault import KV2, VaultSecrets
from gateway.secret_stores.vault_session import UserPassLogin, VaultAddress
from lakegate.conformance.rules import ConformanceError
from lakegate.conformance.secrets import SECRET_RULES, SecretSubject, check_secret_store
from tests.extensions.installing import install
from tests.support.kits import conformance
from tests.support.servers.real_vault import real_vault
from tests.support.servers.vault_server import MOUNT, PASSWORD, USER, vault_server


class KeptStore:
    """A correct store. All stores that are opened on the same `held` have the same content, as one server has."""

    name = "kept"

    def __init__(self, held: dict[UUID, bytes]) -> None:
        self.held = held

    async def put(self, id: UUID, plain: bytes) -> None:
        self.held.setdefault(id, plain)

    async def get(self, id: UUID) -> bytes:
        if id not in self.held:
            raise SecretUnreadable("missing")
        return self.held[id]

    async def delete(self, id: UUID) -> None:
        self.held.pop(id, None)

    async def check(self) -> None:
        """Succeed."""

    async def close(self) -> None:
        """Keep the content."""


class OtherName(KeptStore):
    name = "other"


class FailingCheck(KeptStore):
    async def check(self) -> None:
        raise RuntimeError("not configured")


class TextOnly(KeptStore):
    async def put(self, id: UUID, plain: bytes) -> None:
        await super().put(id, plain.decode().encode("ascii", "replace"))


class EmptyForMissing(KeptStore):
    async def get(self, id: UUID) -> bytes:
        return self.held.get(id, b"")


class RefusesRepetition(KeptStore):
    async def put(self, id: UUID, plain: bytes) -> None:
        if id in self.held:
            raise RuntimeError("exists")
        self.held[id] = plain


class Replaces(KeptStore):
    async def put(self, id: UUID, plain: bytes) -> None:
        self.held[id] = plain


class DiscloseInRefusal(KeptStore):
    async def put(self, id: UUID, plain: bytes) -> None:
        if self.held.get(id, plain) != plain:
            raise RuntimeError(f"{self.held[id]!r} is stored already")
        self.held[id] = plain


class DeletesOnce(KeptStore):
    async def delete(self, id: UUID) -> None:
        if self.held.pop(id, None) is None:
            raise KeyError(id)


class OwnCopy(KeptStore):
    def __init__(self, held: dict[UUID, bytes]) -> None:
        super().__init__({})


class MixesCalls(KeptStore):
    _id: UUID

    async def put(self, id: UUID, plain: bytes) -> None:
        self._id = id
        await asyncio.sleep(0)
        await super().put(self._id, plain)


class CheckEmpties(KeptStore):
    async def check(self) -> None:
        self.held.clear()


BROKEN: dict[type[KeptStore], str] = {
    OtherName: "the name is that of the entry point",
    FailingCheck: "a check succeeds",
    TextOnly: "content is returned as it was written",
    EmptyForMissing: "a missing id raises SecretUnreadable",
    RefusesRepetition: "a repeated write succeeds",
    Replaces: "content is never replaced",
    DiscloseInRefusal: "content is never replaced",
    DeletesOnce: "a deletion is complete and can be repeated",
    OwnCopy: "content and deletion are durable",
    MixesCalls: "concurrent calls do not mix",
    CheckEmpties: "a check changes nothing",
}


def opener(store: type[KeptStore]) -> Callable[[], KeptStore]:
    held: dict[UUID, bytes] = {}
    return lambda: store(held)


async def test_a_correct_store_keeps_all_rules_and_no_secret_remains() -> None:
    held: dict[UUID, bytes] = {uuid4(): b"a secret in use"}
    before, passed = dict(held), list[str]()
    await check_secret_store(SecretSubject("kept", lambda: KeptStore(held)), passed=passed.append)
    assert passed == [rule.name for rule in SECRET_RULES]
    assert held == before


@pytest.mark.parametrize(("store", "rule"), BROKEN.items(), ids=lambda value: getattr(value, "__name__", ""))
async def test_each_rule_detects_a_store_that_breaks_it(store: type[KeptStore], rule: str) -> None:
    with pytest.raises(ConformanceError) as error:
        await check_secret_store(SecretSubject("kept", opener(store)))
    assert error.value.rule == rule


def test_every_rule_has_a_store_that_breaks_it() -> None:
    assert {rule.name for rule in SECRET_RULES} == set(BROKEN.values())


def vault(address: VaultAddress, login: object, mount: str) -> VaultSecrets:
    return VaultSecrets(address, login, mount=mount, prefix="lakegate", timeout=10)  # type: ignore[arg-type]  # each method of login has its class


async def test_the_store_in_vault_keeps_all_rules() -> None:
    with vault_server() as server:
        address = VaultAddress(url=server.url, ca_bundle=None, namespace=None, timeout=5)
        login = UserPassLogin("userpass", USER, PASSWORD)
        await check_secret_store(SecretSubject(KV2, lambda: vault(address, login, MOUNT)))
        assert server.secrets == {}


async def test_the_store_in_a_real_vault_keeps_all_rules() -> None:
    with real_vault("approle") as (address, login, mount):
        await check_secret_store(SecretSubject(KV2, lambda: vault(address, login, mount)))


def test_the_command_checks_an_installed_store(tmp_path: Path) -> None:
    site, folder = tmp_path / "site", tmp_path / "folder"
    site.mkdir()
    folder.mkdir()
    install(site, "folders")
    done = conformance(site, "secrets", "folder", LAKEGATE_FOLDERS_SECRETS=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"holds   {rule.name}" for rule in SECRET_RULES]
    assert list(folder.iterdir()) == []
    done = conformance(site, "secrets", "folder", LAKEGATE_FOLDERS_SECRETS=str(tmp_path / "missing"))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "BROKEN  a check succeeds")
    done = conformance(site, "secrets", "nothing")
    assert done.returncode == 1 and "Known names: folder, kv2, postgres" in done.stderr
