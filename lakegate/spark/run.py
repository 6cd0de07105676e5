# SPDX-License-Identifier: Apache-2.0
"""Run the pipeline once: load, check and merge layer by layer, and report the changes.

Silver and gold are checked before their tables change. A run may be killed at any time and started again. Each table
changes in one commit, and a comparison with the table shows the remaining changes; no other state is stored.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession

from lakegate.spark import expectations, schemas, sources
from lakegate.spark.config import PipelineConfig
from lakegate.spark.errors import QualityError
from lakegate.spark.expectations import Result, Rule, evaluate, failures
from lakegate.spark.jobs import bronze, gold, silver
from lakegate.spark.session import as_principal, start_engine
from lakegate.spark.tables import Changes, Fingerprint, ensure_tables, fingerprint, merge, with_row_hash

Progress = Callable[[str], None]


class TableReport(msgspec.Struct, frozen=True, rename="kebab"):
    """A table after the run: the changes of the run, and a fingerprint to compare with a later run."""

    changes: Changes
    state: Fingerprint


class RunReport(msgspec.Struct, frozen=True, rename="kebab"):
    """The report of a run. `seconds`: duration by step, in order. `tables`: by `namespace.name`."""

    delivery: str
    changed: bool
    seconds: dict[str, float]
    tables: dict[str, TableReport]
    quality: list[Result]


class Run:
    """One run, in a session that is bound to a principal. Each instance is used once."""

    def __init__(self, session: SparkSession, delivered: Mapping[str, sources.Source], progress: Progress) -> None:
        self._session = session
        self._delivered = dict(delivered)
        self._progress = progress
        self._delivery = sources.delivery_id(self._delivered)
        self._at = datetime.now(UTC)
        self._changes: dict[str, Changes] = {}
        self._results: list[Result] = []
        self._seconds: dict[str, float] = {}

    def execute(self, work_dir: Path) -> RunReport:
        """Run all layers, and return the report.

        Raises:
            QualityError: an expectation of severity `fail` was violated.
        """
        with self._step("tables"):
            ensure_tables(self._session, schemas.ALL)
        with self._step("bronze"):
            self._bronze(work_dir)
        with self._step("silver"):
            self._silver()
        with self._step("gold"):
            self._gold()
        with self._step("record"):
            self._record()
            states = {table.ident: fingerprint(self._session, table) for table in schemas.ALL}
        tables = {name: TableReport(self._changes.get(name, Changes()), state) for name, state in states.items()}
        changed = any(change.any for change in self._changes.values())
        return RunReport(self._delivery, changed, self._seconds, tables, self._results)

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        self._progress(f"{name} ...")
        try:
            yield
        finally:
            self._seconds[name] = round(time.monotonic() - started, 1)

    def _bronze(self, work_dir: Path) -> None:
        for name, source in self._delivered.items():
            table = schemas.BRONZE[name]
            if bronze.is_loaded(self._session, table, source):
                self._progress(f"  {table.ident}: this delivery is loaded already")
                continue
            rows = bronze.load(self._session, table, source, sources.readable(source, work_dir), self._at)
            self._note(table.ident, Changes(inserted=rows))

    def _silver(self) -> None:
        read = {
            name: bronze.of_delivery(self._session.table(schemas.BRONZE[name].ident), source.sha256)
            for name, source in self._delivered.items()
        }
        for name, frame in read.items():
            self._results += evaluate(f"bronze.{name}", frame, expectations.delivered(name))
        self._stop_on_failure()
        weather = silver.weather(read["weather"]).persist()
        aircraft = silver.aircraft(read["planes"]).persist()
        flights = silver.flights(
            silver.scheduled_flights(read["flights"]),
            silver.carriers(read["airlines"]),
            silver.airports(read["airports"]),
            aircraft,
            weather,
        ).persist()
        self._merge_layer(
            (
                (schemas.WEATHER, weather, expectations.OF_WEATHER),
                (schemas.AIRCRAFT, aircraft, expectations.OF_AIRCRAFT),
                (schemas.FLIGHTS, flights, expectations.OF_FLIGHTS),
            )
        )

    def _gold(self) -> None:
        flights = self._session.table(schemas.FLIGHTS.ident).persist()
        self._merge_layer(
            (
                (
                    schemas.ROUTE_PUNCTUALITY,
                    gold.route_punctuality(flights).persist(),
                    expectations.OF_ROUTE_PUNCTUALITY,
                ),
                (
                    schemas.CARRIER_DELAYS_BY_WEATHER,
                    gold.carrier_delays_by_weather(flights).persist(),
                    expectations.OF_CARRIER_DELAYS,
                ),
                (
                    schemas.AIRCRAFT_UTILISATION,
                    gold.aircraft_utilisation(flights).persist(),
                    expectations.OF_UTILISATION,
                ),
            )
        )
        flights.unpersist()

    def _merge_layer(self, layer: tuple[tuple[schemas.Table, DataFrame, tuple[Rule, ...]], ...]) -> None:
        """Check every table of a layer. If all are good, merge them."""
        for table, frame, expected in layer:
            self._results += evaluate(table.ident, frame, expected)
        self._stop_on_failure()
        for table, frame, _ in layer:
            self._note(table.ident, merge(self._session, table, with_row_hash(frame, table), self._at))
        for _, frame, _ in layer:
            frame.unpersist()

    def _stop_on_failure(self) -> None:
        failed = failures(self._results)
        if failed:
            self._record()
            lines = "; ".join(
                f"{result.dataset}.{result.expectation}: {result.violations} of {result.rows_checked} rows"
                for result in failed
            )
            raise QualityError(f"the delivery violates expectations, so no table of the layer was written: {lines}")

    def _record(self) -> None:
        recorded = expectations.record(self._session, self._delivery, self._results, self._at)
        self._note(schemas.QUALITY_RESULTS.ident, recorded)

    def _note(self, ident: str, changes: Changes) -> None:
        self._changes[ident] = changes
        self._progress(f"  {ident}: +{changes.inserted} ~{changes.updated} -{changes.deleted}")


def run(config: PipelineConfig, progress: Progress) -> RunReport:
    """Run the pipeline in an engine of its own, stop the engine, and return the report.

    Raises:
        PipelineError: the configuration, the delivery or the quality has a fault that an operator can correct.
        PySparkException, Py4JError: any other error, including a refusal by the catalog or the object store.
    """
    directory = Path(config.source_dir) if config.source_dir else sources.default_directory()
    delivered = sources.discover(directory)
    Path(config.engine.work_dir).mkdir(parents=True, exist_ok=True)
    work_dir = Path(tempfile.mkdtemp(prefix="run-", dir=config.engine.work_dir))
    started = time.monotonic()
    progress("engine ...")
    root = start_engine(msgspec.structs.replace(config.engine, work_dir=str(work_dir)))
    try:
        engine_seconds = round(time.monotonic() - started, 1)
        report = Run(as_principal(root, config.catalog), delivered, progress).execute(work_dir)
        return msgspec.structs.replace(report, seconds={"engine": engine_seconds, **report.seconds})
    finally:
        root.stop()
        shutil.rmtree(work_dir, ignore_errors=True)
