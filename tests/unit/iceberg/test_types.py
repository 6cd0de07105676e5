# SPDX-License-Identifier: Apache-2.0
"""Types and transforms and their names."""

from __future__ import annotations

import pytest

from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.types import can_transform, check_transform


@pytest.mark.parametrize(
    "transform",
    [
        "identity",
        "Day",
        "void",
        "bucket[1]",
        "bucket[2147483647]",
        "truncate[16]",
        "zorder",
        "juggle[2]",
        "hilbert[2, 3.5]",
    ],
)
def test_known_transforms_and_unknown_ones_of_the_same_form_are_accepted(transform: str) -> None:
    check_transform(transform)
    assert can_transform(transform, "date") or transform.startswith("truncate")


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ("juggle[2", "must have the form name or name"),
        ("juggle2]", "must have the form name or name"),
        ("juggle[]", "must have the form name or name"),
        ("juggle[1][2]", "must have the form name or name"),
        ("[2]", "must have the form name or name"),
        (" day", "must have the form name or name"),
        ("day\n", "must have the form name or name"),
        ("day(ts)", "must have the form name or name"),
        ("bucket", "Invalid number of buckets"),
        ("bucket[0]", "Invalid number of buckets"),
        ("bucket[-4]", "Invalid number of buckets"),
        ("bucket[2147483648]", "Invalid number of buckets"),
        ("bucket[four]", "Invalid number of buckets"),
        ("truncate[0]", "Invalid truncate width"),
        ("truncate[1.5]", "Invalid truncate width"),
        ("identity[3]", "identity must have no parameter"),
        ("void[1]", "void must have no parameter"),
    ],
)
def test_an_invalid_transform_is_refused(transform: str, message: str) -> None:
    with pytest.raises(BadRequestException, match=message):
        check_transform(transform)
