# SPDX-License-Identifier: Apache-2.0
"""`lakegate demo`, the command of `make demo`, on the real data. The numbers that DuckDB computes from the delivered
files equal those that other clients then read, through the gateway of `lakegate up` on the data of the demonstration.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import httpx
import psutil
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError
from rich.console import Console

from gateway.settings import java_home, load, search_path
from lakegate.local import jdk, ready, spark_jars, toolchain
from lakegate.local.children import Children
from lakegate.local.demo.main import Scene, demonstrate
from lakegate.local.demo.spark import SparkTools
from lakegate.local.ready import Ready
from lakegate.spark.schemas import DELIVERED
from lakegate.spark.sources import default_directory, discover, readable
from tests.support.processes import command_line, values_of

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(2400)]

_START_SECONDS = 180.0
_STOP_SECONDS = 90.0


@dataclass(frozen=True)
class Shown:
    """The exit code of a demonstration, its output, and the Spark processes during its trials and after its end."""

    status: int
    text: str
    during: list[str]
    after: list[str]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demonstration")


@pytest.fixture(scope="module")
def first(home: Path) -> Shown:
    """Run the command in an empty directory."""
    text, during = [], []
    with _lakegate("demo", home=home, output=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            text.append(line)
            if "The door is tried" in line:
                during = _spark_below(home)
    return Shown(process.returncode, "".join(text), during, _spark_below(home))


def _lakegate(*arguments: str, home: Path, output: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gateway.cli", *arguments],
        cwd=home,
        env=os.environ | {"LAKEGATE__EMBEDDED__FAST": "true", "LAKEGATE__EMBEDDED__FREE_PORTS": "true"},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _spark_below(home: Path) -> list[str]:
    """Return the command lines of the processes of Spark whose working directory is below `home`."""
    found = []
    for line, process in values_of(lambda each: (command_line(each), each), psutil.process_iter()):
        with suppress(psutil.AccessDenied, psutil.NoSuchProcess):  # of another account, or ended
            if ("lakegate.spark" in line or "java" in line) and Path(process.cwd()).is_relative_to(home):
                found.append(line)
    return found


@pytest.fixture(scope="module")
def stack(first: Shown, home: Path) -> Iterator[Ready]:
    """Start `lakegate up` on the data of the demonstration, as a user would."""
    ready_file = home / "ready.json"
    with (home / "up.log").open("wb") as output:
        process = _lakegate("up", "--ready-file", str(ready_file), home=home, output=output)
    deadline = time.monotonic() + _START_SECONDS
    try:
        while not ready_file.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the stack did not start: {(home / 'up.log').read_text()[-3000:]}")
            time.sleep(0.2)
        yield ready.read(ready_file)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_STOP_SECONDS)


def show(stack: Ready, home: Path) -> tuple[int, str]:
    """Run the trials of the demonstration again, without the pipeline. Return the exit code and the output."""
    tools = SparkTools(
        java_home=jdk.find(java_home(), search_path()),
        jars=spark_jars.locate(toolchain.cache(load({})).jars()),
        work_dir=home / "spark",
    )
    written = io.StringIO()

    async def act() -> int:
        async with Children(home) as children:
            scene = Scene(stack, children, tools, home)
            return await demonstrate(scene, Console(file=written, width=200), pipeline=False)

    return asyncio.run(act()), written.getvalue()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """Open the delivered files in DuckDB, which shares no code with the pipeline."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, source in discover(default_directory()).items():
        path = readable(source, tmp_path_factory.mktemp("csv"))
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_csv('{path}', nullstr='NA')")
    return connection


def as_user(stack: Ready, user: str) -> Any:
    assert stack.warehouse is not None
    token = stack.users[user].token
    return load_catalog("lake", type="rest", uri=stack.catalog_uri, warehouse=stack.warehouse, token=token)


def send(stack: Ready, user: str, ident: str, question: str, **others: str) -> list[tuple[Any, ...]]:
    """Load tables through the gateway as ``user`` with PyIceberg, and query them with DuckDB.

    In ``question`` the table is named `lake`; further tables are named by their keyword.
    """
    catalog, connection = as_user(stack, user), duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, table in {"lake": ident, **others}.items():
        connection.register(name, catalog.load_table(table).scan().to_arrow())
    return connection.execute(question).fetchall()


