# SPDX-License-Identifier: Apache-2.0
"""Run the embedded stack of a checkout until a signal: `python -P launch.py READY_FILE DATA [SETTING ...]`.

The checkout is the one in PYTHONPATH, so that a measurement can run an older version with its own code. This file
therefore imports nothing of `tests`.
"""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gateway import settings

# Older versions have the stack in another package.
_STACK = "lakegate.local" if find_spec("lakegate.local") else "gateway.embedded"
_MODULES = ("bootstrap", "ready", "stack", "toolchain", "up")
bootstrap, ready, stack, toolchain, up = (import_module(f"{_STACK}.{name}") for name in _MODULES)

_PREFIX = "LAKEGATE__"


async def _run(plan: Any, ready_file: Path) -> None:
    async with stack.running(plan) as running:
        ready.write(ready_file, await running.ready(*await bootstrap.run(running)))
        await asyncio.Event().wait()


def main() -> None:
    """Read the arguments and run the stack. The settings are given to the gateway only."""
    ready_file, data, *variables = sys.argv[1:]
    pairs = dict(variable.removeprefix(_PREFIX).split("=", 1) for variable in variables)
    plan = stack.Plan(data=Path(data), tools=toolchain.locate(settings.load()), gateway_settings=pairs)
    asyncio.run(up.until_signal(_run(plan, Path(ready_file))))


if __name__ == "__main__":
    main()
