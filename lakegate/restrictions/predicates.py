# SPDX-License-Identifier: Apache-2.0
"""Row predicates over columns by field id. Pure.

The set of tests is closed: a column against literals, `is-null`, `is-nan`, and their combinations. Every test except
`is-null` and `is-nan` is false for null and for NaN, including negated comparisons. So a predicate is never unknown,
and all compilers give the same rows. In `format/expressions-spec.md` of Apache Iceberg, negated comparisons keep null
rows: the compiler to `read-restrictions` therefore adds `not-null` and `not-nan`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TypeAlias

import msgspec

Literal: TypeAlias = bool | int | float | str
"""A value in the single-value JSON form (Iceberg table specification, appendix D)."""


class Comparison(StrEnum):
    """A comparison of a column with one literal. The values are the names in the protocol."""

    EQ = "eq"
    NOT_EQ = "not-eq"
    LT = "lt"
    LT_EQ = "lt-eq"
    GT = "gt"
    GT_EQ = "gt-eq"
    STARTS_WITH = "starts-with"
    NOT_STARTS_WITH = "not-starts-with"


class Constant(msgspec.Struct, frozen=True, tag_field="kind", tag="constant"):
    """A predicate that holds for all rows, or for none."""

    value: bool


class And(msgspec.Struct, frozen=True, tag_field="kind", tag="and"):
    """Holds if all operands hold. Without operands it always holds."""

    operands: tuple[Predicate, ...]


class Or(msgspec.Struct, frozen=True, tag_field="kind", tag="or"):
    """Holds if at least one operand holds. Without operands it never holds."""

    operands: tuple[Predicate, ...]


class Not(msgspec.Struct, frozen=True, tag_field="kind", tag="not"):
    """Holds if the operand does not hold."""

    operand: Predicate


class IsNull(msgspec.Struct, frozen=True, tag_field="kind", tag="is-null"):
    """Holds if the column is null."""

    field_id: int


class IsNan(msgspec.Struct, frozen=True, tag_field="kind", tag="is-nan"):
    """Holds if a float or double column is NaN; false for null."""

    field_id: int


class Compare(msgspec.Struct, frozen=True, tag_field="kind", tag="compare"):
    """Holds if the comparison with a literal holds; false for null and NaN.

    `type` is the column's primitive type as in schema JSON (`"decimal(9,2)"`), which determines the literal's type.
    """

    operator: Comparison
    field_id: int
    type: str
    value: Literal


class In(msgspec.Struct, frozen=True, tag_field="kind", tag="in"):
    """Holds if the column equals one of the values, or none of them if `negated`; false for null and NaN."""

    field_id: int
    type: str
    values: tuple[Literal, ...]
    negated: bool = False


Predicate: TypeAlias = Constant | And | Or | Not | IsNull | IsNan | Compare | In

ALWAYS = Constant(True)
NEVER = Constant(False)

_encoder = msgspec.json.Encoder(order="deterministic")


def canonical(predicate: Predicate) -> bytes:
    """Return bytes by which predicates are compared: equal predicates have equal bytes."""
    return _encoder.encode(predicate)


def all_of(*predicates: Predicate) -> Predicate:
    """Return the predicate that holds if all operands hold.

    The result does not depend on the order or the number of repetitions of the operands, even if they are conjunctions.
    """
    flat: dict[bytes, Predicate] = {}
    for each in predicates:
        for part in _conjuncts(each):
            flat[canonical(part)] = part
    if canonical(NEVER) in flat:
        return NEVER
    flat.pop(canonical(ALWAYS), None)
    ordered = tuple(flat[key] for key in sorted(flat))
    if not ordered:
        return ALWAYS
    return ordered[0] if len(ordered) == 1 else And(ordered)


def _conjuncts(predicate: Predicate) -> Iterator[Predicate]:
    if isinstance(predicate, And):
        for operand in predicate.operands:
            yield from _conjuncts(operand)
    else:
        yield predicate


def simplified(predicate: Predicate) -> Predicate:
    """Return an equivalent predicate without constants inside, and without `and` and `or` of one operand."""
    match predicate:
        case And(operands=operands):
            return all_of(*map(simplified, operands))
        case Or(operands=operands):
            kept = {canonical(each): each for each in map(simplified, operands)}
            if canonical(ALWAYS) in kept:
                return ALWAYS
            kept.pop(canonical(NEVER), None)
            ordered = tuple(kept[key] for key in sorted(kept))
            return ordered[0] if len(ordered) == 1 else Or(ordered) if ordered else NEVER
        case Not(operand=operand):
            inner = simplified(operand)
            return Constant(not inner.value) if isinstance(inner, Constant) else Not(inner)
        case In(values=(), negated=False):
            return NEVER
        case _:
            return predicate


def field_ids(predicate: Predicate) -> frozenset[int]:
    """Return the field ids of all columns in the predicate."""
    match predicate:
        case Constant():
            return frozenset()
        case And(operands=operands) | Or(operands=operands):
            return frozenset().union(*map(field_ids, operands))
        case Not(operand=operand):
            return field_ids(operand)
        case IsNull(field_id=field_id) | IsNan(field_id=field_id) | Compare(field_id=field_id) | In(field_id=field_id):
            return frozenset({field_id})
