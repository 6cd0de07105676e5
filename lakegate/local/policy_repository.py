# SPDX-License-Identifier: Apache-2.0
"""Create repositories for an operator's own policies. Check and test these together with the policies of the package.

OPA reads them from a temporary directory. Messages name the files of the repository. A new repository has a guardrail
(a Rego package that can deny or restrict operations) with tests, and policy data. A repository for an own relationship
model starts as a copy of the package's model with tests. Both have a README and an example of a CI workflow.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gateway.fga.compile import FGA_VERSION
from gateway.fga.compiled import model_version
from gateway.opa.bundle import json_of
from gateway.opa.policy_files import PolicySource, policy_directory, policy_files
from gateway.opa.syntax import InvalidPolicies
from lakegate.local.errors import StackError
from lakegate.local.policy_checks import check_guardrails
from lakegate.local.toolchain import OPA, shipped

_SECONDS = 300
_FOLDER = "policies"
_NAMED = re.compile(rf"(?<![\w/.]){_FOLDER}/([^\s:]+)")


@contextmanager
def composed(source: PolicySource | None) -> Iterator[Path]:
    """Context manager. Write the policies of the package and of `source` to a temporary directory, and yield the
    directory.

    Raises:
        StackError: the policies of the directory cannot be used.
    """
    try:
        files = policy_files(source)
        for name, content in files.items():
            if name.endswith(".json"):
                json_of(str(_file(source, name) or name), content)
    except InvalidPolicies as invalid:
        raise StackError(str(invalid)) from invalid
    with tempfile.TemporaryDirectory(prefix="lakegate-policies-") as created:
        target = Path(created) / _FOLDER
        for name, content in files.items():
            file = target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        yield target


def check_repository(opa: Path, source: PolicySource | None) -> list[str]:
    """Return the faults of the policies of `source`, combined with those of the package: compilation, format and
    contract.

    Raises:
        StackError: the policies cannot be used, or OPA cannot parse a file.
    """
    with composed(source) as policies:
        check = [str(opa), "check", "--strict", "--schema", f"{_FOLDER}/schemas", _FOLDER]
        failed, output = _run(check, policies.parent)
        if failed:
            return [_renamed(output, source)]
        faults = [_renamed(f"{_FOLDER}/{fault}", source) for fault in check_guardrails(opa, policies)]
        failed, output = _run([str(opa), "fmt", "--list", "--fail", _FOLDER], policies.parent)
        if failed:
            listed = _renamed("\n".join(line for line in output.splitlines() if _NAMED.match(line)), source)
            faults += [f"{file}: the file is not formatted; run `opa fmt -w` on it" for file in listed.split()]
        return faults


def test_repository(source: PolicySource) -> tuple[bool, str]:
    """Run the tests of a policy repository. Return (True if all tests passed, output of OPA).

    Raises:
        StackError: the policies cannot be used, or there are no tests.
    """
    with composed(source) as policies:
        if not list(policies.rglob("*_test.rego")):
            raise StackError(
                f"{source.directory} contains no tests; write one for each guardrail, in a file "
                "policies/…/<name>_test.rego."
            )
        # On a busy machine a test can take seconds. Schemas are ignored: as data, two of them would conflict.
        command = [str(source.opa), "test", "--timeout=60s", "--ignore=schemas", _FOLDER]
        failed, output = _run(command, policies.parent)
        return not failed, _renamed(output, source)


def _run(command: list[str], folder: Path) -> tuple[bool, str]:
    """Run a command. Return (True if it failed, its output). Tests of a repository must not read this process's
    variables.
    """
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            env={},
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


def _file(source: PolicySource | None, name: str) -> Path | None:
    if source is None:
        return None
    file = policy_directory(source.directory) / name
    return file if file.is_file() else None


def _renamed(output: str, source: PolicySource | None) -> str:
    """Return the output of OPA with the paths of the repository instead of those of the temporary directory."""
    return _NAMED.sub(lambda found: str(_file(source, found[1]) or found[1]), output)


_TEMPLATES = Path(__file__).with_name("policy_template")

_MODEL_TEMPLATES = Path(__file__).with_name("model_template")
_MODEL = "fga_model"
_MODEL_WORKFLOW = ".github/workflows/model.yaml"
_MODEL_WIDENED = "widened-model.txt"
_MODEL_FILES = ("fga.mod", "*.fga", "tests/*.yaml")
_MODEL_TEMPLATE_FILES = {
    f"{_MODEL}/README.md": "README.md",
    _MODEL_WORKFLOW: "workflow.yaml",
    _MODEL_WIDENED: "widened.txt",
}

#: The files of a new repository, and the template of each.
_FILES = {
    "README.md": "README.md",
    ".github/workflows/policies.yaml": "workflow.yaml",
    "policies/gateway/guardrails/freeze.rego": "freeze.rego",
    "policies/gateway/guardrails/freeze_test.rego": "freeze_test.rego",
    "policies/policy_data/freeze/data.json": "freeze.json",
    "decisions.jsonl": "decisions.jsonl",
    "widened-policies.txt": "widened.txt",
}


def create_repository(directory: Path) -> list[Path]:
    """Write the files of a new policy repository, and return their paths.

    Raises:
        StackError: the directory is not empty, or cannot be written.
    """
    if directory.exists() and (not directory.is_dir() or any(each.name != ".git" for each in directory.iterdir())):
        raise StackError(f"{directory} is not an empty directory; name a new one.")
    written = []
    try:
        for name, template in _FILES.items():
            file = directory / name
            file.parent.mkdir(parents=True, exist_ok=True)
            text = (_TEMPLATES / template).read_text(encoding="utf-8")
            pinned = text.replace("==LAKEGATE_VERSION", _pin()).replace("OPA_VERSION", OPA.version)
            file.write_text(pinned, encoding="utf-8")
            written.append(file)
    except OSError as error:
        raise StackError(f"{directory} cannot be written: {error.strerror}; choose another directory.") from error
    return written


def create_model(directory: Path) -> list[Path]:
    """Write the files of an operator's own OpenFGA model, and return their paths. `directory` may be a policy
    repository.

    Raises:
        StackError: the directory already has a model, or cannot be written.
    """
    source = shipped() / _MODEL
    texts = {
        f"{_MODEL}/{file.relative_to(source)}": file.read_text(encoding="utf-8")
        for pattern in _MODEL_FILES
        for file in sorted(source.glob(pattern))
    }
    for name, template in _MODEL_TEMPLATE_FILES.items():
        text = (_MODEL_TEMPLATES / template).read_text(encoding="utf-8")
        pinned = text.replace("==LAKEGATE_VERSION", _pin()).replace("FGA_VERSION", FGA_VERSION)
        texts[name] = pinned.replace("MODEL_VERSION", model_version())
    present = [directory / name for name in (_MODEL, _MODEL_WORKFLOW, _MODEL_WIDENED) if (directory / name).exists()]
    if present:
        raise StackError(f"{present[0]} already exists; name a directory without a model.")
    try:
        for name, text in texts.items():
            file = directory / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StackError(f"{directory} cannot be written: {error.strerror}; choose another directory.") from error
    return [directory / name for name in texts]


def _pin() -> str:
    """Return the version specifier of this installation; an empty text if the package is not installed."""
    try:
        return f"=={version('lakegate')}"
    except PackageNotFoundError:
        return ""
