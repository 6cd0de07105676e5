# SPDX-License-Identifier: Apache-2.0
"""Programs and directories for tests of policies and model. A missing program fails the tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakegate.local.children import GO_RUNTIME
from tests.support.servers.opa_program import opa_program

ROOT = Path(__file__).parents[2]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session", autouse=True)
def _go_runtime() -> Iterator[None]:
    """Run Go's collector as seldom as in the stack: it takes a quarter of the time of these programs."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in GO_RUNTIME.items():
            environment.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def policies() -> Path:
    """Return the directory of the policies."""
    return ROOT / "policies"


@pytest.fixture(scope="session")
def fga_model() -> Path:
    """Return the directory of the relationship model."""
    return ROOT / "fga_model"


@pytest.fixture(scope="session")
def opa_binary() -> Path:
    """Return the path of the program `opa`."""
    return opa_program()


@pytest.fixture(scope="session")
def opa(opa_binary: Path) -> Run:
    """Return a function that runs `opa` with arguments and returns its result."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(opa_binary), *map(str, arguments)], capture_output=True, text=True, timeout=240, check=False
        )

    return run
