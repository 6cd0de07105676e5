# SPDX-License-Identifier: Apache-2.0
"""Create a policy repository (a guardrail with tests and policy data) or an own relationship model (a copy of the
package's model with tests), each with a README and an example of a CI workflow.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gateway.fga.compile import FGA_VERSION
from gateway.fga.compiled import MODEL_VERSION
from lakegate.local.errors import StackError
from lakegate.local.toolchain import OPA, shipped

_TEMPLATES = Path(__file__).with_name("policy_template")

_MODEL_TEMPLATES = Path(__file__).with_name("model_template")
_MODEL = "fga_model"
_MODEL_WORKFLOW = ".github/workflows/model.yaml"
_MODEL_FILES = ("fga.mod", "*.fga", "tests/*.yaml")

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


def create_model(directory: Path) -> list[Path]:
    """Write the files of an own model; return their paths. `directory` may be a policy repository.

    Raises:
        StackError: the directory already has a model, or cannot be written.
    """
    source = shipped() / _MODEL
    texts = {
        f"{_MODEL}/{file.relative_to(source)}": file.read_text(encoding="utf-8")
        for pattern in _MODEL_FILES
        for file in sorted(source.glob(pattern))
    }
    for name, template in ((f"{_MODEL}/README.md", "README.md"), (_MODEL_WORKFLOW, "workflow.yaml")):
        text = (_MODEL_TEMPLATES / template).read_text(encoding="utf-8")
        pinned = text.replace("==LAKEGATE_VERSION", _pin()).replace("FGA_VERSION", FGA_VERSION)
        texts[name] = pinned.replace("MODEL_VERSION", MODEL_VERSION)
    present = [directory / name for name in (_MODEL, _MODEL_WORKFLOW) if (directory / name).exists()]
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
    """Return the version specifier of this installation, empty if it is not installed."""
    try:
        return f"=={version('lakegate')}"
    except PackageNotFoundError:
        return ""
