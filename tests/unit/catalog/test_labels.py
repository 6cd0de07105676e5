# SPDX-License-Identifier: Apache-2.0
"""The JSON of `labels`: the nearest tag of a name, and only columns that the caller may see."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from gateway.features.tables.loads import EVERY_COLUMN, encoded

TABLE, NAMESPACE, WAREHOUSE = (UUID(int=n) for n in (1, 2, 3))
NEAREST_FIRST = (TABLE, NAMESPACE, WAREHOUSE)


def _row(on: UUID, name: str, value: str = "", field_id: int | None = None) -> Any:
    return SimpleNamespace(object_id=on, name=name, value=value, field_id=field_id)


ROWS = [
    _row(WAREHOUSE, "owner", "platform"),
    _row(TABLE, "pii", field_id=3),
    _row(WAREHOUSE, "region", "eu"),
    _row(NAMESPACE, "owner", "finance"),
    _row(TABLE, "class", "secret", field_id=7),
    _row(TABLE, "class", "open", field_id=3),
    _row(TABLE, "deprecated"),
]


def test_the_nearest_tag_of_a_name_is_sent_and_a_tag_without_value_is_empty() -> None:
    assert json.loads(encoded(ROWS, NEAREST_FIRST, EVERY_COLUMN)) == {
        "object-labels": {"deprecated": "", "owner": "finance", "region": "eu"},
        "fields": [
            {"field-id": 3, "labels": {"class": "open", "pii": ""}},
            {"field-id": 7, "labels": {"class": "secret"}},
        ],
    }


def test_the_order_of_rows_does_not_change_the_etag() -> None:
    assert encoded(ROWS, NEAREST_FIRST, EVERY_COLUMN) == encoded(reversed(ROWS), NEAREST_FIRST, EVERY_COLUMN)


def test_columns_outside_the_visible_ones_have_no_labels() -> None:
    assert json.loads(encoded(ROWS, NEAREST_FIRST, {7}))["fields"] == [{"field-id": 7, "labels": {"class": "secret"}}]
    assert "fields" not in json.loads(encoded(ROWS, NEAREST_FIRST, ()))


def test_an_object_without_labels_has_no_member() -> None:
    assert encoded([], NEAREST_FIRST, EVERY_COLUMN) == b""
    assert encoded([_row(TABLE, "pii", field_id=3)], NEAREST_FIRST, ()) == b""
