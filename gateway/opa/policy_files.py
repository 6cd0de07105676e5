# SPDX-License-Identifier: Apache-2.0
"""The files of the policies: those of the package, and those of a policy repository, which are added to them.

A policy repository adds guardrails, a package `lakegate.changes`, tests, and policy data. It replaces no rule of the
package. A directory that contains `gateway/main.rego` is a complete set of policies. It is accepted only on request,
and never replaces `system.authz`, the rules about the callers of OPA. :mod:`gateway.opa.additions` checks the rules of
both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.opa.additions import check_additions
from gateway.opa.errors import InvalidPolicies

#: The first statement of a module, after comments. A later line `package …` can be a part of a string.
_PACKAGE = re.compile(r"\A(?:\s|#[^\n]*\n)*+package[ \t]+([A-Za-z_][\w.]*)[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)")
_DATA = "data.json"
_ENTRY = "gateway/main.rego"
_SCHEMAS = "schemas/"
_AUTHZ = "system/authz"
_ADDED_PACKAGES = ("gateway.guardrails.", "gateway_test.guardrails.", "lakegate.", "lakegate_test.")
#: The limit of one file. A larger one is no policy, and would be held in memory by every process.
_LARGEST = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PolicySource:
    """A directory of policies that are not the package's: a policy repository, or a complete set.

    The program `opa` parses the files, to check what their rules use. `complete` accepts a complete set of policies.
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
    """Return the content of all files by their path. None: the policies of the package alone.

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
        # Such as a volume that is not mounted: the package's policies alone would allow what the guardrails deny.
        raise InvalidPolicies(f"{directory} contains no policies; check that it is mounted, or name another directory.")
    complete = _ENTRY in added
    if complete:
        if not source.complete:
            raise InvalidPolicies(
                f"{directory / _ENTRY} replaces the rules of Lakegate. Remove it, and keep only your own guardrails. "
                "To replace all rules, which then no new version corrects, set LAKEGATE__POLICY_COMPLETE=true."
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
    """Return the content of all files below `source` by their path. Raise InvalidPolicies if OPA would ignore one."""
    files = {}
    for file in sorted(source.rglob("*")):
        name = file.relative_to(source).as_posix()
        if any(part.startswith(".") for part in file.relative_to(source).parts):
            continue
        if file.is_symlink() and not file.is_file():
            raise InvalidPolicies(
                f"{file} is a link to a directory or to a missing file, which is not read; put the files there."
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
    """Raise InvalidPolicies if a file of policy data would be another document, or if a file is no policy."""
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
