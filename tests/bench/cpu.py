# SPDX-License-Identifier: Apache-2.0
"""CPU time of processes and their descendants, from `/proc`; zero on systems without it."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def seconds_of(pids: Iterable[int]) -> float:
    """Return CPU seconds of these processes and their descendants, including ended children."""
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
    open_pids, seen = list(pids), set[int]()
    while open_pids:
        if (pid := open_pids.pop()) not in seen:
            seen.add(pid)
            open_pids += children[pid]
    return sum(taken.get(pid, 0.0) for pid in seen)
