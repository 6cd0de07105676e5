# SPDX-License-Identifier: Apache-2.0
"""List the built-in functions and the documents below `data` that the rules of a policy repository may use.

OPA's environment contains its tokens, and `data.system.authz` reads them. The message of a denial reaches the caller,
and a function such as `http.send` sends what it is given. Rego cannot make a rule private, so each file is checked
by its syntax tree, whatever its folder. Files that equal those of the package are not checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from gateway.opa.errors import InvalidPolicies
from gateway.opa.syntax import Module, calls, constant_path, parse, run

_NAMES = """
    abs all and any array.concat array.flatten array.reverse array.slice assign
    base64.decode base64.encode base64.is_valid base64url.decode base64url.encode base64url.encode_no_pad
    bits.and bits.lsh bits.negate bits.or bits.rsh bits.xor
    cast_array cast_boolean cast_null cast_object cast_set cast_string ceil concat contains count
    crypto.hmac.equal crypto.hmac.md5 crypto.hmac.sha1 crypto.hmac.sha256 crypto.hmac.sha512
    crypto.md5 crypto.sha1 crypto.sha256
    div endswith eq equal floor format_int glob.match glob.quote_meta graph.reachable graph.reachable_paths
    gt gte hex.decode hex.encode indexof indexof_n internal.member_2 internal.member_3 internal.template_string
    internal.test_case intersection is_array is_boolean is_null is_number is_object is_set is_string
    json.filter json.is_valid json.marshal json.marshal_with_options json.patch json.remove json.unmarshal
    lower lt lte max min minus mul neq
    net.cidr_contains net.cidr_contains_matches net.cidr_expand net.cidr_intersects net.cidr_is_valid net.cidr_merge
    net.cidr_overlap numbers.range numbers.range_step
    object.filter object.get object.keys object.remove object.subset object.union object.union_n or plus product
    re_match regex.find_all_string_submatch_n regex.find_n regex.globs_match regex.is_valid regex.match regex.replace
    regex.split regex.template_match rem replace round semver.compare semver.is_valid set_diff sort split sprintf
    startswith strings.any_prefix_match strings.any_suffix_match strings.count strings.render_template
    strings.replace_n strings.reverse strings.split_n substring sum
    time.add_date time.clock time.date time.diff time.format time.parse_duration_ns time.parse_ns
    time.parse_rfc3339_ns time.weekday
    to_number trim trim_left trim_prefix trim_right trim_space trim_suffix type_name union units.parse
    units.parse_bytes upper uri.is_valid uri.parse urlquery.decode urlquery.decode_object urlquery.encode
    urlquery.encode_object uuid.parse walk yaml.is_valid yaml.marshal yaml.unmarshal
"""
#: Functions whose result depends on their arguments alone, and which read, send and log nothing.
ALLOWED_FUNCTIONS = frozenset(_NAMES.split())
#: The bridge in the OPA beside Trino asks the gateway, with a token of its environment.
_BRIDGE_FUNCTIONS = frozenset({"http.send", "opa.runtime"})
_ROOTS = frozenset({"gateway", "lakegate", "policy_data"})
_TEST_ROOTS = frozenset({"gateway_test", "lakegate_test"})
_COMPLETE_PACKAGES = (("gateway",), ("gateway_test",), ("lakegate",), ("lakegate_test",), ("system", "revision"))
_BRIDGE = "trino"


def check_additions(opa: Path, added: Mapping[str, bytes], *, complete: bool) -> None:
    """Check the rules that are added to those of the package. `complete`: they replace them.

    `added` are the files by their path, without those that equal a file of the package. The program `opa` parses them.

    Raises:
        InvalidPolicies: a file cannot be parsed, or uses something that is not allowed. The message names each.
    """
    modules = parse(opa, {name: content for name, content in added.items() if name.endswith(".rego")})
    if not modules:
        return
    known = _built_in_functions(opa)
    own: dict[tuple[str, ...], set[str]] = {}
    for module in modules:
        own.setdefault(module.package, set()).update(str(rule["head"]["ref"][0]["value"]) for rule in module.rules)
    faults = [
        f"{module.file}: {fault}"
        for module in modules
        for fault in dict.fromkeys(_faults(module, known, own[module.package], complete))
    ]
    if faults:
        raise InvalidPolicies("\n".join(faults))


def _built_in_functions(opa: Path) -> frozenset[str]:
    done = run(opa, "capabilities", "--current")
    if done.returncode != 0:
        raise InvalidPolicies(f"OPA does not print its capabilities: {done.stderr[-2000:]}")
    return frozenset(each["name"] for each in json.loads(done.stdout)["builtins"])


def _faults(module: Module, known: frozenset[str], own: set[str], complete: bool) -> Iterator[str]:
    bridge = complete and module.package[0] in (_BRIDGE, f"{_BRIDGE}_test")
    if complete and not bridge and not any(module.package[: len(each)] == each for each in _COMPLETE_PACKAGES):
        yield (
            f"a complete set of policies cannot contain the package {'.'.join(module.package)} other than in the file "
            "of this version; remove the file, and Lakegate adds its own."
        )
    allowed = ALLOWED_FUNCTIONS | (_BRIDGE_FUNCTIONS if bridge else frozenset())
    roots = _ROOTS | (_TEST_ROOTS if module.is_test else frozenset())
    roots |= {_BRIDGE, f"{_BRIDGE}_test"} if bridge else frozenset()
    for parts in module.references():
        path = constant_path(parts)
        if path[:1] == ("data",):
            if not _readable(path, roots, complete):
                yield _data_fault(".".join(path), roots)
        else:
            name = next((".".join(path[:end]) for end in range(1, len(path) + 1) if ".".join(path[:end]) in known), "")
            if name and name not in allowed:
                yield _function_fault(name)
    imported = {_alias(each) for each in module.tree.get("imports") or []}
    for parts, _ in calls(module.rules):
        path = constant_path(parts)
        name = ".".join(path)
        if path[:1] != ("data",) and name not in allowed and path[:1] and path[0] not in own | imported:
            yield _function_fault(name)


def _alias(imported: dict[str, object]) -> str:
    path: list[dict[str, object]] = imported["path"]["value"]  # type: ignore[index]  # OPA's tree
    return str(imported.get("alias") or path[-1]["value"])


def _readable(path: tuple[str, ...], roots: frozenset[str], complete: bool) -> bool:
    if complete and path[1:3] in (("system", "revision"), ("system", "bundles")):
        return True
    return path[1:2] != () and path[1] in roots


def _data_fault(path: str, roots: frozenset[str]) -> str:
    listed = ", ".join(f"data.{root}" for root in sorted(roots))
    return (
        f"a rule refers to {path}, and may refer to {listed} with the name written out. OPA's tokens are elsewhere "
        "below data. Put what the rule needs into policy data."
    )


def _function_fault(name: str) -> str:
    return (
        f"a rule calls {name}, which policies of a repository cannot call: they get all facts from the input and from "
        "policy data. docs/policy-repository.md describes the allowed functions."
    )
