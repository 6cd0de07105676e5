# SPDX-License-Identifier: Apache-2.0
"""Run `lakegate` commands in separate processes without repeating the imports.

A fork server imports the command line and its dependencies once for each process of pytest. Each command runs in a fork
of it, with its own environment, working directory, output and exit code. Use a plain `subprocess` for start-up
behaviour, and for a process that a test kills or signals.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "gateway.cli",
        "gateway.app",
        "gateway.assembly",
        "gateway.features.tuples.reconcile",
        "gateway.features.server.model_changes",
        "gateway.db.migrate",
        "gateway.db.engine.database",
        "gateway.fga.model",
        "gateway.settings",
    ]
)


def run_lakegate(
    *arguments: str, environment: Mapping[str, str], directory: str = os.sep, timeout: float = 240
) -> subprocess.CompletedProcess[str]:
    """Run a command of the command line to its end.

    `environment` is its whole environment, `timeout` is in seconds. Raise subprocess.TimeoutExpired if the command did
    not end in time; it was killed.
    """
    with tempfile.TemporaryDirectory(prefix="lakegate-verb-") as scratch:
        out, err = Path(scratch) / "out", Path(scratch) / "err"
        process = _CONTEXT.Process(target=_verb, args=(arguments, dict(environment), directory, str(out), str(err)))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["lakegate", *arguments], timeout)
        code = process.exitcode
        process.close()
        return subprocess.CompletedProcess(["lakegate", *arguments], code, out.read_text(), err.read_text())


def _verb(arguments: tuple[str, ...], environment: dict[str, str], directory: str, out: str, err: str) -> None:
    """Set up the process as a fresh one, and call the entry point of the command line."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    for descriptor, path in ((1, out), (2, err)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    sys.argv = ["lakegate", *arguments]
    code = 1
    try:
        from gateway.cli import main

        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
