# SPDX-License-Identifier: Apache-2.0
"""The programs the policies and the model are tested with. A missing one fails the tests: nothing here is optional."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def policies() -> Path:
    """The directory of the policies."""
    return ROOT / "policies"


@pytest.fixture(scope="session")
def fga_model() -> Path:
    """The directory of the relationship model."""
    return ROOT / "fga_model"


@pytest.fixture(scope="session")
def opa() -> Run:
    """Runs `opa` with some arguments and returns what came of it."""
    kept = Path.home() / ".cache/lakegate/tools/opa-v1.22.0/opa"
    binary = Path(os.environ.get("LAKEGATE__EMBEDDED__OPA_BIN", str(kept)))
    if not binary.is_file():
        pytest.fail("The program opa is missing; run `make setup`.")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(binary), *map(str, arguments)], capture_output=True, text=True, timeout=240, check=False
        )

    return run
