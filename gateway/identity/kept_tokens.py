# SPDX-License-Identifier: Apache-2.0
"""Where a login's tokens are kept between commands: the system's keyring where there is one that takes them, else a
file that only its owner can read.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from gateway.identity.file_lock import turn
from gateway.identity.oauth_client import Tokens

_SERVICE: Final = "lakegate"


class KeyringRefused(Exception):
    """The keyring does not do what it was asked for. The text names the kind of failure alone: what a backend says of
    it may repeat what it was given.
    """


class Keyring(Protocol):
    """As much of a backend of the package `keyring` as is used. Each of them raises what it likes."""

    def set_password(self, service: str, username: str, password: str) -> None: ...
    def get_password(self, service: str, username: str) -> str | None: ...
    def delete_password(self, service: str, username: str) -> None: ...


class KeptLogin:
    """The tokens of one login: of one provider, for one of its clients.

    What the keyring does not take (it is locked, or the tokens are longer than it can hold, 1,280 characters in that of
    Windows) goes to the file, and `tell` is given a sentence that says so. There is a file only while it is what was
    kept last.
    """

    def __init__(
        self, issuer: str, client_id: str, directory: Path, *, keyring: Keyring | None, tell: Callable[[str], None]
    ) -> None:
        """`directory` is the user's own; it is made when it is needed."""
        name = hashlib.sha256(f"{issuer}\n{client_id}".encode()).hexdigest()[:32]
        self._file = FileKeeper(directory / name)
        self._keyring = None if keyring is None else KeyringKeeper(keyring, name)
        self._lock = directory / f"{name}.lock"
        self._tell = tell

    def turn(self, *, seconds: float) -> AbstractContextManager[None]:
        """For whoever replaces what is kept by something made of it, so that no two do at once: of two that renew by
        the same token the second one is taken for a thief's (RFC 9700 section 4.14.2). Raises as `turns.turn`.
        """
        return turn(self._lock, seconds=seconds)

    def keep(self, tokens: Tokens) -> None:
        """In place of what was kept. Raises OSError when they can be kept nowhere."""
        if self._keyring is not None:
            try:
                self._keyring.keep(tokens)
            except KeyringRefused as refused:
                self._tell(f"{refused}; the tokens are kept in a file that only you can read")
            else:
                self._file.forget()
                return
        self._file.keep(tokens)
        if self._keyring is not None:
            with suppress(KeyringRefused):
                self._keyring.forget()

    def kept(self) -> Tokens | None:
        """What was kept last; None when nothing was, or what cannot be read. Raises KeyringRefused and OSError."""
        found = self._file.kept()
        return found if found is not None or self._keyring is None else self._keyring.kept()

    def forget(self) -> bool:
        """Whether there was anything to forget. Raises KeyringRefused when there may be something left, and OSError."""
        was_filed = self._file.forget()
        return (self._keyring is not None and self._keyring.forget()) or was_filed


class KeyringKeeper:
    """In the system's keyring. Everything raises KeyringRefused."""

    def __init__(self, keyring: Keyring, name: str) -> None:
        self._keyring = keyring
        self._name = name

    def keep(self, tokens: Tokens) -> None:
        """In place of what was kept."""
        text = msgspec.json.encode(tokens).decode()
        self._ask(lambda: self._keyring.set_password(_SERVICE, self._name, text))
        # A backend may keep nothing (`null`) or the beginning.
        if self._found() != text:
            raise KeyringRefused("the system's keyring does not give back what it was given")

    def kept(self) -> Tokens | None:
        """What was kept last; None when nothing was, or when it cannot be read."""
        found = self._found()
        return None if found is None else _read(found.encode())

    def forget(self) -> bool:
        """Whether there was anything to forget."""
        if self._found() is None:
            return False
        self._ask(lambda: self._keyring.delete_password(_SERVICE, self._name))
        return True

    def _found(self) -> str | None:
        found: str | None = self._ask(lambda: self._keyring.get_password(_SERVICE, self._name))
        return found

    def _ask(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except Exception as error:
            raise KeyringRefused(f"the system's keyring cannot be used ({type(error).__name__})") from None


class FileKeeper:
    """In a file of mode 0600, in a directory of mode 0700. Everything raises OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, tokens: Tokens) -> None:
        """In place of what was kept."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Made for its owner alone from the first moment (mkstemp), and whole or not at all.
        handle, part = tempfile.mkstemp(dir=self._path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(tokens))
            Path(part).replace(self._path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise

    def kept(self) -> Tokens | None:
        """What was kept last; None when nothing was, or when it cannot be read as tokens."""
        try:
            return _read(self._path.read_bytes())
        except FileNotFoundError:
            return None

    def forget(self) -> bool:
        """Whether there was anything to forget."""
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
