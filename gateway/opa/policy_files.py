# SPDX-License-Identifier: Apache-2.0
"""The policy files: those of the package, and those that a policy repository (the operator's own policies) adds.

A policy repository adds guardrails, a package `lakegate.changes`, tests, and policy data. It replaces no rule of the
package. A directory that contains `gateway/main.rego` is a complete set of policies. It is accepted only on request,
and never replaces `system.authz`, the rules about the callers of OPA. `check_additions` checks the rules of both.

Only listed built-in functions and documents below `data` may be used in the rules of a policy repository. OPA's
environment contains its tokens, and `data.system.authz` reads them. The message of a denial reaches the caller, and a
function such as `http.send` sends what it is given. Rego cannot make a rule private, so the syntax tree of each file is
checked, whatever its folder. Files that equal those of the package are not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.opa.syntax import InvalidPolicies, Module, calls, constant_path, parse, run

#: The first statement of a module, after comments. A later line `package …` can be a part of a string.
_PACKAGE = re.compile(r"\A(?:\s|#[^\n]*\n)*+package[ \t]+([A-Za-z_][\w.]*)[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)")
_DATA = "data.json"
_ENTRY = "gateway/main.rego"
_SCHEMAS = "schemas/"
_AUTHZ = "system/authz"
_ADDED_PACKAGES = ("gateway.guardrails.", "gateway_test.guardrails.", "lakegate.", "lakegate_test.")
#: The maximum bytes of one file. A larger file is not a policy, and every process would hold it in memory.
_LARGEST = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PolicySource:
    """A directory of policies other than the package's: a policy repository, or a complete set.

    The program `opa` parses the files, to check which functions and documents their rules use. With `complete`, a
    complete set of policies is accepted.
    """

    directory: Path
    opa: Path
    complete: bool = False


def shipped_policies() -> Path:
    """Return the directory of the package's policies: in an installed wheel `gateway/bundled/policies`."""
    package = Path(__file__).parents[1]
    bundled = package / "bundled" / "policies"
    return bundled if bundled.is_dir() else package.parent / "policies"


def policy_directory(directory: Path) -> Path:
    """Return the directory of the policies in a policy repository: its folder `policies`, or the directory itself.

    Raises:
        InvalidPolicies: the directory does not exist.
    """
    if not directory.is_dir():
        raise InvalidPolicies(f"{directory} is not a directory; create one with `lakegate init policies {directory}`.")
    inner = directory / "policies"
    return inner if inner.is_dir() else directory


def policy_files(source: PolicySource | None) -> dict[str, bytes]:
    """Return the content of all files by their path. Without a `source`, these are the policies of the package alone.

    Tests are included. The tests of the package are left out if a policy repository adds guardrails, because they
    describe the package's own rules.

    Raises:
        InvalidPolicies: a file has a form or a place in which OPA would ignore it, replaces a rule of the package, or
            uses a function or a document that is not allowed; or the directory contains no policies.
    """
    shipped = read_policies(shipped_policies())
    if source is None:
        return shipped
    directory = policy_directory(source.directory)
    added = read_policies(directory)
    if not added:
        # The directory may be a volume that is not mounted. The package's policies alone would allow what the
        # guardrails deny.
        raise InvalidPolicies(f"{directory} contains no policies; check that it is mounted, or name another directory.")
    complete = _ENTRY in added
    if complete:
        if not source.complete:
            raise InvalidPolicies(
                f"{directory / _ENTRY} replaces the rules of Lakegate. Remove it, and keep only your own guardrails. "
                "To replace all rules, set LAKEGATE__POLICY_COMPLETE=true; new versions then no longer correct them."
            )
        kept = {name: content for name, content in shipped.items() if name.startswith((_SCHEMAS, _AUTHZ))}
    else:
        kept = {name: content for name, content in shipped.items() if not name.endswith("_test.rego")}
    changed = {name: content for name, content in added.items() if not complete or shipped.get(name) != content}
    for name, content in changed.items():
        _check_place(directory / name, name)
        if not complete:
            _check_addition(directory / name, name, content, shipped)
    checked = {str(directory / name): content for name, content in changed.items()}
    check_additions(source.opa, checked, complete=complete)
    return added | kept if complete else kept | added


