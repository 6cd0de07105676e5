# SPDX-License-Identifier: Apache-2.0
"""`lakegate contracts check`, and the refusal of `lakegate serve` to start with an unusable verifier."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

from gateway import settings
from gateway.cli import main
from gateway.cli.changes import require_verifiers

CONTRACT = {
    "name": "orders",
    "table": {"warehouse": "w", "namespace": ["a", "b"], "name": "orders"},
    "columns": [{"name": "id", "type": "long"}],
    "owners": ["team-sales", "team-data"],
}


def test_valid_contracts_are_listed_with_table_and_owners(tmp_path: Path) -> None:
    (tmp_path / "orders.json").write_bytes(msgspec.json.encode(CONTRACT))
    (tmp_path / "notes.txt").write_text("no contract")
    done = CliRunner().invoke(main, ["contracts", "check", str(tmp_path)])
    assert done.exit_code == 0
    assert done.output.splitlines() == ["orders: w.a.b.orders (team-sales, team-data)", "valid contracts: 1"]


def test_invalid_contract_fails_the_check_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "orders.json").write_bytes(msgspec.json.encode(CONTRACT | {"owners": []}))
    done = CliRunner().invoke(main, ["contracts", "check", str(tmp_path)])
    assert done.exit_code == 1 and "orders.json: " in done.output and "owners" in done.output
    missing = CliRunner().invoke(main, ["contracts", "check", str(tmp_path / "absent")])
    assert missing.exit_code == 1 and "is no directory" in missing.output


def test_serve_ends_before_its_workers_if_a_verifier_cannot_be_opened(tmp_path: Path) -> None:
    name = "LAKEGATE__VERIFIERS__C__"
    variables = {f"{name}KIND": "contract", f"{name}CONTRACTS_DIR": str(tmp_path)}
    asyncio.run(require_verifiers(settings.load(variables)))
    asyncio.run(require_verifiers(settings.load({})))
    with pytest.raises(click.ClickException, match="cannot serve: LAKEGATE__VERIFIERS__C: .* is no directory"):
        asyncio.run(require_verifiers(settings.load(variables | {f"{name}CONTRACTS_DIR": str(tmp_path / "absent")})))
    with pytest.raises(click.ClickException, match="cannot serve: No extension of the group lakegate.verifiers"):
        asyncio.run(require_verifiers(settings.load({f"{name}KIND": "absent"})))
