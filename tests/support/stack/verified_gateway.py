# SPDX-License-Identifier: Apache-2.0
"""A gateway with one verifier that a test controls. `COMMAND` serves it in place of `lakegate serve`.

The verifier reads its answers from the JSON file that the variable ANSWERS_OF_THE_VERIFIER names. The file maps
`<kind>:<object type>` to a list: the verdict, then the reasons. Changes that are not in the file do not concern it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import gateway.app
from gateway.api.build import Application
from gateway.verification.panel import Panel, Seat
from gateway.verification.port import Approved, ChangeKind, Pending, ProposedChange, Rejected, Verdict

COMMAND = (
    sys.executable,
    "-c",
    # This module is imported only by the worker processes: metrics need a variable that `serve` sets.
    "from gateway import serving, settings\n"
    "serving._TARGET = 'tests.support.stack.verified_gateway:create_worker'\n"
    "serving.serve(settings.load())",
)
VARIABLE = "ANSWERS_OF_THE_VERIFIER"


class Steward:
    """The verifier."""

    name = "steward"

    def _answer(self, kind: ChangeKind, object_type: str) -> list[str] | None:
        answers: dict[str, list[str]] = json.loads(Path(os.environ[VARIABLE]).read_text())
        return answers.get(f"{kind.value}:{object_type}")

    def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
        return self._answer(change_kind, object_type) is not None

    async def verify(self, change: ProposedChange) -> Verdict:
        verdict, *reasons = self._answer(change.kind, change.object_type) or ["approved"]
        match verdict:
            case "pending":
                return Pending(tuple(reasons))
            case "rejected":
                return Rejected(tuple(reasons))
            case "approved":
                return Approved()
            case _:
                raise ConnectionError(verdict)

    async def close(self) -> None:
        """Do nothing."""


def create_worker() -> Application:
    """Return the application of a worker process, with the verifier."""
    panel = Panel((Seat(verifier=Steward(), timeout=5.0),))
    gateway.app.open_verifiers = lambda *parts: panel  # type: ignore[attr-defined]  # an import of it
    return gateway.app.create_worker()
