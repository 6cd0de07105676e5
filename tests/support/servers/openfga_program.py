# SPDX-License-Identifier: Apache-2.0
"""The OpenFGA program that the stack uses, for tests that start a server themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway import settings
from lakegate.local.errors import ToolMissing
from lakegate.local.toolchain import locate_openfga


def openfga_program() -> Path:
    """Return the path of OpenFGA; fail the test if it is missing."""
    try:
        return locate_openfga(settings.load())
    except ToolMissing:
        pytest.fail("The program openfga is missing; run `make setup`.")
