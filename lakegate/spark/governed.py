# SPDX-License-Identifier: Apache-2.0
"""Governed reads: DataFrames of tables with row filters and masks applied, for one user.

The service loads the table for the user by token exchange. The same load response gives the snapshot, the schema and
the restrictions, and Spark reads exactly that snapshot. So rows and restrictions belong together, even if the table or
the rights change meanwhile.

In Spark, user code runs in the process that has the service's token and the object store's keys: Python reaches the
JVM, and clients of Spark Connect reach it with SQL functions, options and their own code. No DataFrame is a barrier
against such code. Governed reads therefore require that the caller declares the code of the job as trusted.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.utils import is_remote

from lakegate.restrictions.literals import ListType, MapType, NestedField, StructType, Type
from lakegate.restrictions.predicates import field_ids
from lakegate.spark.catalog_client import CatalogClient, Identifier, Metadata, Snapshot
from lakegate.spark.config import OnBehalfOf, RestCatalog
from lakegate.spark.errors import GovernedReadRefused, RestrictionsRefused
from lakegate.spark.masks import SALT_BYTES, masked, spark_type
from lakegate.spark.restrictions import Restrictions, check_literal, restrictions_of
from lakegate.spark.row_filters import literal, row_filter
from lakegate.spark.session import bind_catalog

_TOKEN_SECONDS: Final = 600.0
"""An exchanged token is valid for 900 seconds. Later reads get a new one, in a catalog of its own."""
_PROMOTED: Final = frozenset({("int", "long"), ("float", "double")})
_numbers = itertools.count(1)

UNTRUSTED: Final = (
    "governed reads need trusted_code=True: code in this Spark process can reach the service's token and the keys of "
    "the object store, and with them the unrestricted rows. State it only for jobs whose code users cannot change; "
    "give others a governed copy"
)


class GovernedTable(msgspec.Struct, frozen=True):
    """A table that was loaded for the user, with its decoded restrictions. `name` is its quoted name in Spark SQL."""

    name: str
    metadata: Metadata
    restrictions: Restrictions


class GovernedTables:
    """Reads the tables of one warehouse as one user may see them, in an engine whose code is trusted."""

    def __init__(
        self, root: SparkSession, service: RestCatalog, user: OnBehalfOf, *, trusted_code: bool = False
    ) -> None:
        """Create the reader. `service` is the identity with `delegate` and `enforcer`; it reads for the user `user`.

        Raises:
            GovernedReadRefused: `trusted_code` is false, or the session is one of Spark Connect.
        """
        if not trusted_code:
            raise GovernedReadRefused(UNTRUSTED)
        if is_remote():
            raise GovernedReadRefused("governed reads need a session in this process, not one of Spark Connect")
        self.session = root.newSession()
        self._service, self._user = service, user
        self._client = CatalogClient(service)
        self._catalog, self._token, self._until = "", "", 0.0

    def close(self) -> None:
        """Close the connections to the gateway."""
        self._client.close()

    def table(self, name: str, *, salt: bytes | None = None) -> DataFrame:
        """Return the rows that the user may see, with the masks applied. `name`: namespace and table, with dots.

        `salt` is used by `sha-256-query-local`; by default it is random for each call. If a query joins tables by such
        a column, pass the same value of `new_salt()` for all of them.

        Raises:
            GovernedReadRefused: the gateway refused the read, or the table does not exist for the user.
            RestrictionsRefused: a restriction cannot be applied in full.
        """
        loaded = self.load(tuple(name.split(".")))
        return restricted(self.read(loaded), loaded.metadata.schema.fields, loaded.restrictions, salt or new_salt())

    def load(self, table: Identifier) -> GovernedTable:
        """Load a table for the user and decode its restrictions. No row is read.

        Raises:
            RequestRefused: the gateway refused the read, or the table does not exist for the user.
            GovernedReadRefused: the gateway did not respond, or its response is invalid.
            RestrictionsRefused: a restriction cannot be applied in full.
        """
        if time.monotonic() > self._until:
            self._token = self._client.exchange(self._user)
            self._catalog = f"governed_{next(_numbers)}"
            bind_catalog(self.session, self._catalog, self._options(), role=self._user.role)
            self._until = time.monotonic() + _TOKEN_SECONDS
        loaded = self._client.load(table, self._token, self._user.role)
        return GovernedTable(quoted(self._catalog, *table), loaded.metadata, restrictions_of(loaded))

    def _options(self) -> RestCatalog:
        service = self._service
        return RestCatalog(uri=service.uri, warehouse=service.warehouse, token=self._token)

    def read(self, table: GovernedTable) -> DataFrame:
        """Return the unrestricted rows of the current snapshot, with the columns of the current schema.

        Raises:
            GovernedReadRefused: Spark cannot read the table, or its columns changed in a way that is not supported.
        """
        snapshot, fields = table.metadata.current(), table.metadata.schema.fields
        if snapshot is None:
            nothing = [absent_value(each).alias(each.name) for each in fields]
            return self.session.range(0).select(*nothing)
        read = table.metadata.schema_of(snapshot).fields
        check_readable((*read, *fields))
        frame = self.session.read.option("versionAsOf", str(snapshot.snapshot_id)).table(table.name)
        if renamed(read, fields):
            frame = _without_pushdown(frame)
        return evolved(frame, read, fields)

    def read_appended(self, table: GovernedTable, after: Snapshot) -> DataFrame:
        """Return the unrestricted rows that were appended between the snapshot `after`, an ancestor, and the current
        snapshot.
        """
        frame = (
            self.session.read.option("start-snapshot-id", str(after.snapshot_id))
            .option("end-snapshot-id", str(table.metadata.current_snapshot_id))
            .table(table.name)
        )
        return evolved(frame, table.metadata.schema.fields, table.metadata.schema.fields)


def new_salt() -> bytes:
    """Return a random salt for one query."""
    return secrets.token_bytes(SALT_BYTES)


def quoted(*parts: str) -> str:
    """Return the name for Spark SQL. Its parts may contain any character, because they are quoted."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def evolved(frame: DataFrame, read: Sequence[NestedField], wanted: Sequence[NestedField]) -> DataFrame:
    """Convert `frame`, whose columns are `read` in order, to the columns `wanted`. Columns are matched by field id."""
    if frame.columns != [each.name for each in read]:
        raise GovernedReadRefused("the columns of the table changed during the read; repeat the read")
    by_id = {each.id: each for each in read}
    named = frame.toDF(*(_internal(each) for each in read))
    return named.select(*(_evolved(by_id.get(each.id), each).alias(each.name) for each in wanted))


