# SPDX-License-Identifier: Apache-2.0
"""Every type with many default values, of the type and not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

JSON = dict[str, Any]

_TYPES: Final[tuple[Any, ...]] = (
    *("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns"),
    *("timestamptz_ns", "string", "uuid", "fixed[4]", "fixed[0]", "binary", "decimal(9,2)", "unknown", "variant"),
    *("geometry", "geography"),
    {"type": "list", "element-id": 9, "element": "int", "element-required": False},
    {"type": "struct", "fields": []},
    {"type": "map", "key-id": 7, "key": "int", "value-id": 8, "value": "int", "value-required": False},
)
_UUID: Final = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
_VALUES: Final[tuple[Any, ...]] = (
    *(True, False, 0, 1, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, 1.0, 1.5, 1e39, 1e300, -0.0),
    *("", "x", "1", "0a", "0A", "0a0", "0a0b0c0d", "10:11", "10:11:12", "10:11:12.1", "10:11:12.123456789"),
    *("24:00:00", "23:59:60", "10:11:12Z", "2020-02-29", "2020-02-30", "2021-02-29", "+2020-01-01", "-0001-01-01"),
    *("+10000-01-01", "10000-01-01", "+999999999-12-31", "0000-01-01", "2020-1-1", "2020-01-01T10:11"),
    *("2020-01-01T10:11:12", "2020-01-01T10:11:12.123456789", "2020-01-01T24:00:00", "2020-01-01 10:11:12"),
    *("2020-01-01T10:11:12Z", "2020-01-01T10:11:12+00:00", "2020-01-01T10:11:12-00:00", "2020-01-01T10:11:12+01:00"),
    *("2020-01-01T10:11:12+00", "2020-01-01T10:11:12+00:00:00", "2020-01-01t10:11:12z", "+300000-01-01T00:00:00"),
    *("+300000-01-01T00:00:00Z", "2500-01-01T00:00:00", "2500-01-01T00:00:00+00:00", "1600-01-01T00:00:00"),
    *("12.34", "-12.34", "+12.34", "012.34", ".34", "12.", "1234567890.12", "12345678.12", "1E2", "1234E-2"),
    *("1.234E1", "12.3", "0.00", _UUID, _UUID.upper(), _UUID.replace("-", ""), _UUID[:-1] + "g", "1-1-1-1-1"),
    *("{" + _UUID + "}", "f79c3e096-77c-4bbd-a479-3f349cb785e7", [], {}, [1], {"1": 1}, {"keys": [], "values": []}),
)


def defaults() -> Iterator[JSON]:
    """Yield a request to create a table for each pair of a type and a value."""
    for kind in _TYPES:
        for value in _VALUES:
            field = {"id": 1, "name": "a", "required": False, "type": kind, "write-default": value}
            schema = {"type": "struct", "schema-id": 0, "fields": [field]}
            request = {
                "name": "t",
                "location": "s3://bucket/t",
                "schema": schema,
                "properties": {"format-version": "3"},
            }
            yield {"kind": "create", "view": False, "request": request}
