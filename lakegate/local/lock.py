# SPDX-License-Identifier: Apache-2.0
"""The lock of a data directory: one stack at a time. The supervisor also holds it, until the last child has ended."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakegate.local.errors import StackError

_PAUSE_SECONDS = 0.1


@contextmanager
def held(data: Path, *, timeout: float) -> Iterator[int]:
    """Context manager. Hold the lock of a data directory; yield its file descriptor.

    ``timeout``: seconds to wait for the lock. The supervisor of a killed stack holds it until the last child has
    ended.

    Raises:
        StackError: another stack uses the directory.
    """
    descriptor = os.open(data / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise StackError(
                        f"another stack uses the data directory {data}; stop it, or choose another directory with "
                        "--data"
                    ) from None
                time.sleep(_PAUSE_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)
