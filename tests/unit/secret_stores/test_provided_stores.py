# SPDX-License-Identifier: Apache-2.0
"""Secret stores of installed packages: a toy package with the entry point that docs/extensions.md describes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from gateway.assembly.secret_stores import NoSuchSecretStore, open_secret_stores, watch_secret_stores
from gateway.db.credentials.secrets import Sealer
from gateway.db.engine.database import Database
from gateway.secret_stores.port import SecretStoreRefused, SecretStores
from gateway.settings import Settings
from gateway.telemetry.health import HealthMonitor
from gateway.tls import trusted

TOY = """
class ToyStore:
    name = "toy"

    def __init__(self):
        self.held = {}
        self.closed = False

    async def put(self, id, plain):
        self.held[id] = plain

    async def get(self, id):
        return self.held[id]

    async def delete(self, id):
        self.held.pop(id, None)

    async def check(self):
        if self.closed:
            raise RuntimeError("closed")

    async def close(self):
        self.closed = True


def open_store():
    return ToyStore()


def open_nothing():
    return object()
"""


def install(site: Path, package: str, *entries: str, group: str = "lakegate.secrets") -> None:
    """Write a package as pip installs it: the module and its metadata."""
    (site / f"{package}.py").write_text(TOY)
    metadata = site / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("\n".join([f"[{group}]", *entries]) + "\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("toy_store", "second_toy"):
        sys.modules.pop(name, None)


def opened(stack: AsyncExitStack, **settings: object) -> SecretStores:
    database = cast(Database, object())  # opening connects to nothing
    read = Settings(**settings)  # type: ignore[arg-type]  # each test names the settings it needs
    return open_secret_stores(read, trusted(None, None), database, Sealer(["an encryption key"]), stack)


async def test_a_store_of_a_package_is_opened_by_its_name_and_closed(site: Path) -> None:
    install(site, "toy_store", "toy = toy_store:open_store")
    async with AsyncExitStack() as stack:
        stores = opened(stack, secret_backend="toy")
        assert stores.current.name == "toy"
        await stores.current.put(id := uuid4(), b"{}")
        assert await stores.named("toy").get(id) == b"{}"
        assert {store.name for store in stores} == {"postgres", "toy"}
        await stores.current.check()
        current = stores.current
    with pytest.raises(RuntimeError, match="closed"):
        await current.check()


async def test_a_store_is_only_read_if_another_one_receives_new_secrets(site: Path) -> None:
    install(site, "toy_store", "toy = toy_store:open_store")
    async with AsyncExitStack() as stack:
        stores = opened(stack, secret_backends_also_read=("toy",))
        assert stores.current.name == "postgres"
        assert stores.named("toy").name == "toy"
        with pytest.raises(SecretStoreRefused) as refused:
            stores.named("kv2")
        assert "kv2" in refused.value.reason and "kv2" not in refused.value.message


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ((), "has the name 'toy'. Known names: kv2, postgres"),
        (("other = toy_store:open_store",), "Known names: kv2, other, postgres"),
        (("toy = toy_store:open_nothing",), "'toy' .* returned no secret store"),
    ],
)
async def test_a_missing_or_unusable_store_is_refused(site: Path, entries: tuple[str, ...], message: str) -> None:
    install(site, "toy_store", *entries)
    async with AsyncExitStack() as stack:
        with pytest.raises(NoSuchSecretStore, match=message):
            opened(stack, secret_backend="toy")


async def test_the_former_group_of_entry_points_works_and_is_logged_as_deprecated(site: Path) -> None:
    install(site, "toy_store", "toy = toy_store:open_store", group="lakegate.secret_stores")
    async with AsyncExitStack() as stack:
        with capture_logs() as logs:
            assert opened(stack, secret_backend="toy").current.name == "toy"
        assert [entry["event"] for entry in logs] == ["secret_store.group_deprecated"]


async def test_a_name_of_two_packages_is_refused(site: Path) -> None:
    install(site, "toy_store", "toy = toy_store:open_store")
    install(site, "second_toy", "toy = second_toy:open_store")
    async with AsyncExitStack() as stack:
        with pytest.raises(NoSuchSecretStore, match="Several installed packages"):
            opened(stack, secret_backend="toy")


async def test_an_outage_of_a_store_is_reported_and_does_not_make_the_gateway_unhealthy(site: Path) -> None:
    install(site, "toy_store", "toy = toy_store:open_store")
    health = HealthMonitor()
    async with AsyncExitStack() as stack:
        watch_secret_stores(health, opened(stack, secret_backend="toy"))

        async def works() -> None:
            """Answer."""

        health.register("catalog", "write_pool", works)
        report = await health.check_now()
        assert (report.health, report.services["secrets"][0].status) == ("ok", "ok")
    report = await health.check_now()
    assert (report.healthy, report.services["secrets"][0].status) == (True, "error")
