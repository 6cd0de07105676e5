# SPDX-License-Identifier: Apache-2.0
"""Test the JSON helpers that the wire types share."""

from __future__ import annotations

import msgspec

from gateway.iceberg.codec import plain_descriptions


def test_descriptions_have_no_indentation_of_the_source() -> None:
    class Described(msgspec.Struct):
        description: str

    # Set here, because Python 3.13 removes the indentation of docstrings itself.
    Described.__doc__ = "First line.\n\n    Second paragraph,\n      with a nested line.\n    "
    schemas, components = plain_descriptions(msgspec.json.schema_components([Described]))
    assert [list(schema) for schema in schemas] == [["$ref"]]
    (component,) = components.values()
    assert component["description"] == "First line.\n\nSecond paragraph,\n  with a nested line."
    assert component["properties"] == {"description": {"type": "string"}}
