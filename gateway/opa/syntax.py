# SPDX-License-Identifier: Apache-2.0
"""Parse Rego with OPA itself, and follow the fields of the policy input through the rules. No rule is evaluated.

The analysis ignores the order of expressions. A variable that holds two different fields in one rule is not followed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class InvalidPolicies(Exception):
    """The policies of a directory cannot be used. The message names the file and the remedy."""


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
        """Yield the parts of each reference in the imports and rules."""
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
    """Yield the parts of each reference in a part of a syntax tree. The variable `data` alone is a reference too."""
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
    """Return the names in a reference up to its first variable or number.

    The first name is that of a variable, such as `data`.
    """
    path = [str(parts[0]["value"])] if parts[0].get("type") == "var" else []
    for part in parts[1:] if path else []:
        if part["type"] != "string":
            break
        path.append(str(part["value"]))
    return tuple(path)


def calls(node: Any) -> Iterator[tuple[list[dict[str, Any]], list[Any]]]:
    """Yield (reference of the function, arguments) for each call or operator in a part of a syntax tree."""
    if isinstance(node, list):
        for value in node:
            yield from calls(value)
    elif isinstance(node, dict):
        terms = node.get("value") if node.get("type") == "call" else node.get("terms")
        if isinstance(terms, list) and terms and isinstance(terms[0], dict) and terms[0].get("type") == "ref":
            yield terms[0]["value"], terms[1:]
        for value in node.values():
            yield from calls(value)


#: The kind of value of each field, for each part of the input. "*" is any key.
_FIELDS = {
    "input": {"questions": "questions", "actor": "actor"},
    "questions": {"*": "question"},
    "question": {"operation": "operation", "resource": "resource"},
    "resource": {"type": "type"},
    "actor": {"kind": "actor_kind"},
}
_UNCLEAR = "unclear"
_EQUAL = {"eq", "equal", "assign", "neq"}
#: Functions that return the text of their first argument, in lower case or without spaces around it.
_SAME = {"lower", "trim_space"}
_MOST_ROUNDS = 20


class Kinds:
    """The parts of the policy input and the constants that the rules of one package hold."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.package = modules[0].package
        self.rules = [rule for module in modules for rule in _with_else(module.rules)]
        self.values: dict[str, str] = {}
        self.constants: dict[str, set[str]] = {}
        self.parameters: dict[tuple[str, int], str] = {}
        for rule in self.rules:
            self._collect_constants(rule)
        for _ in range(_MOST_ROUNDS):
            before = (dict(self.values), dict(self.parameters))
            for rule in self.rules:
                self._follow(rule)
            if before == (self.values, self.parameters):
                break

    def of_rule(self, rule: dict[str, Any]) -> Names:
        """Return the values that the variables of this rule hold."""
        return Names(self, rule)

    def _collect_constants(self, rule: dict[str, Any]) -> None:
        head = rule["head"]
        texts = _texts(head.get("value")) | (_texts(head.get("key")) if "value" not in head else set())
        self.constants.setdefault(_rule_name(rule), set()).update(texts)

    def _follow(self, rule: dict[str, Any]) -> None:
        names, head, name = self.of_rule(rule), rule["head"], _rule_name(rule)
        kind = names.kind(head.get("value") or {})
        if kind:
            # With `_tables[index] := question`, each value of `_tables` is a question, like the items of the list of
            # questions.
            many = len(head["ref"]) > 1 or "key" in head
            _bind(self.values, name, "questions" if many and kind == "question" else _UNCLEAR if many else kind)
        elif "key" in head and names.kind(head["key"]) == "question":
            _bind(self.values, name, "keys")
        for function, arguments in calls(rule):
            called = constant_path(function)
            own = called[-1] if called[:1] == ("data",) and called[1:-1] == self.package else ".".join(called)
            for position, argument in enumerate(arguments):
                if found := names.kind(argument):
                    _bind(self.parameters, (own, position), found)


