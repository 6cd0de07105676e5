# SPDX-License-Identifier: Apache-2.0
"""An event sink that appends lines to a file of the folder that the environment names. One line is one event."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.events.port import Event, EventRefused, SinkUnavailable

FOLDER = "LAKEGATE_FOLDERS_EVENTS"
MOST_BYTES = 1_000_000


class FolderSink:
    """The sink. A reader of the file finds duplicates by the event id."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._file = folder / "events.jsonl"
        self._turn = asyncio.Lock()

    async def send(self, events: Sequence[Event]) -> None:
        """Append the events up to the first one that is too large, which raises EventRefused."""
        lines = []
        refused: Event | None = None
        for event in events:
            if len(event.data) > MOST_BYTES:
                refused = event
                break
            lines.append(json.dumps([event.key, str(event.id), event.type, event.data.decode()]) + "\n")
        if lines:
            async with self._turn:
                await self._run(self._append, "".join(lines))
        if refused is not None:
            raise EventRefused(refused.id, f"it has more than {MOST_BYTES} bytes")

    async def check(self) -> None:
        """Raise SinkUnavailable if the file cannot be written."""
        await self._run(self._append, "")

    async def close(self) -> None:
        """Do nothing: no file stays open."""

    def _append(self, text: str) -> None:
        with self._file.open("a") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    async def _run(self, work: Any, text: str) -> None:
        try:
            await asyncio.to_thread(work, text)
        except OSError:
            raise SinkUnavailable(f"the file in the folder of {FOLDER} cannot be written") from None


def open_sink(name: str, settings: object) -> FolderSink:
    """Return the sink of the folder that the environment names."""
    return FolderSink(name, Path(os.environ[FOLDER]))


async def read() -> list[tuple[str, str]]:
    """Return the (key, event id) of each stored event, for the conformance kit."""
    file = Path(os.environ[FOLDER]) / "events.jsonl"
    lines = await asyncio.to_thread(file.read_text) if file.exists() else ""
    found = {event_id: key for key, event_id, *_ in map(json.loads, lines.splitlines())}
    return [(key, event_id) for event_id, key in found.items()]
