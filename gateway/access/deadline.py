# SPDX-License-Identifier: Apache-2.0
"""The time limit of a request: it may be cut off until its COMMIT is sent, and never afterwards.

A client that was told that nothing happened must be able to rely on it.
"""

from __future__ import annotations

import asyncio

from gateway.access.dependency_errors import OutOfTime


class Deadline:
    """The time of one request; without a timer there is no end to it, as for the gateway's own work."""

    __slots__ = ("_timer",)

    def __init__(self, timer: asyncio.Timeout | None = None) -> None:
        self._timer = timer

    def let_go(self) -> None:
        """End the time limit: later steps have limits of their own, and their outcome is reported as it is.

        Raises OutOfTime if the limit is over and the cancellation is under way.
        """
        if self._timer is None:
            return
        try:
            self._timer.reschedule(None)
        except RuntimeError:
            raise OutOfTime("the time of the request was over before its change was committed") from None
