# SPDX-License-Identifier: Apache-2.0
"""The matrix of refusals on warehouses of further providers: nothing is changed in their stores, and no token is made.

The emulator of Google Cloud Storage enforces nothing, so its warehouse is created at a gateway without validation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import _up
from tests.support.servers.gcs_emulator import Emulator, gcs_emulator, google_tokens, service_account_key
from tests.support.servers.toxic import second_gateway
from tests.support.stack.refused_vending import (
    ENTRY_POINTS,
    REFUSED,
    Target,
    made_target,
    property_keys,
    refuse_without_change,
)
from tests.support.stack.warehouses import WAREHOUSE
from tests.support.stack.world import Person, World, unique

pytestmark = [pytest.mark.servers]

_BUCKET = "lake-1"


@dataclass(frozen=True)
class Store:
    """A warehouse's target, and a function that returns what its store and its token service have seen."""

    target: Target
    state: Callable[[], object]


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with gcs_emulator(tmp_path_factory.mktemp("gcs") / "log") as running:
        running.make_bucket(_BUCKET)
        yield running


@pytest.fixture(scope="module")
def tokens() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    with google_tokens() as services:
        yield services


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(os.path.realpath(tmp_path_factory.mktemp("listed")))


@pytest.fixture(scope="module")
def world(emulator: Emulator, tokens: tuple[str, list[dict[str, Any]]], directory: Path) -> Iterator[World]:
    with _up(
        STORAGE__GCS_ENDPOINT=emulator.url,
        STORAGE__GCS_TOKEN_ENDPOINT=tokens[0],
        STORAGE_LOCAL_DIRECTORIES=str(directory),
    ) as ready:
        world = World(ready)
        yield world
        world.close()


def _warehouse(world: World, by: Person, profile: dict[str, Any], **more: Any) -> Target:
    made = by.post(WAREHOUSE, {"warehouse-name": unique("w"), "storage-profile": profile, **more})
    assert made.status_code == 201, made.text
    # The canary would try a warehouse without a verdict soon, and change the store during these tests.
    world.sql("update warehouses set scope_tried_at = now() where scope_tried_at is null")
    return made_target(world, f"/catalog/v1/{made.json()['warehouse-id']}")


@pytest.fixture(scope="module")
def stores(
    world: World,
    emulator: Emulator,
    tokens: tuple[str, list[dict[str, Any]]],
    directory: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Store]:
    """Return a warehouse of each provider."""
    key = {"type": "gcs", "credential-type": "service-account-key", "key": service_account_key()}
    more: dict[str, Any] = {"storage-credential": key}
    local = _warehouse(world, world.admin, {"type": "local", "directory": str(directory / "wh")})
    log = tmp_path_factory.mktemp("gateway") / "log"
    with second_gateway(world.ready, log, SKIP_STORAGE_VALIDATION="true") as (base, _):
        admin = Person("admin", world.admin.id, world.admin.token, base)
        gcs = _warehouse(world, admin, {"type": "gcs", "bucket": _BUCKET, "key-prefix": "wh"}, **more)
    return {
        "local": Store(local, lambda: sorted(map(str, directory.rglob("*")))),
        "gcs": Store(gcs, lambda: (sorted(emulator.names(_BUCKET)), len(tokens[1]))),
    }


@pytest.mark.parametrize("provider", ["local", "gcs"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_request_changes_nothing_in_the_store_of_any_provider(
    world: World, stores: dict[str, Store], provider: str, name: str
) -> None:
    store = stores[provider]
    before = store.state()
    for entry in REFUSED[name]:
        refuse_without_change(world, store.target, name, entry)
        assert store.state() == before, entry


def test_the_owner_gets_tokens_where_the_provider_has_them(world: World, stores: dict[str, Store]) -> None:
    """Otherwise the refusals above could have another reason."""
    for provider, vends in (("gcs", True), ("local", False)):
        for entry in ("load", "create", "staged create", "register"):
            answer = ENTRY_POINTS[entry](world.admin, stores[provider].target)
            assert answer.status_code == 200, f"{provider}, {entry}: {answer.text}"
            assert bool(property_keys(answer.json())) is vends, f"{provider}, {entry}"
        credentials = ENTRY_POINTS["credentials"](world.admin, stores[provider].target)
        assert credentials.status_code == (200 if vends else 403)
    reader = ENTRY_POINTS["load"](stores["gcs"].target.people["reader"], stores["gcs"].target)
    assert property_keys(reader.json())
