# SPDX-License-Identifier: Apache-2.0
"""The program OPA that tests run: that of the settings, else the installed one of the pinned version."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway import settings
from gateway.opa.policy_files import PolicySource
from lakegate.local.errors import ToolMissing
from lakegate.local.toolchain import locate_opa


def opa_program() -> Path:
    """Return the path of OPA; fail the test if it is missing."""
    try:
        return locate_opa(settings.load())
    except ToolMissing:
        pytest.fail("The program opa is missing; run `make setup`.")


def source(directory: Path, *, complete: bool = False) -> PolicySource:
    """Return the policies of `directory`, checked with that program."""
    return PolicySource(directory, opa_program(), complete)
