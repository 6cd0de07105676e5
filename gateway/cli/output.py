# SPDX-License-Identifier: Apache-2.0
"""Print rows and single objects: as a table for people, or as JSON, YAML or CSV for programs.

Rows are printed while they arrive. Colours are used only at a terminal, and not if NO_COLOR is set.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, TypeVar

import click

from gateway.cli.texts import line, printable

FORMATS: Final = ("table", "json", "yaml", "csv")

#: Rows that determine the widths of columns. Later rows are printed without a wait for all rows.
_MEASURED: Final = 200
_GAP: Final = "  "
#: A spreadsheet runs a cell that begins with one of these as a formula, also behind spaces.
_FORMULA: Final = re.compile(r"\s*[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]")

Row = Mapping[str, Any]
Command = TypeVar("Command", bound=Callable[..., Any])


def with_format(command: Command) -> Command:
    """Add the options for the form of the output. The command gets the parameter `form`."""

    def chosen(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            context.params["form"] = "json"

    for option in (
        click.option("--json", is_flag=True, expose_value=False, callback=chosen, help="The same as --format json."),
        click.option(
            "--format",
            "form",
            type=click.Choice(FORMATS),
            default="table",
            show_default=True,
            is_eager=True,
            help="Form of the output.",
        ),
    ):
        command = option(command)
    return command


def print_rows(form: str, columns: Sequence[str], rows: Iterable[Row], *, empty: str = "") -> None:
    """Print rows. Tables and CSV have these columns; JSON and YAML have all members of each row.

    `empty` is printed to standard error if a table has no rows.
    """
    _PRINTERS[form](columns, iter(rows), empty)


def print_lines(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    """Print lines with fields that tabs separate, for programs. At a terminal, print a table instead."""
    if sys.stdout.isatty():
        print_rows("table", columns, (dict(zip(columns, each, strict=False)) for each in lines))
        return
    for each in lines:
        click.echo(line(*each))


def print_object(form: str, found: Row) -> None:
    """Print one object: its members below each other in a table, and one row in CSV."""
    match form:
        case "json":
            click.echo(_json_text(found, indent=2))
        case "yaml":
            click.echo(_yaml(found), nl=False)
        case "csv":
            print_rows(form, list(found), [found])
        case _:
            width = max(map(len, found), default=0)
            for name, value in found.items():
                click.echo(f"{_bold(printable(name).ljust(width))}{_GAP}{cell(value)}".rstrip())


def cell(value: Any) -> str:
    """Return a value as the text of one cell. Control characters become spaces, because other users choose names."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(cell, value))
    return printable(json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else str(value))


def _bold(text: str) -> str:
    return click.style(text, bold=True)


def _table(columns: Sequence[str], rows: Iterator[Row], empty: str) -> None:
    from rich.cells import cell_len

    lines = ([cell(row.get(name)) for name in columns] for row in rows)
    first = list(islice(lines, _MEASURED))
    if not first:
        click.echo(empty, err=True, nl=bool(empty))
        return
    heads = [name.upper().replace("-", " ") for name in columns]
    widths = [max(map(cell_len, column)) for column in zip(heads, *first, strict=True)]

    def padded(line: Sequence[str]) -> str:
        cells = (text + " " * (width - cell_len(text)) for text, width in zip(line, widths, strict=True))
        return _GAP.join(cells).rstrip()

    click.echo(_bold(padded(heads)))
    for each in chain(first, lines):
        click.echo(padded(each))


def _json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON. It is in ASCII if it has characters that could change what a terminal shows."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return text if _is_shown_as_it_is(text) else json.dumps(value, indent=indent)


def _is_shown_as_it_is(text: str) -> bool:
    return all(each.isprintable() for each in text.split("\n"))


def _json(columns: Sequence[str], rows: Iterator[Row], empty: str) -> None:
    """Print an array, one row on a line, so that a closed pipe ends the requests."""
    before = "["
    for row in rows:
        click.echo(f"{before}\n  {_json_text(row)}", nl=False)
        before = ","
    click.echo("[]" if before == "[" else "\n]")


def _yaml_rows(columns: Sequence[str], rows: Iterator[Row], empty: str) -> None:
    some = False
    for row in rows:
        some = True
        click.echo(_yaml([row]), nl=False)
    if not some:
        click.echo("[]")


def _yaml(value: Any) -> str:
    import yaml

    def dumped(unicode: bool) -> str:
        text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=unicode, width=120)
        return text

    text = dumped(True)
    return text if _is_shown_as_it_is(text) else dumped(False)


def _no_formula(value: Any) -> str:
    text = cell(value)
    return f"'{text}" if not isinstance(value, (int, float)) and _FORMULA.match(text) else text


def _csv(columns: Sequence[str], rows: Iterator[Row], empty: str) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_no_formula(row.get(name)) for name in columns])
        sys.stdout.flush()


_PRINTERS: Final[Mapping[str, Callable[[Sequence[str], Iterator[Row], str], None]]] = {
    "table": _table,
    "json": _json,
    "yaml": _yaml_rows,
    "csv": _csv,
}
