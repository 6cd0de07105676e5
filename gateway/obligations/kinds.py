# SPDX-License-Identifier: Apache-2.0
"""The closed union of obligations: restrictions that a yes carries.

Column grants and guardrails (Rego) produce obligations. `Obligations` (`merging.py`) merges those of one decision, and
`application.py` applies each kind where data or credentials leave. A new kind is a class here, a case in each `match`
there, and a sentence in `docs/policy-author.md`; the type checker names every missing case.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Self

import msgspec

from gateway.obligations.masks import Action
from gateway.obligations.projections import Projection, strictest


class Kind:
    """The interface of every kind. `strictest` is associative, commutative and idempotent; a property test checks that.

    `rego` is the name and the type of the field by which guardrails state the kind, None if they cannot.
    """

    rego: ClassVar[tuple[str, Any] | None] = None

    @classmethod
    def stated(cls, value: Any) -> Self | None:
        """Return the obligation that a value of the type in `rego` states, None if it obliges to nothing.

        Raises ValueError for a value that cannot be understood.
        """
        raise NotImplementedError

    @property
    def about(self) -> str:
        """The object of the obligation, empty for the object of the decision. Obligations about one object merge."""
        return ""

    def strictest(self, other: Self) -> Self:
        """Return the obligation that satisfies both."""
        raise NotImplementedError

    def audited(self) -> dict[str, int | bool]:
        """Return the fields of the audit record: numbers and booleans, and no data."""
        raise NotImplementedError

    def identity(self) -> tuple[Any, ...]:
        """Return the values that distinguish two obligations of the kind, in types that MessagePack has."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class CredentialLife(Kind):
    """Credentials live at most this many seconds."""

    rego: ClassVar[tuple[str, Any] | None] = ("max_credential_seconds", Annotated[int, msgspec.Meta(ge=0)])
    seconds: int

    @classmethod
    def stated(cls, value: Any) -> Self | None:
        return cls(value)

    def strictest(self, other: Self) -> Self:
        return min(self, other, key=lambda each: each.seconds)

    def audited(self) -> dict[str, int | bool]:
        return {"max_credential_seconds": self.seconds}

    def identity(self) -> tuple[Any, ...]:
        return (self.seconds,)


@dataclass(frozen=True, slots=True)
class NoVending(Kind):
    """No credentials are vended."""

    rego: ClassVar[tuple[str, Any] | None] = ("no_vending", bool)

    @classmethod
    def stated(cls, value: Any) -> Self | None:
        return cls() if value else None

    def strictest(self, other: Self) -> Self:
        return self

    def audited(self) -> dict[str, int | bool]:
        return {"no_vending": True}

    def identity(self) -> tuple[Any, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class AppendOnly(Kind):
    """Credentials cannot delete files."""

    rego: ClassVar[tuple[str, Any] | None] = ("append_only", bool)

    @classmethod
    def stated(cls, value: Any) -> Self | None:
        return cls() if value else None

    def strictest(self, other: Self) -> Self:
        return self

    def audited(self) -> dict[str, int | bool]:
        return {"append_only": True}

    def identity(self) -> tuple[Any, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class _Texts(Kind):
    """Mixin of the kinds that are a set of texts, which merge to their union."""

    texts: frozenset[str]

    @classmethod
    def stated(cls, value: Any) -> Self | None:
        return cls(frozenset(value)) if value else None

    def strictest(self, other: Self) -> Self:
        return type(self)(self.texts | other.texts)

    def identity(self) -> tuple[Any, ...]:
        return tuple(sorted(self.texts))


@dataclass(frozen=True, slots=True)
class HiddenOperations(_Texts):
    """The configuration of the catalog does not offer these operations."""

    rego: ClassVar[tuple[str, Any] | None] = ("hide_operations", tuple[str, ...])

    def audited(self) -> dict[str, int | bool]:
        return {}


@dataclass(frozen=True, slots=True)
class RowFilters(_Texts):
    """Only rows that satisfy all of these predicates may be read. Nothing here enforces them, so nothing is read."""

    rego: ClassVar[tuple[str, Any] | None] = ("row_filters", tuple[str, ...])

    def audited(self) -> dict[str, int | bool]:
        return {"row_filters": len(self.texts)}


@dataclass(frozen=True, slots=True)
class ColumnMasks(_Texts):
    """Values of columns are masked, each text being `<column>: <action>` with an action of the catalog protocol.

    Nothing here enforces them by name, so nothing is read. Column grants mask by field id (`ReadableColumns`).
    """

    rego: ClassVar[tuple[str, Any] | None] = ("column_masks", tuple[str, ...])

    @classmethod
    def stated(cls, value: Any) -> Self | None:
        for text in value:
            column, parted, action = text.rpartition(": ")
            if not parted or not column or action not in set(Action):
                raise ValueError(f"{text[:80]!r} is not '<column>: <action>'")
        return cls(frozenset(value)) if value else None

    def audited(self) -> dict[str, int | bool]:
        return {"column_masks": len(self.texts)}


@dataclass(frozen=True, slots=True)
class ReadableColumns(Kind):
    """Only these columns of a table may be read, through an engine that applies the projections to all others.

    `fields` are field ids of the current schema, `projections` the replacement of each other column. Both come from the
    document at `metadata_location`, which comparisons ignore.
    """

    table: str
    fields: frozenset[int]
    projections: tuple[Projection, ...]
    metadata_location: str = field(compare=False)

    @property
    def about(self) -> str:
        return self.table

    def strictest(self, other: Self) -> Self:
        by_field: dict[int, list[Projection]] = {}
        for each in (*self.projections, *other.projections):
            by_field.setdefault(each.field_id, []).append(each)
        return type(self)(
            self.table,
            self.fields & other.fields,
            strictest(by_field),
            min(self.metadata_location, other.metadata_location),
        )

    def audited(self) -> dict[str, int | bool]:
        return {"readable_columns": len(self.fields)}

    def identity(self) -> tuple[Any, ...]:
        return sorted(self.fields), [(each.field_id, each.action.value) for each in self.projections]


Obligation = CredentialLife | NoVending | AppendOnly | HiddenOperations | RowFilters | ColumnMasks | ReadableColumns

KINDS: Final[tuple[type[Obligation], ...]] = (
    CredentialLife,
    NoVending,
    AppendOnly,
    HiddenOperations,
    RowFilters,
    ColumnMasks,
    ReadableColumns,
)
"""Every kind, in the order of fingerprints and of the fields of guardrails."""
