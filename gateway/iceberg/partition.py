# SPDX-License-Identifier: Apache-2.0
"""Partition specs and sort orders: parsing, checks against a schema, and the rules for reusing ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeVar

from msgspec import Meta, Raw, Struct

from gateway.iceberg import codec
from gateway.iceberg.codec import Part
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.schema import Schema
from gateway.iceberg.types import can_bind, can_transform, check_transform, is_primitive, stored_transform
from lakegate.restrictions.literals import Int, StructType, type_name

FIRST_PARTITION_FIELD_ID: Final = 1000
UNPARTITIONED_LAST_ID: Final = FIRST_PARTITION_FIELD_ID - 1
UNSORTED_ORDER_ID: Final = 0

Transform = Annotated[str, Meta(min_length=1, max_length=100)]


class PartitionField(Struct, frozen=True, rename="kebab", kw_only=True):
    """One field of a partition spec. If `field_id` is None, the catalog assigns it."""

    source_id: Int
    name: str
    transform: Transform
    field_id: Int | None = None

    @property
    def content(self) -> tuple[int, str]:
        """Return (source id, transform), which define the field without its name and id."""
        return (self.source_id, self.transform)


class PartitionSpec(Part, frozen=True, kw_only=True):
    """One partition spec of a table."""

    spec_id: Int = 0
    fields: tuple[PartitionField, ...] = ()

    @property
    def last_field_id(self) -> int:
        """Return the highest partition field id, or 999 if there are no fields."""
        return max((f.field_id for f in self.fields if f.field_id is not None), default=UNPARTITIONED_LAST_ID)

    def compatible_with(self, other: PartitionSpec) -> bool:
        """Return True if the sources, transforms and names are equal and in the same order. Ids are ignored.

        A new spec that is compatible with an existing one reuses its spec id.
        """
        return [(f.content, f.name) for f in self.fields] == [(f.content, f.name) for f in other.fields]


class SortField(Struct, frozen=True, rename="kebab", kw_only=True):
    """One field of a sort order."""

    source_id: Int
    transform: Transform
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]


class SortOrder(Part, frozen=True, kw_only=True):
    """The order of rows within data files. Order 0 is always unsorted."""

    order_id: Int = 0
    fields: tuple[SortField, ...] = ()


UNPARTITIONED: Final = PartitionSpec.of({"spec-id": 0, "fields": []})
UNSORTED: Final = SortOrder.of({"order-id": 0, "fields": []})

P = TypeVar("P", PartitionSpec, SortOrder)


def read_spec(text: Raw, *, at: str) -> PartitionSpec:
    """Parse a partition spec from a client without a check against a schema. Raises `BadRequestException`."""
    members = codec.canonical_object(text, at=at)
    spec = PartitionSpec.of({**members, "fields": stored_fields(members.get("fields", []))}, at=at)
    for field in spec.fields:
        check_transform(field.transform)
    return spec


def read_order(text: Raw, *, at: str) -> SortOrder:
    """Parse a sort order from a client without a check against a schema. Raises `BadRequestException`."""
    members = codec.canonical_object(text, at=at)
    order = SortOrder.of({**members, "fields": stored_fields(members.get("fields", []))}, at=at)
    for field in order.fields:
        check_transform(field.transform)
    return order


def stored_fields(fields: Any) -> Any:
    """Return the JSON of partition or sort fields with enumerations and known transforms in lower case.

    All readers expect lower case; only the Java library reads every letter case. A value that is not a list of objects
    is returned unchanged.
    """
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        return fields
    return [{name: _SPELLINGS.get(name, _same)(value) for name, value in field.items()} for field in fields]


def _same(value: Any) -> Any:
    return value


_SPELLINGS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "direction": lambda value: value.lower() if isinstance(value, str) else value,
    "null-order": lambda value: value.lower() if isinstance(value, str) else value,
    "transform": lambda value: stored_transform(value) if isinstance(value, str) else value,
}


def spec_with(spec: PartitionSpec, *, spec_id: int, fields: Iterable[PartitionField]) -> PartitionSpec:
    """Return the spec with another id and other fields. Unknown members are kept.

    There must be as many fields as before, in the same order.
    """
    members = spec.members()
    old = members.get("fields", [])
    members["fields"] = [{**known, **_plain(field)} for known, field in zip(old, fields, strict=True)]
    members.pop("spec-id", None)
    return PartitionSpec.of({"spec-id": spec_id, **members})


def order_with(order: SortOrder, *, order_id: int, source_ids: Sequence[int] | None = None) -> SortOrder:
    """Return the order with another id and, if given, other source ids. Unknown members are kept."""
    members = order.members()
    members.pop("order-id", None)
    if source_ids is not None:
        members["fields"] = [{**f, "source-id": s} for f, s in zip(members["fields"], source_ids, strict=True)]
    return SortOrder.of({"order-id": order_id, **members})


def check_spec(spec: PartitionSpec, schema: Schema) -> None:
    """Raise `BadRequestException` if a new spec cannot be used with a schema.

    The messages are those of the Java reference implementation.
    """
    check_partition_names(spec)
    _refuse_redundant(spec)
    check_default_spec(spec, schema)


def check_partition_names(spec: PartitionSpec) -> None:
    """Raise `BadRequestException` if a name of a partition field is empty or is used twice."""
    names: set[str] = set()
    for field in spec.fields:
        if not field.name:
            raise BadRequestException("Cannot use empty or null partition name")
        if field.name in names:
            raise BadRequestException(f"Cannot use partition name more than once: {field.name}")
        names.add(field.name)


def check_default_spec(spec: PartitionSpec, schema: Schema) -> None:
    """Raise `BadRequestException` unless the default spec fits the current schema.

    The source column must exist, have a type that fits the transform, and must not be inside of a list or map. Sources
    of the transform `void` may have been dropped.
    """
    check_bindable([spec], schema)
    for field in spec.fields:
        if type_name(field.transform) != "void":
            _check_source(schema, field, "partition")


def check_bindable(specs: Iterable[PartitionSpec], schema: Schema) -> None:
    """Raise `BadRequestException` if a spec, default or not, cannot be built for the current schema.

    A field may have the name of a column only if that column is its source, and its transform must fit (`can_bind`). A
    field whose column was dropped has the transform `void`, and is skipped.
    """
    for spec in specs:
        for field in spec.fields:
            named, column = schema.named(field.name), schema.columns.get(field.source_id)
            if column is None and type_name(field.transform) == "void":
                continue
            if named is not None and named.field.id != field.source_id:
                raise BadRequestException(
                    "Cannot create identity partition sourced from different field in schema: "
                    f"{field.name}. Choose another name for the column, or remove the partition spec with this name"
                )
            if column is not None and not can_bind(field.transform, column.field.type):
                raise BadRequestException(
                    f"Invalid source type {type_name(column.field.type)} for transform: {field.transform} of the "
                    f"column {column.dotted}. Remove partition spec {spec.spec_id}, which has this transform, first"
                )


def check_order(order: SortOrder, schema: Schema) -> None:
    """Raise `BadRequestException` if a sort order cannot be used with a schema."""
    for field in order.fields:
        _check_source(schema, field, "sort")


def check_sequential_ids(spec: PartitionSpec) -> None:
    """Raise `BadRequestException` unless the partition field ids count up from 1000.

    Format version 1 does not store these ids; readers derive them from the position.
    """
    ids = [field.field_id for field in spec.fields]
    if ids != list(range(FIRST_PARTITION_FIELD_ID, FIRST_PARTITION_FIELD_ID + len(ids))):
        raise BadRequestException(f"Spec does not use sequential IDs that are required in v1: {ids}")


def assign_field_ids(
    spec: PartitionSpec, known: Iterable[PartitionSpec], *, last_id: int, format_version: int
) -> tuple[PartitionField, ...]:
    """Return the spec's fields, each with an id.

    In version 1 missing ids count up from 1000. In later versions a field reuses the id of a field with the same source
    and transform in a spec of `known`. If there is none, it gets the next unused id. An id thus keeps one meaning
    during the life of the table. Raises `BadRequestException` if the client reuses an id for another field.
    """
    if format_version == 1:
        return tuple(
            _with_id(field, field.field_id if field.field_id is not None else FIRST_PARTITION_FIELD_ID + position)
            for position, field in enumerate(spec.fields)
        )
    meanings: dict[int, set[tuple[int, str]]] = {}
    for field in (field for other in known for field in other.fields):
        if field.field_id is not None:
            meanings.setdefault(field.field_id, set()).add(field.content)
    taken = {field.field_id for field in spec.fields if field.field_id is not None}
    next_id = max([last_id, *taken]) + 1
    result: list[PartitionField] = []
    for field in spec.fields:
        field_id = field.field_id
        if field_id is None:
            field_id = next((i for i, m in meanings.items() if field.content in m and i not in taken), None)
            if field_id is None:
                field_id, next_id = next_id, next_id + 1
            taken.add(field_id)
        elif (before := meanings.get(field_id)) and not _same_meaning(field, before):
            raise BadRequestException(
                f"Cannot use partition field id {field_id} for {field.name}: another partition field already has "
                "this id"
            )
        result.append(_with_id(field, field_id))
    if len({field.field_id for field in result}) != len(result):
        raise BadRequestException(f"Cannot use a partition field id more than once: {[f.field_id for f in result]}")
    return tuple(result)


def _same_meaning(field: PartitionField, before: set[tuple[int, str]]) -> bool:
    """Return True if a new field may get an id that fields with the definitions `before` have.

    A `void` field may have the id of any other field: it replaces a dropped one in tables that began with version 1.
    """
    return field.content in before or field.transform == "void" or any(transform == "void" for _, transform in before)


def _check_source(schema: Schema, field: PartitionField | SortField, noun: str) -> None:
    column = schema.columns.get(field.source_id)
    shown = field.name if isinstance(field, PartitionField) else f"{field.transform}({field.source_id})"
    if column is None:
        raise BadRequestException(f"Cannot find source column for {noun} field: {shown} (source id {field.source_id})")
    kind = column.field.type
    if not is_primitive(kind) and (noun == "sort" or type_name(kind) != "variant"):
        verb = "partition" if noun == "partition" else "sort"
        raise BadRequestException(f"Cannot {verb} by non-primitive source field: {column.dotted}")
    if noun == "partition":
        for parent, _ in column.parents:
            if not isinstance(parent, StructType):
                raise BadRequestException(
                    f"Invalid partition field parent: {column.dotted} lies in a {type_name(parent)}. Partition by "
                    "columns that lie in no list and no map"
                )
    if not can_transform(field.transform, kind):
        raise BadRequestException(f"Invalid source type {type_name(kind)} for transform: {field.transform}")


def _refuse_redundant(spec: PartitionSpec) -> None:
    """Raise `BadRequestException` if two fields with different names have the same source and transform.

    Fields with the transform `void` are skipped.
    """
    seen: dict[tuple[int, str], str] = {}
    for field in spec.fields:
        if type_name(field.transform) == "void":
            continue
        if (other := seen.setdefault(field.content, field.name)) != field.name:
            raise BadRequestException(f"Cannot add redundant partition: {other} conflicts with {field.name}")


def _with_id(field: PartitionField, field_id: int) -> PartitionField:
    return PartitionField(source_id=field.source_id, name=field.name, transform=field.transform, field_id=field_id)


def _plain(field: PartitionField) -> dict[str, object]:
    return {
        "source-id": field.source_id,
        "field-id": field.field_id,
        "name": field.name,
        "transform": field.transform,
    }
