# SPDX-License-Identifier: Apache-2.0
"""The golden matrix through a gateway with the authorizer `rows`: all verdicts are those without it.

The tests are those of `tests/contract/test_golden_matrix.py`. A right that the rows give later than OpenFGA, or not at
all, would differ here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from lakegate.local.ready import Ready
from tests.support.goldens.golden_table import COLUMNS, ROWS, Row
from tests.support.servers.toxic import second_gateway
from tests.support.stack.golden_matrix import (
    possible_cases,
    test_privileges_of_a_row_allow_exactly_its_actions,
    test_privileges_of_a_row_allow_exactly_its_generic_table_actions,
)
from tests.support.stack.world import World

__all__ = [
    "test_privileges_of_a_row_allow_exactly_its_actions",
    "test_privileges_of_a_row_allow_exactly_its_generic_table_actions",
]

pytestmark = [pytest.mark.generated, pytest.mark.servers]

BATCH = "/management/v1/action/batch-check"


@pytest.fixture(scope="module")
def world(stack: Ready, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield the users of the stack at a second gateway, which uses the authorizer."""
    log = tmp_path_factory.mktemp("log") / "gateway.log"
    with second_gateway(stack, log, {}, AUTHORIZERS="rows") as (base, _):
        world = World(msgspec.structs.replace(stack, catalog_uri=f"{base}/catalog"))
        yield world
        world.close()


@pytest.fixture(scope="module")
def objects(world: World) -> dict[str, tuple[str, dict[str, str]]]:
    """Return (type, fields of a check) of each letter of the table."""
    namespace = world.namespace()
    tables = [world.table(namespace) for _ in range(2)]
    warehouse = {"warehouse-id": world.warehouse}
    return {
        "S": ("server", {}),
        "P": ("project", {"project-id": world.project}),
        "W": ("warehouse", warehouse),
        "N": ("namespace", warehouse | {"namespace-id": world.namespace_id(namespace)}),
        "T": ("table", warehouse | {"table-id": tables[0].uuid}),
        "T2": ("table", warehouse | {"table-id": tables[1].uuid}),
    }


def _asked(objects: dict[str, tuple[str, dict[str, str]]], questions: Sequence[tuple[str, str]]) -> dict[str, Any]:
    checks = []
    for letter, action in questions:
        kind, fields = objects[letter]
        checks.append({"operation": {kind: {**fields, "action": {"action": action.removeprefix("can_")}}}})
    return {"checks": checks}


@pytest.mark.parametrize("row", [pytest.param(row, id=row.title) for row in ROWS if possible_cases(row)])
def test_all_cells_of_a_row_are_those_of_the_golden_table(
    world: World, objects: dict[str, tuple[str, dict[str, str]]], row: Row
) -> None:
    """Every cell of the table, by `batch-check`. The imported tests send the real requests of the pairs."""
    expected = {question: row.holds(column) for column in COLUMNS for question in row.questions(column)}
    subject = world.stranger()
    kind, fields = objects[row.on]
    for privilege in row.privileges:
        world.grant(privilege, subject, kind, fields.get(f"{kind}-id", ""))
    try:
        answer = subject.post(BATCH, _asked(objects, list(expected)))
        assert answer.status_code == 200, answer.text
        found = [each["allowed"] for each in answer.json()["results"]]
        assert dict(zip(expected, found, strict=True)) == expected
    finally:
        world.strip(subject)
