# SPDX-License-Identifier: Apache-2.0
"""Create a policy repository: a guardrail with tests, policy data, a README, and an example of a CI workflow."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gateway.embedded.errors import StackError
from gateway.embedded.toolchain import OPA

_TEMPLATES = Path(__file__).with_name("policy_template")

#: The files of a new repository, and the template of each.
_FILES = {
    "README.md": "README.md",
    ".github/workflows/policies.yaml": "workflow.yaml",
    "policies/gateway/guardrails/freeze.rego": "freeze.rego",
    "policies/gateway/guardrails/freeze_test.rego": "freeze_test.rego",
    "policies/policy_data/freeze/data.json": "freeze.json",
}


def create_repository(directory: Path) -> list[Path]:
    """Write the files of a new policy repository; return their paths.

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


def _pin() -> str:
    """Return the version specifier of this installation, empty if it is not installed."""
    try:
        return f"=={version('lakegate')}"
    except PackageNotFoundError:
        return ""
