# SPDX-License-Identifier: Apache-2.0
"""Check the definition of a data policy before it is stored. Each problem has the JSON pointer of its position.

With the columns of a table, the definition is also checked for that table. Without them, only what holds for every
table is checked. Binding the policy to a table (`gateway.obligations.binding`) does not rely on these checks, because a
table can change after them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, assert_never

from gateway.iceberg.identifiers import fold
from gateway.obligations.binding_columns import TableColumns
from gateway.obligations.data_policies import (
    AllOf,
    AnyOf,
    Attribute,
    AttributeSource,
    ColumnReference,
    CompareTest,
    ConstantTest,
    Definition,
    InTest,
    Mask,
    NotTest,
    NullTest,
    PolicyInputs,
    RoleTest,
    RowFilter,
    Test,
)
from gateway.obligations.projections import Columns
from lakegate.restrictions.actions import applies
from lakegate.restrictions.literals import NestedField, NotALiteral, comparable, literal, type_name
from lakegate.restrictions.predicates import Comparison, Literal

DEEPEST: Final = 16
"""The most levels of nested tests."""
MOST_TESTS: Final = 200
MOST_LITERALS: Final = 1000
MOST_COLUMNS: Final = 1000
LONGEST_TEXT: Final = 4096
"""The most bytes of a text in UTF-8."""


@dataclass(frozen=True, slots=True)
class DefinitionProblem:
    """A problem in a definition. `pointer` is a JSON pointer (RFC 6901) into the definition."""

    pointer: str
    problem: str


def problems_of(definition: Definition, columns: Columns | None) -> list[DefinitionProblem]:
    """Return the problems of a definition, in the order of their positions; empty if it is valid.

    With `columns`, names and types are checked for that table as well.
    """
    check = _Check(None if columns is None else TableColumns(columns, PolicyInputs()), columns)
    match definition:
        case Mask():
            return list(check.mask(definition))
        case RowFilter(test=test):
            found = list(check.test(test, "/test", depth=1, negated=False))
            return [*found, *check.limits()]
        case _:
            assert_never(definition)


class _Check:
    """Checks one definition. It counts the tests and literals so far."""

    def __init__(self, table: TableColumns | None, columns: Columns | None) -> None:
        self._table = table
        self._columns = columns
        self._tests = 0
        self._literals = 0

    def limits(self) -> Iterator[DefinitionProblem]:
        """Yield the problems of the whole filter, such as too many tests."""
        if self._tests > MOST_TESTS:
            yield DefinitionProblem("/test", f"the filter has {self._tests} tests: at most {MOST_TESTS} are allowed")
        if self._literals > MOST_LITERALS:
            yield DefinitionProblem(
                "/test",
                f"the filter has {self._literals} literals: at most {MOST_LITERALS} are allowed; use a mapping table",
            )

    def mask(self, mask: Mask) -> Iterator[DefinitionProblem]:
        """Yield the problems of a mask."""
        if len(mask.columns) > MOST_COLUMNS:
            yield DefinitionProblem("/columns", f"at most {MOST_COLUMNS} columns are allowed")
            return
        for number, reference in enumerate(mask.columns):
            pointer = f"/columns/{number}"
            yield from self._reference(reference, pointer)
            for field in self._named(reference):
                if not applies(mask.action, field.type, required=field.required):
                    needed = "required" if field.required else "optional"
                    yield DefinitionProblem(
                        "/action",
                        f"{mask.action.value} does not apply to the {needed} column {field.name!r} of the type "
                        f"{type_name(field.type)}",
                    )

    def _named(self, reference: ColumnReference) -> list[NestedField]:
        """Return the current columns with the name, in any letter case and Unicode form.

        The result is empty for a reference to a tag, or if no columns were given.
        """
        if self._columns is None or reference.name is None:
            return []
        key = fold(reference.name)
        return [each for each in self._columns.current if fold(each.name) == key]

    def _reference(self, reference: ColumnReference, pointer: str) -> Iterator[DefinitionProblem]:
        name = reference.name
        if name is None:
            yield from _text(reference.tag or "", f"{pointer}/tag", empty=False)
            return
        yield from _text(name, f"{pointer}/name", empty=False)
        if self._columns is None or self._named(reference):
            return
        if self._columns.nested(name):
            yield DefinitionProblem(f"{pointer}/name", f"{name!r} is a nested field: name its top-level column")
        else:
            yield DefinitionProblem(f"{pointer}/name", f"the table has no column {name!r}")

    def test(self, test: Test, pointer: str, *, depth: int, negated: bool) -> Iterator[DefinitionProblem]:
        """Yield the problems of a test at a pointer. `negated` is True inside of `not`."""
        self._tests += 1
        if depth > DEEPEST:
            yield DefinitionProblem(pointer, f"tests are nested more than {DEEPEST} levels deep")
            return
        match test:
            case ConstantTest():
                return
            case RoleTest(role=role):
                if negated:
                    yield DefinitionProblem(
                        pointer, "`not` must not contain `has-role`, because a membership by a group can be unknown"
                    )
                yield from _text(role, f"{pointer}/role", empty=False)
            case AllOf(operands=operands) | AnyOf(operands=operands):
                if not operands:
                    yield DefinitionProblem(f"{pointer}/operands", "at least one operand is needed")
                for number, operand in enumerate(operands):
                    yield from self.test(operand, f"{pointer}/operands/{number}", depth=depth + 1, negated=negated)
            case NotTest(operand=operand):
                yield from self.test(operand, f"{pointer}/operand", depth=depth + 1, negated=True)
            case NullTest(column=column):
                yield from self._column(column, f"{pointer}/column", negated)
            case CompareTest():
                yield from self._compare(test, pointer, negated)
            case InTest():
                yield from self._in(test, pointer, negated)
            case _:
                assert_never(test)

    def _column(self, reference: ColumnReference, pointer: str, negated: bool) -> Iterator[DefinitionProblem]:
        if reference.tag is not None and negated:
            yield DefinitionProblem(
                f"{pointer}/tag", "`not` must not contain a tag, because a column without the tag would be visible"
            )
        yield from self._reference(reference, pointer)

    def _attribute(self, attribute: Attribute, pointer: str, negated: bool) -> Iterator[DefinitionProblem]:
        if negated:
            yield DefinitionProblem(
                pointer, "`not` must not contain an attribute, because principals without it would see all rows"
            )
        if attribute.source is AttributeSource.PRINCIPAL:
            if attribute.name:
                yield DefinitionProblem(f"{pointer}/name", "the attribute `principal` has no name: leave it out")
        else:
            yield from _text(attribute.name, f"{pointer}/name", empty=False)

    def _compare(self, test: CompareTest, pointer: str, negated: bool) -> Iterator[DefinitionProblem]:
        yield from self._column(test.column, f"{pointer}/column", negated)
        for field in self._filtered(test.column):
            if not comparable(test.operator, field.type):
                yield DefinitionProblem(
                    f"{pointer}/operator",
                    f"the column {field.name!r} of the type {type_name(field.type)} does not support "
                    f"{test.operator.value}",
                )
        if isinstance(test.value, Attribute):
            yield from self._attribute(test.value, f"{pointer}/value", negated)
            return
        if test.operator in (Comparison.STARTS_WITH, Comparison.NOT_STARTS_WITH) and not isinstance(test.value, str):
            yield DefinitionProblem(f"{pointer}/value", f"{test.operator.value} needs a text")
            return
        yield from self._literal(test.value, test.column, f"{pointer}/value")

    def _in(self, test: InTest, pointer: str, negated: bool) -> Iterator[DefinitionProblem]:
        yield from self._column(test.column, f"{pointer}/column", negated)
        for field in self._filtered(test.column):
            if not comparable(Comparison.EQ, field.type):
                yield DefinitionProblem(
                    f"{pointer}/column", f"columns of the type {type_name(field.type)} cannot be compared"
                )
        if isinstance(test.values, Attribute):
            yield from self._attribute(test.values, f"{pointer}/values", negated)
            return
        if not test.values:
            yield DefinitionProblem(f"{pointer}/values", "at least one value is needed")
        for number, value in enumerate(test.values):
            yield from self._literal(value, test.column, f"{pointer}/values/{number}")

    def _literal(self, value: Literal, reference: ColumnReference, pointer: str) -> Iterator[DefinitionProblem]:
        self._literals += 1
        if isinstance(value, str):
            found = list(_text(value, pointer, empty=True))
            yield from found
            if found:
                return
        for field in self._filtered(reference):
            if not comparable(Comparison.EQ, field.type):
                continue  # the problem is reported for `operator` or `column`
            try:
                literal(value, field.type)
            except NotALiteral as error:
                yield DefinitionProblem(pointer, f"the column {field.name!r}: {error}")

    def _filtered(self, reference: ColumnReference) -> list[NestedField]:
        if self._table is None or reference.name is None:
            return []
        return self._table.filtered(reference, ())


def _text(text: str, pointer: str, *, empty: bool) -> Iterator[DefinitionProblem]:
    if not text and not empty:
        yield DefinitionProblem(pointer, "the text must not be empty")
    elif "\0" in text or any("\ud800" <= each <= "\udfff" for each in text):
        yield DefinitionProblem(pointer, "the text must be valid Unicode without NUL")
    elif len(text.encode()) > LONGEST_TEXT:
        yield DefinitionProblem(pointer, f"the text has more than {LONGEST_TEXT} bytes")
