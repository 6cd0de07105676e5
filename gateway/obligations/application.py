# SPDX-License-Identifier: Apache-2.0
"""Apply obligations at each place where data, credentials or descriptions of data leave.

Every function here matches all kinds: a missing case is an error of the type checker. An obligation that nothing
enforces is refused (`unenforced`), so none is ever ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from gateway.obligations.kinds import (
    AppendOnly,
    ColumnMasks,
    CredentialLife,
    HiddenOperations,
    NoVending,
    Obligation,
    ReadableColumns,
    RowFilters,
)
from gateway.obligations.merging import Obligations
from gateway.obligations.projections import read_restrictions


class Place(StrEnum):
    """A place where a part of a table leaves the gateway, or enters it."""

    VEND = "vend"
    """Credentials for its files."""
    LOAD = "load"
    """Its metadata, which holds bounds and counts of its data."""
    SIGN = "sign"
    """Signatures of requests to its files."""
    SCAN = "scan"
    """A yes to an engine that reads it, directly or through a view."""
    WRITE = "write"
    """A commit by a caller who may not see all of it."""


def unenforced(obligations: Obligations, place: Place) -> str | None:
    """Return why nothing may be done at this place, in words for the caller; None if every obligation is enforced."""
    return next((why for one in obligations if (why := _unenforced(one, place)) is not None), None)


def _unenforced(obligation: Obligation, place: Place) -> str | None:
    match obligation:
        case RowFilters():
            return "a policy restricts its rows, and nothing here enforces row filters"
        case ColumnMasks():
            return "a policy masks columns by name, and nothing here enforces such masks"
        case NoVending():
            return "a policy forbids vending" if place is Place.SIGN else None
        case ReadableColumns():
            # At the other places an engine applies the projections; the door has checked that it is an enforcer.
            return "not all of it may be read" if place in (Place.SIGN, Place.WRITE) else None
        case CredentialLife() | AppendOnly() | HiddenOperations():
            return None
        case _:
            assert_never(obligation)


@dataclass(frozen=True, slots=True)
class VendingTerms:
    """How credentials are made: the longest life in seconds, whether they may delete and write, or why there are none.

    `whole` is False if the caller may not read all of the table.
    """

    seconds: int | None = None
    may_delete: bool = True
    whole: bool = True
    refusal: str | None = None


def vending_terms(obligations: Obligations) -> VendingTerms:
    """Return the terms of credentials under these obligations."""
    terms = VendingTerms(refusal=unenforced(obligations, Place.VEND))
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
            return lambda terms: replace(terms, whole=False)
        case RowFilters() | ColumnMasks() | HiddenOperations():
            # The first two are in `refusal` already.
            return lambda terms: terms
        case _:
            assert_never(obligation)


def told_with_load(obligations: Obligations, table: str) -> bytes:
    """Return the member `read-restrictions` of a table's load as JSON, empty if nothing is held back."""
    found = b""
    for one in obligations:
        match one:
            case ReadableColumns(table=about, projections=projections):
                found = read_restrictions(projections) if about == table else found
            case CredentialLife() | NoVending() | AppendOnly() | HiddenOperations() | RowFilters() | ColumnMasks():
                pass  # they do not change what is told; `unenforced` refuses the last two
            case _:
                assert_never(one)
    return found


def hidden_operations(obligations: Obligations) -> frozenset[str]:
    """Return the names of operations that the configuration does not offer."""
    found: frozenset[str] = frozenset()
    for one in obligations:
        match one:
            case HiddenOperations(texts=names):
                found = names
            case CredentialLife() | NoVending() | AppendOnly() | ReadableColumns() | RowFilters() | ColumnMasks():
                pass  # they are about data, not about what is offered
            case _:
                assert_never(one)
    return found
