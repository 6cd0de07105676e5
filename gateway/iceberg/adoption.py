# SPDX-License-Identifier: Apache-2.0
"""Convert metadata documents of other catalogs to the form in which this catalog stores them, before they are
validated.

The Java library reads spellings that other readers do not: enumerations and types in any letter case, summaries without
`operation`, version 1 without `table-uuid`. They are stored as every reader expects them. Documents that the Java
library does not read are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from gateway.iceberg import codec
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.partition import stored_fields
from gateway.iceberg.schema import stored_type
from gateway.iceberg.snapshots import stored_snapshot

_V2_MEMBERS: Final = (
    "last-sequence-number",
    "schemas",
    "current-schema-id",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "sort-orders",
    "default-sort-order-id",
)
_TOGETHER: Final = (
    ("schemas", "current-schema-id"),
    ("partition-specs", "default-spec-id"),
    ("sort-orders", "default-sort-order-id"),
)
"""Arrays with the member that names the current part. Version 1 may have neither."""

_IN_EACH: Final[Mapping[str, tuple[str, ...]]] = {
    "partition-specs": ("spec-id", "fields"),
    "sort-orders": ("order-id", "fields"),
    "schemas": ("fields",),
    "snapshots": ("snapshot-id", "timestamp-ms"),
}

Members = dict[str, Any]


def table_as_stored(document: Members) -> Members:
    """Return the members of a table's document in the stored form. The input is not changed.

    Raises `BadRequestException` if the document lacks a member that its format version requires.
    """
    members = {name: value for name, value in document.items() if value is not None or name == "current-snapshot-id"}
    version = members.get("format-version")
    required = (*(_V2_MEMBERS if version in (2, 3) else ()), *(("next-row-id",) if version == 3 else ()))
    for name in (*required, *(pointer for array, pointer in _TOGETHER if array in members)):
        _require(members, name, "$")
    if version == 1 and "schemas" not in members:
        _require(members, "schema", "$")
    if version == 1 and "partition-specs" not in members:
        _require(members, "partition-spec", "$")
    for name, inner in _IN_EACH.items():
        for index, part in enumerate(_list(members, name)):
            for member in inner if isinstance(part, dict) else ():
                _require(part, member, f"$.{name}[{index}]")
    _replace_each(members, "schemas", lambda schema: stored_type(_present(schema)))
    _replace_each(members, "snapshots", stored_snapshot)
    for name in ("partition-specs", "sort-orders"):
        _replace_each(members, name, lambda part: {**part, "fields": stored_fields(part["fields"])})
    if "schema" in members:
        members["schema"] = stored_type(members["schema"])
    if isinstance(refs := members.get("refs"), dict):
        members["refs"] = {name: _lower_ref(ref) for name, ref in refs.items()}
    if version == 1 and "table-uuid" not in members:
        members["table-uuid"] = _uuid_of(document)
    return members


def view_as_stored(document: Members) -> Members:
    """Return the members of a view's document in the stored form. The input is not changed.

    Raises `BadRequestException` if a required member is missing.
    """
    members = _present(document)
    for name in ("schemas", "versions", "version-log"):
        _require(members, name, "$")
    _replace_each(members, "schemas", lambda schema: stored_type(_present(schema)))
    _replace_each(members, "versions", _present)
    return members


def _present(members: Members) -> Members:
    """Return the members that are not null."""
    return {name: value for name, value in members.items() if value is not None}


def _require(members: Mapping[str, Any], name: str, at: str) -> None:
    if name not in members:
        raise BadRequestException(f"Malformed request: object missing required field `{name}` at `{at}`")


def _list(members: Members, name: str) -> list[Any]:
    value = members.get(name)
    return value if isinstance(value, list) else []


def _replace_each(members: Members, name: str, change: Callable[[Members], Any]) -> None:
    """Replace each object in an array by the result of `change`. Other values are kept, and validation reports them."""
    if _list(members, name):
        members[name] = [change(part) if isinstance(part, dict) else part for part in members[name]]


def _lower_ref(ref: Any) -> Any:
    if not isinstance(ref, dict):
        return ref
    members = _present(ref)
    kind = members.get("type")
    return {**members, "type": kind.lower()} if isinstance(kind, str) else members


def _uuid_of(document: Members) -> str:
    """Return a UUID for a table whose document has none. Each registration of the same document gives the same UUID."""
    return str(UUID(bytes=hashlib.sha256(codec.encode(document)).digest()[:16], version=5))
