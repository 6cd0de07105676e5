# SPDX-License-Identifier: Apache-2.0
"""Run the DAG of docs/examples with Airflow. Its tasks get tokens by client credentials."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.engines import environment
from tests.support.engines.engine_results import opt_in
from tests.support.engines.lake import catalog_of
from tests.support.stack.world import World

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900), opt_in("airflow")]

_DRIVER = Path(__file__).with_name("drive_airflow.py")
_TABLE = ("airflow", "daily_words")


def _run(world: World, user: str, home: Path) -> dict[str, Any]:
    """Run the DAG once with the client of a user; return the state of the run and of its tasks."""
    client = world.ready.users[user]
    connection = {
        "conn_type": "generic",
        "host": world.ready.catalog_uri,
        "login": client.client_id,
        "password": client.client_secret,
        "extra": {"warehouse": world.ready.warehouse, "token_url": world.ready.token_endpoint},
    }
    own = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(_DRIVER.parents[3] / "docs" / "examples"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_LAKEGATE": json.dumps(connection),
        "RESULT": str(home / "result.json"),
    }
    ran = subprocess.run(
        [str(environment.of("airflow").python), str(_DRIVER)],
        env=dict(os.environ) | own,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: dict[str, Any] = json.loads((home / "result.json").read_text())
    # The secret must not be in the log of the run.
    assert client.client_secret not in ran.stdout + ran.stderr
    return found


def test_dag_writes_and_checks_its_rows(world: World, tmp_path: Path) -> None:
    found = _run(world, "admin", tmp_path)
    assert found == {"run": "success", "tasks": {"prepare": "success", "load": "success", "check": "success"}}
    assert set(catalog_of(world, world.admin).load_table(_TABLE).scan().to_arrow()["word"].to_pylist()) == {
        "ada",
        "bob",
    }


def test_dag_of_a_client_without_rights_fails_at_its_first_task(world: World, tmp_path: Path) -> None:
    found = _run(world, "carol", tmp_path)
    assert found["run"] != "success"
    assert found["tasks"]["prepare"] not in ("success", "None")
    assert found["tasks"]["check"] != "success"
