# SPDX-License-Identifier: Apache-2.0
"""Repeating an answer to the request whose success is remembered under its idempotency key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Facts
from gateway.access.operation import Step


@dataclass(frozen=True)
class RepeatAnswer(Step):
    """Answer `repeated` once more, to the one who did it, without doing it again.

    No relation is asked for: what was dropped cannot be looked up any more, and the answer tells nothing beyond that it
    was done. A body is made anew by operations of its own. The door admits it only with the remembered success.
    """

    occasion: ClassVar[str] = "repeat"
    repeated: str

    def facts(self) -> Facts:
        return {"repeated": self.repeated}
