# SPDX-License-Identifier: Apache-2.0
"""Exclusive file lock between processes: an advisory lock of the operating system, released when its process ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_BETWEEN_TRIES = 0.05
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


class LockTimeout(Exception):
    """The lock was not released within the timeout."""


@contextmanager
def file_lock(path: Path, *, seconds: float) -> Iterator[None]:
    """Context manager. Hold the exclusive lock of the file `path` against other processes and other threads.

    The file is created if it is missing, and stays as an empty file. After a removal, two processes could hold locks on
    two files of the same path. Raises LockTimeout if the lock is not available within `seconds`. Raises OSError if the
    file cannot be created or the file system does not support locks.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINKS, 0o600)
    try:
        ends = time.monotonic() + seconds
        while not _locked(handle):
            if time.monotonic() >= ends:
                raise LockTimeout
            time.sleep(_BETWEEN_TRIES)
        yield
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
