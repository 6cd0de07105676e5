# SPDX-License-Identifier: Apache-2.0
"""Run the embedded stack of a checkout until a signal: `python -P launch.py READY_FILE DATA [SETTING ...]`.

The checkout is the one in PYTHONPATH, so that a measurement can run an older version with its own code. This file
therefore imports nothing of `tests`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway import settings
from gateway.embedded import bootstrap, ready, stack, toolchain, up
from gateway.embedded.stack import Plan

_PREFIX = "LAKEGATE__"


async def _run(plan: Plan, ready_file: Path) -> None:
    async with stack.running(plan) as running:
        ready.write(ready_file, await running.ready(*await bootstrap.run(running)))
        await asyncio.Event().wait()


def main() -> None:
    """Read the arguments and run the stack. The settings are given to the gateway only."""
    ready_file, data, *variables = sys.argv[1:]
    pairs = dict(variable.removeprefix(_PREFIX).split("=", 1) for variable in variables)
    plan = Plan(data=Path(data), tools=toolchain.locate(settings.load()), gateway_settings=pairs)
    asyncio.run(up.until_signal(_run(plan, Path(ready_file))))


if __name__ == "__main__":
    main()
