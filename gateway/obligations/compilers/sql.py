# SPDX-License-Identifier: Apache-2.0
"""Compile predicates and masks to SQL text: the part that all dialects share.

Every test requires that the column is not null, and not NaN, before it compares. So no test is unknown (null in SQL),
not even inside of `NOT`. Engines can still use such conditions to skip files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from gateway.obligations.projections import RestrictionNotExpressible
from lakegate.restrictions.actions import Action, Projection, applies, without_salt
from lakegate.restrictions.literals import NestedField, Type, type_name
from lakegate.restrictions.predicates import (
    ALWAYS,
    And,
    Compare,
    Comparison,
    Constant,
    In,
    IsNan,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
)

_OPERATORS: Final[Mapping[Comparison, str]] = {
    Comparison.EQ: "=",
    Comparison.NOT_EQ: "<>",
    Comparison.LT: "<",
    Comparison.LT_EQ: "<=",
    Comparison.GT: ">",
    Comparison.GT_EQ: ">=",
}
_FLOATS: Final = frozenset({"float", "double"})
_PARAMETERS: Final = re.compile(r"\d+")
_LONGEST_FIXED: Final = 4096

#: The text of the constant of `mask-to-fixed-value` for each type whose constant can be cast from a text.
FIXED_TEXTS: Final[Mapping[str, str]] = {
    "boolean": "false",
    "int": "0",
    "long": "0",
    "float": "0",
    "double": "0",
    "decimal": "0",
    "date": "1970-01-01",
    "time": "00:00:00.000000",
    "timestamp": "1970-01-01T00:00:00.000000",
    "timestamptz": "1970-01-01T00:00:00.000000+00:00",
    "timestamp_ns": "1970-01-01T00:00:00.000000000",
    "timestamptz_ns": "1970-01-01T00:00:00.000000000+00:00",
    "string": "XXXXXXXX",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "binary": "",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parts of SQL that differ between engines.

    `name` is the engine in error messages. `quote` quotes an identifier. `text` and `binary` write a text, and bytes
    given as hexadecimal digits. `types` has the SQL type by the name of the Iceberg type. `zone` follows a timestamp in
    UTC. `is_nan`, `starts_with` and `substring` are names of functions. `concat` and `replace` are templates, of two
    texts, and of a text, a regular expression and a replacement.

    The other fields are functions for masks: the SQL type and the constant of any Iceberg type, the truncation of a
    column to `year` or `month`, and the hash of a column with a salt, which may be empty. Without `salted`, the text
    would show a salt to users, so `sha-256-query-local` reveals nothing.
    """

    name: str
    quote: Callable[[str], str]
    text: Callable[[str], str]
    binary: Callable[[str], str]
    types: Mapping[str, str]
    zone: str
    is_nan: str
    starts_with: str
    substring: str
    concat: str
    replace: str
    type_of: Callable[[Type], str]
    fixed_of: Callable[[Type], str]
    truncated: Callable[[str, str, Type], str]
    hashed: Callable[[str, Type, bytes], str]
    salted: bool = True

    def primitive(self, kind: str) -> str:
        """Return the SQL type of a primitive type. Raises RestrictionNotExpressible if the engine has none."""
        name = type_name(kind)
        if name == "decimal":
            precision, scale = _PARAMETERS.findall(kind)
            return f"DECIMAL({precision}, {scale})"
        found = self.types.get(name)
        if found is None:
            raise RestrictionNotExpressible(f"{self.name} cannot restrict columns of the type {name}")
        return found

    def literal(self, value: Literal, kind: str) -> str:
        """Return the SQL text of a literal that has the form of `lakegate.restrictions.literals`."""
        name = type_name(kind)
        sql_type = self.primitive(kind)
        if name == "boolean":
            return "TRUE" if value else "FALSE"
        text = repr(value) if isinstance(value, float) else str(value)
        if name in ("binary", "fixed"):
            return self.binary(text)
        if name == "string":
            return self.text(text)
        if name.startswith("timestamp"):
            text = text.replace("T", " ").removesuffix("+00:00")
            text += self.zone if name.startswith("timestamptz") else ""
        return f"CAST({self.text(text)} AS {sql_type})"

    def fixed_value(self, kind: str) -> str:
        """Return the constant that `mask-to-fixed-value` gives for a primitive type.

        Raises RestrictionNotExpressible if the engine does not have the type.
        """
        name = type_name(kind)
        self.primitive(kind)
        if name == "boolean":
            return self.literal(False, kind)
        if name == "fixed":
            (length,) = _PARAMETERS.findall(kind)
            if int(length) > _LONGEST_FIXED:
                raise RestrictionNotExpressible(f"{self.name} cannot mask {kind}: the constant is too long")
            return self.literal("00" * int(length), kind)
        return self.literal(FIXED_TEXTS[name], kind)


