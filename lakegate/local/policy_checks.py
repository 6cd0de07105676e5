# SPDX-License-Identifier: Apache-2.0
"""Check the rules of guardrails, and the input fields that policies read, without evaluating the policies.

A guardrail is a Rego package that can deny or restrict an operation. `policies/gateway/main.rego` denies requests for
which a guardrail returns an invalid value. It cannot detect a rule that is undefined for an input, or a package that no
rule reads. This check finds both before deployment.

A condition on a field or an operation that does not exist never holds, so a guardrail with such a condition denies
nothing. OPA checks fields only for rules with an annotation, and it never checks values of enumerations.
"""

from __future__ import annotations

import difflib
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.opa.schema import denial_names, obligation_types
from gateway.opa.syntax import InvalidPolicies, Kinds, Module, calls, constant_path, parse, run
from lakegate.local.errors import StackError
from lakegate.local.toolchain import shipped

_PREFIX = ("gateway", "guardrails")
_TESTS = "gateway_test.guardrails"
_ENTRIES = {("gateway",), ("gateway", "residual"), ("system", "authz"), ("system", "revision"), ("system", "log")}
_PUBLIC = ("denials", "obligations", "steady")
_LITERALS = {"string", "number", "boolean", "null", "array", "set", "object"}


def check_guardrails(opa: Path, policies: Path) -> list[str]:
    """Return the faults of the guardrails in this folder of policies, one text for each.

    Raises:
        StackError: OPA cannot parse a file.
    """
    files = {str(file.relative_to(policies)): file.read_bytes() for file in sorted(policies.rglob("*.rego"))}
    try:
        modules = parse(opa, files)
        found = input_faults(opa, [module for module in modules if not module.is_test], files)
    except InvalidPolicies as invalid:
        raise StackError(f"{policies}: {invalid}") from invalid
    data = {path.name for path in (policies / "policy_data").glob("*") if path.is_dir()}
    shipped = [module for module in modules if not module.is_test]
    found += [f"{module.file}: {fault}" for module in modules for fault in _placement(module, shipped)]
    packages: dict[tuple[str, ...], list[Module]] = {}
    for module in shipped:
        if _is_guardrail(module):
            packages.setdefault(module.package, []).append(module)
            found += [f"{module.file}: {fault}" for fault in _undefined(module, shipped, data)]
    for together in packages.values():
        found += [f"{together[0].file}: {fault}" for fault in _contract(together)]
    return found


def _is_guardrail(module: Module) -> bool:
    """Return True for a package that is a guardrail: it is below gateway.guardrails."""
    return module.package[:2] == _PREFIX and len(module.package) > 2


def _placement(module: Module, shipped: Sequence[Module]) -> Iterator[str]:
    """Yield the faults of a package's place: it is below gateway.guardrails and is no guardrail, or no other module
    reads it.
    """
    name = ".".join(module.package)
    if module.package[:2] == _PREFIX:
        if module.is_test:
            yield (
                f"package {name} is a test in the place of a guardrail. Tests of guardrails must be in a package "
                f"{_TESTS}.<name>."
            )
        elif len(module.package) != 3:
            yield f"package {name} is not a guardrail. A guardrail must be a package gateway.guardrails.<name>."
        return
    if module.is_test or module.package[0] not in ("gateway", "system") or module.package in _ENTRIES:
        return
    others = [each for each in shipped if each is not module]
    if not any(path[: len(module.package)] == module.package for each in others for path in _data_paths(each)):
        yield f"no policy uses package {name}. If it is a guardrail, rename it to gateway.guardrails.<name>."


def _contract(modules: Sequence[Module]) -> Iterator[str]:
    """Yield the violations of the output schema by one guardrail. `modules` are the files of its package."""
    name = ".".join(modules[0].package)
    rules = [rule for module in modules for rule in module.rules]
    defined = {_name(rule) for rule in rules}
    if not defined & {"denials", "obligations"}:
        yield f"package {name} defines neither denials nor obligations."
    for rule in rules:
        yield from _rule_faults(rule)
    for helper in sorted(each for each in defined if each.startswith("_")):
        if not any(helper in _variables(rule) for rule in rules if _name(rule) != helper):
            yield f"no rule uses the helper {helper}."


