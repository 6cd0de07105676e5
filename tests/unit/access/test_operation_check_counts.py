# SPDX-License-Identifier: Apache-2.0
"""The number of checks charged to an operation."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from gateway.access.nouns.refs import Table, TabularRef
from gateway.access.nouns.relations import Can
from gateway.access.operations.answer_lists import DEFAULT_ROWS, MAX_OBJECTS, WhatCan, WhoCan
from gateway.access.operations.deletion import UndropTabulars
from gateway.access.operations.users import ListOwnDelegates
from gateway.access.shares.shares import _LARGE
from tests.support.door import world
from tests.support.door.examples import EXAMPLES, Example


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"{type(each.operation).__name__}-{each.label}")
def test_every_operation_has_a_number_of_checks(example: Example) -> None:
    assert example.operation.questions() >= 1


def test_an_undrop_is_charged_with_its_targets() -> None:
    """Each part of an undrop is an undrop with itself as its only part."""
    targets = tuple(TabularRef(Table, world.WAREHOUSE_ID, uuid4(), dropped=True) for _ in range(3))
    assert UndropTabulars(world.WAREHOUSE, targets).questions() == 3


def test_the_list_of_own_delegates_is_a_large_request() -> None:
    """It checks every project and warehouse with a grant for all users, also for a caller without rights."""
    assert ListOwnDelegates().questions() > _LARGE


def test_a_list_about_a_past_moment_is_charged_by_its_page() -> None:
    at = datetime.now(UTC)
    assert WhoCan(world.WAREHOUSE, Can.GET_METADATA, at=at).questions() == DEFAULT_ROWS
    assert WhoCan(world.WAREHOUSE, Can.GET_METADATA, page_size=7, at=at).questions() == 7
    assert WhatCan(action=Can.GET_METADATA, page_size=10_000, at=at).questions() == MAX_OBJECTS
    assert WhatCan(page_size=10_000, at=at).questions() > 10 * MAX_OBJECTS
    assert WhatCan(page_size=10_000).questions() == 1
