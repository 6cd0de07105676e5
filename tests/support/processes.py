# SPDX-License-Identifier: Apache-2.0
"""Properties of processes that may end at any time.

Between a listing and a query, a process may end or become a zombie. psutil raises for both; these functions skip such a
process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import psutil

_Answer = TypeVar("_Answer")


def processes(pids: Iterable[int]) -> list[psutil.Process]:
    """Return the processes that still exist."""
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def family(process: psutil.Process) -> list[psutil.Process]:
    """Return a process and its descendants; empty if it has ended."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def values_of(send: Callable[[psutil.Process], _Answer], processes: Iterable[psutil.Process]) -> list[_Answer]:
    """Return the results for the processes that still exist."""
    answers = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # its subclass ZombieProcess included
            answers.append(send(process))
    return answers


def command_line(process: psutil.Process) -> str:
    """Return the command line of a process. Raise `psutil.NoSuchProcess` if it has ended."""
    return " ".join(process.cmdline())


def at_work(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that have not ended and are no zombies."""
    states = values_of(lambda process: (process, process.status()), processes)
    return [process for process, state in states if state != psutil.STATUS_ZOMBIE]


@contextlib.contextmanager
def suspended(pids: Iterable[int]) -> Iterator[None]:
    """Suspend processes and their descendants until the block ends."""
    families = [each for process in processes(pids) for each in family(process)]
    values_of(psutil.Process.suspend, families)
    try:
        yield
    finally:
        values_of(psutil.Process.resume, families)
