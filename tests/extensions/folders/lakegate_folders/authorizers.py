# SPDX-License-Identifier: Apache-2.0
"""An authorizer that freezes objects: nobody changes an object that has a file in the folder of frozen objects."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.nouns.relations import Can
from gateway.access.ports import Pin, Question

FOLDER = "LAKEGATE_FOLDERS_FROZEN"
CHANGES = frozenset({Can.WRITE_DATA, Can.COMMIT, Can.RENAME, Can.MOVE, Can.DROP})


class Freeze:
    """The authorizer. An object is frozen while the folder has a file with its name, such as `table:<id>`."""

    name = "freeze"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Refuse changes of frozen objects."""
        frozen = await self._frozen()
        names = [f"{each.object.type.value}:{each.object.id}" for each in questions]
        return [each.relation not in CHANGES or name not in frozen for each, name in zip(questions, names, strict=True)]

    async def ping(self) -> None:
        """Raise DecisionEngineUnavailable if the folder cannot be read."""
        await self._frozen()

    async def close(self) -> None:
        """Do nothing: no connection is kept."""

    async def _frozen(self) -> set[str]:
        try:
            return set(await asyncio.to_thread(os.listdir, self._folder))
        except OSError:
            raise DecisionEngineUnavailable(f"The folder in {FOLDER} cannot be read.") from None


def open_authorizer() -> Freeze:
    """Return the authorizer of the folder that the environment names."""
    return Freeze(Path(os.environ[FOLDER]))