def quoted(mark: str, text: str) -> str:
    """Return the text between two marks, with each mark inside doubled. Raises RestrictionNotExpressible for NUL."""
    if "\0" in text:
        raise RestrictionNotExpressible("a name or a text contains NUL, which engines cannot express")
    return f"{mark}{text.replace(mark, mark * 2)}{mark}"


def joined(parts: Sequence[str], operator: str) -> str:
    """Join conditions in a balanced tree, because parsers of engines recurse once for each operand of a flat chain."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({joined(parts[:middle], operator)} {operator} {joined(parts[middle:], operator)})"


def predicate_sql(predicate: Predicate, names: Mapping[int, str], dialect: Dialect, qualifier: str = "") -> str:
    """Return the SQL condition. `names` maps field ids to column names, `qualifier` precedes each of them.

    Raises RestrictionNotExpressible for a column without a name and for a type that the engine does not have.
    """

    def column(field_id: int) -> str:
        if field_id not in names:
            raise RestrictionNotExpressible(
                f"the row filter refers to the field {field_id}, which is not a column of the table"
            )
        return qualifier + dialect.quote(names[field_id])

    def compiled(part: Predicate) -> str:
        match part:
            case Constant(value=value):
                return "TRUE" if value else "FALSE"
            case And(operands=operands):
                return joined([compiled(each) for each in operands], "AND") if operands else "TRUE"
            case Or(operands=operands):
                return joined([compiled(each) for each in operands], "OR") if operands else "FALSE"
            case Not(operand=operand):
                return f"(NOT {compiled(operand)})"
            case IsNull(field_id=field_id):
                return f"({column(field_id)} IS NULL)"
            case IsNan(field_id=field_id):
                return f"({column(field_id)} IS NOT NULL AND {dialect.is_nan}({column(field_id)}))"
            case Compare():
                return _compare(part, column(part.field_id), dialect)
            case In():
                return _in(part, column(part.field_id), dialect)
            case _:
                assert_never(part)

    return compiled(predicate)


def _guard(column: str, kind: str, dialect: Dialect) -> str:
    """Return the condition that the column's value is neither null nor NaN."""
    present = f"{column} IS NOT NULL"
    return f"{present} AND NOT {dialect.is_nan}({column})" if type_name(kind) in _FLOATS else present


def _compare(part: Compare, column: str, dialect: Dialect) -> str:
    literal = dialect.literal(part.value, part.type)
    if part.operator in (Comparison.STARTS_WITH, Comparison.NOT_STARTS_WITH):
        test = f"{dialect.starts_with}({column}, {literal})"
        test = test if part.operator is Comparison.STARTS_WITH else f"NOT {test}"
    else:
        test = f"{column} {_OPERATORS[part.operator]} {literal}"
    return f"({_guard(column, part.type, dialect)} AND {test})"


def _in(part: In, column: str, dialect: Dialect) -> str:
    guard = _guard(column, part.type, dialect)
    if not part.values:
        return f"({guard})" if part.negated else "FALSE"
    literals = [dialect.literal(value, part.type) for value in part.values]
    if type_name(part.type) in _FLOATS:
        # Some engines look up `IN` in a hash table, where negative zero and zero may differ.
        test = joined([f"({column} = {each})" for each in literals], "OR")
        return f"({guard} AND {'NOT ' if part.negated else ''}{test})"
    return f"({guard} AND {column} {'NOT ' if part.negated else ''}IN ({', '.join(literals)}))"


