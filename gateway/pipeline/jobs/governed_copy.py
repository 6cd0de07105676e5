# SPDX-License-Identifier: Apache-2.0
"""A governed copy: a table with the rows and values that one user or role may see, for engines that are not trusted.

The copy records in each of its snapshots the snapshot of the source that it contains, and a fingerprint of the schema
and the restrictions. Data and record are one commit, so a killed run leaves a copy that the next run continues. While
the source only appends and the fingerprint is equal, only appended rows are added. Otherwise the whole copy is
rewritten, and its older snapshots are expired: they may contain more than the restrictions now allow.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from gateway.iceberg.types import NestedField
from gateway.obligations.masks import Action
from gateway.obligations.projections import Projection
from gateway.pipeline.catalog_client import CatalogClient, Identifier, Metadata, Snapshot
from gateway.pipeline.config import CopyConfig, OnBehalfOf
from gateway.pipeline.errors import GovernedReadRefused
from gateway.pipeline.governed import GovernedTable, GovernedTables, new_salt, quoted, restricted
from gateway.pipeline.restrictions import Restrictions
from gateway.pipeline.session import bind_catalog, start_engine

_FORM: Final = 1
"""The version of the compilers. A higher one rewrites all copies."""
_CATALOG: Final = "copies"
_PREFIX: Final = "lakegate.copy."
SOURCE_ID, SOURCE, READER = f"{_PREFIX}source-table-id", f"{_PREFIX}source", f"{_PREFIX}reader"
SOURCE_SNAPSHOT, FINGERPRINT = f"{_PREFIX}source-snapshot", f"{_PREFIX}fingerprint"
PREVIOUS: Final = f"{_PREFIX}previous"
"""The snapshot of the copy that an append continues; `none` in a snapshot that replaces the whole copy."""
_NONE: Final = "none"
_KEEPS_ROWS: Final = frozenset({"append", "replace"})


class CopyReport(msgspec.Struct, frozen=True, rename="kebab"):
    """The result of one run. `change` is `none`, `append` or `rewrite`; `expired` counts snapshots of the copy."""

    source: str
    target: str
    change: str
    source_snapshot: int | None
    fingerprint: str
    expired: int


class _Claims(msgspec.Struct):
    iss: str = ""
    sub: str = ""


def fingerprint(table: GovernedTable, user: OnBehalfOf) -> str:
    """Return a digest of everything that determines the copy of a snapshot. Equal digests give equal copies."""
    parts = (
        _FORM,
        table.metadata.table_uuid,
        table.metadata.schema.fields,
        table.restrictions.canonical(),
        reader_of(user),
    )
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def reader_of(user: OnBehalfOf) -> str:
    """Return the principal of the copy as text: the role, the user's name, or the issuer and subject of a token."""
    if user.role is not None:
        return f"role:{user.role}"
    return f"user:{user.user}" if user.user else f"token:{_subject(user.token or '')}"


def _subject(token: str) -> str:
    """Return issuer and subject of a JWT, which the gateway has verified; an empty text for other tokens."""
    try:
        payload = token.split(".")[1]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=_Claims)
    except (IndexError, ValueError):
        return ""
    return f"{claims.iss}~{claims.sub}"


def check_target(copy: Metadata, source: Metadata, config: CopyConfig) -> None:
    """Raise `GovernedReadRefused` unless the existing target is a copy of this source for this reader.

    The readers of a copy keep their grants. The rows of another principal would be shown to them.
    """
    if copy.properties.get(SOURCE_ID) != source.table_uuid:
        raise GovernedReadRefused(f"{config.target} exists and is no copy of {config.source}; choose another target")
    if copy.properties.get(READER) != reader_of(config.on_behalf_of):
        raise GovernedReadRefused(
            f"{config.target} is a copy for another user or role, whose readers keep their grants; choose another "
            "target, or drop the copy"
        )


def storable(restrictions: Restrictions, fields: tuple[NestedField, ...]) -> Restrictions:
    """Return the restrictions for stored rows.

    `sha-256-query-local` hides equal values of different queries from each other. Stored hashes would be the same in
    all queries, so null replaces them, or the fixed value in a required column.
    """
    required = {each.id for each in fields if each.required}

    def stored(mask: Projection) -> Projection:
        if mask.action is not Action.SHA_256_QUERY_LOCAL:
            return mask
        hidden = Action.MASK_TO_FIXED_VALUE if mask.field_id in required else Action.REPLACE_WITH_NULL
        return Projection(mask.field_id, hidden)

    return Restrictions(row_filter=restrictions.row_filter, masks=tuple(map(stored, restrictions.masks)))


def continued(copy: Metadata, mark: str) -> Snapshot | None:
    """Return the snapshot of the copy whose rows are the current ones, None if the copy must be rewritten.

    Snapshots of maintenance (`replace`) are skipped, because they keep the rows. The result is None if another writer
    changed the copy, if two runs appended at the same time, or if the fingerprint is not `mark`.
    """
    newest = _without_maintenance(copy, copy.current())
    if newest is None or newest.summary.get(FINGERPRINT) != mark:
        return None
    previous = newest.summary.get(PREVIOUS)
    if previous == _NONE:
        return newest
    before = _without_maintenance(copy, copy.snapshot(newest.parent_snapshot_id))
    return newest if before is not None and previous == str(before.snapshot_id) else None


def _without_maintenance(table: Metadata, snapshot: Snapshot | None) -> Snapshot | None:
    while snapshot is not None and snapshot.operation == "replace" and FINGERPRINT not in snapshot.summary:
        snapshot = table.snapshot(snapshot.parent_snapshot_id)
    return snapshot


