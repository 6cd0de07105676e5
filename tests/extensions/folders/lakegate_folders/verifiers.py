# SPDX-License-Identifier: Apache-2.0
"""A verifier that rejects changes during a freeze: while the folder has a file with the name of the namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from gateway.verification.port import Approved, ChangeKind, ProposedChange, Rejected, Verdict


class Calendar:
    """The verifier. It judges changes of tables, and never those of other objects."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder

    def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
        """Return True for tables."""
        return object_type == "table"

    async def verify(self, change: ProposedChange) -> Verdict:
        """Reject a change in a frozen namespace. An unreadable folder is an error, so no change passes."""
        frozen = await asyncio.to_thread(lambda: {each.name for each in self._folder.iterdir()})
        namespace = ".".join(change.namespace)
        return Rejected((f"the namespace {namespace} is frozen",)) if namespace in frozen else Approved()

    async def close(self) -> None:
        """Do nothing: no connection is kept."""


def open_calendar(name: str, options: Mapping[str, str]) -> Calendar:
    """Return the verifier of the folder in the option `folder`."""
    return Calendar(name, Path(options["folder"]))
