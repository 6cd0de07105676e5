# SPDX-License-Identifier: Apache-2.0
"""The engines that are compared with the reference interpreter: DuckDB, Spark in two ways, and the Python reader."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from gateway.obligations.compilers import duckdb as duckdb_text
from gateway.obligations.compilers import spark as spark_text
from gateway.obligations.compilers.read_restrictions import read_restrictions
from gateway.obligations.kinds import TableRestrictions
from lakegate.restrictions.actions import Projection
from lakegate.restrictions.predicates import ALWAYS, Predicate
from tests.support.policies.policy_agreement import COLUMNS, SALT, Engine


def duckdb_engine() -> Engine:
    """Return DuckDB, in a session whose time zone is not UTC."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'America/St_Johns'")

    def select(table: pa.Table, expressions: Sequence[str]) -> pa.Table:
        connection.register("given", table)
        identifier = COLUMNS[14][0]
        columns = ", ".join(f"{each} AS c{number}" for number, each in enumerate(expressions))
        text = f'SELECT {columns} FROM (SELECT * REPLACE (CAST("{identifier}" AS UUID) AS "{identifier}") FROM given)'
        found = connection.execute(text).to_arrow_table()
        connection.unregister("given")
        return found

    return Engine(
        "DuckDB",
        tuple(COLUMNS),
        select,
        duckdb_text.row_filter_sql,
        lambda action, name, kind: duckdb_text.mask_sql(action, name, kind, required=False, salt=SALT),
    )


def _frame(session: Any, table: pa.Table) -> Any:
    """Return a DataFrame of the rows. Without a schema, Spark would read an Iceberg `timestamp` as an instant.

    It would then convert it by two sets of time zone rules, which differ in summers after 2037.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    return session.createDataFrame(table, schema=from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def spark_engine(session: Any) -> Engine:
    """Return a Spark session as an engine. It has no times and no nanoseconds, and UUIDs are texts."""

    def select(table: pa.Table, expressions: Sequence[str]) -> pa.Table:
        frame = _frame(session, table)
        named = [f"{each} AS c{number}" for number, each in enumerate(expressions)]
        return frame.selectExpr(named).toArrow()

    return Engine(
        "Spark",
        tuple(id for id, (_, kind) in COLUMNS.items() if kind not in ("time", "timestamp_ns")),
        select,
        spark_text.row_filter_sql,
        lambda action, name, kind: spark_text.mask_sql(action, name, kind, required=False, salt=SALT),
    )


def reader_engine() -> Engine:
    """Return the Python reader, which applies `read-restrictions`. An expression is their JSON."""
    from pyiceberg import types as iceberg
    from pyiceberg.schema import Schema

    from lakegate.reader import bind, decode

    names = [name for name, _ in COLUMNS.values()]
    schema = Schema.model_validate(
        {
            "type": "struct",
            "fields": [
                {"id": id, "name": name, "type": kind, "required": False} for id, (name, kind) in COLUMNS.items()
            ],
        }
    )
    numbered = Schema(*schema.fields, iceberg.NestedField(NUMBER, "number", iceberg.LongType(), required=False))

    def select(table: pa.Table, expressions: Sequence[str]) -> pa.Table:
        given = table.set_column(names.index(COLUMNS[14][0]), COLUMNS[14][0], _uuids(table.column(COLUMNS[14][0])))
        given = given.append_column("number", pa.array(range(len(given)), pa.int64()))
        (batch,) = given.combine_chunks().to_batches()
        found = []
        for expression in expressions:
            restrictions = decode(expression)
            restricted = bind(restrictions, numbered, (), SALT).apply(batch)
            if restrictions.projections:
                (masked_column,) = restrictions.projections
                found.append(restricted.column(list(COLUMNS).index(masked_column.field_id)))
            else:
                kept = set(restricted.column("number").to_pylist())
                found.append(pa.array([number in kept for number in range(len(given))]))
        return pa.table(found, names=[f"c{number}" for number in range(len(found))])

    ids = {name: id for id, (name, _) in COLUMNS.items()}
    return Engine(
        "lakegate.reader",
        tuple(COLUMNS),
        select,
        lambda predicate, names: _wire(predicate),
        lambda action, name, kind: _wire(ALWAYS, Projection(ids[name], action)),
    )


NUMBER = 99
"""The field id of the number of a row, by which rows that a filter keeps are recognized."""


def _wire(predicate: Predicate, *masks: Projection) -> str:
    return (read_restrictions(TableRestrictions("t", predicate, masks, False, "m")) or b"{}").decode()


def _uuids(column: pa.ChunkedArray) -> pa.Array:
    """Return the 16 bytes of each UUID, as PyIceberg reads them."""
    return pa.array([None if each is None else uuid.UUID(each).bytes for each in column.to_pylist()], pa.binary(16))


def governed_spark_engine(session: Any) -> Engine:
    """Return the governed reads of the pipeline: Spark columns for the JSON of `read-restrictions`."""
    from pyspark.sql import functions as F

    from lakegate.restrictions.literals import NestedField
    from lakegate.spark.masks import masked as masked_column
    from lakegate.spark.restrictions import columns_of, decode
    from lakegate.spark.row_filters import row_filter

    fields = [NestedField(id=id, name=name, type=kind, required=False) for id, (name, kind) in COLUMNS.items()]
    known = columns_of([fields], fields)

    def select(table: pa.Table, expressions: Sequence[str]) -> pa.Table:
        frame = _frame(session, table)
        columns = {id: F.col(f"`{name.replace('`', '``')}`") for id, (name, _) in COLUMNS.items()}
        found = []
        for expression in expressions:
            restrictions = decode(expression, known)
            if restrictions.masks:
                (mask,) = restrictions.masks
                kind = COLUMNS[mask.field_id][1]
                found.append(masked_column(mask.action, columns[mask.field_id], kind, salt=SALT))
            else:
                # A filter keeps no row for which its condition is null.
                found.append(F.coalesce(row_filter(restrictions.row_filter, columns), F.lit(False)))
        return frame.select(*(each.alias(f"c{number}") for number, each in enumerate(found))).toArrow()

    ids = {name: id for id, (name, _) in COLUMNS.items()}
    return Engine(
        "governed Spark",
        spark_engine(session).field_ids,
        select,
        lambda predicate, names: _wire(predicate),
        lambda action, name, kind: _wire(ALWAYS, Projection(ids[name], action)),
    )
