# SPDX-License-Identifier: Apache-2.0
"""Select the operating-system account for PostgreSQL, and directories that this account can reach.

PostgreSQL refuses to run as root. A stack that root starts runs it as ``nobody``. That account often cannot enter
root's home directory or checkout. Programs and data that it cannot reach are therefore put below :data:`_SHARED`. A
stack that another user starts does none of this.

The lock of a data directory is here too. It lets one stack at a time use the directory, and the supervisor also holds
it, until the last child has ended.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


_NAMES = ("nobody", "daemon")
_SHARED = Path("/var/lib/lakegate")


@dataclass(frozen=True, slots=True)
class Account:
    """User and group id of a child process. If both are None, the child keeps the ids of this process."""

    uid: int | None
    gid: int | None

    def own(self, path: Path) -> None:
        """Make this account the owner of ``path``, but not of its contents."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


def unprivileged() -> Account:
    """Return the account for programs that refuse to run as root.

    Raises:
        StackError: this process runs as root and the system has none of the usual unprivileged accounts. PostgreSQL's
            initdb requires a user id with a name.
    """
    if os.geteuid() != 0:
        return Account(None, None)
    for name in _NAMES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid)
    raise StackError(
        f"as root, the stack needs an unprivileged account for PostgreSQL, but none of {', '.join(_NAMES)} exists; "
        "start it as an ordinary user"
    )


def can_reach(path: Path, account: Account) -> bool:
    """Return True if ``account`` can reach ``path``, by the mode bits of every directory above it."""
    if account.uid is None:
        return True
    for parent in path.resolve().parents:
        mode = parent.stat()
        if mode.st_uid == account.uid:
            allowed = bool(mode.st_mode & stat.S_IXUSR)
        elif mode.st_gid == account.gid:
            allowed = bool(mode.st_mode & stat.S_IXGRP)
        else:
            allowed = bool(mode.st_mode & stat.S_IXOTH)
        if not allowed:
            return False
    return True


def _shared_place() -> Path:
    """Create and return a directory that every account may enter and only root may write to."""
    for base in (_SHARED, Path(tempfile.gettempdir()).resolve() / "lakegate-root"):
        try:
            base.mkdir(mode=0o711, parents=True, exist_ok=True)
        except OSError:
            continue
        info = base.lstat()
        # If the parent directory is world-writable, another account may have created this directory first.
        if stat.S_ISDIR(info.st_mode) and info.st_uid == 0 and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return base
    raise StackError(
        f"as root, the stack needs the directory {_SHARED} for PostgreSQL, but cannot create it; start it as an "
        "ordinary user"
    )


def reachable_programs(programs: Path, account: Account) -> Path:
    """Return the directory tree ``programs`` if ``account`` can reach it, else a copy that it can reach.

    An unchanged tree is copied once.
    """
    if can_reach(programs / "bin" / "postgres", account):
        return programs
    # The programs load the libraries of their wheel from the directory `<package>.libs`, beside the package.
    libraries = programs.parent.parent / f"{programs.parent.name}.libs"
    source = programs.stat()
    digest = hashlib.sha256(f"{programs}:{source.st_ino}:{source.st_mtime_ns}".encode()).hexdigest()[:16]
    copy = _shared_place() / f"postgresql-{digest}"
    tree = Path(programs.parent.name) / programs.name
    if not copy.exists():
        part = Path(tempfile.mkdtemp(prefix="part-", dir=copy.parent))
        shutil.copytree(programs, part / tree, symlinks=True)
        if libraries.is_dir():
            shutil.copytree(libraries, part / libraries.name, symlinks=True)
        part.chmod(0o755)
        try:
            part.rename(copy)
        except OSError:
            if not copy.exists():  # otherwise another stack has copied the same files
                raise
            shutil.rmtree(part, ignore_errors=True)
    return copy / tree


def reachable_data(requested: Path, account: Account) -> Path:
    """Create ``requested`` as a directory of ``account``, and return its path. If ``account`` cannot reach it, create
    another directory.

    In the second case ``requested`` is a symbolic link to it.
    """
    if requested.is_symlink():
        target = requested.readlink()
        if target.is_dir():
            return target
        requested.unlink()
    if can_reach(requested, account):
        requested.mkdir(mode=0o700, exist_ok=True)
        account.own(requested)
        return requested
    name = hashlib.sha256(str(requested.resolve()).encode()).hexdigest()[:16]
    place = _shared_place() / f"data-{name}"
    # No symbolic link leads to this place: it is left from a removed data directory with the same path.
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    account.own(place)
    requested.symlink_to(place)
    return place


def remove_data(requested: Path) -> None:
    """Remove the directory that :func:`reachable_data` created, and the symbolic link to it."""
    if requested.is_symlink():
        shutil.rmtree(requested.readlink(), ignore_errors=True)
        requested.unlink()
    else:
        shutil.rmtree(requested, ignore_errors=True)
