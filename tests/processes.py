# SPDX-License-Identifier: Apache-2.0
"""What is told of processes that come and go while somebody looks at them.

Whoever lists processes and then asks each of them something meets some that ended in between: gone altogether, or
waiting for a parent to notice (a zombie). psutil raises for both; here such a process has nothing left to tell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import TypeVar

import psutil

_Answer = TypeVar("_Answer")


def processes(pids: Iterable[int]) -> list[psutil.Process]:
    """Those of them that still are."""
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def family(process: psutil.Process) -> list[psutil.Process]:
    """A process and all below it; nothing of one that is gone."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def told(ask: Callable[[psutil.Process], _Answer], processes: Iterable[psutil.Process]) -> list[_Answer]:
    """What those answer that still are."""
    answers = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # of which ZombieProcess is one
            answers.append(ask(process))
    return answers


def command_line(process: psutil.Process) -> str:
    """How it was called, in one line; raises `psutil.NoSuchProcess` for one that ended."""
    return " ".join(process.cmdline())


def at_work(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that neither ended nor wait for a parent to notice that they did."""
    states = told(lambda process: (process, process.status()), processes)
    return [process for process, state in states if state != psutil.STATUS_ZOMBIE]
