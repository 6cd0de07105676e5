# SPDX-License-Identifier: Apache-2.0
"""Parse Rego with OPA itself. No rule is evaluated, and OPA gets no environment."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.opa.errors import InvalidPolicies

_PARSE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Module:
    """One parsed file. `rules` are the rules of OPA's syntax tree; `package` is the path without `data`."""

    file: str
    package: tuple[str, ...]
    rules: Sequence[dict[str, Any]]
    tree: dict[str, Any]

    @property
    def is_test(self) -> bool:
        """Return True for a test file, which no deployment loads."""
        return self.file.endswith("_test.rego")

    def references(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the parts of all references in imports and rules."""
        return references([self.tree.get("imports") or [], self.rules])


def parse(opa: Path, files: Mapping[str, bytes]) -> list[Module]:
    """Return the syntax trees of these files, by the program `opa`, in the order of `files`.

    Raises:
        InvalidPolicies: OPA cannot parse a file, or cannot be run.
    """
    sent = [{"name": name, "text": content.decode("utf-8", "replace")} for name, content in files.items()]
    done = run(opa, "eval", "--format=json", "--strict-builtin-errors", "--stdin-input", _PARSE, input=json.dumps(sent))
    if done.returncode != 0:
        raise InvalidPolicies(f"OPA cannot read the policies: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    trees = json.loads(done.stdout)["result"][0]["expressions"][0]["value"]
    return [
        Module(
            each["name"], tuple(part["value"] for part in tree["package"]["path"][1:]), tree.get("rules") or [], tree
        )
        for each, tree in zip(sent, trees, strict=True)
    ]


_PARSE = "[rego.parse_module(file.name, file.text) | some file in input]"


def run(opa: Path, *arguments: str, cwd: Path | None = None, input: str = "") -> subprocess.CompletedProcess[str]:
    """Run `opa` without an environment.

    Raises:
        InvalidPolicies: it cannot be run, or does not end in time.
    """
    try:
        return subprocess.run(
            [str(opa), *arguments],
            cwd=cwd,
            input=input,
            env={},
            capture_output=True,
            text=True,
            timeout=_PARSE_SECONDS,
            check=False,
        )
    except OSError as error:
        raise InvalidPolicies(f"the program {opa} cannot be run: {error.strerror}; run `lakegate setup`.") from None
    except subprocess.TimeoutExpired:
        raise InvalidPolicies(f"OPA did not read the policies within {_PARSE_SECONDS} seconds.") from None


def references(node: Any) -> Iterator[list[dict[str, Any]]]:
    """Yield the parts of all references in a part of a syntax tree. A variable `data` alone is one, too."""
    if isinstance(node, list):
        for value in node:
            yield from references(value)
    elif isinstance(node, dict):
        if node.get("type") == "ref":
            yield node["value"]
            yield from references(node["value"][0] if node["value"][0].get("type") != "var" else [])
            yield from references(node["value"][1:])
            return
        if node.get("type") == "var" and node["value"] == "data":
            yield [node]
        for value in node.values():
            yield from references(value)


def constant_path(parts: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the names of a reference up to its first variable or number. The first is the name of a variable."""
    path = [str(parts[0]["value"])] if parts[0].get("type") == "var" else []
    for part in parts[1:] if path else []:
        if part["type"] != "string":
            break
        path.append(str(part["value"]))
    return tuple(path)


def calls(node: Any) -> Iterator[tuple[list[dict[str, Any]], list[Any]]]:
    """Yield (reference of the function, arguments) of all calls and operators in a part of a syntax tree."""
    if isinstance(node, list):
        for value in node:
            yield from calls(value)
    elif isinstance(node, dict):
        terms = node.get("value") if node.get("type") == "call" else node.get("terms")
        if isinstance(terms, list) and terms and isinstance(terms[0], dict) and terms[0].get("type") == "ref":
            yield terms[0]["value"], terms[1:]
        for value in node.values():
            yield from calls(value)
