# SPDX-License-Identifier: Apache-2.0
"""Test one real engine: `python -m tests.e2e.engines NAME`, which `make test-engine ENGINE=NAME` calls.

It makes the environment of the engine, runs `test_NAME.py` and writes the record of the engine and the table in
docs/engines.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from lakegate.local.errors import StackError
from tests.e2e.engines.driven import HERE
from tests.e2e.engines.environment import EnvironmentFailed, prepare
from tests.support.engines import engine_results


def engines() -> list[str]:
    """Return the names of the engines that have a test."""
    return sorted(path.stem.removeprefix("test_") for path in HERE.glob("test_*.py"))


def main() -> int:
    """Run the tests of one engine; return the exit code of pytest, or 2 if the environment could not be made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("engine", choices=engines())
    parser.add_argument("--prepare", action="store_true", help="only make the environment")
    chosen = parser.parse_args()
    try:
        prepare(chosen.engine)
    except (EnvironmentFailed, StackError) as error:
        print(error, file=sys.stderr)
        return 2
    if chosen.prepare:
        return 0
    code = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--timeout", "1800", str(HERE / f"test_{chosen.engine}.py")],
        env=dict(os.environ) | {engine_results.CHOSEN: chosen.engine},
        cwd=engine_results.ROOT,
        check=False,
    ).returncode
    page = engine_results.PAGE
    page.write_text(engine_results.page_with(page.read_text(), engine_results.read()))
    return code


if __name__ == "__main__":
    sys.exit(main())
