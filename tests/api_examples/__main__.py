# SPDX-License-Identifier: Apache-2.0
"""Record examples: `python -m tests.api_examples [FILE…]` runs test files and keeps what clients sent and received.

Without files, it runs those that reach nearly all operations, and chooses all examples anew. With files it adds missing
examples and replaces outdated ones, so that a new operation needs only the test file of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from gateway.api.openapi_texts import EXAMPLES as FILE
from gateway.api.openapi_texts import Recorded, recorded_examples
from tests.api_examples.bodies import ENDPOINTS, fault
from tests.api_examples.masking import masked
from tests.api_examples.recording import DIRECTORY
from tests.support.goldens.golden_openapi import as_lines

_WALK = "tests/api_examples/walk.py"
_FILES = (
    _WALK,
    "tests/contract",
    "tests/security/test_policy_loss.py",
    "tests/integration/test_every_verified_operation.py",
)

_BODIES = ("request", "response")

#: The length of the JSON of an example from which on a smaller one is preferred.
_LARGE = 900


def main(files: list[str]) -> int:
    """Run the tests and write the file. Return the exit code of pytest."""
    with tempfile.TemporaryDirectory() as directory:
        plugin = ["-p", "tests.api_examples.recording"]
        command = [sys.executable, "-m", "pytest", "-q", "-n0", "-m", "not long and not chaos", *plugin, *files]
        code = subprocess.run(command, env={**os.environ, DIRECTORY: directory}, check=False).returncode
        records = [json.loads(line) for file in Path(directory).iterdir() for line in file.read_text().splitlines()]
    write(records, anew=files == list(_FILES))
    return code


def write(records: Iterable[dict[str, Any]], *, anew: bool) -> None:
    """Add the best example of each recorded operation to the file; with `anew`, also of those that have one."""
    candidates: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        ids: dict[str, str] = {}
        example: dict[str, Any] = {key: masked(record[key], ids) for key in _BODIES if key in record}
        if not fault(record["operation"], msgspec.convert(example, Recorded)):
            candidates.setdefault(record["operation"], []).append(example)
    kept = {name: each for name, each in json.loads(FILE.read_text(encoding="utf-8")).items() if name in ENDPOINTS}
    chosen = {name: max(examples, key=_merit) for name, examples in candidates.items()}
    if not anew:
        chosen |= {name: each for name, each in kept.items() if not fault(name, msgspec.convert(each, Recorded))}
    FILE.write_text(as_lines(kept | chosen), encoding="utf-8")
    print(f"{len(candidates)} examples were recorded, {len(recorded_examples())} are in {FILE.name}")


def _merit(example: dict[str, Any]) -> tuple[object, ...]:
    """Return the order of examples: bodies of plain characters, of a moderate size, with the most members."""
    text = json.dumps(example, sort_keys=True)
    small = len(text) <= _LARGE
    return (
        "\\u" not in text.replace("\\u2026", ""),
        len(example),
        small,
        text.count('":') if small else -len(text),
        text,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(_FILES)))
