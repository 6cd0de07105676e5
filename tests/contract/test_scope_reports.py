# SPDX-License-Identifier: Apache-2.0
"""The canary's verdict on a warehouse: stored at creation, renewed on request, void after a change of the storage."""

from __future__ import annotations

import pytest

from tests.support.stack import warehouses
from tests.support.stack.warehouses import Made
from tests.support.stack.world import World, error_triple, unique


@pytest.fixture(scope="module")
def made(world: World) -> Made:
    return warehouses.make(world, **warehouses.stored_at(world, unique("scope")))


def test_a_new_warehouse_has_the_proof_of_its_creation(world: World, made: Made) -> None:
    report = world.admin.get(f"{made.path}/scope-report").json()
    assert (report["verdict"], report["last-run-verdict"], report["findings"]) == ("proven", "proven", [])
    assert report["attempts"] > 100 and report["verdict-at"] is not None


def test_the_canary_runs_on_request_and_renews_the_verdict(world: World, made: Made) -> None:
    before = world.admin.get(f"{made.path}/scope-report").json()
    answer = world.admin.post(f"{made.path}/scope-report")
    assert answer.status_code == 200, answer.text
    assert answer.json()["verdict"] == "proven"
    assert answer.json()["verdict-at"] > before["verdict-at"]
    assert world.admin.get(f"{made.path}/scope-report").json() == answer.json()


def test_the_report_needs_the_right_to_update_the_storage(world: World, made: Made) -> None:
    for answer in (world.carol.get(f"{made.path}/scope-report"), world.carol.post(f"{made.path}/scope-report")):
        assert error_triple(answer)[0] == 404