def _internal(field: NestedField) -> str:
    """Return a name without special characters. Names that differ only by letter case get different results."""
    return f"_field_{field.id}"


def _evolved(old: NestedField | None, new: NestedField) -> Column:
    return absent_value(new) if old is None else _converted(f.col(_internal(old)), old, new)


def _converted(column: Column, old: NestedField, new: NestedField) -> Column:
    """Convert a column from the schema that is read to the current schema, including nested types."""
    if _shape(old.type) == _shape(new.type):
        return column
    match old.type, new.type:
        case StructType(fields=before), StructType(fields=after):
            by_id = {each.id: each for each in before}
            inner = (_field(column, by_id.get(each.id), each).alias(each.name) for each in after)
            return f.when(column.isNotNull(), f.struct(*inner))
        case ListType(element_id=id) as first, ListType(element_id=same) as second if id == same:
            one, other = _inside(id, first.element), _inside(id, second.element)
            return f.transform(column, lambda each: _converted(each, one, other))
        case MapType(value_id=id) as first, MapType(value_id=same) as second if id == same:
            if _shape(first.key) == _shape(second.key):
                one, other = _inside(id, first.value), _inside(id, second.value)
                return f.transform_values(column, lambda _, each: _converted(each, one, other))
    decimals = all(isinstance(each.type, str) and each.type.startswith("decimal(") for each in (old, new))
    if (old.type, new.type) in _PROMOTED or decimals:
        return column.cast(spark_type(new.type))
    raise GovernedReadRefused(
        f"column {new.id} has another type in the current schema than in the current snapshot, and the change cannot "
        "be applied here; write a snapshot with the current schema first"
    )


def _field(struct: Column, old: NestedField | None, new: NestedField) -> Column:
    return absent_value(new) if old is None else _converted(struct.getField(old.name), old, new)


def _inside(id: int, kind: Type) -> NestedField:
    """Return the element of a list, or the value of a map, as a field."""
    return NestedField(id=id, name="", type=kind, required=False)