def close(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> bool:
    return len(found) == len(expected) and all(
        left == pytest.approx(right, abs=1e-6) if isinstance(right, float) else left == right
        for one, other in zip(found, expected, strict=True)
        for left, right in zip(one, other, strict=True)
    )


def test_every_line_of_the_demonstration_is_as_expected(first: Shown) -> None:
    assert first.status == 0, first.text
    assert "NOT AS EXPECTED" not in first.text


def test_the_demonstration_shows_no_token_and_no_secret(stack: Ready, first: Shown) -> None:
    secrets = [stack.s3.secret_key, stack.opa.token, stack.openfga.token]
    secrets += [user.client_secret for user in stack.users.values()]
    assert not [secret for secret in secrets if secret in first.text]
    # The tokens of the demonstration were of its own run. Each one begins as those of this stack do.
    beginnings = {user.token[:10] for user in stack.users.values()}
    assert not [beginning for beginning in beginnings if beginning in first.text]


def test_no_spark_process_remains(first: Shown) -> None:
    assert [line for line in first.during if "java" in line]
    assert first.after == []


def test_pipeline_loses_no_real_data(stack: Ready, first: Shown, files: duckdb.DuckDBPyConnection) -> None:
    for source in DELIVERED:
        expected = files.execute(f"SELECT count(*) FROM {source}").fetchone()
        assert expected == (as_user(stack, "etl").load_table(f"bronze.{source}").scan().count(),)
    assert as_user(stack, "etl").load_table("silver.flights").scan().count() == 336_776


def test_route_figures_equal_those_of_another_engine(
    stack: Ready, first: Shown, files: duckdb.DuckDBPyConnection
) -> None:
    expected = files.execute(
        "SELECT origin, dest, count(*), count(*) FILTER (dep_time IS NULL), count(arr_delay), "
        "count(*) FILTER (arr_delay < 15), round(avg(dep_delay), 6), round(avg(arr_delay), 6), "
        "quantile_cont(arr_delay, 0.5), quantile_cont(arr_delay, 0.9) FROM flights GROUP BY 1, 2 ORDER BY 1, 2"
    ).fetchall()
    found = send(
        stack,
        "analyst",
        "gold.route_punctuality",
        "SELECT origin, destination, flights, cancelled, arrived, on_time, mean_departure_delay_minutes, "
        "mean_arrival_delay_minutes, median_arrival_delay_minutes, p90_arrival_delay_minutes FROM lake ORDER BY 1, 2",
    )
    assert len(expected) == 224
    assert close(found, expected)


def test_weather_delays_of_carriers_equal_those_of_another_engine(
    stack: Ready, first: Shown, files: duckdb.DuckDBPyConnection
) -> None:
    expected = files.execute(
        "SELECT f.carrier, CASE WHEN w.origin IS NULL THEN 'not observed' WHEN w.visib < 3 THEN 'low visibility' "
        "WHEN w.precip > 0 THEN 'precipitation' WHEN w.wind_speed >= 20 THEN 'strong wind' ELSE 'fair' END AS class, "
        "a.name, count(*), count(arr_delay), count(*) FILTER (arr_delay >= 15), round(avg(arr_delay), 6) "
        "FROM flights f JOIN airlines a USING (carrier) "
        "LEFT JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour GROUP BY ALL ORDER BY 1, 2"
    ).fetchall()
    found = send(
        stack,
        "contractor",
        "gold.carrier_delays_by_weather",
        "SELECT carrier, weather, carrier_name, flights, arrived, delayed, mean_arrival_delay_minutes "
        "FROM lake ORDER BY 1, 2",
    )
    assert close(found, expected)


def test_aircraft_hours_and_miles_equal_those_of_another_engine(
    stack: Ready, first: Shown, files: duckdb.DuckDBPyConnection
) -> None:
    expected = files.execute(
        "SELECT f.tailnum, f.month, p.seats, count(*), count(DISTINCT f.day), sum(air_time)::BIGINT, "
        "sum(distance)::BIGINT FROM flights f LEFT JOIN planes p USING (tailnum) "
        "WHERE arr_delay IS NOT NULL AND f.tailnum IS NOT NULL GROUP BY ALL ORDER BY 1, 2"
    ).fetchall()
    found = send(
        stack,
        "etl",
        "gold.aircraft_utilisation",
        "SELECT tail_number, month(month), seats, flights, days_in_service, air_time_minutes, distance_miles "
        "FROM lake ORDER BY 1, 2",
    )
    assert len(found) > 37_000
    assert found == expected


def test_departure_times_equal_those_of_another_engine(
    stack: Ready, first: Shown, files: duckdb.DuckDBPyConnection
) -> None:
    expected = files.execute(
        "SELECT carrier, sum(epoch(time_hour)::BIGINT + minute * 60 + coalesce(dep_delay, 0) * 60)::BIGINT "
        "FROM flights GROUP BY 1 ORDER BY 1"
    ).fetchall()
    found = send(
        stack,
        "etl",
        "silver.flights",
        "SELECT carrier, sum(epoch(coalesce(departure, scheduled_departure))::BIGINT)::BIGINT "
        "FROM lake GROUP BY 1 ORDER BY 1",
    )
    assert found == expected


def test_arrival_times_in_destination_zones_equal_the_delivered_ones(stack: Ready, first: Shown) -> None:
    found = send(
        stack,
        "etl",
        "silver.flights",
        "SELECT count(*), count(*) FILTER (b.sched_arr_time::INT % 2400 "
        "<> strftime(timezone(s.destination_time_zone, s.scheduled_arrival), '%H%M')::INT) "
        "FROM lake s JOIN delivered b ON s.carrier = b.carrier AND s.flight_number = b.flight::INT "
        "AND s.origin = b.origin AND s.flight_date = make_date(b.year::INT, b.month::INT, b.day::INT) "
        "WHERE s.scheduled_arrival IS NOT NULL",
        delivered="bronze.flights",
    )
    assert found == [(336_776 - 7_602, 0)]


def test_silver_is_partitioned_by_month(stack: Ready, first: Shown) -> None:
    partitions = as_user(stack, "etl").load_table("silver.flights").inspect.partitions()
    # Late evenings of December are in January of the next year in UTC.
    assert partitions.num_rows == 13
    assert sum(partitions["record_count"].to_pylist()) == 336_776


def test_another_client_is_confined_like_spark(stack: Ready, first: Shown) -> None:
    analyst = as_user(stack, "analyst")
    assert analyst.list_namespaces() == [("gold",)]
    with pytest.raises(NoSuchTableError):
        analyst.load_table("silver.flights")
    with pytest.raises(ForbiddenError), analyst.load_table("gold.route_punctuality").transaction() as change:
        change.set_properties({"owned-by": "analyst"})


def test_missing_restriction_makes_the_demonstration_fail(
    stack: Ready, first: Shown, tmp_path_factory: pytest.TempPathFactory
) -> None:
    etl, admin = ({"Authorization": f"Bearer {stack.users[name].token}"} for name in ("etl", "admin"))
    with httpx.Client(trust_env=False, timeout=60) as http:
        config = http.get(f"{stack.catalog_uri}/v1/config", params={"warehouse": stack.warehouse or ""}, headers=etl)
        prefix = config.json()["defaults"]["prefix"]
        silver = http.get(f"{stack.catalog_uri}/v1/{prefix}/namespaces/silver", headers=etl).json()
        grants = f"{stack.management_uri}/v1/permissions/namespace/{silver['properties']['namespace_id']}/assignments"
        opened = {"writes": [{"type": "select", "user": stack.users["analyst"].id}]}
        assert http.post(grants, headers=admin, content=json.dumps(opened)).status_code == 204
    status, text = show(stack, tmp_path_factory.mktemp("again"))
    assert status == 1
    summary = text[text.index("lines were not as expected") :]
    for tried in ("list namespaces", "load silver.flights", "read silver.flights with Spark"):
        assert f"analyst: {tried}" in summary
