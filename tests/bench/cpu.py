# SPDX-License-Identifier: Apache-2.0
"""CPU time of processes and everything below them, from `/proc`; zero where there is none."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def seconds_of(pids: Iterable[int]) -> float:
    """CPU seconds that these processes and their descendants took so far, ended children included."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    taken: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything, blanks too.
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(path.parent.name)
        children[int(fields[1])].append(pid)
        taken[pid] = sum(map(int, fields[11:15])) / _TICKS
    open_pids, seen = list(pids), set[int]()
    while open_pids:
        if (pid := open_pids.pop()) not in seen:
            seen.add(pid)
            open_pids += children[pid]
    return sum(taken.get(pid, 0.0) for pid in seen)
