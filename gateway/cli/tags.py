# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate tag``: define tags, attach them to objects, and suggest tags for columns."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

import click

from gateway.apply.client import segment
from gateway.cli.catalog_client import ReferenceType, path_of_object
from gateway.cli.management import Command, Management, line, printable, with_api

if TYPE_CHECKING:
    import pyarrow as pa


_DEFINITIONS = "/tag-definition"
_KINDS = ("warehouse", "namespace", "table", "view", "generic-table", "column")


def _on_an_object(command: Command) -> Command:
    """Add the options that select an object of a warehouse. The command gets the parameter `at`."""
    for option in (
        click.option("--column", help="Name of a column of the table."),
        click.option("--generic-table", type=click.UUID, help="Id of a generic table."),
        click.option("--view", type=click.UUID, help="Id of a view."),
        click.option("--table", type=click.UUID, help="Id of a table."),
        click.option("--namespace", type=click.UUID, help="Id of a namespace."),
        click.option("--warehouse", type=click.UUID, help="Id of the warehouse."),
        click.option("--on", type=ReferenceType(), help="The object by its name, such as column/demo/hr.people/email."),
    ):
        command = option(command)
    return with_api(project=False)(command)


@click.group()
def tag() -> None:
    """Define tags, attach them to objects and columns, and suggest tags for columns."""


@tag.command()
@click.argument("name")
@click.option("--on", "scope", type=click.Choice(_KINDS), multiple=True, required=True, help="Type of object.")
@click.option("--value", "values", multiple=True, help="An allowed value. Several make an enumerated tag.")
@click.option("--free-text", is_flag=True, help="Allow every value. Default: the tag has no value.")
@click.option("--description", help="Description of the tag.")
@with_api()
def define(
    name: str,
    scope: tuple[str, ...],
    values: tuple[str, ...],
    free_text: bool,
    description: str | None,
    api: Management,
) -> None:
    """Define the tag NAME, which you then own. Print its id."""
    if values and free_text:
        raise click.UsageError("--value and --free-text exclude each other")
    kind = "enumerated" if values else "free-text" if free_text else "marker"
    body: dict[str, Any] = {"name": name, "scope": list(scope), "value-kind": kind}
    body |= {"allowed-values": list(values)} if values else {}
    body |= {"description": description} if description else {}
    click.echo(api.send("POST", _DEFINITIONS, body=body).json()["id"])


@tag.command("list")
@with_api()
def list_tags(api: Management) -> None:
    """List the tags of a project: id, name, kind of value and scope, separated by tabs."""
    for each in api.pages(_DEFINITIONS, "tag-definitions"):
        click.echo(line(each["id"], each["name"], each["value-kind"], ",".join(each["scope"])))


@tag.command()
@click.argument("id", type=click.UUID)
@with_api()
def show(id: UUID, api: Management) -> None:
    """Show the definition of a tag and the objects that carry it, as JSON."""
    found = api.send("GET", f"{_DEFINITIONS}/{id}").json()
    attached = list(api.pages(f"{_DEFINITIONS}/{id}/attachments", "attachments"))
    click.echo(json.dumps({**found, "attachments": attached}, indent=2))


@tag.command()
@click.argument("name")
@click.option("--value", help="The value of the tag on this object.")
@_on_an_object
def attach(name: str, value: str | None, api: Management, **at: Any) -> None:
    """Attach the tag NAME to an object, by default to the warehouse, or change its value there.

    Example: lakegate tags attach pii --on column/demo/hr.people/email
    """
    body = {} if value is None else {"value": value}
    api.send("PUT", _tag_path(api, at, name), body=body)
    click.echo("Attached.")


@tag.command()
@click.argument("name")
@_on_an_object
def detach(name: str, api: Management, **at: Any) -> None:
    """Detach the tag NAME from an object, by default from the warehouse.

    Example: lakegate tags detach pii --on column/demo/hr.people/email
    """
    api.send("DELETE", _tag_path(api, at, name))
    click.echo("Detached.")


@tag.command()
@click.option("--sample", type=click.Path(dir_okay=False, path_type=Path), help="CSV file with a header, or Parquet.")
@click.option("--sample-table", help="NAMESPACE.TABLE: read its first 1,000 rows with your own rights.")
@click.option("--in", "within", help="Name of the warehouse of --sample-table.")
@click.option("--warehouse", type=click.UUID, help="Id of the warehouse of a table.")
@click.option("--table", type=click.UUID, help="Id of a table: suggest by names and types of its columns.")
@with_api(project=False)
def suggest(
    sample: Path | None,
    sample_table: str | None,
    within: str | None,
    warehouse: UUID | None,
    table: UUID | None,
    api: Management,
) -> None:
    """Suggest tags for columns, separated by tabs. Nothing is attached.

    With --sample and --sample-table, values are examined on this machine, and no value is sent or printed.
    """
    match sample, sample_table, within, warehouse, table:
        case Path(), None, None, None, None:
            lines = sample_lines(samples_of_file(sample))
        case None, str(), str(), None, None:
            lines = sample_lines(samples_of_table(api, within, sample_table))
        case None, None, None, UUID(), UUID():
            lines = _lines_by_name(api, warehouse, table)
        case _:
            raise click.UsageError("give --sample, or --sample-table and --in, or --warehouse and --table")
    for each in lines:
        click.echo(each)


def _lines_by_name(api: Management, warehouse: UUID, table: UUID) -> Iterator[str]:
    """Yield a line for each suggestion by names and types of columns: column, tag, reason, and whether only a part of
    the name matches.
    """
    found = api.send("GET", f"/warehouse/{warehouse}/table/{table}/tag-suggestions").json()
    for each in found["suggestions"]:
        sure = "whole name" if each["whole-name"] else "part of the name"
        yield line(each["column"], each["tag"], each["because"], sure)


def _tag_path(api: Management, at: Mapping[str, Any], name: str) -> str:
    """Return the path of a tag on an object. `at` has the values of the options of `_on_an_object`."""
    if (at["on"] is None) == (at["warehouse"] is None):
        raise click.UsageError("give either --on or --warehouse")
    if at["on"] is not None:
        return f"{path_of_object(api, at['on'], '/tags')}/{quote(name, safe='')}"
    chosen = [kind for kind in ("namespace", "table", "view", "generic_table") if at[kind] is not None]
    if len(chosen) > 1 or (at["column"] is not None and chosen != ["table"]):
        raise click.UsageError(
            "give at most one of --namespace, --table, --view and --generic-table; --column needs --table"
        )
    path = f"/warehouse/{at['warehouse']}"
    path += "".join(f"/{kind.replace('_', '-')}/{at[kind]}" for kind in chosen)
    path += "" if at["column"] is None else f"/column/{segment(at['column'])}"
    return f"{path}/tags/{quote(name, safe='')}"


_MOST_COLUMNS = 1_000
#: Maximum number of rows that are read of a table: more rows would transfer much data from its store.
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
    """Return the first values of each column of a CSV or Parquet file. If it is unreadable, the command ends."""
    try:
        with path.open("rb") as file:
            is_parquet = file.read(len(_PARQUET)) == _PARQUET
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from None
    return _of_parquet(path) if is_parquet else _of_csv(path)


def samples_of_table(management: Management, warehouse: str, table: str) -> dict[str, list[str]]:
    """Return the first values of each column of a table, which is read with the caller's own rights.

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
    """Return True for texts and whole numbers, even if dictionary-encoded. No rule matches values of other types."""
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
