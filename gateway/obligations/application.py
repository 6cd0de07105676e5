# SPDX-License-Identifier: Apache-2.0
"""Apply obligations (restrictions of an allowed operation) wherever data, metadata or credentials leave the gateway.

Every function here matches all kinds: a missing case is an error of the type checker. If an obligation cannot be
enforced at one of these places, the operation is refused (`unenforced`). So no obligation is ever ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from gateway.obligations.compilers.read_restrictions import read_restrictions
from gateway.obligations.kinds import (
    AppendOnly,
    ColumnMasks,
    CredentialLife,
    HiddenOperations,
    NoVending,
    Obligation,
    ReadableColumns,
    RowFilters,
    TableRestrictions,
)
from gateway.obligations.merging import Obligations
from lakegate.restrictions.predicates import ALWAYS


class EnforcementPoint(StrEnum):
    """A point at which a part of a table leaves or enters the gateway."""

    VEND = "vend"
    """Credentials for the files of the table."""
    LOAD = "load"
    """The table's metadata, which contains bounds and counts of its data."""
    DESCRIBE = "describe"
    """The description of a generic table, without its statistics and without credentials."""
    SIGN = "sign"
    """Signatures of requests to the files of the table."""
    SCAN = "scan"
    """The permission for an engine to read the table, directly or through a view."""
    WRITE = "write"
    """A commit by a caller that may not read the whole table."""
    APPEND = "append"
    """A commit that only appends a snapshot to the main branch."""
    UNREGISTER = "unregister"
    """The removal of a table from the catalog, which returns its metadata and leaves its files to other tables."""


#: At these enforcement points no engine can apply a restriction.
_NEVER_IN_PART = frozenset(
    {EnforcementPoint.SIGN, EnforcementPoint.WRITE, EnforcementPoint.APPEND, EnforcementPoint.UNREGISTER}
)


def unenforced(obligations: Obligations, enforcement_point: EnforcementPoint) -> str | None:
    """Return the reason to refuse the operation at this point, as text for the caller.

    Return None if all obligations are enforced there.
    """
    return next((reason for one in obligations if (reason := _unenforced(one, enforcement_point)) is not None), None)


def _unenforced(obligation: Obligation, enforcement_point: EnforcementPoint) -> str | None:
    match obligation:
        case RowFilters():
            return "a policy filters its rows, and no component enforces the filter for this request"
        case ColumnMasks():
            return "a policy masks its columns, and no component enforces the masks for this request"
        case NoVending():
            return "a policy forbids vending" if enforcement_point is EnforcementPoint.SIGN else None
        case ReadableColumns():
            # Outside of `_NEVER_IN_PART` the engine withholds the other columns. The door has verified that the engine
            # is an enforcer.
            return "not all of it may be read" if enforcement_point in _NEVER_IN_PART else None
        case TableRestrictions(append=append):
            if enforcement_point is EnforcementPoint.APPEND and append:
                return None
            return "a data policy restricts what you read of it" if enforcement_point in _NEVER_IN_PART else None
        case CredentialLife() | AppendOnly() | HiddenOperations():
            return None
        case _:
            assert_never(obligation)


@dataclass(frozen=True, slots=True)
class VendingTerms:
    """The terms of vended credentials.

    - `seconds`: the maximum lifetime; None if no obligation limits it.
    - `may_delete`: False if the credentials must not allow deletion of files.
    - `whole`: False if the caller may not read the whole table.
    - `appends`: True if a caller that may not read the whole table may nevertheless append to it.
    - `refusal`: the reason to vend no credentials, or None.
    """

    seconds: int | None = None
    may_delete: bool = True
    whole: bool = True
    appends: bool = True
    refusal: str | None = None


_UNRESTRICTED = VendingTerms()


def vending_terms(obligations: Obligations) -> VendingTerms:
    """Return the terms of vended credentials under these obligations."""
    if not obligations.each:
        return _UNRESTRICTED
    terms = VendingTerms(refusal=unenforced(obligations, EnforcementPoint.VEND))
    for one in obligations:
        terms = _vending(one)(terms)
    return terms


def _vending(obligation: Obligation) -> Callable[[VendingTerms], VendingTerms]:
    match obligation:
        case CredentialLife(seconds=seconds):
            return lambda terms: replace(terms, seconds=seconds)
        case AppendOnly():
            return lambda terms: replace(terms, may_delete=False)
        case NoVending():
            return lambda terms: replace(terms, refusal="a policy forbids vending")
        case ReadableColumns():
            return lambda terms: replace(terms, whole=False, appends=False)
        case TableRestrictions(append=append):
            return lambda terms: replace(terms, whole=False, appends=terms.appends and append)
        case RowFilters() | ColumnMasks() | HiddenOperations():
            # Row filters and masks have set `refusal` above. Hidden operations do not concern credentials.
            return lambda terms: terms
        case _:
            assert_never(obligation)


def restrictions_for_load(obligations: Obligations, table: str) -> bytes:
    """Return the JSON of `read-restrictions` in the load response of the table with this id; empty without
    restrictions.
    """
    restrictions = restrictions_on(obligations, table)
    return b"" if restrictions is None else read_restrictions(restrictions)


def restrictions_on(obligations: Obligations, table: str) -> TableRestrictions | None:
    """Return everything that an engine must apply to the table with this id; None without restrictions.

    Columns that column grants withhold have a projection too. It is merged with the masks of data policies to the
    strictest of both (`projections.meet`).
    """
    columns: ReadableColumns | None = None
    policies: TableRestrictions | None = None
    for one in obligations:
        match one:
            case ReadableColumns():
                columns = one if one.table == table else columns
            case TableRestrictions():
                policies = one if one.table == table else policies
            case CredentialLife() | NoVending() | AppendOnly() | HiddenOperations() | RowFilters() | ColumnMasks():
                pass  # these do not change the response; `unenforced` refuses row filters and masks
            case _:
                assert_never(one)
    if columns is None:
        return policies
    withheld = TableRestrictions(table, ALWAYS, columns.projections, False, columns.metadata_location)
    return withheld if policies is None else policies.strictest(withheld)


def hidden_operations(obligations: Obligations) -> frozenset[str]:
    """Return the names of the operations that the response of `GET /v1/config` must not list."""
    found: frozenset[str] = frozenset()
    for one in obligations:
        match one:
            case HiddenOperations(texts=names):
                found = names
            case (
                CredentialLife()
                | NoVending()
                | AppendOnly()
                | ReadableColumns()
                | TableRestrictions()
                | RowFilters()
                | ColumnMasks()
            ):
                pass  # these concern data, not the advertised operations
            case _:
                assert_never(one)
    return found