def appended_since(source: Metadata, snapshot_id: str | None) -> Snapshot | None:
    """Return the snapshot with this id if all later snapshots of the source, up to the current one, only append."""
    snapshot = source.current()
    while snapshot is not None and str(snapshot.snapshot_id) != snapshot_id:
        if snapshot.operation not in _KEEPS_ROWS:
            return None
        snapshot = source.snapshot(snapshot.parent_snapshot_id)
    return snapshot


def outdated(copy: Metadata) -> list[int]:
    """Return the ids of all snapshots of the copy that are older than its last rewrite, or beside it."""
    kept: set[int] = set()
    snapshot = copy.current()
    while snapshot is not None:
        kept.add(snapshot.snapshot_id)
        if snapshot.summary.get(PREVIOUS) == _NONE:
            break
        snapshot = copy.snapshot(snapshot.parent_snapshot_id)
    return [each.snapshot_id for each in copy.snapshots if each.snapshot_id not in kept]


class GovernedCopy:
    """One run. `tables` reads for the user; the service writes the copy as itself."""

    def __init__(self, config: CopyConfig, tables: GovernedTables, client: CatalogClient) -> None:
        self._config, self._tables, self._client = config, tables, client
        self._target: Identifier = tuple(config.target.split("."))
        self._name = quoted(_CATALOG, *self._target)

    def execute(self) -> CopyReport:
        """Update the copy, expire its outdated snapshots, and grant `select` if the configuration says so.

        Raises:
            RestrictionsRefused: a restriction cannot be applied in full. The copy is unchanged.
            GovernedReadRefused: the gateway refused the read, or the target is not a copy of the source.
        """
        config = self._config
        source = self._tables.load(tuple(config.source.split(".")))
        mark = fingerprint(source, config.on_behalf_of)
        bind_catalog(self._session, _CATALOG, config.catalog)
        copy = self._loaded()
        change = self._update(source, copy, mark)
        copy = self._loaded()
        if copy is None or continued(copy, mark) is None:
            raise GovernedReadRefused(f"another writer changed {config.target} during the run; run the copy again")
        expired = self._expire(copy)
        if config.grant_to is not None:
            self._client.grant_select(copy.table_uuid, config.grant_to)
        snapshot = source.metadata.current_snapshot_id if source.metadata.current() else None
        return CopyReport(config.source, config.target, change, snapshot, mark, expired)

    @property
    def _session(self) -> SparkSession:
        return self._tables.session

    def _loaded(self) -> Metadata | None:
        loaded = self._client.load(self._target, self._client.service_token())
        return None if loaded is None else loaded.metadata

    def _update(self, source: GovernedTable, copy: Metadata | None, mark: str) -> str:
        """Write the missing rows in one commit, and return the kind of the change."""
        current = source.metadata.current()
        record = {SOURCE_SNAPSHOT: str(current.snapshot_id) if current else _NONE, FINGERPRINT: mark}
        if copy is None:
            self._create(self._rows(source, self._tables.read(source)), source, record)
            return "rewrite"
        check_target(copy, source.metadata, self._config)
        before = continued(copy, mark)
        if before is not None and before.summary.get(SOURCE_SNAPSHOT) == record[SOURCE_SNAPSHOT]:
            return "none"
        after = appended_since(source.metadata, before.summary.get(SOURCE_SNAPSHOT)) if before else None
        if before is not None and after is not None:
            rows = self._rows(source, self._tables.read_appended(source, after))
            self._append(rows, record | {PREVIOUS: str(before.snapshot_id)})
            return "append"
        self._replace(self._rows(source, self._tables.read(source)), source, record)
        return "rewrite"

    def _rows(self, source: GovernedTable, raw: DataFrame) -> DataFrame:
        fields = source.metadata.schema.fields
        return restricted(raw, fields, storable(source.restrictions, fields), new_salt())

    def _create(self, rows: DataFrame, source: GovernedTable, record: dict[str, str]) -> None:
        writer = rows.writeTo(self._name).using("iceberg").options(**_summary(record | {PREVIOUS: _NONE}))
        for key, value in self._properties(source).items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def _append(self, rows: DataFrame, record: dict[str, str]) -> None:
        rows.writeTo(self._name).options(**_summary(record)).append()

    def _replace(self, rows: DataFrame, source: GovernedTable, record: dict[str, str]) -> None:
        """Replace all rows. A copy whose columns differ is replaced as a table, which keeps its id and its grants."""
        writer = rows.writeTo(self._name).options(**_summary(record | {PREVIOUS: _NONE}))
        if _columns(self._session.table(self._name)) == _columns(rows):
            writer.overwrite(f.lit(True))
            return
        for key, value in self._properties(source).items():
            writer = writer.tableProperty(key, value)
        writer.using("iceberg").createOrReplace()

    def _properties(self, source: GovernedTable) -> dict[str, str]:
        return {
            SOURCE_ID: source.metadata.table_uuid,
            SOURCE: self._config.source,
            READER: reader_of(self._config.on_behalf_of),
        }

    def _expire(self, copy: Metadata) -> int:
        """Expire the snapshots that precede the last rewrite, with their files, and return their number."""
        ids = outdated(copy)
        if ids:
            table = quoted(*self._target).replace("\\", "\\\\").replace("'", "\\'")
            listed = ", ".join(map(str, ids))
            self._session.sql(
                f"CALL {_CATALOG}.system.expire_snapshots(table => '{table}', snapshot_ids => array({listed}))"
            ).collect()
        return len(ids)


def _summary(record: dict[str, str]) -> dict[str, str]:
    """Return the options of a write that put the record into the summary of its snapshot."""
    return {f"snapshot-property.{key}": value for key, value in record.items()}


def _columns(frame: DataFrame) -> list[tuple[str, str]]:
    return [(each.name, each.dataType.simpleString()) for each in frame.schema.fields]


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
