# SPDX-License-Identifier: Apache-2.0
"""The columns that definitions name, the bodies of requests, and the checks of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from gateway.access.operations.data_policy_bodies import BindingTarget, ChangeBindingsRequest
from gateway.access.operations.mapping_tables import ChangeEntriesRequest
from gateway.cli import main
from gateway.obligations.data_policies import Definition, column_names

ID = "00000000-0000-4000-8000-000000000001"


def definition(value: dict[str, Any]) -> Definition:
    read: Definition = msgspec.convert(value, Definition)
    return read


def test_every_test_of_a_filter_contributes_its_column() -> None:
    """A column that is left out would not be recorded, and a rename would change what the filter compares."""
    nested = {
        "type": "and",
        "operands": [
            {"type": "is-null", "column": {"name": "a"}},
            {"type": "not", "operand": {"type": "in", "column": {"name": "b"}, "values": [1]}},
            {"type": "or", "operands": [{"type": "compare", "operator": "eq", "column": {"name": "c"}, "value": 1}]},
            {"type": "compare", "operator": "eq", "column": {"tag": "pii"}, "value": 1},
            {"type": "has-role", "role": ID},
            {"type": "constant", "value": True},
        ],
    }
    assert column_names(definition({"kind": "row-filter", "test": nested})) == {"a", "b", "c"}


def test_a_mask_names_its_columns_and_not_its_tags() -> None:
    mask = {"kind": "mask", "action": "show-last-4", "columns": [{"name": "card"}, {"tag": "pii"}]}
    assert column_names(definition(mask)) == {"card"}


def test_a_table_is_bound_with_its_warehouse() -> None:
    """The reference of a table needs it. Without the check the door would fail with 500."""
    with pytest.raises(msgspec.ValidationError, match="warehouse-id"):
        msgspec.convert({"add": [{"type": "table", "id": ID}]}, ChangeBindingsRequest)
    assert msgspec.convert({"type": "namespace", "id": ID}, BindingTarget).warehouse_id is None


@pytest.mark.parametrize("principal", [{}, {"user": "oidc~a", "role": ID}])
def test_an_entry_names_one_principal(principal: dict[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError, match="either"):
        msgspec.convert({"set": [{"principal": principal, "values": ["x"]}]}, ChangeEntriesRequest)


def test_validate_prints_the_position_of_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "mask.json"
    file.write_text(json.dumps({"kind": "mask", "action": "hide", "columns": []}))
    refused = CliRunner().invoke(main, ["data-policy", "validate", str(file)])
    assert refused.exit_code == 1
    assert "$.action" in refused.output
    file.write_text(json.dumps({"kind": "mask", "action": "replace-with-null", "columns": [{"name": "card"}]}))
    assert CliRunner().invoke(main, ["data-policy", "validate", str(file)]).exit_code == 0


@pytest.mark.parametrize(
    "place", ["table/" + ID, "view/" + ID, "namespace/x", "warehouse", f"namespace/{ID}/{ID}/{ID}"]
)
def test_a_mistyped_object_is_refused_before_a_request(place: str) -> None:
    arguments = ["data-policy", "bind", "p", "--on", place, "--gateway", "http://localhost:1", "--token", "x"]
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 2, refused.output
    assert f"Write {place.partition('/')[0]}/" in refused.output
