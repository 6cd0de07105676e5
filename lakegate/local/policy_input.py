# SPDX-License-Identifier: Apache-2.0
"""Check what the rules read from the input: its fields, and the values that a field can have.

A condition on a field that does not exist, or on an operation that does not exist, never holds. A guardrail with such a
condition denies nothing. OPA checks fields only for rules with an annotation, and enumerations never.
"""

from __future__ import annotations

import difflib
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.opa.errors import InvalidPolicies
from gateway.opa.input_values import Kinds
from gateway.opa.syntax import Module, calls, constant_path, run
from lakegate.local.toolchain import shipped

_SCHEMA = "policies/schemas/input.json"
#: An annotation could select another schema, or none. Line numbers stay.
_ANNOTATION = re.compile(rb"^([ \t]*#[ \t]*)METADATA[ \t]*\r?$", re.MULTILINE)
#: Functions that are false for each operation if their pattern is misspelt, with the position of the pattern.
_PATTERNS: Mapping[str, tuple[int, Callable[[str, str], bool]]] = {
    "startswith": (1, str.startswith),
    "endswith": (1, str.endswith),
    "contains": (1, str.__contains__),
    "regex.match": (0, lambda value, pattern: _matches(pattern, value)),
    "glob.match": (0, lambda value, pattern: _matches(_as_regex(pattern), value)),
}


def input_faults(opa: Path, modules: Sequence[Module], files: Mapping[str, bytes]) -> list[str]:
    """Return the faults of the packages below `gateway`, one line each: unknown fields, and impossible values.

    `modules` are parsed files of `files` without tests. No annotation is needed.

    Raises:
        InvalidPolicies: OPA cannot be run.
    """
    schema = shipped() / _SCHEMA
    read = [module for module in modules if module.package[:1] == ("gateway",)]
    found = _unknown_fields(opa, schema, {module.file: files[module.file] for module in read})
    packages: dict[tuple[str, ...], list[Module]] = {}
    for module in read:
        packages.setdefault(module.package, []).append(module)
    allowed = _allowed_values(json.loads(schema.read_bytes()))
    for together in packages.values():
        kinds = Kinds(together)
        for module in together:
            found += [f"{module.file}: {fault}" for fault in dict.fromkeys(_impossible_values(module, kinds, allowed))]
    return found


def _unknown_fields(opa: Path, schema: Path, files: Mapping[str, bytes]) -> list[str]:
    if not files:
        return []
    with tempfile.TemporaryDirectory(prefix="lakegate-input-") as created:
        for name, content in files.items():
            file = Path(created) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(_ANNOTATION.sub(rb"\1metadata", content))
        done = run(opa, "check", "--format=json", "--schema", str(schema), ".", cwd=Path(created))
    if done.returncode == 0:
        return []
    try:
        errors = json.loads(done.stdout or done.stderr)["errors"]
    except (ValueError, KeyError):
        raise InvalidPolicies(f"OPA cannot check the policies: {done.stdout}{done.stderr}") from None
    return [_described(error) for error in errors if error["code"] == "rego_type_error"]


def _described(error: Mapping[str, Any]) -> str:
    location = error.get("location") or {}
    possible = (error.get("details") or {}).get("oneOf")
    listed = f"; possible: {', '.join(map(str, possible))}" if possible else ""
    return f"{location.get('file')}:{location.get('row')}: {error['message']}{listed}"


def _allowed_values(schema: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    structs = schema["$defs"]
    return {
        "operation": frozenset(structs["PolicyQuestion"]["properties"]["operation"]["enum"]),
        "type": frozenset(structs["PolicyResource"]["properties"]["type"]["enum"]),
        "actor_kind": frozenset(structs["PolicyActor"]["properties"]["kind"]["enum"]),
    }


def _impossible_values(module: Module, kinds: Kinds, allowed: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Yield each constant that a field of the input is compared with and cannot have."""
    for rule in module.rules:
        names = kinds.of_rule(rule)
        for kind, text in names.compared(rule):
            # An empty text is compared to find a malformed question.
            if kind in allowed and text and text not in allowed[kind]:
                yield _fault(kind, text, allowed[kind])
        for function, arguments in calls(rule):
            name = ".".join(constant_path(function))
            if name not in _PATTERNS:
                continue
            position, holds = _PATTERNS[name]
            value, pattern = arguments[1 - position if name != "glob.match" else 2], arguments[position]
            field = names.kind(value)
            if field is not None and field in allowed and pattern.get("type") == "string":
                text = str(pattern["value"])
                if not any(holds(each, text) for each in allowed[field]):
                    yield f"no {_WORDS[field]} matches {text} in {name}, so the condition never holds."


_WORDS = {"operation": "operation", "type": "type of resource", "actor_kind": "kind of actor"}


def _fault(kind: str, text: str, allowed: frozenset[str]) -> str:
    close = difflib.get_close_matches(text, sorted(allowed), n=3)
    hint = f" Did you mean {' or '.join(close)}?" if close else " policies/schemas/input.json lists them."
    return f"{_WORDS[kind]} {text!r} does not exist, so a condition on it never holds.{hint}"


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        # OPA's syntax differs in details. OPA itself compiles the pattern.
        return True


def _as_regex(pattern: str) -> str:
    """Return a regular expression that matches at least what this glob matches."""
    if not re.fullmatch(r"[\w*?]+", pattern):
        return ""
    return "^" + pattern.replace("*", ".*").replace("?", ".") + "$"
