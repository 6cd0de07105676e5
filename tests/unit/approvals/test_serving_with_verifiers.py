# SPDX-License-Identifier: Apache-2.0
"""The check of verifiers before `lakegate serve` starts its worker processes."""

from __future__ import annotations

import subprocess
import sys

_CHECK = """
import asyncio, sys
from gateway.cli.changes import require_verifiers
from gateway.settings import load
named = {"KIND": "columns", "PROTECTED_COLUMNS": "word"}
settings = load({f"LAKEGATE__VERIFIERS__GUARD__{name}": value for name, value in named.items()})
asyncio.run(require_verifiers(settings))
print("prometheus_client" in sys.modules)
"""


def test_check_before_serving_does_not_import_the_metrics() -> None:
    # Worker processes could not start: the library reads a variable at its import that `serve` sets afterwards.
    ran = subprocess.run([sys.executable, "-c", _CHECK], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "False\n", ran.stderr
