# SPDX-License-Identifier: Apache-2.0
"""Suggest tags by sampled values of a CSV file, a Parquet file or a table. Values never leave this machine."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.management import Management, printable

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_COLUMNS = 1_000
#: Rows that are read of a table: more would transfer much from its store.
_ROWS_OF_TABLES = 1_000
_ROWS_OF_BATCHES = 1_000
_PARQUET = b"PAR1"
_MISSING = "the package {} is not installed; this needs the extra: pip install 'lakegate[reader]'"


def sample_lines(samples: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a line for each suggestion by the values of columns: column, tag, and share of matching values."""
    from gateway.features.tags.tag_suggestions import suggestions_of_samples

    for each in suggestions_of_samples(samples):
        yield f"{printable(each.column)}\t{each.tag}\t{each.share:.0%} of {each.examined} values"


def samples_of_file(path: Path) -> dict[str, list[str]]:
    """Return the first values of each column of a CSV or Parquet file. An unreadable file ends the command."""
    try:
        with path.open("rb") as file:
            is_parquet = file.read(len(_PARQUET)) == _PARQUET
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from None
    return _of_parquet(path) if is_parquet else _of_csv(path)


def samples_of_table(management: Management, warehouse: str, table: str) -> dict[str, list[str]]:
    """Return the first values of each column of a table, read with the caller's own rights.

    `warehouse` is a name, and `table` is NAMESPACE.TABLE. A refusal ends the command with its message.
    """
    try:
        from lakegate.reader import ExchangeFailed, LoadFailed, Reader, ReadFailed, RestrictionNotSupported
    except ImportError as missing:
        raise click.ClickException(_MISSING.format(missing.name)) from None
    try:
        opened = Reader(management.base, warehouse, management.token).table(table)
        return _texts([opened.to_arrow(limit=_ROWS_OF_TABLES)])
    except (ExchangeFailed, LoadFailed, ReadFailed, RestrictionNotSupported, ValueError) as error:
        raise click.ClickException(printable(str(error))) from None


def _of_csv(path: Path) -> dict[str, list[str]]:
    from gateway.features.tags.tag_suggestions import MOST_VALUES

    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            names = next(rows, [])[:_MOST_COLUMNS]
            columns: list[list[str]] = [[] for _ in names]
            for _, row in zip(range(MOST_VALUES), rows, strict=False):
                for column, value in zip(columns, row, strict=False):
                    column.append(value)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise click.ClickException(f"{path} cannot be read as a CSV file in UTF-8: {error}") from None
    return dict(zip(names, columns, strict=True))


def _of_parquet(path: Path) -> dict[str, list[str]]:
    from gateway.features.tags.tag_suggestions import MOST_VALUES

    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as missing:
        raise click.ClickException(_MISSING.format(missing.name)) from None
    try:
        with pq.ParquetFile(path) as file:
            names = [field.name for field in file.schema_arrow if _is_sampled(field.type)][:_MOST_COLUMNS]
            batches = file.iter_batches(_ROWS_OF_BATCHES, columns=names)
            return _texts(list(islice(batches, MOST_VALUES // _ROWS_OF_BATCHES)))
    except (OSError, pa.ArrowException) as error:
        raise click.ClickException(f"{path} cannot be read as a Parquet file: {printable(str(error))}") from None


def _is_sampled(kind: pa.DataType) -> bool:
    """Return True for texts and whole numbers, also with a dictionary: no rule matches other values."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind))


def _texts(parts: Sequence[pa.RecordBatch | pa.Table]) -> dict[str, list[str]]:
    """Return the values of each sampled column as texts, without nulls."""
    found: dict[str, list[str]] = {}
    for part in parts:
        for name, column in zip(part.schema.names, part.columns, strict=True):
            if _is_sampled(column.type):
                values = (str(value) for value in column.to_pylist() if value is not None)
                found.setdefault(name, []).extend(values)
    return found
