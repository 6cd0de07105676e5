# SPDX-License-Identifier: Apache-2.0
"""Soak test: one abusive principal beside ten normal ones on the real stack (`make soak`).

The test measures the normal principals alone, then beside eight parallel `batch-check` requests of 1,000 invisible
names. It fails if a normal request is refused, if the normal p95 is more than twice the p95 measured alone, or if the
memory of the worker processes grows. It connects to loopback only and ends by itself.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from lakegate.local import ready
from tests.integration.conftest import _up
from tests.support.load.load_generators import Measured, abuse, large_batch, load_together
from tests.support.stack.world import Person, Table, World, unique

NORMAL, TABLES = 10, 200
FACTOR = 2.0
#: Permitted growth of the memory of all workers, in bytes, from the second quarter of the run to the last.
GROWTH = 64 * 1024 * 1024
_EVERY_SECONDS = 2.0


def workers_memory(world: World) -> int:
    """Return the resident memory of the gateway's processes, in bytes."""
    main = psutil.Process(world.ready.pids["gateway"][0])
    total = 0
    for process in (main, *main.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


@contextmanager
def sampled(world: World) -> Iterator[list[int]]:
    """Yield a list to which samples of `workers_memory` are added until the block ends."""
    samples, over = [workers_memory(world)], threading.Event()

    def sample() -> None:
        while not over.wait(_EVERY_SECONDS):
            samples.append(workers_memory(world))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def growth(samples: Sequence[int]) -> int:
    """Return the median of the last quarter of the samples minus that of the second quarter, in bytes."""
    quarter = max(1, len(samples) // 4)
    return int(statistics.median(samples[-quarter:]) - statistics.median(samples[quarter : 2 * quarter] or samples))


def joined(results: Sequence[Measured]) -> Measured:
    """Return the requests of all principals as one result."""
    whole = Measured()
    for each in results:
        whole.statuses += each.statuses
        whole.seconds += each.seconds
    return whole


def prepare(world: World) -> tuple[list[Person], list[Table], Person]:
    """Return (normal principals with read access, tables, a principal without rights)."""
    namespace = world.namespace(unique("soak"))
    tables = [world.table(namespace) for _ in range(TABLES)]
    people = [world.stranger(f"normal{number}") for number in range(NORMAL)]
    for person in people:
        world.grant("select", person, "warehouse", world.warehouse)
    return people, tables, world.stranger("abusive")


def soak(world: World, *, minutes: float) -> list[str]:
    """Run the test and print the figures; return one line for each failure."""
    people, tables, abusive = prepare(world)
    read, body = tables[:20], large_batch(world, tables)
    load_together(people, read, seconds=5, pause=0.5)
    alone = joined(load_together(people, read, seconds=max(20.0, minutes * 6), pause=0.5))
    print(f"alone:   {alone}", flush=True)
    with sampled(world) as memory, abuse(abusive, body) as abused:
        results = load_together(people, read, seconds=minutes * 60, pause=0.5)
    beside = joined(results)
    worst = max(each.p95 for each in results)
    grown = growth(memory)
    print(f"beside:  {beside}, worst principal p95 {worst:.3f}")
    print(f"abusive: {abused}")
    print(f"memory:  first {memory[0] >> 20} MiB, last {memory[-1] >> 20} MiB, growth {grown / 2**20:.1f} MiB")
    print(f"machine: {os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.1f} at the end")
    failed = []
    if set(beside.statuses) != {200}:
        failed.append(f"normal principals received {dict(beside.statuses)}, not 200 alone")
    if beside.p95 > FACTOR * alone.p95:
        failed.append(f"the normal p95 is {beside.p95:.3f} s, above {FACTOR:g} times {alone.p95:.3f} s")
    if grown > GROWTH:
        failed.append(f"the workers grew by {grown / 2**20:.1f} MiB, above {GROWTH >> 20} MiB")
    return failed


def main() -> int:
    """Return the exit code: 0 if nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="duration beside the abusive principal")
    parser.add_argument("--ready-file", type=Path, help="use the stack of this file instead of starting one")
    given = parser.parse_args()
    with ExitStack() as held:
        running = ready.read(given.ready_file) if given.ready_file else held.enter_context(_up())
        world = World(running)
        held.callback(world.close)
        failed = soak(world, minutes=given.minutes)
    for each in failed:
        print(f"failed:  {each}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
