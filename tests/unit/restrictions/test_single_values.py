# SPDX-License-Identifier: Apache-2.0
"""JSON values that are valid for a type."""

from __future__ import annotations

import pytest

from lakegate.restrictions.literals import is_value_of


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("boolean", True),
        ("int", -(2**31)),
        ("long", 2**63 - 1),
        ("float", 1),
        ("double", 1.5),
        ("decimal(9,2)", "14.20"),
        ("decimal(3,0)", "-999"),
        ("string", ""),
        ("uuid", "F79C3E09-677C-4BBD-A479-3F349CB785E7"),
        ("date", "2024-02-29"),
        ("date", "+12024-02-28"),
        ("time", "22:31:08.123456"),
        ("time", "22:31"),
        ("timestamp", "2017-11-16T22:31:08.123456"),
        ("timestamp_ns", "2017-11-16T22:31:08.123456789"),
        ("timestamptz", "2017-11-16T22:31:08.123456+00:00"),
        ("timestamptz_ns", "2017-11-16T22:31:08Z"),
        ("fixed[2]", "00fF"),
        ("binary", ""),
        ("binary", "ABCD"),
    ],
)
def test_values_as_engines_write_them_are_valid(kind: str, value: object) -> None:
    assert is_value_of(value, kind)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("boolean", 1),
        ("int", True),
        ("int", 2**31),
        ("int", 1.0),
        ("long", -(2**63) - 1),
        ("double", "1.5"),
        ("decimal(9,2)", "14.2"),
        ("decimal(3,1)", "123.4"),
        ("decimal(9,2)", "NaN"),
        ("decimal(9,2)", 14.2),
        ("string", 5),
        ("uuid", "f79c3e09677c4bbda4793f349cb785e7"),
        ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785eg"),
        ("date", "2023-02-29"),
        ("date", "nope"),
        ("date", 19000),
        ("time", "24:00:00"),
        ("timestamp", "2017-11-16 22:31:08"),
        ("timestamp", "2017-13-16T22:31:08"),
        ("timestamp", "2017-11-16T22:31:08Z"),
        ("timestamptz", "2017-11-16T22:31:08+01:00"),
        ("timestamptz", "2017-11-16T22:31:08"),
        ("fixed[2]", "00"),
        ("fixed[2]", "00zz"),
        ("binary", "ABC"),
        ("variant", {}),
        ("unknown", ""),
        ("geometry", "POINT (1 2)"),
    ],
)
def test_values_that_no_engine_can_read_are_invalid(kind: str, value: object) -> None:
    assert not is_value_of(value, kind)
