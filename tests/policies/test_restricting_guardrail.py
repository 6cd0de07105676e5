# SPDX-License-Identifier: Apache-2.0
"""The documented guardrail with row filters and masks states them under the documented circumstances."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from gateway.obligations.guardrail_policies import policies_of
from gateway.obligations.guardrails import StatedObligations, understood
from gateway.obligations.kinds import ColumnMasks, RowFilters
from tests.policies.conftest import Run
from tests.support.docs_commands import blocks


def _context(hour: int, address: str | None) -> dict[str, str]:
    context = {"time": f"2026-05-04T{hour:02}:00:00Z"}
    return context if address is None else {**context, "client_address": address}


@pytest.mark.parametrize(
    ("context", "kinds"),
    [
        (_context(9, "10.1.2.3"), set()),
        (_context(7, "10.1.2.3"), {ColumnMasks}),
        (_context(18, "10.1.2.3"), {ColumnMasks}),
        (_context(9, "192.0.2.1"), {RowFilters}),
        (_context(9, None), {RowFilters}),
        (_context(3, None), {RowFilters, ColumnMasks}),
    ],
)
def test_the_documented_guardrail_restricts_by_time_and_network(
    opa: Run, policies: Path, tmp_path: Path, context: dict[str, str], kinds: set[type]
) -> None:
    (text,) = (block.text for block in blocks() if block.text.startswith("package gateway.guardrails.circumstances"))
    (tmp_path / "circumstances.rego").write_text(text)
    actor = {"id": "oidc~alice", "kind": "user", "roles": []}
    questions = [
        {"operation": "load_table", "resource": {"type": "table"}, "facts": {}},
        {"operation": "get_config", "resource": {"type": "warehouse"}, "facts": {}},
    ]
    (tmp_path / "input.json").write_text(json.dumps({"actor": actor, "context": context, "questions": questions}))
    arguments = ["--data", policies, "--data", tmp_path / "circumstances.rego", "--input", tmp_path / "input.json"]
    done = opa("eval", "--ignore=schemas", "--format=raw", *arguments, "data.gateway.decisions.decisions")
    assert done.returncode == 0, done.stderr
    table, warehouse = json.loads(done.stdout)
    assert table["allow"], table
    found = understood(msgspec.convert(table["obligations"], StatedObligations))
    assert {type(one) for one in found} == kinds
    assert len(policies_of(found)) == len(kinds)
    assert warehouse["obligations"] == {}