def package_of(file: str, content: bytes) -> str:
    """Return the name of a module's package.

    Raises:
        InvalidPolicies: the file has no package.
    """
    found = _PACKAGE.search(content.decode("utf-8", "replace"))
    if found is None:
        raise InvalidPolicies(
            f"{file}:1: the file does not begin with a line `package …` of plain names; write it first."
        )
    return found.group(1)


def read_policies(source: Path) -> dict[str, bytes]:
    """Return the content of all files below `source` by their path.

    Raises InvalidPolicies if OPA would ignore a file.
    """
    files = {}
    for file in sorted(source.rglob("*")):
        name = file.relative_to(source).as_posix()
        if any(part.startswith(".") for part in file.relative_to(source).parts):
            continue
        if file.is_symlink() and not file.is_file():
            raise InvalidPolicies(
                f"{file} is a link to a directory or to a missing file, and such links are not read; copy the files."
            )
        if not file.is_file():
            continue
        if not name.isprintable():
            raise InvalidPolicies(f"{str(file)!r}: the name contains control characters or is not UTF-8; rename it.")
        if file.suffix in (".yaml", ".yml") or (file.suffix == ".json" and file.name != _DATA):
            if name.startswith(_SCHEMAS):
                files[name] = _content(file)
                continue
            raise InvalidPolicies(
                f"{file}: OPA ignores this file in a bundle. Policy data must be in files policy_data/<name>/data.json."
            )
        if file.suffix == ".rego" or file.name == _DATA:
            files[name] = _content(file)
    return files


def _content(file: Path) -> bytes:
    try:
        if file.stat().st_size > _LARGEST:
            raise InvalidPolicies(f"{file} is larger than {_LARGEST} bytes; divide it into smaller files.")
        return file.read_bytes()
    except OSError as error:
        raise InvalidPolicies(f"{file} cannot be read: {error.strerror}; correct its permissions.") from error


def _check_place(file: Path, name: str) -> None:
    """Raise InvalidPolicies if OPA would load a file of policy data as another document, or if a file is not a policy
    file.
    """
    if file.name == _DATA:
        if not name.startswith("policy_data/") or name.count("/") < 2:
            raise InvalidPolicies(f"{file}: policy data must be in a file policy_data/<name>/data.json; move it there.")
    elif not name.endswith(".rego"):
        raise InvalidPolicies(f"{file}: schemas belong to the package; remove the file.")


def _check_addition(file: Path, name: str, content: bytes, shipped: Mapping[str, bytes]) -> None:
    """Raise InvalidPolicies if a file of a policy repository replaces a rule, or adds a package that no rule reads."""
    if file.name == _DATA:
        return
    if name in shipped:
        raise InvalidPolicies(f"{file}: the package contains a file of this name; choose another name.")
    package = package_of(str(file), content)
    if not package.startswith(_ADDED_PACKAGES):
        line = content[: content.find(b"package")].count(b"\n") + 1
        raise InvalidPolicies(
            f"{file}:{line}: a policy repository cannot add the package {package}. A guardrail is a package "
            "gateway.guardrails.<name>, its test gateway_test.guardrails.<name>, an approval rule lakegate.changes."
        )
    owned = {package_of(each, text) for each, text in shipped.items() if each.endswith(".rego")}
    if package in owned:
        raise InvalidPolicies(f"{file}: the package {package} is part of Lakegate; choose another name.")


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
#: Functions of the bridge only. It runs in the OPA beside Trino, and sends requests to the gateway with a token from
#: its environment.
_BRIDGE_FUNCTIONS = frozenset({"http.send", "opa.runtime"})
_ROOTS = frozenset({"gateway", "lakegate", "policy_data"})
_TEST_ROOTS = frozenset({"gateway_test", "lakegate_test"})
_COMPLETE_PACKAGES = (("gateway",), ("gateway_test",), ("lakegate",), ("lakegate_test",), ("system", "revision"))
_BRIDGE = "trino"


def check_additions(opa: Path, added: Mapping[str, bytes], *, complete: bool) -> None:
    """Check the rules that are added to those of the package, or that replace them (`complete`).

    `added` are the files by their path, without files that equal one of the package. The program `opa` parses them.

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
