# SPDX-License-Identifier: Apache-2.0
"""Bind data policies to one table and one principal: names and tags become field ids, attributes become literals.

Pure. What cannot be bound gives a stricter result and a problem: a filter that holds for no row, or a mask that reveals
nothing. If the protocol cannot express even that, `RestrictionNotExpressible` is raised and reading must be refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.obligations.binding_columns import TableColumns
from gateway.obligations.binding_tests import FilterNotApplicable, TestBinder
from gateway.obligations.columns import Columns, RestrictionNotExpressible
from gateway.obligations.data_policies import BoundPolicy, Mask, PolicyInputs, PrincipalAttributes, RowFilter
from gateway.obligations.kinds import TableRestrictions
from gateway.obligations.projections import strictest
from lakegate.restrictions.actions import Action, Projection, applies
from lakegate.restrictions.predicates import ALWAYS, NEVER, Predicate, all_of, simplified

__all__ = ["BindingResult", "PolicyProblem", "RestrictionNotExpressible", "restrictions_of"]


@dataclass(frozen=True, slots=True, order=True)
class PolicyProblem:
    """A policy that could not be applied to a table as written. `problem` says what was wrong and what to do."""

    policy_id: str
    table_id: str
    problem: str


@dataclass(frozen=True, slots=True)
class BindingResult:
    """The merged restrictions, None if no policy restricts anything, and the problems in a fixed order."""

    restrictions: TableRestrictions | None
    problems: tuple[PolicyProblem, ...]


def restrictions_of(
    table_id: str,
    bound: Sequence[BoundPolicy],
    inputs: PolicyInputs,
    attributes: PrincipalAttributes,
    columns: Columns,
    metadata_location: str,
) -> BindingResult:
    """Return the restrictions of one table for one principal. The order of `bound` has no effect.

    `bound` has the policies of `inputs` that apply to the principal. `columns` come from the document at
    `metadata_location`. Raises RestrictionNotExpressible if reading must be refused.
    """
    table = TableColumns(columns, inputs)
    problems: set[PolicyProblem] = set()
    filters: list[Predicate] = []
    masks: dict[int, list[Projection]] = {}
    for one in bound:
        found: list[str] = []
        match one.policy.definition:
            case RowFilter() as row_filter:
                filters.append(_filter(row_filter, TestBinder(table, one, attributes), found))
            case Mask() as mask:
                for projection in _masks(mask, table, one, found):
                    masks.setdefault(projection.field_id, []).append(projection)
        problems.update(PolicyProblem(one.policy.id, table_id, text) for text in found)
    table.require_separable(masks)
    row_filter_of_all, merged = all_of(*filters), strictest(masks)
    ordered = tuple(sorted(problems))
    if row_filter_of_all == ALWAYS and not merged:
        return BindingResult(None, ordered)
    append = all(one.policy.allow_append for one in bound)
    return BindingResult(TableRestrictions(table_id, row_filter_of_all, merged, append, metadata_location), ordered)


def _filter(row_filter: RowFilter, binder: TestBinder, problems: list[str]) -> Predicate:
    """Return the predicate of one row filter: NEVER, with a problem, if a part of it cannot be bound."""
    try:
        return simplified(binder.predicate(row_filter.test))
    except FilterNotApplicable as error:
        problems.append(f"{error}: the filter hides all rows until the policy or the table is changed")
        return NEVER


def _masks(mask: Mask, table: TableColumns, bound: BoundPolicy, problems: list[str]) -> list[Projection]:
    """Return the projections of one mask, with a problem for each part that is applied more strictly than written."""
    exact, whole = table.masked(mask, bound, problems)
    found = []
    for field_id in sorted(exact | whole):
        action = Action.REPLACE_WITH_NULL if field_id in whole - exact else mask.action
        found.append(Projection(field_id, _applicable(action, table, field_id, problems)))
    return found


def _applicable(action: Action, table: TableColumns, field_id: int, problems: list[str]) -> Action:
    """Return the action, or the least one that applies to the column in all schemas.

    Raises RestrictionNotExpressible if none applies.
    """
    fields = table.definitions(field_id)
    required = any(field.required for field in fields)
    for each in (action, Action.REPLACE_WITH_NULL, Action.MASK_TO_FIXED_VALUE):
        if all(applies(each, field.type, required=required) for field in fields):
            if each is not action:
                problems.append(
                    f"the mask {action.value} does not apply to the column {fields[-1].name!r} and is replaced by "
                    f"{each.value}: choose a mask for the type of the column"
                )
            return each
    raise RestrictionNotExpressible(f"no mask applies to the required column {fields[-1].name!r}")
