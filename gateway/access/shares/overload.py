# SPDX-License-Identifier: Apache-2.0
"""Overload control: adapt the limit of concurrent requests to the duration of decisions, and predict waiting times.

The limit follows the rule of congestion control in networks (additive increase, multiplicative decrease, RFC 5681): it
falls by a third while a quarter of the decisions is slow, and grows by an eighth while they are fast. A request whose
predicted wait is too long is refused immediately, before it costs a call to a decision engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_WINDOW_SECONDS: Final = 0.25
#: If a window has fewer decisions than this, it says nothing about the load.
_FEWEST: Final = 8
#: If at least this part of the decisions in a window is slow, the limit is lowered.
_SLOW_PART: Final = 0.25


class Overload:
    """The limit of concurrent requests in one process, between `least` and `most`.

    A decision that takes more than `target` seconds is slow. With a target of 0 the limit stays at `most`.
    """

    def __init__(self, *, least: int, most: int, target: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._least = min(least, most)
        self._most = most
        self._target = target
        self._clock = clock
        self._began = clock()
        self._decisions = self._slow = self._completed = 0
        self._rate = 0.0
        self.limit = most

    def decided(self, seconds: float) -> None:
        """Record the duration of one decision."""
        self._decisions += 1
        self._slow += seconds > self._target
        self._end_window()

    def completed(self) -> None:
        """Record that a request has released its slot."""
        self._completed += 1
        self._end_window()

    def predicted_wait(self, position: int) -> float:
        """Return the predicted seconds until the waiter at this position (1 is the next) gets a slot.

        The latest rate of completed requests determines it. The result is 0 while no rate is known.
        """
        return position / self._rate if self._rate else 0.0

    def _end_window(self) -> None:
        now = self._clock()
        elapsed = now - self._began
        if elapsed < _WINDOW_SECONDS:
            return
        # After a pause the window is longer than the requests in it, so its rate would be too low.
        self._rate = self._completed / elapsed if elapsed < 4 * _WINDOW_SECONDS else 0.0
        if self._target > 0 and self._decisions >= _FEWEST:
            if self._slow >= self._decisions * _SLOW_PART:
                self.limit = max(self._least, self.limit * 2 // 3)
            else:
                self.limit = min(self._most, self.limit + max(1, self.limit // 8))
        self._began = now
        self._decisions = self._slow = self._completed = 0
