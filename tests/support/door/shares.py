# SPDX-License-Identifier: Apache-2.0
"""Limits, a clock and an observer for shares."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gateway.access.shares.shares import ShareLimits

LIMITS = ShareLimits(
    requests=2,
    waiting=1,
    wait=0.05,
    total_requests=3,
    engine_requests=8,
    questions_per_second=10.0,
    question_burst=20.0,
    bytes=100,
)


@dataclass
class Observer:
    """An observer that records the figures for metrics."""

    used: dict[tuple[str, str], int] = field(default_factory=dict)
    waited: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def share_used(self, share: str, lane: str, amount: int) -> None:
        self.used[share, lane] = amount

    def share_waited(self, share: str, lane: str) -> None:
        self.waited.append(share)

    def share_refused(self, share: str, lane: str) -> None:
        self.refused.append(share)


class Clock:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


MOST, LEAST, TARGET, WAIT = 64, 4, 0.25, 0.5
BUSY = replace(
    LIMITS,
    requests=32,
    waiting=256,
    wait=60.0,
    total_requests=MOST,
    least_requests=LEAST,
    decision_target=TARGET,
    overload_wait=WAIT,
)
