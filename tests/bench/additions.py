# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of events and verifiers: `python -m tests.bench.additions` compares gateways with and without them.

A webhook in this process receives and drops the events. Its time is part of no process that is compared. The verifiers
are two built-in ones, which read the metadata document before and after a commit.
"""

from __future__ import annotations

from typing import Final

from tests.bench.traces import compare, dropped

_SINK: Final = "EVENTS__SINKS__DROPPED"
_VERIFIERS: Final = {
    "VERIFIERS__COMPATIBLE__KIND": "schema",
    "VERIFIERS__KEPT__KIND": "columns",
    "VERIFIERS__KEPT__PROTECTED_COLUMNS": "id",
}


def main() -> None:
    """Run the servers, measure, and print the tables."""
    with dropped() as address:
        sink = {
            f"{_SINK}__KIND": "webhook",
            f"{_SINK}__URL": address,
            f"{_SINK}__SECRET": "a key of the measurement",
        }
        compare({"a webhook sink": sink, "two verifiers": _VERIFIERS}, "neither")


if __name__ == "__main__":
    main()
