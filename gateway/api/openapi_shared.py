# SPDX-License-Identifier: Apache-2.0
"""Move the parts that operations of an OpenAPI document have in common to its `components`.

Most operations have the same headers, parameters and refusals. Without references the document of the management API
has four times the size, and Swagger UI needs several seconds more to draw it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


def with_shared_parts(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with references to its parameters, headers and refusals, each of which it has once."""
    parts = _Parts()
    paths = {
        path: {method: parts.operation(operation) for method, operation in methods.items()}
        for path, methods in document["paths"].items()
    }
    components = {**document["components"], **{kind: dict(sorted(of.items())) for kind, of in parts.by_kind.items()}}
    return {**document, "paths": paths, "components": components}


@dataclass
class _Parts:
    """Collect the parts by kind and name. `_names` has the name of each part by its content."""

    by_kind: dict[str, dict[str, Any]] = field(default_factory=dict)
    _names: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def operation(self, operation: dict[str, Any]) -> dict[str, Any]:
        """Return the operation with references."""
        parameters = [self._shared("parameters", each["name"], each) for each in operation["parameters"]]
        responses = {status: self._response(status, each) for status, each in operation["responses"].items()}
        return {**operation, "parameters": parameters, "responses": responses}

    def _response(self, status: str, response: dict[str, Any]) -> dict[str, Any]:
        headers = {name: self._shared("headers", name, each) for name, each in response["headers"].items()}
        described = {**response, "headers": headers}
        return self._shared("responses", status, described) if status[0] in "45" else described

    def _shared(self, kind: str, name: str, part: dict[str, Any]) -> dict[str, Any]:
        """Return the reference to a part. From the second variant of a name on, the name has a number."""
        known = self.by_kind.setdefault(kind, {})
        key = kind, name, json.dumps(part, sort_keys=True)
        if key not in self._names:
            variants = sum(each[:2] == key[:2] for each in self._names)
            self._names[key] = f"{name}-{variants + 1}" if variants else name
            known[self._names[key]] = part
        return {"$ref": f"#/components/{kind}/{self._names[key]}"}
