# SPDX-License-Identifier: Apache-2.0
"""Prove that one row filter keeps no row that another one hides, from their structure. Pure.

A proof is correct, but not every implication has one. Without a proof the filter counts as wider.
"""

from __future__ import annotations

import msgspec

from lakegate.restrictions.predicates import (
    ALWAYS,
    NEVER,
    And,
    Compare,
    Comparison,
    In,
    Or,
    Predicate,
    canonical,
)

_encode = msgspec.json.Encoder().encode


def implies(narrow: Predicate, wide: Predicate) -> bool:
    """Return True if each row that `narrow` keeps is provably kept by `wide`."""
    if narrow == NEVER or wide == ALWAYS or canonical(narrow) == canonical(wide):
        return True
    if isinstance(wide, And):
        return all(implies(narrow, each) for each in wide.operands)
    if isinstance(narrow, Or):
        return all(implies(each, wide) for each in narrow.operands)
    if isinstance(narrow, And) and any(implies(each, wide) for each in narrow.operands):
        return True
    if isinstance(wide, Or):
        return any(implies(narrow, each) for each in wide.operands)
    return _among(narrow, wide)


def _among(narrow: Predicate, wide: Predicate) -> bool:
    """Return True if the values of a test on the same column are a subset; a superset for negated tests."""
    inner, outer = _tested(narrow), _tested(wide)
    if inner is None or outer is None or (inner.field_id, inner.type) != (outer.field_id, outer.type):
        return False
    few, many = ({_encode(each) for each in one.values} for one in (inner, outer))
    if inner.negated and outer.negated:
        return few >= many
    return not inner.negated and not outer.negated and few <= many


def _tested(predicate: Predicate) -> In | None:
    """Return a test of values, or the same for a comparison by equality; None for other predicates."""
    if isinstance(predicate, Compare) and predicate.operator is Comparison.EQ:
        return In(predicate.field_id, predicate.type, (predicate.value,))
    return predicate if isinstance(predicate, In) else None
