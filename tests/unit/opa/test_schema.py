# SPDX-License-Identifier: Apache-2.0
"""The policy schema is closed, so that a misspelt field does not compile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gateway.opa.schema import input_schema


def objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "properties" in node:
            yield node
        for value in node.values():
            yield from objects(value)


def test_every_struct_is_closed() -> None:
    schema = json.loads(input_schema())
    found = list(objects(schema))
    assert len(found) == 7
    assert all(each["additionalProperties"] is False for each in found)


def test_the_schema_names_every_field_in_snake_case() -> None:
    names = {name for each in objects(json.loads(input_schema())) for name in each["properties"]}
    assert {"assumed_role", "client_address", "warehouse_id", "questions", "facts"} <= names
    assert all(name == name.lower() and "-" not in name for name in names)
