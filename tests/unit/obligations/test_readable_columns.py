# SPDX-License-Identifier: Apache-2.0
"""Column names that an engine may read: none that belonged to another column in any schema of the table."""

from __future__ import annotations

import pytest

from gateway.obligations.projections import Columns
from lakegate.restrictions.literals import NestedField

_TEXT = "string"


def _schema(**columns: int) -> tuple[NestedField, ...]:
    return tuple(NestedField(id=id, name=name, type=_TEXT, required=False) for name, id in columns.items())


@pytest.mark.parametrize(
    ("now", "before", "granted", "names"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 2}, {1}, ["a"]),
        ({"a": 1, "b": 2}, {"a": 1, "c": 2}, {1, 2}, ["a", "b"]),
        # The secret column was renamed, and the granted column took its old name.
        ({"kept": 1, "secret": 2}, {"secret": 1, "a": 2}, {2}, []),
        ({"kept": 1, "secret": 2}, {"secret": 1, "a": 2}, {1, 2}, ["kept", "secret"]),
        # Engines ignore letter case.
        ({"SECRET": 2}, {"secret": 1}, {2}, []),
        ({"straße": 2, "STRASSE": 1}, {}, {2}, []),
        # Engines compare composed and decomposed spellings as equal.
        ({"caf\u00e9": 2, "CAFE\u0301": 1}, {}, {2}, []),
        # Dropped and created again.
        ({"a": 3}, {"a": 1}, {3}, []),
        ({"a": 3}, {"a": 1}, {1}, []),
        # A grant on a dropped column gives nothing, and neither does its name.
        ({"a": 3}, {"a": 1}, {1, 3}, []),
    ],
)
def test_a_name_that_belonged_to_another_column_is_omitted(
    now: dict[str, int], before: dict[str, int], granted: set[int], names: list[str]
) -> None:
    assert Columns(_schema(**now), (_schema(**before), _schema(**now))).readable_by_name(granted) == names


def test_a_column_is_found_by_its_name_in_another_unicode_form() -> None:
    """A column grant by the composed name must find the dropped column that was written with a combining accent."""
    columns = Columns(_schema(**{"caf\u00e9": 2}), (_schema(**{"Cafe\u0301": 1}),))
    assert columns.ids_of_name("CAF\u00c9") == columns.ids_of_name("cafe\u0301") == {1, 2}
