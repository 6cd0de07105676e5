# SPDX-License-Identifier: Apache-2.0
"""Reduce the memory of worker processes, and end them with their main process.

`lakegate serve` calls the functions about memory before it starts the workers. Workers are forked from the process that
called these functions, so they share its modules and have its settings of the C library.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Final

# The names and numbers of the parameters are those of `mallopt(3)`.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

_PR_SET_PDEATHSIG: Final = 1

_ARENAS: Final = 2
"""Maximum number of heaps. By default most threads get their own, and other threads cannot use its free memory."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Context manager. Disable the garbage collector during the block. Later collections skip the objects that the
    block created.

    Use it for the creation of objects that live as long as the process: collections would free none of them, and cost a
    third of the time.
    """
    gc.disable()
    try:
        yield
        gc.collect()
        gc.freeze()
    finally:
        gc.enable()


def share_modules(module: str) -> bool:
    """Import the module of the application, if workers are forked. Return True if it was imported.

    The memory pages of its code are then shared until a worker writes to them. The garbage collector skips the objects
    that exist now: its marks would be such writes. Importing must start no thread, because a forked process has only
    the thread that forked it.
    """
    if multiprocessing.get_start_method() != "fork":
        return False
    with collection_paused():
        import_module(module)
    return True


def return_large_blocks(size: int, library: ctypes.CDLL | None = None) -> bool:
    """Return freed blocks of at least `size` bytes to the system. Return False if the C library has no such option.

    By default, the GNU C library raises this threshold to the size of the largest freed block, at most 32 MiB. From
    then on, blocks up to that size are parts of the heap, which keeps them when they are free. `library` is for tests.
    """
    mallopt: Callable[[int, int], int] | None = getattr(library or ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    wanted = ((_M_MMAP_THRESHOLD, size), (_M_TRIM_THRESHOLD, 2 * size), (_M_ARENA_MAX, _ARENAS))
    return all([mallopt(parameter, value) for parameter, value in wanted])


def die_with_parent(stop_signal: int) -> Callable[[], None]:
    """Return a function that a child runs first, before exec if any, so that the end of this process stops the child.

    The kernel then sends ``stop_signal`` to the child, even if this process is killed. Only Linux supports this;
    elsewhere the function does nothing.
    """
    if sys.platform != "linux":
        return lambda: None
    libc = ctypes.CDLL(None, use_errno=True)  # loaded before the fork: a worker must not import after it

    def before_exec() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, stop_signal, 0, 0, 0)

    return before_exec


def end_with_main_process() -> None:
    """Let the kernel send SIGKILL to this worker process when the main process ends, even if that was killed.

    A worker that outlives the main process would keep the port, and no other process could replace or end it. SIGTERM
    does not suffice, because a starting worker ignores it. A main process that stops normally waits for its workers, so
    no request is ended then. Only Linux supports this; elsewhere, and in a process that is not a worker, the function
    does nothing.
    """
    main = multiprocessing.parent_process()
    if main is None:
        return
    die_with_parent(signal.SIGKILL)()
    if os.getppid() != main.pid:  # the main process ended before the call
        os.kill(os.getpid(), signal.SIGKILL)
