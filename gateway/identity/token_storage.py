# SPDX-License-Identifier: Apache-2.0
"""Store the tokens of a login between commands, and lock files between processes.

The tokens are in the keyring of the operating system, or in a file that only its owner can read if there is no usable
keyring. The lock is an exclusive advisory lock of the operating system, which is released when its process ends.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from gateway.identity.oauth_client import Tokens

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


_SERVICE: Final = "lakegate"


class KeyringError(Exception):
    """The keyring failed. The message has only the type of the error: a backend's own message may contain the
    tokens.
    """


class Keyring(Protocol):
    """The methods of a backend of the package `keyring` that are used here. A backend may raise any exception."""

    def set_password(self, service: str, username: str, password: str) -> None: ...
    def get_password(self, service: str, username: str) -> str | None: ...
    def delete_password(self, service: str, username: str) -> None: ...


class StoredLogin:
    """The stored tokens of one login: of one client at one provider, in one profile if there is one.

    If the keyring rejects the tokens, they are written to the file, and `warn` is called with a message. A keyring
    rejects them if it is locked or if they are too long. The keyring of Windows holds 1,280 characters. The file exists
    only while it contains the latest tokens.
    """

    def __init__(
        self,
        issuer: str,
        client_id: str,
        directory: Path,
        *,
        profile: str | None = None,
        keyring: Keyring | None,
        warn: Callable[[str], None],
    ) -> None:
        """Set the `directory` of the file and its lock. It is created when it is first needed, for this user only."""
        of_profile = "" if profile is None else f"\n{profile}"
        name = hashlib.sha256(f"{issuer}\n{client_id}{of_profile}".encode()).hexdigest()[:32]
        self._file = FileTokenStore(directory / name)
        self._keyring = None if keyring is None else KeyringTokenStore(keyring, name)
        self._lock = directory / f"{name}.lock"
        self._warn = warn

    def locked(self, *, seconds: float) -> AbstractContextManager[None]:
        """Hold the lock of this login, so that no other process reads, renews or stores its tokens meanwhile.

        If two processes use the same refresh token, the provider treats the second use as theft (RFC 9700 section
        4.14.2). Raises the errors of `file_lock.file_lock`.
        """
        return file_lock(self._lock, seconds=seconds)

    def store(self, tokens: Tokens) -> None:
        """Store the tokens and replace the previous ones. Raises OSError if the file cannot be written or deleted."""
        if self._keyring is not None:
            try:
                self._keyring.store(tokens)
            except KeyringError as refused:
                self._warn(f"{refused}; the tokens are stored in a file that only you can read")
            else:
                self._file.forget()
                return
        self._file.store(tokens)
        if self._keyring is not None:
            with suppress(KeyringError):
                self._keyring.forget()

    def stored(self) -> Tokens | None:
        """Return the stored tokens; None if there are none or they cannot be decoded. Raises KeyringError and
        OSError.
        """
        found = self._file.stored()
        return found if found is not None or self._keyring is None else self._keyring.stored()

    def forget(self) -> bool:
        """Delete the tokens and return True if there were any. Raises KeyringError or OSError if some may remain."""
        was_filed = self._file.forget()
        return (self._keyring is not None and self._keyring.forget()) or was_filed


class KeyringTokenStore:
    """Stores tokens in the keyring of the operating system. Every method raises KeyringError."""

    def __init__(self, keyring: Keyring, name: str) -> None:
        self._keyring = keyring
        self._name = name

    def store(self, tokens: Tokens) -> None:
        """Store the tokens and replace the previous ones."""
        text = msgspec.json.encode(tokens).decode()
        self._with_timeout(lambda: self._keyring.set_password(_SERVICE, self._name, text))
        # The text is read back: some backends store nothing (`null`), or truncate the text, without an error.
        if self._found() != text:
            raise KeyringError("the system's keyring does not return what was stored in it")

    def stored(self) -> Tokens | None:
        """Return the stored tokens, or None if there are none or they cannot be decoded."""
        found = self._found()
        return None if found is None else _read(found.encode())

    def forget(self) -> bool:
        """Delete the tokens and return True if there were any."""
        if self._found() is None:
            return False
        self._with_timeout(lambda: self._keyring.delete_password(_SERVICE, self._name))
        return True

    def _found(self) -> str | None:
        found: str | None = self._with_timeout(lambda: self._keyring.get_password(_SERVICE, self._name))
        return found

    def _with_timeout(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:
            raise KeyringError(f"the system's keyring cannot be used ({type(error).__name__})") from None


class FileTokenStore:
    """Stores tokens in a file of mode 0600, in a directory of mode 0700. Every method raises OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def store(self, tokens: Tokens) -> None:
        """Store the tokens and replace the previous ones."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp creates the file readable for its owner only. The rename makes the replacement atomic.
        handle, part = tempfile.mkstemp(dir=self._path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(tokens))
            Path(part).replace(self._path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise

    def stored(self) -> Tokens | None:
        """Return the stored tokens, or None if there are none or they cannot be decoded."""
        try:
            return _read(self._path.read_bytes())
        except FileNotFoundError:
            return None

    def forget(self) -> bool:
        """Delete the tokens and return True if there were any."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True


def _read(text: bytes) -> Tokens | None:
    try:
        return msgspec.json.decode(text, type=Tokens)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
