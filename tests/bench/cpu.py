# SPDX-License-Identifier: Apache-2.0
"""CPU time of processes and their descendants, from `/proc`; zero on systems without it."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def seconds_of(pids: Iterable[int]) -> float:
    """Return CPU seconds of these processes and their descendants, including ended children."""
    return seconds_by_group({"": pids})[""]


def seconds_by_group(groups: Mapping[str, Iterable[int]]) -> dict[str, float]:
    """Return CPU seconds of each group of processes and their descendants, from one pass over all processes."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    taken: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in parentheses may contain any character, including blanks.
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(path.parent.name)
        children[int(fields[1])].append(pid)
        taken[pid] = sum(map(int, fields[11:15])) / _TICKS
    return {name: _total(pids, children, taken) for name, pids in groups.items()}


def _total(pids: Iterable[int], children: Mapping[int, list[int]], taken: Mapping[int, float]) -> float:
    open_pids, seen = list(pids), set[int]()
    while open_pids:
        if (pid := open_pids.pop()) not in seen:
            seen.add(pid)
            open_pids += children.get(pid, [])
    return sum(taken.get(pid, 0.0) for pid in seen)


def idle_milliseconds(groups: Mapping[str, Iterable[int]], seconds: float) -> dict[str, float]:
    """Sleep, and return CPU milliseconds per second of each group: its background work without any request."""
    before, begun = seconds_by_group(groups), time.perf_counter()
    time.sleep(seconds)
    after, took = seconds_by_group(groups), time.perf_counter() - begun
    return {name: 1000 * (after[name] - before[name]) / took for name in groups}
