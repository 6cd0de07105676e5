# SPDX-License-Identifier: Apache-2.0
"""Users whose tokens state groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.toxic import second_gateway
from tests.support.stack.providers import AUDIENCE, StubProvider, stub_provider
from tests.support.stack.roles import make
from tests.support.stack.world import World


@pytest.fixture(scope="module")
def partner(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, StubProvider]]:
    """Run a gateway that reads groups from tokens of the provider `partner`; yield (address, provider)."""
    with stub_provider() as provider:
        settings = {
            "OPENID_PROVIDERS__PARTNER__URI": provider.issuer,
            "OPENID_PROVIDERS__PARTNER__AUDIENCE": AUDIENCE,
            "OPENID_PROVIDERS__PARTNER__ROLES_CLAIM": "groups",
            "OPENID_PROVIDERS__ELSE__URI": provider.issuer,
            "OPENID_PROVIDERS__ELSE__AUDIENCE": "else",
            "OPENID_PROVIDERS__ELSE__ROLES_CLAIM": "groups",
        }
        log = tmp_path_factory.mktemp("groups") / "gateway.log"
        with second_gateway(world.ready, log, **settings) as (base, _):
            yield base, provider


def of_group(world: World, group: str, provider: str = "partner", **more: Any) -> dict[str, Any]:
    """Create a role that stands for a group."""
    named: dict[str, Any] = {"provider-id": provider, "source-id": group}
    return make(world, **named, **more)


def give(world: World, privilege: str, role: dict[str, Any], kind: str, id: str, expect: int = 204) -> None:
    """Grant a privilege to a role."""
    entry = {"writes": [{"type": privilege, "role": role["id"]}]}
    answer = world.admin.post(world.grants_path(kind, id), entry)
    assert answer.status_code == expect, answer.text


def take(world: World, privilege: str, role: dict[str, Any], kind: str, id: str) -> None:
    """Revoke a privilege from a role."""
    entry = {"deletes": [{"type": privilege, "role": role["id"]}]}
    assert world.admin.post(world.grants_path(kind, id), entry).status_code == 204