def _shape(kind: Type) -> object:
    """Return the type with names and field ids, but without comments and without required flags."""
    match kind:
        case StructType(fields=fields):
            return tuple((each.id, each.name, _shape(each.type)) for each in fields)
        case ListType(element_id=id, element=element):
            return ("list", id, _shape(element))
        case MapType():
            return ("map", kind.key_id, _shape(kind.key), kind.value_id, _shape(kind.value))
        case _:
            return kind


def check_readable(fields: Iterable[NestedField]) -> None:
    """Raise `GovernedReadRefused` if Spark has no type for a column, because then it refuses every read of the
    table.
    """
    for each in fields:
        try:
            spark_type(each.type)
        except RestrictionsRefused as refused:
            raise GovernedReadRefused(
                f"Spark cannot read the table because of column {each.id}, restricted or not: {refused}. Read "
                "the table with Trino or the Python reader"
            ) from None


def renamed(read: Sequence[NestedField], wanted: Sequence[NestedField]) -> bool:
    """Return True if a column or struct field has another name in `wanted`, or its name belongs to another one
    there.
    """
    old, new = dict(_paths(read)), dict(_paths(wanted))
    ids = {path: id for id, path in new.items()}
    return any(new.get(id, path) != path or ids.get(path, id) != id for id, path in old.items())


def _paths(fields: Iterable[NestedField], above: tuple[str, ...] = ()) -> Iterator[tuple[int, tuple[str, ...]]]:
    for each in fields:
        yield each.id, (*above, each.name)
        if isinstance(each.type, StructType):
            yield from _paths(each.type.fields, (*above, each.name))


def _without_pushdown(frame: DataFrame) -> DataFrame:
    """Return the frame with a node past which Spark pushes no filter.

    Iceberg plans the read of a snapshot by the current schema, in which it would look up the column name of a pushed
    filter. If the name differs there, the read would fail, or skip files and partitions by another column.
    """
    return frame.observe(f"governed_{next(_numbers)}", f.count(f.lit(1)))


def absent_value(field: NestedField) -> Column:
    """Return the value of a column that was added after the snapshot: its initial default, or null."""
    default = msgspec.json.decode(field.initial_default) if bytes(field.initial_default) else None
    if default is None:
        return f.lit(None).cast(spark_type(field.type))
    if not isinstance(field.type, str):
        raise GovernedReadRefused(f"column {field.id} has a default value of a nested type, which is not supported")
    # `check_literal` limits the length of the texts in filters. Default values may be longer.
    value = default if field.type == "string" and isinstance(default, str) else check_literal(default, field.type)
    return literal(value, field.type)


def restricted(frame: DataFrame, fields: Sequence[NestedField], restrictions: Restrictions, salt: bytes) -> DataFrame:
    """Return `frame` with the row filter applied to original values, then the masks.

    The columns of `frame` are `fields`, in order; the result has the same names and types. The result has an alias.
    Without it, users could refer to hidden columns of Iceberg (`_partition`) and, in `where` and `orderBy`, to original
    columns below the masks.
    """
    raw = frame.toDF(*(_internal(each) for each in fields))
    columns = {each.id: f.col(_internal(each)) for each in fields}
    masks = {each.field_id: each.action for each in restrictions.masks}
    _check_types(raw, fields, field_ids(restrictions.row_filter) | masks.keys())
    kept = raw.where(row_filter(restrictions.row_filter, columns))
    return kept.select(
        *(
            (
                masked(masks[each.id], columns[each.id], each.type, salt=salt) if each.id in masks else columns[each.id]
            ).alias(each.name)
            for each in fields
        )
    ).alias("governed")


def _check_types(raw: DataFrame, fields: Sequence[NestedField], ids: frozenset[int] | set[int]) -> None:
    """Raise `RestrictionsRefused` if Spark reads a restricted column with another type than the schema has for it."""
    types: Mapping[str, str] = {each.name: each.dataType.simpleString() for each in raw.schema.fields}
    for each in fields:
        if each.id in ids and _plain(types[_internal(each)]) != _plain(spark_type(each.type)):
            raise RestrictionsRefused(f"Spark reads column {each.id} as {types[_internal(each)]}")


def _plain(kind: str) -> str:
    return kind.replace("`", "")
