# SPDX-License-Identifier: Apache-2.0
"""Render OpenAPI documents so that a reviewer can read their differences.

The contract (everything that a client can depend on) and the texts (summaries and descriptions) are kept apart, so
that a change of wording cannot hide a change of the contract. Parameters, headers and refusals that many operations
have stand in the file once, under `shared`, and operations name them. Nothing else is left out but the release number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_WIDTH = 120
_INDENT = 2

#: Keys whose value is a text for people wherever it is a string.
_TEXTS = frozenset({"description", "summary"})

#: Keys below which `description` is data and no text.
_DATA = frozenset({"example", "examples", "default", "enum", "const"})

#: A mark for a removed text in a shared part: an operation whose parameter loses its text gets another part.
_ELSEWHERE = "…"


def resolved(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a served document with its shared parts in their places instead of references."""
    kinds = ("parameters", "headers", "responses")
    components = document["components"]

    def placed(node: Any) -> Any:
        match node:
            case {"$ref": str(reference)} if reference.split("/")[2] in kinds:
                _, _, kind, name = reference.split("/")
                return placed(components[kind][name])
            case dict():
                return {key: placed(value) for key, value in node.items()}
            case list():
                return [placed(each) for each in node]
            case _:
                return node

    others = {kind: parts for kind, parts in components.items() if kind not in kinds}
    return {**document, "paths": placed(document["paths"]), "components": others}


def contract(document: Mapping[str, Any]) -> str:
    """Return the contract of a document as JSON, without its texts."""
    shared = _Shared()
    paths = {
        path: {method: shared.operation(operation) for method, operation in methods.items()}
        for path, methods in sorted(document["paths"].items())
    }
    compact = _without_texts({**document, "info": {**document["info"], "version": _ELSEWHERE}, "paths": paths})
    return _lines({**compact, "shared": shared.by_kind}, 0) + "\n"


def as_lines(node: Any) -> str:
    """Return JSON with sorted keys, in which what fits into a line is on one."""
    return _lines(node, 0) + "\n"


def texts(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return the texts of all documents as JSON, by their place.

    A text that all operations share appears once. Different texts in one place are listed with their operations.
    """
    found: dict[str, dict[str, set[str]]] = {}
    for document in documents:
        for position, text, operation in _texts_of(document):
            found.setdefault(position, {}).setdefault(text, set()).add(operation)
    collected: dict[str, Any] = {}
    for position, by_text in sorted(found.items()):
        collected[position] = (
            next(iter(by_text)) if len(by_text) == 1 else {text: sorted(of) for text, of in by_text.items()}
        )
    return _lines(collected, 0) + "\n"


@dataclass
class _Shared:
    """Collect parts that operations have in common, and give each a name."""

    by_kind: dict[str, dict[str, Any]] = field(default_factory=dict)

    def operation(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        """Return the operation with names for its parameters, headers and refusals, whose order has no meaning."""
        parameters: dict[str, list[str]] = {}
        for each in operation["parameters"]:
            parameters.setdefault(each["in"], []).append(self._named(f"{each['in']} parameters", each["name"], each))
        responses: dict[str, Any] = {}
        refusals: list[str] = []
        for status, response in operation["responses"].items():
            headers = [self._named("headers", name, each) for name, each in response["headers"].items()]
            compact = {**response, "headers": sorted(headers)}
            if status[0] in "45":
                refusals.append(self._named("refusals", status, compact))
            else:
                responses[status] = _without_example(compact)
        parts = {
            "parameters": {position: sorted(names) for position, names in parameters.items()},
            "responses": responses,
            "refusals": sorted(refusals),
        }
        body = {"requestBody": _without_example(operation["requestBody"])} if "requestBody" in operation else {}
        return {**operation, **parts, **body}

    def _named(self, kind: str, name: str, part: Any) -> str:
        """Return the name of `part` among the shared ones: `name`, with a number from the second variant on."""
        parts = self.by_kind.setdefault(kind, {})
        variant, numbered, part = 1, name, _without_texts(part, keep_position=True)
        while parts.setdefault(numbered, part) != part:
            variant += 1
            numbered = f"{name} ({variant})"
        return numbered


def _without_example(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body without its example, which is in `openapi_examples.json`."""
    content = {
        media: {key: value for key, value in each.items() if key != "example"}
        for media, each in body.get("content", {}).items()
    }
    return {**body, **({"content": content} if content else {})}


def _without_texts(node: Any, key: str = "", *, keep_position: bool = False) -> Any:
    """Return `node` without its texts, or with a mark in their place. `key` is the key of `node` in its parent."""
    match node:
        case dict() if key not in _DATA:
            texts = {name for name, value in node.items() if name in _TEXTS and isinstance(value, str)}
            kept = {
                name: _without_texts(value, name, keep_position=keep_position)
                for name, value in node.items()
                if name not in texts
            }
            return kept | dict.fromkeys(texts if keep_position else (), _ELSEWHERE)
        case list() if key == "required":
            return sorted(node)
        case list():
            return [_without_texts(each, key, keep_position=keep_position) for each in node]
        case _:
            return node


def _texts_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (place, text, operation) for each text; the operation is empty outside of operations."""
    for methods in document["paths"].values():
        for operation in methods.values():
            name = operation["operationId"]
            parts = {key: value for key, value in operation.items() if key not in ("parameters", "responses")}
            yield from _texts_below(parts, f"operation {name}", name)
            for each in operation["parameters"]:
                yield from _texts_below(each, f"parameter {each['in']} {each['name']}", name)
            for status, response in operation["responses"].items():
                others = {key: value for key, value in response.items() if key != "headers"}
                yield from _texts_below(others, f"response {status}", name)
                for header, each in response["headers"].items():
                    yield from _texts_below(each, f"response header {header}", name)
    for name, schema in document["components"]["schemas"].items():
        yield from _texts_below(schema, f"schema {name}", "")
    outside = {key: value for key, value in document.items() if key not in ("paths", "components")}
    schemes = {key: value for key, value in document["components"].items() if key != "schemas"}
    yield from _texts_below({**outside, "components": schemes}, "document", "")


def _texts_below(node: Any, position: str, operation: str) -> Iterator[tuple[str, str, str]]:
    match node:
        case dict():
            for key, value in node.items():
                if key in _TEXTS and isinstance(value, str):
                    yield f"{position} {key}", value, operation
                elif key not in _DATA:
                    yield from _texts_below(value, f"{position} {key}", operation)
        case list():
            for index, value in enumerate(node):
                yield from _texts_below(value, f"{position} {index}", operation)


def _lines(node: Any, depth: int, taken: int = 0) -> str:
    """Return JSON with sorted keys; what fits into the rest of a line, of which `taken` is taken, stays on it."""
    short = json.dumps(node, ensure_ascii=False, sort_keys=True)
    if depth and (len(short) + taken + depth * _INDENT < _WIDTH or not isinstance(node, dict | list)):
        return short
    inner, outer = " " * _INDENT * (depth + 1), " " * _INDENT * depth
    if isinstance(node, dict):
        heads = {key: f"{json.dumps(key, ensure_ascii=False)}: " for key in sorted(node)}
        parts = [f"{inner}{head}{_lines(node[key], depth + 1, len(head))}" for key, head in heads.items()]
        return "{\n" + ",\n".join(parts) + f"\n{outer}}}"
    return "[\n" + ",\n".join(inner + _lines(each, depth + 1) for each in node) + f"\n{outer}]"
