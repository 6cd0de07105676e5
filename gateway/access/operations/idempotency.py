# SPDX-License-Identifier: Apache-2.0
"""Repeating the answer of a request whose success is recorded under its idempotency key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Facts
from gateway.access.operation import Step


@dataclass(frozen=True)
class RepeatAnswer(Step):
    """Repeat the answer of an earlier success to the principal of that request, without a change.

    No relation is demanded: a dropped object cannot be looked up, and the answer says nothing but that it was done. A
    body is made anew by operations of its own. The door admits it only with the recorded success.
    """

    occasion: ClassVar[str] = "repeat"
    repeated: str

    def facts(self) -> Facts:
        return {"repeated": self.repeated}
