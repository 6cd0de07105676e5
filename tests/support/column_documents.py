# SPDX-License-Identifier: Apache-2.0
"""Metadata documents with columns."""

from __future__ import annotations

import json
from typing import Any


def column(id: int, name: str = "", type: Any = "string", *, required: bool = False) -> dict[str, Any]:
    """Return a column in the JSON of the protocol."""
    return {"id": id, "name": name or f"c{id}", "type": type, "required": required}


def document(*schemas: list[dict[str, Any]], current: int = -1) -> bytes:
    """Return a metadata document with these schemas, the last one current."""
    encoded = [{"type": "struct", "schema-id": n, "fields": fields} for n, fields in enumerate(schemas)]
    return json.dumps(
        {
            "format-version": 2,
            "snapshots": [{"a": 1}],
            "schemas": encoded,
            "current-schema-id": range(len(encoded))[current],
        }
    ).encode()
