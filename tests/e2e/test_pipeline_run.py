# SPDX-License-Identifier: Apache-2.0
"""Test whole pipeline runs on small deliveries: changed tables, unchanged tables and refused deliveries.

The tables are in a local directory here. The test of the demonstration checks the real data through the gateway.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from gateway.settings import java_home, search_path
from lakegate.local import jdk
from lakegate.spark import schemas
from lakegate.spark.config import DirectoryCatalog
from lakegate.spark.errors import QualityError
from lakegate.spark.run import Run, RunReport
from lakegate.spark.schemas import DELIVERED
from lakegate.spark.session import as_principal
from lakegate.spark.sources import discover
from lakegate.spark.tables import Changes, fingerprint
from tests.support.engines.spark import jars

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def java() -> str:
    return str(jdk.find(java_home(), search_path()))


BASE: dict[str, list[dict[str, str]]] = {
    "airlines": [{"carrier": "UA", "name": "United Air Lines Inc."}],
    "airports": [
        {"faa": "EWR", "name": "Newark Liberty Intl", "tzone": "America/New_York"},
        {"faa": "IAH", "name": "George Bush Intercontinental", "tzone": "America/Chicago"},
    ],
    "planes": [{"tailnum": "N14228", "year": "1999", "model": "737-824", "seats": "149"}],
    "weather": [{"origin": "EWR", "time_hour": "2013-01-01T10:00:00Z", "pressure": "1012", "visib": "10"}],
    "flights": [
        {
            **{
                "year": "2013",
                "month": "1",
                "day": "1",
                "hour": "5",
                "minute": "15",
                "time_hour": "2013-01-01T10:00:00Z",
            },
            **{
                "dep_time": "517",
                "sched_dep_time": "515",
                "dep_delay": "2",
                "arr_time": "830",
                "sched_arr_time": "819",
            },
            **{"arr_delay": "11", "carrier": "UA", "flight": str(number), "tailnum": "N14228", "origin": "EWR"},
            **{"dest": "IAH", "air_time": "227", "distance": "1400"},
        }
        for number in (1, 2, 3)
    ],
}


def deliver(directory: Path, flights: list[dict[str, str]]) -> Path:
    directory.mkdir()
    for source, rows in (BASE | {"flights": flights}).items():
        lines = [",".join(row.get(column, "NA") for column in DELIVERED[source]) for row in rows]
        (directory / f"{source}.csv").write_text("\n".join([",".join(DELIVERED[source]), *lines]) + "\n")
    return directory


@dataclass
class Lake:
    """A lake in a local directory, and pipeline runs in it."""

    root: SparkSession
    home: Path

    def session(self) -> SparkSession:
        return as_principal(self.root, DirectoryCatalog(path=str(self.home / "lake")))

    def run(self, delivery: Path) -> RunReport:
        return Run(self.session(), discover(delivery), lambda line: None).execute(self.home)

    def state(self) -> dict[str, Any]:
        session = self.session()
        return {table.ident: fingerprint(session, table) for table in schemas.ALL}

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.session().sql(statement).collect()]


@pytest.fixture(scope="module")
def kept(root: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, RunReport]:
    """Run the delivery `BASE` into an empty lake. Return the home of the lake, a copy of it, and the report."""
    home, copy = tmp_path_factory.mktemp("lake"), tmp_path_factory.mktemp("copy") / "home"
    report = Lake(root, home).run(deliver(home / "base", BASE["flights"]))
    shutil.copytree(home, copy)
    return home, copy, report


@pytest.fixture
def lake(root: SparkSession, tmp_path: Path) -> Lake:
    """Return an empty lake."""
    return Lake(root, tmp_path)


@pytest.fixture
def filled(root: SparkSession, kept: tuple[Path, Path, RunReport]) -> Lake:
    """Return the lake after its first run, restored at its path, because its metadata contain absolute paths."""
    home, copy, _ = kept
    shutil.rmtree(home)
    shutil.copytree(copy, home)
    return Lake(root, home)


def test_repeated_delivery_writes_no_metadata(filled: Lake, kept: tuple[Path, Path, RunReport]) -> None:
    first = kept[2]
    second = filled.run(filled.home / "base")
    assert first.changed
    assert not second.changed
    assert {name: table.state for name, table in second.tables.items()} == {
        name: table.state for name, table in first.tables.items()
    }


def test_corrected_delivery_changes_only_the_corrected_rows(filled: Lake) -> None:
    one, two, _ = BASE["flights"]
    four = one | {"flight": "4"}
    report = filled.run(deliver(filled.home / "d2", [one, two | {"arr_delay": "99"}, four]))
    assert report.tables["silver.flights"].changes == Changes(inserted=1, updated=1, deleted=1)
    assert report.tables["gold.route_punctuality"].changes == Changes(updated=1)
    assert report.tables["silver.weather"].changes == Changes()
    found = filled.rows("SELECT flight_number, arrival_delay_minutes FROM silver.flights ORDER BY 1")
    assert found == [(1, 11), (2, 99), (4, 11)]


def test_repeated_older_delivery_restores_its_rows_without_a_second_load(filled: Lake) -> None:
    filled.run(deliver(filled.home / "d2", BASE["flights"][:1]))
    report = filled.run(filled.home / "base")
    assert report.tables["bronze.flights"].changes == Changes()
    assert report.tables["silver.flights"].changes == Changes(inserted=2)
    assert filled.rows("SELECT count(*) FROM bronze.flights") == [(4,)]


def test_a_delivery_that_fails_an_expectation_touches_neither_silver_nor_gold(filled: Lake) -> None:
    before = filled.state()
    one, two, three = BASE["flights"]
    contradicts_itself = two | {"time_hour": "2013-01-01T09:00:00Z"}
    with pytest.raises(QualityError, match=r"silver\.flights\.times_agree: 1 of 3 rows"):
        filled.run(deliver(filled.home / "d2", [one, contradicts_itself, three | {"arr_delay": "50"}]))
    after = filled.state()
    guarded = [name for name in before if name.startswith(("silver", "gold"))]
    assert {name: after[name] for name in guarded} == {name: before[name] for name in guarded}
    failed = "SELECT dataset, expectation, violations FROM ops.quality_results WHERE outcome = 'failed'"
    assert filled.rows(failed) == [("silver.flights", "times_agree", 1)]


def test_unreadable_value_stops_the_pipeline_before_silver(lake: Lake) -> None:
    one = BASE["flights"][0] | {"arr_delay": "eleven"}
    with pytest.raises(QualityError, match=r"bronze\.flights\.readable_values: 1 of 1 rows"):
        lake.run(deliver(lake.home / "d", [one]))
    assert lake.rows("SELECT count(*) FROM silver.flights") == [(0,)]


def test_a_flight_delivered_twice_is_one_flight(lake: Lake) -> None:
    report = lake.run(deliver(lake.home / "d", [BASE["flights"][0]] * 2))
    assert report.tables["bronze.flights"].changes == Changes(inserted=2)
    assert report.tables["silver.flights"].changes == Changes(inserted=1)


def as_program(java: str, verb: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    environment = {"JAVA_HOME": java, "PATH": os.environ["PATH"], "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.Popen(
        [sys.executable, "-m", "lakegate.spark", verb, *arguments],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def command_lines(parent: psutil.Process) -> list[str]:
    """Return the command lines of a process and its descendants, without those that ended meanwhile."""
    lines = []
    for process in [parent, *parent.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            lines.append(" ".join(process.cmdline()))
    return lines


def test_no_token_is_on_any_command_line(java: str, tmp_path: Path) -> None:
    token = "tok-0f4b7a91c2"
    config = {
        "uri": "http://127.0.0.1:9/catalog",  # no server listens there: the statement fails, the engine keeps running
        "warehouse": "w",
        "engine": {"jars": jars(), "work_dir": str(tmp_path), "cores": 1},
    }
    with as_program(java, "statements", start_new_session=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(json.dumps(config).encode() + b"\n")
        program.stdin.flush()
        assert json.loads(program.stdout.readline())["seconds"] > 0
        program.stdin.write(json.dumps({"token": token, "statement": "SHOW NAMESPACES"}).encode() + b"\n")
        program.stdin.flush()
        answer = program.stdout.readline().decode()
        lines = command_lines(psutil.Process(program.pid))
        program.stdin.close()
        assert program.wait(timeout=60) == 0
        chatter = program.stderr.read().decode() if program.stderr is not None else ""
    assert any("org.apache.spark" in line for line in lines)
    assert not [line for line in lines if token in line]
    assert json.loads(answer)["error"]
    assert token not in answer
    assert token not in chatter
