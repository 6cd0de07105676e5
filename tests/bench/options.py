# SPDX-License-Identifier: Apache-2.0
"""The variables `BENCH_…` of `make bench`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


def selects(words: str, name: str) -> bool:
    """Return True if one of the words, which are separated by semicolons or commas, is in the name, or there is none.

    A semicolon separates words that contain a comma.
    """
    parts = [word.strip() for word in words.split(";" if ";" in words else ",")]
    return not any(parts) or any(part in name for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The selection of requests, the number of slices, and their length."""

    only: str = ""
    connections: tuple[int, ...] = (1, 8, 32)
    seconds: float = 2.0
    rounds: int = 3
    idle_seconds: float = 10.0
    snapshots: tuple[int, ...] = (10, 100, 1_000)
    large_snapshots: int = 1_340
    tables: tuple[int, ...] = (100, 1_000, 10_000)
    searched: int = 100_000
    tasks: int = 1_000

    def selects(self, name: str) -> bool:
        """Return True if a request with this name is measured."""
        return selects(self.only, name)


def read(environment: Mapping[str, str] = os.environ) -> Options:
    """Read the variables."""
    default = Options()

    def numbers(name: str, otherwise: tuple[int, ...]) -> tuple[int, ...]:
        text = environment.get(name)
        return tuple(map(int, text.split(","))) if text else otherwise

    return Options(
        only=environment.get("BENCH_ONLY", ""),
        connections=numbers("BENCH_CONNECTIONS", default.connections),
        seconds=float(environment.get("BENCH_SECONDS", default.seconds)),
        rounds=int(environment.get("BENCH_ROUNDS", default.rounds)),
        idle_seconds=float(environment.get("BENCH_IDLE_SECONDS", default.idle_seconds)),
        snapshots=numbers("BENCH_SNAPSHOTS", default.snapshots),
        large_snapshots=int(environment.get("BENCH_LARGE_SNAPSHOTS", default.large_snapshots)),
        tables=numbers("BENCH_TABLES", default.tables),
        searched=int(environment.get("BENCH_SEARCHED", default.searched)),
        tasks=int(environment.get("BENCH_TASKS", default.tasks)),
    )
