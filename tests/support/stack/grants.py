# SPDX-License-Identifier: Apache-2.0
"""Users without rights for tests of grants, and grants with a reason or an expiry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.stack.world import World, send_until_decided


@pytest.fixture
def strangers(world: World) -> Iterator[None]:
    """Remove all grants of the analyst and the steward, before and after."""
    for person in (world.analyst, world.steward):
        world.strip(person)
    yield
    for person in (world.analyst, world.steward):
        world.strip(person)


def give(world: World, kind: str, id: str, privilege: str, principal: dict[str, str], **more: Any) -> None:
    """Grant a privilege on an object in the warehouse, or on the warehouse itself."""
    within = f"/management/v1/warehouse/{world.warehouse}"
    path = f"{within}/grants" if kind == "warehouse" else f"{within}/{kind}/{id}/grants"
    body = {"writes": [{"privilege": privilege, "principal": principal, **more}]}
    done = send_until_decided(lambda: world.admin.post(path, body))
    assert done.status_code == 204, done.text
