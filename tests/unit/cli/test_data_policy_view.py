# SPDX-License-Identifier: Apache-2.0
"""`lakegate data-policy view` without a gateway: its arguments, and the modules that it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.cli.data_policy_previews import _dialect

WHERE = ["--gateway", "http://localhost:1", "--token", "t", "--warehouse", "w"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--table", "n.t", "--as", "ann", "--dialect", "duckdb"], "oidc~ann"),
        (["--table", "n.t", "--as", "oidc~ann", "--dialect", "mysql"], "duckdb"),
    ],
)
def test_invalid_arguments_are_refused(more: list[str], reason: str) -> None:
    done = CliRunner().invoke(main, ["data-policy", "view", *WHERE, *more])
    assert done.exit_code == 2 and reason in done.output


@pytest.mark.parametrize(("name", "engine"), [("duckdb", "DuckDB"), ("spark", "Spark"), ("trino", "Trino")])
def test_each_dialect_is_that_of_its_engine(name: str, engine: str) -> None:
    assert _dialect(name).name == engine


def test_text_is_made_without_spark() -> None:
    """The command line is installed without PySpark."""
    program = (
        "import sys; sys.modules['pyspark'] = None; "
        "import lakegate.spark.catalog_client, lakegate.spark.restrictions, gateway.obligations.compilers.sql"
    )
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