_SALT_BYTES = 16


def mask_text(
    action: Action, column: str, kind: Type, dialect: Dialect, *, required: bool, salt: bytes | None = None
) -> str:
    """Return the expression that replaces `column`, an expression of the type.

    `salt` has at least 16 random bytes that are made for one query; only `sha-256-query-local` uses them. Raises
    RestrictionNotExpressible if the action does not apply to the type, the engine does not have the type, or the salt
    is missing.
    """
    _require_applicable(action, kind, required=required)
    if not dialect.salted:
        action = without_salt(action, required=required)
    match action:
        case Action.REPLACE_WITH_NULL:
            return f"CAST(NULL AS {dialect.type_of(kind)})"
        case Action.MASK_TO_FIXED_VALUE:
            return dialect.fixed_of(kind)
        case Action.MASK_ALPHANUM:
            return _alphanum(column, dialect)
        case Action.SHOW_FIRST_4:
            shown, hidden = f"{dialect.substring}({column}, 1, 4)", f"{dialect.substring}({column}, 5)"
            return dialect.concat.format(shown, _alphanum(hidden, dialect))
        case Action.SHOW_LAST_4:
            length = f"greatest(length({column}) - 4, 0)"
            hidden, shown = (
                f"{dialect.substring}({column}, 1, {length})",
                f"{dialect.substring}({column}, {length} + 1)",
            )
            return dialect.concat.format(_alphanum(hidden, dialect), shown)
        case Action.TRUNCATE_TO_YEAR:
            return dialect.truncated("year", column, kind)
        case Action.TRUNCATE_TO_MONTH:
            return dialect.truncated("month", column, kind)
        case Action.SHA_256_GLOBAL:
            return dialect.hashed(column, kind, b"")
        case Action.SHA_256_QUERY_LOCAL:
            if salt is None or len(salt) < _SALT_BYTES:
                raise RestrictionNotExpressible("sha-256-query-local needs a salt of at least 16 bytes for the query")
            return dialect.hashed(column, kind, salt)
        case _:
            assert_never(action)


def view_text(
    fields: Sequence[NestedField], row_filter: Predicate, masks: Sequence[Projection], source: str, dialect: Dialect
) -> str:
    """Return a SELECT of the columns `fields` from `source`, a table or subquery in SQL, with the restrictions applied.

    The filter reads original values. The text is stored, so it cannot contain a salt that is made for one query.
    `sha-256-query-local` therefore gives null, or the fixed value of a required column. Raises
    RestrictionNotExpressible for what the engine cannot express.
    """
    actions = {each.field_id: each.action for each in masks}
    names = {field.id: field.name for field in fields}
    if unknown := actions.keys() - names.keys():
        raise RestrictionNotExpressible(f"the field {min(unknown)} is masked and is not a column of the view")
    raw = dialect.quote("unrestricted")
    selected = []
    for field in fields:
        column = f"{raw}.{dialect.quote(field.name)}"
        if field.id in actions:
            action = without_salt(actions[field.id], required=field.required)
            column = mask_text(action, column, field.type, dialect, required=field.required)
        selected.append(f"{column} AS {dialect.quote(field.name)}")
    text = f"SELECT {', '.join(selected)} FROM {source} AS {raw}"  # noqa: S608 - `source` is SQL, the rest is quoted
    if row_filter == ALWAYS:
        return text
    return f"{text} WHERE {predicate_sql(row_filter, names, dialect, f'{raw}.')}"


def _require_applicable(action: Action, kind: Type, *, required: bool) -> None:
    if not applies(action, kind, required=required):
        needed = "required" if required else "optional"
        raise RestrictionNotExpressible(f"{action.value} does not apply to {needed} columns of type {type_name(kind)}")


def _alphanum(text: str, dialect: Dialect) -> str:
    """Return SQL that replaces all characters except digits and the six kept ones by `x`, and then all digits by
    `n`.
    """
    return dialect.replace.format(dialect.replace.format(text, "[^0-9(),.@-]", "x"), "[0-9]", "n")