class Names:
    """The values that the variables of one rule hold."""

    def __init__(self, package: Kinds, rule: dict[str, Any]) -> None:
        self._package = package
        self._rule = rule
        self._held: dict[str, str] = {"input": "input"}
        self._texts: dict[str, set[str]] = {}
        name = _rule_name(rule)
        for position, argument in enumerate(rule["head"].get("args") or []):
            self._match(argument, package.parameters.get((name, position)))
        for _ in range(_MOST_ROUNDS):
            before = dict(self._held)
            for left, right in self._equations(rule):
                self._match(left, self.kind(right))
                self._match(right, self.kind(left))
            if before == self._held:
                break

    def kind(self, term: Any) -> str | None:
        """Return the part of the policy input that this term holds; None if it is another value."""
        if not isinstance(term, dict):
            return None
        if term.get("type") == "var":
            name = str(term["value"])
            found = self._held.get(name) or self._package.values.get(name)
            return None if found == _UNCLEAR else found
        if term.get("type") == "ref":
            return self._of_reference(term["value"])
        if term.get("type") == "call":
            function, *arguments = term["value"]
            name = ".".join(constant_path(function["value"]))
            if name in _SAME and arguments:
                return self.kind(arguments[0])
            if name == "object.get" and len(arguments) == 3:
                return _step(self.kind(arguments[0]), arguments[1])
            return self._package.values.get(name)
        return None

    def compared(self, rule: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield (kind, text) for each comparison of a part of the policy input with a constant text."""
        for left, right in self._equations(rule):
            yield from self._pairs(left, self.kind(right))
            yield from self._pairs(right, self.kind(left))
        for function, arguments in calls(rule):
            path = constant_path(function)
            if ".".join(path) == "internal.member_2" and len(arguments) == 2 and (kind := self.kind(arguments[0])):
                yield from ((kind, text) for text in self._constants(arguments[1]))
        for parts in _indexed(rule):
            for position, part in enumerate(parts[1:], 1):
                if part.get("type") != "string" and (kind := self.kind(part)):
                    yield from ((kind, text) for text in self._keys(parts[:position]))
        name = _rule_name(rule)
        for position, argument in enumerate(rule["head"].get("args") or []):
            yield from self._pairs(argument, self._package.parameters.get((name, position)))

    def _of_reference(self, parts: list[dict[str, Any]]) -> str | None:
        found = self.kind(parts[0])
        rest = parts[1:]
        path = constant_path(parts)
        own = ("data", *self._package.package)
        if path[: len(own)] == own and len(path) > len(own):
            found, rest = self._package.values.get(path[len(own)]), parts[len(own) + 1 :]
        for part in rest:
            found = _step(found, part)
        return found

    def _equations(self, node: Any) -> Iterator[tuple[Any, Any]]:
        """Yield pairs of terms that are compared, or of which the first is an element of the second."""
        for function, arguments in calls(node):
            name = ".".join(constant_path(function))
            if name in _EQUAL and len(arguments) == 2:
                yield arguments[0], arguments[1]
            elif name == "internal.member_2" and len(arguments) == 2:
                yield arguments[0], _element(arguments[1])
            elif name == "internal.member_3" and len(arguments) == 3:
                yield arguments[1], _element(arguments[2])
        for each in _every(node):
            yield each["value"], _element(each["domain"])

    def _match(self, pattern: Any, kind: str | None) -> None:
        if kind is None or not isinstance(pattern, dict):
            return
        if pattern.get("type") == "var":
            _bind(self._held, str(pattern["value"]), kind)
        elif pattern.get("type") == "object":
            for key, value in pattern["value"]:
                self._match(value, _step(kind, key))

    def _pairs(self, pattern: Any, kind: str | None) -> Iterator[tuple[str, str]]:
        if kind is None or not isinstance(pattern, dict):
            return
        if pattern.get("type") == "object":
            for key, value in pattern["value"]:
                yield from self._pairs(value, _step(kind, key))
        elif pattern.get("type") in ("string", "var"):
            yield from ((kind, text) for text in self._constants(pattern))

    def _constants(self, term: Any) -> set[str]:
        if isinstance(term, dict) and term.get("type") in ("var", "ref"):
            return self._held_texts(term)
        return _texts(term)

    def _held_texts(self, term: dict[str, Any]) -> set[str]:
        path = constant_path(term["value"]) if term["type"] == "ref" else (str(term["value"]),)
        own = ("data", *self._package.package)
        if path[: len(own)] == own:
            path = path[len(own) :]
        found = self._package.constants.get(path[0], set()) if len(path) == 1 else set()
        for left, right in self._equations(self._rule) if len(path) == 1 else ():
            for one, other in ((left, right), (right, left)):
                if isinstance(one, dict) and one.get("type") == "var" and (one["value"],) == path:
                    found = found | _texts(other)
        return found

    def _keys(self, parts: list[dict[str, Any]]) -> set[str]:
        """Return the constant keys or elements of an indexed rule, such as `_names[question.operation]`."""
        return self._held_texts({"type": "ref", "value": parts})


def _bind(held: dict[Any, str], name: Any, kind: str) -> None:
    held[name] = kind if held.get(name, kind) == kind else _UNCLEAR


def _step(kind: str | None, part: dict[str, Any]) -> str | None:
    fields = _FIELDS.get(kind or "", {})
    if "*" in fields:
        return fields["*"]
    return fields.get(str(part["value"])) if part.get("type") == "string" else None


def _element(collection: Any) -> dict[str, Any]:
    """Return a reference to any element of a collection."""
    parts = collection["value"] if collection.get("type") == "ref" else [collection]
    return {"type": "ref", "value": [*parts, {"type": "var", "value": "$element"}]}


def _texts(term: Any) -> set[str]:
    """Return the constant texts of a term: a text itself, the texts in a collection, or the keys of an object."""
    if not isinstance(term, dict):
        return set()
    match term.get("type"):
        case "string":
            return {str(term["value"])}
        case "array" | "set":
            return set().union(*(_texts(each) for each in term["value"] if each.get("type") == "string"))
        case "object":
            return {str(key["value"]) for key, _ in term["value"] if key.get("type") == "string"}
    return set()


def _rule_name(rule: dict[str, Any]) -> str:
    return str(rule["head"]["ref"][0]["value"])


def _with_else(rules: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for rule in rules:
        yield rule
        if rule.get("else"):
            yield from _with_else([rule["else"]])


def _every(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, list):
        for value in node:
            yield from _every(value)
    elif isinstance(node, dict):
        if "domain" in node:
            yield node
        for value in node.values():
            yield from _every(value)


def _indexed(node: Any) -> Iterator[list[dict[str, Any]]]:
    """Yield the parts of each reference to a rule that is followed by an index."""
    for parts in references(node):
        if len(parts) > 1:
            yield parts
