# SPDX-License-Identifier: Apache-2.0
"""Where a login's tokens are kept between commands: the system's keyring where there is one, else a file that only its
owner can read.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from gateway.identity.device import Tokens

_SERVICE: Final = "lakegate"


class Keeper(Protocol):
    """Keeps the tokens of one login."""

    def keep(self, tokens: Tokens) -> None:
        """In place of what was kept."""
        ...

    def kept(self) -> Tokens | None:
        """What was kept last; None when nothing was, or when it cannot be read."""
        ...

    def forget(self) -> bool:
        """Whether there was anything to forget."""
        ...


def keeper(issuer: str, client_id: str, directory: Path, *, keyring: Any = None) -> Keeper:
    """For this provider and client: in `keyring` (the package, None without it) when it has a place, else below
    `directory`.
    """
    name = hashlib.sha256(f"{issuer}\n{client_id}".encode()).hexdigest()[:32]
    return FileKeeper(directory / name) if keyring is None else KeyringKeeper(keyring, name)


class KeyringKeeper:
    """In the system's keyring."""

    def __init__(self, keyring: Any, name: str) -> None:
        self._keyring = keyring
        self._name = name

    def keep(self, tokens: Tokens) -> None:
        self._keyring.set_password(_SERVICE, self._name, msgspec.json.encode(tokens).decode())

    def kept(self) -> Tokens | None:
        found = self._keyring.get_password(_SERVICE, self._name)
        return None if found is None else _read(found.encode())

    def forget(self) -> bool:
        if self._keyring.get_password(_SERVICE, self._name) is None:
            return False
        self._keyring.delete_password(_SERVICE, self._name)
        return True


class FileKeeper:
    """In a file of mode 0600, in a directory of mode 0700."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, tokens: Tokens) -> None:
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
        try:
            return _read(self._path.read_bytes())
        except OSError:
            return None

    def forget(self) -> bool:
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
