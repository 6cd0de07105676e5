# SPDX-License-Identifier: Apache-2.0
"""Check and test the policies of a policy repository together with those of the package.

OPA reads them from a temporary directory. Messages name the files of the repository.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.embedded.errors import StackError
from gateway.embedded.guardrails import check_guardrails
from gateway.opa.bundle import json_of
from gateway.opa.policy_files import InvalidPolicies, policy_directory, policy_files

_SECONDS = 300
_FOLDER = "policies"
#: Folders that are not checked for the functions below: they belong to the package, and their rules need them.
_OWN_FOLDERS = ("system", "trino")
#: A guardrail must not read OPA's environment, which contains its tokens, and must not send what it sees.
_REFUSED_FUNCTIONS = frozenset({"http.send", "net.lookup_ip_addr", "opa.runtime"})
_NAMED = re.compile(rf"(?<![\w/.]){_FOLDER}/([^\s:]+)")


@contextmanager
def composed(directory: Path | None) -> Iterator[Path]:
    """Context manager. Write the policies of the package and of `directory` to a temporary directory; yield it.

    Raises:
        StackError: the policies of the directory cannot be used.
    """
    try:
        files = policy_files(directory)
        for name, content in files.items():
            if name.endswith(".json"):
                json_of(str(_source(directory, name) or name), content)
    except InvalidPolicies as invalid:
        raise StackError(str(invalid)) from invalid
    with tempfile.TemporaryDirectory(prefix="lakegate-policies-") as created:
        target = Path(created) / _FOLDER
        for name, content in files.items():
            file = target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        yield target


def check_repository(opa: Path, directory: Path | None) -> list[str]:
    """Return the faults of the policies of `directory`, added to the package's: compilation, format, and contract.

    Raises:
        StackError: the policies cannot be used, or OPA cannot parse a file.
    """
    with composed(directory) as policies:
        check = [str(opa), "check", "--strict", "--schema", f"{_FOLDER}/schemas", _FOLDER]
        failed, output = _run(check, policies.parent)
        if failed:
            return [_renamed(output, directory)]
        if refused := _refused_functions(opa, policies):
            names = ", ".join(sorted(_REFUSED_FUNCTIONS))
            hint = f"A guardrail cannot call {names}: put what it needs into policy data."
            return [f"{_renamed(refused, directory)}\n{hint}"]
        faults = [_renamed(f"{_FOLDER}/{fault}", directory) for fault in check_guardrails(opa, policies)]
        failed, output = _run([str(opa), "fmt", "--list", "--fail", _FOLDER], policies.parent)
        if failed:
            listed = _renamed("\n".join(line for line in output.splitlines() if _NAMED.match(line)), directory)
            faults += [f"{file}: the file is not formatted; run `opa fmt -w` on it" for file in listed.split()]
        return faults


def _refused_functions(opa: Path, policies: Path) -> str:
    """Return OPA's errors about calls of refused functions outside of the package's own folders, or an empty text."""
    failed, output = _run([str(opa), "capabilities", "--current"], policies.parent)
    if failed:
        raise StackError(f"OPA does not print its capabilities: {output}")
    allowed = json.loads(output)
    allowed["builtins"] = [each for each in allowed["builtins"] if each["name"] not in _REFUSED_FUNCTIONS]
    file = policies.parent / "capabilities.json"
    file.write_text(json.dumps(allowed))
    # OPA compares an ignored name with the name of each file and folder.
    ignored = [f"--ignore={name}" for name in (*_OWN_FOLDERS, "*_test.rego", "schemas")]
    failed, output = _run([str(opa), "check", "--capabilities", file.name, *ignored, _FOLDER], policies.parent)
    return output if failed else ""


def test_repository(opa: Path, directory: Path) -> tuple[bool, str]:
    """Return (all tests passed, output of OPA) for the tests of a policy repository.

    Raises:
        StackError: the policies cannot be used, or there are no tests.
    """
    with composed(directory) as policies:
        if not list(policies.rglob("*_test.rego")):
            raise StackError(
                f"{directory} contains no tests; write one for each guardrail, in a file policies/…/<name>_test.rego."
            )
        # On a busy machine a test can take seconds. Schemas are ignored: as data, two of them would conflict.
        command = [str(opa), "test", "--timeout=60s", "--ignore=schemas", _FOLDER]
        failed, output = _run(command, policies.parent)
        return not failed, _renamed(output, directory)


def _run(command: list[str], folder: Path) -> tuple[bool, str]:
    """Return (the command failed, its output)."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise StackError(
            f"OPA did not finish within {_SECONDS} seconds; look for a rule that evaluates too much."
        ) from None
    return done.returncode != 0, (done.stdout + done.stderr).strip()


def _source(directory: Path | None, name: str) -> Path | None:
    if directory is None:
        return None
    file = policy_directory(directory) / name
    return file if file.is_file() else None


def _renamed(output: str, directory: Path | None) -> str:
    """Return the output of OPA with the paths of the repository instead of those of the temporary directory."""
    return _NAMED.sub(lambda found: str(_source(directory, found[1]) or found[1]), output)
