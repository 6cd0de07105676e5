# SPDX-License-Identifier: Apache-2.0
"""One stack for the contract and security tests of a session.

`LAKEGATE_TEST_STACK=FILE` names the ready file of a stack that runs already (`lakegate up --ready-file FILE`). The
tests then use that stack and leave it running, which saves time while tests are written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lakegate.local import ready
from lakegate.local.ready import Ready
from tests.integration.conftest import _up
from tests.support.stack.lifecycle import soft_world
from tests.support.stack.world import Table, World

_RUNNING: pytest.StashKey[Ready] = pytest.StashKey()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest) -> Ready:
    """Yield a running, bootstrapped stack, shared by every directory that imports this fixture."""
    running = request.config.stash.get(_RUNNING, None)
    if running is None:
        given = os.environ.get("LAKEGATE_TEST_STACK")
        if given:
            running = ready.read(Path(given))
        else:
            held = ExitStack()
            request.config.add_cleanup(held.close)
            running = held.enter_context(_up())
        request.config.stash[_RUNNING] = running
    return running


@pytest.fixture(scope="session")
def world(stack: Ready) -> Iterator[World]:
    """Yield the users of the stack and access to its parts."""
    world = World(stack)
    if "LAKEGATE_TEST_STACK" in os.environ and stack.warehouse is not None:
        # The tests need drops that delete at once, and `lakegate up` keeps what is dropped.
        path = f"/management/v1/warehouse/{world.warehouse}/delete-profile"
        assert world.admin.post(path, {"delete-profile": {"type": "hard"}}).status_code == 200
    yield world
    world.close()


@pytest.fixture
def ns(world: World) -> str:
    """Create a namespace that the administrator owns; return its name."""
    return world.namespace()


@pytest.fixture
def table(world: World, ns: str) -> Table:
    """Create a table that the administrator owns."""
    return world.table(ns)


@pytest.fixture(scope="module")
def soft(world: World) -> Iterator[World]:
    """Yield the users in a warehouse that keeps dropped tables."""
    soft = soft_world(world)
    yield soft
    soft.close()


@pytest.fixture(scope="module", autouse=True)
def people(request: pytest.FixtureRequest) -> None:
    """Reset the users of the stack to their initial grants before each module.

    This takes a few milliseconds if no earlier module left a grant. Tests of one module still share the users: use
    `world.strip` or, better, `world.stranger()` for a user that must hold nothing.
    """
    module = request.node.path
    in_module = [item for item in request.session.items if item.path == module]
    if any("world" in item.fixturenames for item in in_module):  # type: ignore[attr-defined]  # only functions have it
        world: World = request.getfixturevalue("world")
        if world.ready.warehouse is not None:
            world.people_as_at_first()
