# SPDX-License-Identifier: Apache-2.0
"""Maintain a governed copy: a table with what one user or role may see, for engines that are not trusted.

The copy records in each of its snapshots the snapshot of the source that it contains, and a fingerprint of the schema
and the restrictions. Data and record are one commit, so a killed run leaves a copy that the next run continues. While
the source only appends and the fingerprint is equal, only appended rows are added. Otherwise the whole copy is
rewritten, and its older snapshots are expired: they may contain more than the restrictions now allow.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession

from lakegate.spark.catalog_client import CatalogClient, Identifier, Metadata
from lakegate.spark.config import CopyConfig
from lakegate.spark.errors import GovernedReadRefused, ReaderLostAccess, RequestRefused
from lakegate.spark.governed import GovernedTable, GovernedTables, new_salt, quoted, restricted
from lakegate.spark.jobs.copy_files import (
    FINGERPRINT,
    NONE,
    PREVIOUS,
    READER,
    REWRITING,
    SOURCE,
    SOURCE_ID,
    SOURCE_SNAPSHOT,
    CopyFiles,
    FilesMissing,
    access_ended,
    appended_since,
    check_target,
    continued,
    empty_fingerprint,
    fingerprint,
    outdated,
    reader_of,
    storable,
)
from lakegate.spark.session import bind_catalog, start_engine

_CATALOG: Final = "copies"


class CopyReport(msgspec.Struct, frozen=True, rename="kebab"):
    """The result of one run. `change` is `none`, `append` or `rewrite`. `expired` is the number of snapshots of the
    copy that were removed.
    """

    source: str
    target: str
    change: str
    source_snapshot: int | None
    fingerprint: str
    expired: int


class GovernedCopy:
    """One run. `tables` reads the source for the user. The service writes the copy with its own identity."""

    def __init__(self, config: CopyConfig, tables: GovernedTables, client: CatalogClient) -> None:
        self._config, self._tables, self._client = config, tables, client
        self._target: Identifier = tuple(config.target.split("."))
        self._name = quoted(_CATALOG, *self._target)

    def execute(self) -> CopyReport:
        """Update the copy, expire its outdated snapshots, and grant `select` to the configured role, if there is one.

        Raises:
            RestrictionsRefused: a restriction cannot be applied in full. The copy is unchanged.
            ReaderLostAccess: the reader may not read the source. The copy is empty unless the configuration keeps it.
            GovernedReadRefused: the read failed otherwise, or the target is not a copy of the source. The copy is
                unchanged.
        """
        config = self._config
        bind_catalog(self._session, _CATALOG, config.catalog)
        try:
            source = self._tables.load(tuple(config.source.split(".")))
        except RequestRefused as refused:
            if not access_ended(refused):
                raise
            raise self._without_access(refused) from None
        mark = fingerprint(source, config.on_behalf_of)
        change, copy, expired = self._written(mark, partial(self._update, source, mark))
        if config.grant_to is not None:
            self._client.grant_select(copy.table_uuid, config.grant_to)
        snapshot = source.metadata.current_snapshot_id if source.metadata.current() else None
        return CopyReport(config.source, config.target, change, snapshot, mark, expired)

    def _without_access(self, refused: RequestRefused) -> ReaderLostAccess:
        """Empty the copy unless the configuration keeps it, and return the error to raise.

        Raises GovernedReadRefused if the gateway refuses the service too: then it is unknown whether the reader lost
        access.
        """
        config = self._config
        self._client.verify_service()
        lost = f"{reader_of(config.on_behalf_of)} may not read {config.source} ({refused}); {config.target}"
        copy = self._loaded()
        if copy is None:
            return ReaderLostAccess(f"{lost} was not created")
        self._check_target(copy, None)
        if config.on_lost_access == "keep":
            return ReaderLostAccess(f"{lost} keeps its rows, because on_lost_access is keep")
        mark = empty_fingerprint(config)
        self._written(mark, partial(self._empty, mark))
        return ReaderLostAccess(f"{lost} is now empty")

    def _check_target(self, copy: Metadata, source: Metadata | None) -> None:
        """Raise GovernedReadRefused unless the service created the target as a copy of this source for this reader."""
        if not self._client.has_created(copy.table_uuid):
            raise GovernedReadRefused(
                f"{self._config.target} exists and was not created by this service, so its owners may read what is "
                "written there; choose another target, or drop the table"
            )
        check_target(copy, source, self._config)

    def _written(self, mark: str, write: Callable[..., str]) -> tuple[str, Metadata, int]:
        """Write, check that the copy has the written rows, and expire snapshots. Return (change, the copy, number of
        expired snapshots).

        If another run deleted files of the copy because it took them for those of a killed run, all rows are written
        again.
        """
        started = time.time()
        change = write(self._loaded(), rewrite=False)
        try:
            return change, *self._finished(mark, started)
        except FilesMissing:
            write(self._loaded(), rewrite=True)
            return "rewrite", *self._finished(mark, started)

    def _finished(self, mark: str, started: float) -> tuple[Metadata, int]:
        copy = self._loaded()
        if copy is None or continued(copy, mark) is None:
            raise GovernedReadRefused(f"another writer changed {self._config.target} during the run; repeat the run")
        return copy, self._expire(copy, started)

    @property
    def _session(self) -> SparkSession:
        return self._tables.session

    def _loaded(self) -> Metadata | None:
        loaded = self._client.load_own(self._target)
        return None if loaded is None else loaded.metadata

    def _update(self, source: GovernedTable, mark: str, copy: Metadata | None, *, rewrite: bool) -> str:
        """Write the missing rows in one commit, or all rows if `rewrite` is set. Return the kind of the change."""
        current = source.metadata.current()
        record = {SOURCE_SNAPSHOT: str(current.snapshot_id) if current else NONE, FINGERPRINT: mark}
        properties = {SOURCE_ID: source.metadata.table_uuid, SOURCE: self._config.source}
        if copy is None:
            self._writer(self._rows(source, self._tables.read(source)), properties, record).create()
            return "rewrite"
        self._check_target(copy, source.metadata)
        # Without access to the source table, only its name in the properties shows what this is a copy of.
        renamed = copy.properties.get(SOURCE) != self._config.source
        before = None if rewrite or renamed else continued(copy, mark)
        if before is not None and before.summary.get(SOURCE_SNAPSHOT) == record[SOURCE_SNAPSHOT]:
            return "none"
        after = appended_since(source.metadata, before.summary.get(SOURCE_SNAPSHOT)) if before else None
        if before is not None and after is not None:
            rows = self._rows(source, self._tables.read_appended(source, after))
            self._append(rows, record | {PREVIOUS: str(before.snapshot_id)})
            return "append"
        self._replace(self._rows(source, self._tables.read(source)), properties, record)
        return "rewrite"

    def _empty(self, mark: str, copy: Metadata | None, *, rewrite: bool) -> str:
        """Remove all rows of the copy, and return the kind of the change."""
        if copy is not None and (rewrite or continued(copy, mark) is None):
            nothing = self._session.createDataFrame([], self._session.table(self._name).schema)
            self._replace(nothing, {}, {SOURCE_SNAPSHOT: NONE, FINGERPRINT: mark})
        return "rewrite"

    def _rows(self, source: GovernedTable, raw: DataFrame) -> DataFrame:
        fields = source.metadata.schema.fields
        return restricted(raw, fields, storable(source.restrictions, fields), new_salt())

    def _append(self, rows: DataFrame, record: dict[str, str]) -> None:
        rows.writeTo(self._name).options(**_summary(record)).append()

    def _replace(self, rows: DataFrame, properties: Mapping[str, str], record: dict[str, str]) -> None:
        """Replace the table of the copy by one with `rows`. It keeps its id, its grants and its other properties.

        An overwrite is not used: its manifests would list the removed files, with the smallest and largest values of
        columns.
        """
        self._session.sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ('{REWRITING}' = 'true')")
        self._writer(rows, properties, record).createOrReplace()

    def _writer(self, rows: DataFrame, properties: Mapping[str, str], record: dict[str, str]) -> DataFrameWriterV2:
        writer = rows.writeTo(self._name).using("iceberg").options(**_summary(record | {PREVIOUS: NONE}))
        for key, value in {**properties, READER: reader_of(self._config.on_behalf_of)}.items():
            writer = writer.tableProperty(key, value)
        return writer

    def _expire(self, copy: Metadata, started: float) -> int:
        """Delete everything that precedes the last rewrite, including files of killed runs. Return the number of
        expired snapshots.

        Raises FilesMissing if another run deleted files of this one.
        """
        ids = outdated(copy)
        if ids or REWRITING in copy.properties:
            CopyFiles(self._session, self._name).remove(ids, written_before=started)
            self._session.sql(f"ALTER TABLE {self._name} UNSET TBLPROPERTIES IF EXISTS ('{REWRITING}')")
        return len(ids)


def _summary(record: dict[str, str]) -> dict[str, str]:
    """Return the write options that put the record into the summary of the new snapshot."""
    return {f"snapshot-property.{key}": value for key, value in record.items()}


def copy(config: CopyConfig, progress: Callable[[str], None]) -> CopyReport:
    """Update a governed copy in an engine of its own, stop the engine, and return the report.

    Raises:
        PipelineError: the read was refused, or a restriction cannot be applied in full.
        PySparkException, Py4JError: any other error, including a refusal of a write by the catalog.
    """
    Path(config.engine.work_dir).mkdir(parents=True, exist_ok=True)
    work_dir = Path(tempfile.mkdtemp(prefix="copy-", dir=config.engine.work_dir))
    progress("engine ...")
    root = start_engine(msgspec.structs.replace(config.engine, work_dir=str(work_dir)))
    client = CatalogClient(config.catalog)
    try:
        # The code of this job is the pipeline's own, and users cannot add to it.
        tables = GovernedTables(root, config.catalog, config.on_behalf_of, trusted_code=True)
        progress("copy ...")
        try:
            return GovernedCopy(config, tables, client).execute()
        finally:
            tables.close()
    finally:
        client.close()
        root.stop()
        shutil.rmtree(work_dir, ignore_errors=True)
