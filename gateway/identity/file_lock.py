# SPDX-License-Identifier: Apache-2.0
"""One process at a time, by an advisory lock of the operating system, which ends with its process however that ends."""

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


class StillBusy(Exception):
    """Another process has not ended its turn in time."""


@contextmanager
def turn(path: Path, *, seconds: float) -> Iterator[None]:
    """No other process is in such a block for `path` meanwhile, nor another thread of this one.

    The file stays, empty: one that was removed could be locked by two. Raises StillBusy after `seconds` of waiting, and
    OSError when the file cannot be made or the file system knows no locks.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINKS, 0o600)
    try:
        ends = time.monotonic() + seconds
        while not _locked(handle):
            if time.monotonic() >= ends:
                raise StillBusy
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