def _rule_faults(rule: dict[str, Any]) -> Iterator[str]:
    name, head = _name(rule), rule["head"]
    if name.startswith("_"):
        return
    if name not in _PUBLIC:
        yield f"unknown rule {name}. Public rules: {', '.join(_PUBLIC)}. The names of helpers must begin with _."
        return
    plain = len(head["ref"]) == 1 and "key" not in head and "args" not in head
    if name == "steady":
        if not plain:
            yield "steady must have the form `steady := true` or `steady if { … }`."
        return
    if len(head["ref"]) != 2 or "key" not in head or "value" in head or "args" in head:
        yield f"{name} has another form than `{name}[index] contains … if {{ … }}`, so it may be undefined."
        return
    for entry in _entries(rule):
        yield from _entry_faults(name, entry)


def _entries(rule: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects that a rule adds to its set, as far as they are literals."""
    key = rule["head"]["key"]
    if key["type"] == "object":
        yield key
    if key["type"] == "var":
        for expression in rule["body"]:
            terms = expression.get("terms")
            if isinstance(terms, list) and len(terms) == 3 and terms[1] == key and terms[2]["type"] == "object":
                yield terms[2]


def _entry_faults(rule: str, entry: dict[str, Any]) -> Iterator[str]:
    types = dict.fromkeys(denial_names(), {"string"}) if rule == "denials" else obligation_types()
    given = {key["value"]: value for key, value in entry["value"] if key["type"] == "string"}
    for name, value in given.items():
        if name not in types:
            yield f"unknown field {name} in {rule}. Possible fields: {', '.join(sorted(types))}."
        elif value["type"] in _LITERALS and value["type"] not in types[name]:
            yield (
                f"field {name} in {rule} is of type {value['type']}; it must be of type "
                f"{' or '.join(sorted(types[name]))}."
            )
    if rule == "denials" and len(given) == len(entry["value"]):
        for name in sorted(types.keys() - given.keys()):
            yield f"missing field {name} in denials."


def _undefined(module: Module, shipped: Sequence[Module], data: set[str]) -> Iterator[str]:
    """Yield references to rules and policy data that do not exist. Such a reference is undefined for every input."""
    rules = {(*each.package, _name(rule)) for each in shipped for rule in each.rules}
    for path in sorted(set(_data_paths(module))):
        if path[:1] == ("policy_data",):
            if len(path) > 1 and path[1] not in data:
                yield f"data.{'.'.join(path[:2])} does not exist; create the file policy_data/{path[1]}/data.json."
        elif path[:2] != ("system", "bundles") and not any(
            rule[: len(path)] == path or path[: len(rule)] == rule for rule in rules
        ):
            yield f"data.{'.'.join(path)} is not defined by any policy."


def _name(rule: dict[str, Any]) -> str:
    return str(rule["head"]["ref"][0]["value"])


def _data_paths(module: Module) -> Iterator[tuple[str, ...]]:
    """Yield the paths below `data` to which a file refers, each cut at its first variable."""
    for parts in module.references():
        path = constant_path(parts)
        if path[:1] == ("data",) and len(path) > 1:
            yield path[1:]


def _variables(node: Any) -> set[str]:
    """Return all variables in a part of a syntax tree. Names of rules of the same package are included."""
    if isinstance(node, dict):
        own = {str(node["value"])} if node.get("type") == "var" else set()
        return own.union(*(_variables(value) for value in node.values()))
    if isinstance(node, list):
        return set().union(*(_variables(value) for value in node))
    return set()


_SCHEMA = "policies/schemas/input.json"
#: The check disables METADATA annotations, which could select another schema or none. The line numbers stay the same.
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
    """Return the faults of the packages below `gateway`, one text for each: unknown input fields, and impossible
    values.

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
    """Yield each constant with which a field of the input is compared although the field cannot have this value."""
    for rule in module.rules:
        names = kinds.of_rule(rule)
        for kind, text in names.compared(rule):
            # Policies compare a field with an empty text to find a malformed question, so an empty text is no fault.
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
        # OPA's syntax of patterns differs in details from Python's. OPA itself compiles the pattern.
        return True


def _as_regex(pattern: str) -> str:
    """Return a regular expression that matches at least the texts that this glob matches."""
    if not re.fullmatch(r"[\w*?]+", pattern):
        return ""
    return "^" + pattern.replace("*", ".*").replace("?", ".") + "$"
