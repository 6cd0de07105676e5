# SPDX-License-Identifier: Apache-2.0
"""The end of a request's time: it may be cut off until its COMMIT is sent, and never afterwards (section 3 of the
design: who was told that nothing happened must be able to rely on it).
"""

from __future__ import annotations

import asyncio

from gateway.access.outage import OutOfTime


class Deadline:
    """The time of one request; without a timer there is no end to it, as for the gateway's own work."""

    __slots__ = ("_timer",)

    def __init__(self, timer: asyncio.Timeout | None = None) -> None:
        self._timer = timer

    def let_go(self) -> None:
        """From here on nothing is cut off: what follows is bounded by limits of its own and is told as it went.

        Raises OutOfTime when the time was over already and the cancellation is under way.
        """
        if self._timer is None:
            return
        try:
            self._timer.reschedule(None)
        except RuntimeError:
            raise OutOfTime("the time of the request was over before its change was committed") from None
