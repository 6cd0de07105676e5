# SPDX-License-Identifier: Apache-2.0
"""The closed union of obligations. An obligation is a restriction of an allowed operation.

Column grants and guardrails (Rego packages) produce obligations. `Obligations` (`merging.py`) merges those of one
decision, and `application.py` applies each kind where data or credentials leave the gateway. A new kind needs a class
here, a case in each `match` there, and a sentence in `docs/policy-author.md`. The type checker reports every missing
case.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Self

import msgspec

from gateway.obligations.data_policies import Test
from gateway.obligations.projections import strictest
from lakegate.restrictions.actions import Action, Projection
from lakegate.restrictions.predicates import ALWAYS, Predicate, all_of, canonical


class Kind(ABC):
    """The interface of every kind of obligation. `strictest` is associative, commutative and idempotent
    (property-tested).

    `rego` is (name, type) of the kind's field in guardrails, None if guardrails cannot demand the kind.
    """

    rego: ClassVar[tuple[str, Any] | None] = None

    @classmethod
    def stated(cls, value: Any) -> Self | None:
        """Return the obligation for a field value of a guardrail; None if the value restricts nothing.

        Raises ValueError for an invalid value, and TypeError for a kind that guardrails cannot demand.
        """
        raise TypeError(f"guardrails cannot state {cls.__name__}")

    @property
    def about(self) -> str:
        """Return the id of the restricted object; empty for the object of the decision.

        Obligations are merged only if their ids are equal.
        """
        return ""

    @abstractmethod
    def strictest(self, other: Self) -> Self:
        """Return an obligation that is at least as strict as both. Both must concern the same object."""

    @abstractmethod
    def audited(self) -> dict[str, int | bool]:
        """Return the fields for the audit record: numbers and booleans only, no data."""

    @abstractmethod
    def identity(self) -> tuple[Any, ...]:
        """Return the values that distinguish two obligations of the kind, as types that MessagePack can encode."""


@dataclass(frozen=True, slots=True)
class CredentialLife(Kind):
    """The maximum lifetime of vended credentials, in seconds."""

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
    """A ban on vended credentials."""

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
    """Vended credentials must not allow the deletion of files."""

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
    """Mixin for kinds that are a set of texts. Merging two of them gives the union."""

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
    """Operations that the response of `GET /v1/config` must not list."""

    rego: ClassVar[tuple[str, Any] | None] = ("hide_operations", tuple[str, ...])

    def audited(self) -> dict[str, int | bool]:
        return {}


#: The JSON schemas for guardrails contain no references, so they describe only the outermost test of a filter.
_StatedTest = Annotated[dict[str, Any], msgspec.Meta(extra_json_schema={"required": ["type"]})]
_StatedMask = Annotated[
    dict[str, str],
    msgspec.Meta(
        extra_json_schema={
            "properties": {"action": {"enum": sorted(Action)}, "column": {"type": "string"}},
            "required": ["action", "column"],
        }
    ),
]


@dataclass(frozen=True, slots=True)
class RowFilters(_Texts):
    """Tests that every readable row satisfies, each as JSON of a `Test` of data policies.

    The door binds them to the table of the decision (`guardrail_policies`). Where there is no such table, nothing
    can enforce them, and all reads are refused.
    """

    rego: ClassVar[tuple[str, Any] | None] = ("row_filters", tuple[_StatedTest, ...])

    @classmethod
    def stated(cls, value: Any) -> Self | None:
        texts = frozenset(msgspec.json.encode(msgspec.convert(each, Test)).decode() for each in value)
        return cls(texts) if texts else None

    def audited(self) -> dict[str, int | bool]:
        return {"row_filters": len(self.texts)}


@dataclass(frozen=True, slots=True)
class ColumnMasks(_Texts):
    """Masks of columns by name. Each text is `<column>: <action>` with an action of the catalog protocol.

    The door binds them to the table of the decision, as it does for `RowFilters`.
    """

    rego: ClassVar[tuple[str, Any] | None] = ("column_masks", tuple[str | _StatedMask, ...])

    @classmethod
    def stated(cls, value: Any) -> Self | None:
        texts = [each if isinstance(each, str) else f"{each['column']}: {each['action']}" for each in value]
        for text in texts:
            column, parted, action = text.rpartition(": ")
            if not parted or not column or action not in set(Action):
                raise ValueError(f"{text[:80]!r} must have the form '<column>: <action>'")
        return cls(frozenset(texts)) if texts else None

    def audited(self) -> dict[str, int | bool]:
        return {"column_masks": len(self.texts)}


@dataclass(frozen=True, slots=True)
class ReadableColumns(Kind):
    """The readable columns of a table, for an engine that applies the projections to all other columns.

    `table` is the id of the table. `fields` are field ids of the current schema, and `projections` has the replacement
    of each other column. Both come from the document at `metadata_location`, which comparisons ignore.
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


@dataclass(frozen=True, slots=True)
class TableRestrictions(Kind):
    """The data policies of a table, merged for one principal, for an engine that applies them.

    `table` is the id of the table. `row_filter` holds for every visible row, on original values. `masks` replace values
    of the visible rows. With `append`, the principal may append rows through an enforcer. Field ids refer to the
    document at `metadata_location`, which comparisons ignore.
    """

    table: str
    row_filter: Predicate
    masks: tuple[Projection, ...]
    append: bool
    metadata_location: str = field(compare=False)

    @property
    def about(self) -> str:
        return self.table

    def strictest(self, other: Self) -> Self:
        by_field: dict[int, list[Projection]] = {}
        for each in (*self.masks, *other.masks):
            by_field.setdefault(each.field_id, []).append(each)
        return type(self)(
            self.table,
            all_of(self.row_filter, other.row_filter),
            strictest(by_field),
            self.append and other.append,
            min(self.metadata_location, other.metadata_location),
        )

    def audited(self) -> dict[str, int | bool]:
        return {"row_filters": int(self.row_filter != ALWAYS), "column_masks": len(self.masks)}

    def identity(self) -> tuple[Any, ...]:
        masks = [(each.field_id, each.action.value) for each in self.masks]
        return canonical(self.row_filter), masks, self.append


Obligation = (
    CredentialLife
    | NoVending
    | AppendOnly
    | HiddenOperations
    | RowFilters
    | ColumnMasks
    | ReadableColumns
    | TableRestrictions
)

KINDS: Final[tuple[type[Obligation], ...]] = (
    CredentialLife,
    NoVending,
    AppendOnly,
    HiddenOperations,
    RowFilters,
    ColumnMasks,
    ReadableColumns,
    TableRestrictions,
)
"""All kinds. Fingerprints and the fields of guardrails use this order."""
