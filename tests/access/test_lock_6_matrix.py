# SPDX-License-Identifier: Apache-2.0
"""Lock 6e: the golden matrix. A change of the model, of a demand or of the tuples of a grant appears in its diff."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.access.operation import OPERATIONS
from gateway.fga.client import FgaClient
from gateway.fga.model import push_model
from tests.support.goldens import golden as matrix
from tests.support.runs.golden_files import Golden
from tests.support.servers.openfga_server import KEY, openfga_in_memory

MATRIX = Path(__file__).with_name("matrix.md")

#: Operations without a column, each with its reason. An unnecessary line fails.
EXEMPT: dict[str, str] = {}

#: The matrix is computed once, which takes minutes on a busy machine.
pytestmark = pytest.mark.timeout(600)

Rows = dict[str, dict[str, list[str]]]

#: Intermediate results that the questions about one holder share are computed once. No tuple is written between them.
_CACHED = {
    "OPENFGA_CHECK_QUERY_CACHE_ENABLED": "true",
    "OPENFGA_CHECK_QUERY_CACHE_TTL": "10m",
    "OPENFGA_CHECK_CACHE_LIMIT": "100000",
    "OPENFGA_CHECK_ITERATOR_CACHE_ENABLED": "true",
    "OPENFGA_CHECK_ITERATOR_CACHE_TTL": "10m",
}


class _FromCaches(FgaClient):
    """A client that accepts results of the caches, which the gateway never does."""

    def _request(self, method: str, path: str, body: Any) -> Any:
        if body and "consistency" in body:
            body = {**body, "consistency": "MINIMIZE_LATENCY"}
        return super()._request(method, path, body)


@pytest.fixture(scope="module")
def openfga() -> Iterator[str]:
    """Run an OpenFGA with its tuples in memory."""
    with openfga_in_memory(_CACHED) as address:
        yield address


@pytest.fixture(scope="module")
def rows(openfga: str) -> Rows:
    """Return the current matrix."""
    return asyncio.run(_computed(openfga))


async def _computed(endpoint: str) -> Rows:
    pushed = await push_model(endpoint, KEY, "matrix")
    client = _FromCaches(endpoint, KEY, pushed.store_id, pushed.model_id, timeout_s=90, max_batch=10)
    try:
        return await matrix.compute(client)
    finally:
        await client.aclose()


@pytest.mark.golden
def test_the_matrix_equals_the_golden_file(rows: Rows, golden: Golden) -> None:
    golden.compare(MATRIX, matrix.render(rows))


def test_the_matrix_is_short_enough_to_review() -> None:
    assert len(MATRIX.read_bytes()) < 80_000


def test_every_operation_is_in_the_matrix() -> None:
    shown = {column.operation.__name__ for heads in matrix.columns().values() for column in heads}
    assert set(OPERATIONS) - shown - set(EXEMPT) == set(), "these operations are neither in the matrix nor in EXEMPT"
    assert set(EXEMPT) & shown == set(), "these entries of EXEMPT are unnecessary"


def _cells(rows: Rows, table: str, holder: str) -> dict[str, str]:
    heads = matrix.columns()[table]
    return dict(zip((head.title for head in heads), rows[table][holder], strict=True))


def _closed(rows: Rows, table: str, holder: str) -> set[str]:
    """Return the cells of the operations that are not open to everyone."""
    heads = matrix.columns()[table]
    return {
        cell for head, cell in zip(heads, rows[table][holder], strict=True) if head.example.operation.open_to is None
    }


# Statements of Lakekeeper's relationship model; the golden file alone would also accept a mistake.


def test_select_on_a_table_allows_only_reading_it(rows: Rows) -> None:
    table = _cells(rows, "table", "table: select")
    assert (table["load"], table["vend"], table["vend: write_data"]) == ("✓", "✓", "✗")
    assert (table["commit"], table["drop"], table["give select"]) == ("✗", "✗", "✗")
    assert _cells(rows, "namespace", "table: select")["list tables"] == "✓", (
        "the ancestors of a granted table are visible"
    )
    assert _cells(rows, "namespace", "table: select")["list tables: list_everything"] == "✗"
    assert _cells(rows, "role", "table: select")["grants"] == "404"


def test_modify_does_not_create(rows: Rows) -> None:
    for level in ("warehouse", "outer namespace", "namespace"):
        assert _cells(rows, "namespace", f"{level}: modify")["create table"] == "✗"
        assert _cells(rows, "namespace", f"{level}: modify")["drop"] == "✓"
        assert _cells(rows, "namespace", f"{level}: create")["create table"] == "✓"
        assert _cells(rows, "table", f"{level}: create")["vend"] == "✗"


def test_describe_reads_no_data(rows: Rows) -> None:
    for level in ("project", "warehouse", "outer namespace", "namespace", "table"):
        table = _cells(rows, "table", f"{level}: describe")
        assert (table["load"], table["vend"], table["commit"]) == ("✓", "✗", "✗")


def test_approvers_of_changes_read_metadata_and_decide_and_do_nothing_else(rows: Rows) -> None:
    # A holder of describe only reads metadata; the two differ in the decisions about tickets.
    deciding = {"approve", "reject", "read_change_tickets"}
    for name in rows:
        for level in ("project", "warehouse", "outer namespace", "namespace", "table", "view", "generic table"):
            approver, reader = (_cells(rows, name, f"{level}: {held}") for held in ("approve_changes", "describe"))
            different = {title for title, cell in approver.items() if cell != reader[title]}
            assert all(deciding & set(title.split()) or "approve_changes" in title for title in different), different
            assert all(approver[title] == "✓" for title in different)
    assert _cells(rows, "table", "namespace: approve_changes")["give approve_changes"] == "✗"


def test_manage_grants_gives_no_visibility_and_pass_grants_no_other_right(rows: Rows) -> None:
    manager = _cells(rows, "table", "table: manage_grants")
    assert (manager["load"], manager["grants"], manager["give modify"]) == ("404", "✓", "✓")
    assert _cells(rows, "table", "warehouse: manage_grants")["give ownership"] == "✓"
    for level in ("warehouse", "namespace", "table"):
        assert _closed(rows, "table", f"{level}: pass_grants") <= {"404", "✗"}


def test_a_server_admin_has_no_data_rights_and_an_operator_has_all(rows: Rows) -> None:
    assert _closed(rows, "table", "server: admin") <= {"404", "✗"}
    assert _closed(rows, "namespace", "server: admin") <= {"404", "✗"}
    for table in ("warehouse", "namespace", "table"):
        held = _cells(rows, table, "server: operator")
        # Acting for users or inspecting them as an engine, taking rights in an emergency, requesting by a tag, and
        # reading the audit log need a grant. Operators do not have them implicitly.
        excepted = ("delegate", "inspect", "activate on", "request by tag", "audit log")
        others = [title for title in held if not any(each in title for each in excepted)]
        assert {held[title] for title in others} == {"✓"}


def test_owners_can_grant_every_privilege_but_those_that_bind_them_and_data_admins_none(rows: Rows) -> None:
    given = [head.title for head in matrix.columns()["table"] if head.title.startswith("give ")]
    # An owner must not lift what binds it: by an engine that it trusts, a tag that it removes, or its own approval.
    binding = {"give enforcer", "give manage_tags", "give approve_changes"}
    by_owner = {title: _cells(rows, "table", "table: ownership")[title] for title in given}
    assert {title for title, cell in by_owner.items() if cell != "✓"} == binding
    assert {_cells(rows, "table", "project: data_admin")[title] for title in given} == {"✗"}
    assert _cells(rows, "table", "project: data_admin")["commit"] == "✓"
    assert _cells(rows, "table", "project: security_admin")["commit"] == "✗"


def test_a_user_without_grants_has_only_the_open_operations(rows: Rows) -> None:
    for table in rows:
        if table != "open":
            assert "✓" not in _closed(rows, table, "nobody")
            assert set(rows[table]["no token"]) <= {"401", "✗"}
    assert _cells(rows, "open", "no token")["health"] == "✓"
    assert set(rows["open"]["no token"][1:]) <= {"401", "✗", "✓"}
    needing_none = sum(operation.is_public() for operation in OPERATIONS.values())
    assert rows["open"]["no token"].count("✓") == needing_none
