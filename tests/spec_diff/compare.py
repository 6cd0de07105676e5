# SPDX-License-Identifier: Apache-2.0
"""Compare two OpenAPI documents: endpoints, parameters, required body fields, statuses. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_METHODS = ("get", "head", "post", "put", "delete", "patch")


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A difference. `endpoint` is `METHOD /path` with unnamed placeholders; `side` names the document that has more."""

    endpoint: str
    kind: str
    what: str
    side: str

    def __str__(self) -> str:
        return f"{self.endpoint}: {self.kind} {self.what} only {self.side}"


@dataclass(frozen=True, slots=True)
class _Endpoint:
    parameters: frozenset[str]
    required: frozenset[str]
    statuses: frozenset[str]


def differences(ours: dict[str, Any], published: dict[str, Any]) -> list[Difference]:
    """Return every element that only one of the documents has, in order."""
    left = dict(_endpoints(ours, "/catalog"))
    right = dict(_endpoints(published, ""))
    found: list[Difference] = []
    for endpoint in sorted(left.keys() | right.keys()):
        if endpoint not in right or endpoint not in left:
            found.append(Difference(endpoint, "endpoint", endpoint, "ours" if endpoint in left else "published"))
            continue
        mine, theirs = left[endpoint], right[endpoint]
        for kind in ("parameters", "required", "statuses"):
            have, required = getattr(mine, kind), getattr(theirs, kind)
            found += [Difference(endpoint, kind, each, "ours") for each in sorted(have - required)]
            found += [Difference(endpoint, kind, each, "published") for each in sorted(required - have)]
    return found


def _endpoints(document: dict[str, Any], base: str) -> Iterator[tuple[str, _Endpoint]]:
    for path, item in document["paths"].items():
        if not path.startswith(base):
            continue
        for method in _METHODS:
            if method in item:
                name = f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path.removeprefix(base))}"
                yield name, _endpoint(document, item, item[method])


def _endpoint(document: dict[str, Any], item: dict[str, Any], operation: dict[str, Any]) -> _Endpoint:
    parameters = [_resolved(document, each) for each in (*item.get("parameters", ()), *operation.get("parameters", ()))]
    return _Endpoint(
        parameters=frozenset(f"{each['in']}:{each['name'].lower()}" for each in parameters if each["in"] != "path"),
        required=frozenset(_required(document, operation)),
        statuses=frozenset(str(status) for status in operation["responses"]),
    )


def _required(document: dict[str, Any], operation: dict[str, Any]) -> Iterator[str]:
    body = _resolved(document, operation.get("requestBody", {}))
    schema = body.get("content", {}).get("application/json", {}).get("schema", {})
    yield from _required_of(document, schema)


def _required_of(document: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    schema = _resolved(document, schema)
    yield from schema.get("required", ())
    for each in schema.get("allOf", ()):
        yield from _required_of(document, each)


def _resolved(document: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in value:
        found: Any = document
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")]
        value = found
    return value
