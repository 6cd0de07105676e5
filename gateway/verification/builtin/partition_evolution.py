# SPDX-License-Identifier: Apache-2.0
"""Limit changes of a table's default partition spec, and its transforms: the built-in verifier `partitions`.

The modes: `none` allows no change, `add_only` allows more partition fields, and `any` allows all changes. The allowed
transforms apply to new tables and to partition fields that a change adds.
"""

from __future__ import annotations

from typing import Final, Literal

from gateway.iceberg.metadata import TableMetadata
from gateway.iceberg.partition import PartitionField
from gateway.verification.builtin.documents import table_after, table_before
from gateway.verification.builtin.rule import DATA_UPDATES, PROPERTY_UPDATES, Concern
from gateway.verification.port import ChangeKind, ProposedChange
from lakegate.restrictions.literals import type_name

PartitionEvolution = Literal["none", "add_only", "any"]

CONCERN: Final = Concern(
    kinds=frozenset({ChangeKind.CREATE, ChangeKind.COMMIT}),
    object_types=frozenset({"table"}),
    unaffected=DATA_UPDATES | PROPERTY_UPDATES,
)
TRANSFORMS: Final = frozenset({"identity", "bucket", "truncate", "year", "month", "day", "hour"})


def parse_transforms(names: tuple[str, ...]) -> frozenset[str]:
    """Return the names of transforms in lower case. Raises ValueError for an unknown transform."""
    found = frozenset(name.lower() for name in names)
    if unknown := sorted(found - TRANSFORMS):
        raise ValueError(f"{', '.join(unknown)} must be one of {', '.join(sorted(TRANSFORMS))}")
    return found


def forbidden_evolution(
    change: ProposedChange, *, mode: PartitionEvolution, transforms: frozenset[str]
) -> tuple[str, ...]:
    """Return the reasons against the new partition spec. If `transforms` is empty, all transforms are allowed.

    Raises DocumentMissing and `BadRequestException`.
    """
    before, after = table_before(change), table_after(change)
    old, new = _fields(before), _fields(after)
    reasons: list[str] = []
    if before is not None and mode != "any":
        reasons += [f"partition field {_shown(field)} must not be removed" for field in old if not _among(field, new)]
        if mode == "none":
            reasons += [f"partition field {_shown(field)} must not be added" for field in new if not _among(field, old)]
            if not reasons and _layout(old) != _layout(new):
                reasons.append("the names and the order of the partition fields must not change")
    if transforms:
        allowed = ", ".join(sorted(transforms))
        reasons += [
            f"partition field {_shown(field)} must use one of the transforms {allowed}"
            for field in new
            if not _among(field, old) and type_name(field.transform) not in transforms
        ]
    return tuple(reasons)


def _fields(metadata: TableMetadata | None) -> tuple[PartitionField, ...]:
    """Return the fields of the default spec. In format version 1, a removed field stays with the transform `void`."""
    if metadata is None:
        return ()
    return tuple(field for field in metadata.default_spec.fields if type_name(field.transform) != "void")


def _among(field: PartitionField, fields: tuple[PartitionField, ...]) -> bool:
    """Return True if one of `fields` has the same source and transform as `field`."""
    return any(_content(field) == _content(other) for other in fields)


def _content(field: PartitionField) -> tuple[int, str]:
    return field.source_id, field.transform.lower()


def _layout(fields: tuple[PartitionField, ...]) -> list[tuple[int, str, str]]:
    return [(*_content(field), field.name) for field in fields]


def _shown(field: PartitionField) -> str:
    return f"{field.name} ({field.transform} of column {field.source_id})"
