# SPDX-License-Identifier: Apache-2.0
"""A secret store in a folder, such as one on an encrypted volume. Each secret is a file that only the gateway reads."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from gateway.secret_stores.port import SecretStoreRefused, SecretStoreUnavailable, SecretUnreadable

Result = TypeVar("Result")

FOLDER = "LAKEGATE_FOLDERS_SECRETS"
SECONDS = 5.0


class FolderSecrets:
    """The secret store. The environment variable LAKEGATE_FOLDERS_SECRETS names the folder."""

    name = "folder"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, id: UUID, plain: bytes) -> None:
        """Write a new file. A file that exists stays as it is."""
        await self._run(lambda: self._put(self._folder / str(id), plain))

    async def get(self, id: UUID) -> bytes:
        """Return the file. Raise SecretUnreadable if it does not exist."""
        try:
            return await self._run((self._folder / str(id)).read_bytes)
        except FileNotFoundError:
            raise SecretUnreadable(f"the folder of secrets has no file {id}") from None

    async def delete(self, id: UUID) -> None:
        """Delete the file, if it exists."""
        await self._run(lambda: (self._folder / str(id)).unlink(missing_ok=True))

    async def check(self) -> None:
        """Raise SecretStoreRefused unless the folder can be read and written."""
        if not await self._run(lambda: os.access(self._folder, os.R_OK | os.W_OK | os.X_OK)):
            raise SecretStoreRefused(
                "The secret store cannot be used.", reason=f"the folder in {FOLDER} does not exist or is not writable"
            )

    async def close(self) -> None:
        """Do nothing: no connection is kept."""

    def _put(self, path: Path, plain: bytes) -> None:
        descriptor, partial = tempfile.mkstemp(dir=self._folder, prefix=".")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(plain)
                file.flush()
                os.fsync(file.fileno())
            # A link is atomic, and never replaces a file.
            os.link(partial, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(partial)

    async def _run(self, work: Callable[[], Result]) -> Result:
        try:
            async with asyncio.timeout(SECONDS):
                return await asyncio.to_thread(work)
        except FileNotFoundError:
            raise
        except (OSError, TimeoutError):
            raise SecretStoreUnavailable("The secret store did not answer. Try again.") from None


def open_store() -> FolderSecrets:
    """Return the store of the folder that the environment names."""
    return FolderSecrets(Path(os.environ[FOLDER]))
