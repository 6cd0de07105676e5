# SPDX-License-Identifier: Apache-2.0
"""The file lock: one process at a time, also after a holder was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.identity.token_storage import LockTimeout, file_lock

_HOLDS = """
import sys, time
from pathlib import Path
from gateway.identity.token_storage import file_lock
with file_lock(Path(sys.argv[1]), seconds=5):
    print("mine", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start another process that holds the lock."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS, str(tmp_path / "made" / "lock")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "mine\n"
        yield process
        process.kill()


def test_waiting_for_the_file_lock_has_a_timeout(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    begun = time.monotonic()
    with pytest.raises(LockTimeout), file_lock(tmp_path / "made" / "lock", seconds=0.3):
        pass
    assert 0.3 <= time.monotonic() - begun < 30


def test_the_file_lock_of_a_killed_process_is_released(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    other.send_signal(signal.SIGKILL)
    with file_lock(tmp_path / "made" / "lock", seconds=60):
        assert other.wait(60) == -signal.SIGKILL


def test_the_lock_file_has_owner_permissions_and_follows_no_symlink(tmp_path: Path) -> None:
    lock = tmp_path / "made" / "lock"
    with file_lock(lock, seconds=1):
        assert (lock.stat().st_mode & 0o777, lock.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"), file_lock(tmp_path / "link", seconds=1):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_the_file_lock_excludes_threads_of_one_process(tmp_path: Path) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(5):
            with file_lock(tmp_path / "lock", seconds=30):
                inside += 1
                most = max(most, inside)
                time.sleep(0.002)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
