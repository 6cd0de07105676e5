# SPDX-License-Identifier: Apache-2.0
"""Compile the relationship model in a directory with the program `fga`, and check it. Faults have the file and line."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from gateway.fga.compile import fga_command, without_origins
from gateway.fga.compiled import compiled_model
from gateway.fga.model_rules import Fault, model_faults

_SECONDS: Final = 60
_TEST_SECONDS: Final = 600
_MANIFEST: Final = "fga.mod"
_FOLDER: Final = "fga_model"
_SYNTAX: Final = re.compile(r"syntax error at line=(\d+), column=\d+: (.*)|line=(\d+), column=\d+: (.*)")
_UNDEFINED: Final = re.compile(r"'(\w+)#(\w+)' relation is undefined")
_INVALID: Final = re.compile(r"on '(\w+)' in object type '(\w+)'")


class InvalidModel(Exception):
    """The model cannot be compiled or breaks a rule. `faults` are lines with file, line and text."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class ModelTests:
    """The result of a model's tests. `output` is the output of the program `fga`."""

    passed: bool
    output: str


def checked_model(directory: Path) -> dict[str, Any]:
    """Return the compiled model of `directory` in OpenFGA's JSON form.

    `directory` contains `fga.mod`, or a folder `fga_model` that contains it.

    Raises:
        InvalidModel: the model is invalid, or breaks a rule of `gateway.fga.model_rules`.
        FileNotFoundError: the program `fga` is missing.
    """
    folder = _model_folder(directory)
    compiled = _compiled(folder)
    places = _places(compiled)
    model: dict[str, Any] = without_origins(compiled)
    faults = model_faults(model, without_origins(compiled_model()))
    if faults:
        raise InvalidModel([f"{_place(folder, places, each)}: {each}" for each in faults])
    return model


def source_model(directory: Path) -> dict[str, Any]:
    """Return the compiled model of `directory`, without the rules of this version: the model of another version may
    break them.

    Raises InvalidModel, and FileNotFoundError if the program `fga` is missing.
    """
    model: dict[str, Any] = without_origins(_compiled(_model_folder(directory)))
    return model


def run_model_tests(directory: Path) -> ModelTests:
    """Run `tests/*.fga.yaml` of the model in `directory`. A model without tests is an error.

    Raises InvalidModel, and FileNotFoundError if the program `fga` is missing.
    """
    folder = _model_folder(directory)
    if not list(folder.glob("tests/*.fga.yaml")):
        raise InvalidModel([f"{folder / 'tests'}: contains no tests (*.fga.yaml)"])
    # The tests refer to the model outside of their folder, which `fga` treats as an external file.
    done = _run(folder, "model", "test", "--allow-external-files", "--tests", "tests/*.fga.yaml", seconds=_TEST_SECONDS)
    return ModelTests(done.returncode == 0, (done.stdout + done.stderr).strip())


def _model_folder(directory: Path) -> Path:
    for folder in (directory, directory / _FOLDER):
        if (folder / _MANIFEST).is_file():
            return folder
    raise InvalidModel(
        [f"{directory}: contains no {_MANIFEST} and no {_FOLDER}/{_MANIFEST}; create one with `lakegate init model`"]
    )


def _compiled(folder: Path) -> dict[str, Any]:
    """Return the compiled model with the source file of each definition. Raises InvalidModel."""
    faults = [fault for name in _modules(folder) for fault in _syntax_faults(folder, name)]
    if faults:
        raise InvalidModel(faults)
    done = _run(folder, "model", "transform", "--file", _MANIFEST, "--output-format", "json")
    if done.returncode != 0:
        raise InvalidModel([f"{folder / _MANIFEST}: {_message(done)}"])
    compiled: dict[str, Any] = json.loads(done.stdout)
    done = _run(folder, "model", "validate", "--file", _MANIFEST)
    verdict = json.loads(done.stdout) if done.stdout.strip() else {"error": _message(done)}
    if not verdict.get("is_valid"):
        text = str(verdict.get("error"))
        raise InvalidModel([f"{_reference_place(folder, compiled, text)}: {text}"])
    return compiled


def _modules(folder: Path) -> list[str]:
    """Return the names of the modules in `fga.mod`.

    Raises InvalidModel if the manifest names files outside of the directory.
    """
    manifest = folder / _MANIFEST
    try:
        names = yaml.safe_load(manifest.read_text(encoding="utf-8"))["contents"]
        missing = [name for name in names if Path(name).name != name or not (folder / name).is_file()]
    except (yaml.YAMLError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise InvalidModel([f"{manifest}: must have a list `contents` of modules ({type(error).__name__})"]) from None
    if missing:
        raise InvalidModel([f"{manifest}: the module {name} is not a file beside it" for name in missing])
    return list(names)


def _syntax_faults(folder: Path, name: str) -> list[str]:
    """Return the syntax errors of a module, with its file name. `fga` prints no file name, and counts lines from 0."""
    done = _run(folder, "model", "transform", "--file", name, "--output-format", "json")
    if done.returncode == 0:
        return []
    lines = [match.groups() for match in _SYNTAX.finditer(done.stderr)]
    found = [f"{folder / name}:{int(first or second) + 1}: {text or other}" for first, text, second, other in lines]
    return found or [f"{folder / name}: {_message(done)}"]


def _places(compiled: dict[str, Any]) -> dict[str, str]:
    """Return the name of the source file by type."""
    return {each["type"]: each["metadata"]["source_info"]["file"] for each in compiled["type_definitions"]}


def _reference_place(folder: Path, compiled: dict[str, Any], text: str) -> str:
    places = _places(compiled)
    if match := _UNDEFINED.search(text):
        type_name, relation = match.groups()
        # For a relation that a parent lacks, the message names the type that has no such relation, but another file
        # uses it.
        names = [places[type_name]] if type_name in places else []
        for name in dict.fromkeys([*names, *places.values()]):
            if line := _line(folder / name, rf"^[^#]*\b{relation}\b"):
                return f"{folder / name}:{line}"
    elif match := _INVALID.search(text):
        relation, type_name = match.groups()
        return _place(folder, places, Fault(type_name, relation, text))
    return str(folder / _MANIFEST)


def _place(folder: Path, places: dict[str, str], fault: Fault) -> str:
    """Return the file and line of the faulty relation, or else of its type, or else of the manifest."""
    if fault.type is None or fault.type not in places:
        return str(folder / _MANIFEST)
    file = folder / places[fault.type]
    line = _line(file, rf"^\s*define\s+{fault.relation}\s*:") or _line(file, rf"^\s*(extend\s+)?type\s+{fault.type}\b")
    return f"{file}:{line}" if line else str(file)


def _line(file: Path, pattern: str) -> int | None:
    for number, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if re.search(pattern, text):
            return number
    return None


def _run(folder: Path, *arguments: str, seconds: int = _SECONDS) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [fga_command(), *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InvalidModel([f"{folder}: the program fga did not end within {seconds} seconds"]) from None


def _message(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stderr or done.stdout).split()).removeprefix("Error: ")
