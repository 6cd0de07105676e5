# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of additions: `python -m tests.bench.additions [NAME]…` compares gateways with and without them.

`events`: a webhook in this process receives and drops them. Its time is part of no process that is compared.
`verifiers`: two built-in ones, which read the metadata document before and after a commit.
`rows`: the authorizer over PostgreSQL's grants. Without a name all are measured.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from tests.bench.traces import compare, dropped

_SINK: Final = "EVENTS__SINKS__DROPPED"
_VERIFIERS: Final = {
    "VERIFIERS__COMPATIBLE__KIND": "schema",
    "VERIFIERS__KEPT__KIND": "columns",
    "VERIFIERS__KEPT__PROTECTED_COLUMNS": "id",
}


_ROWS: Final = {"AUTHORIZERS": "rows"}


def main(names: Sequence[str]) -> None:
    """Run the servers, measure the named additions, and print the tables."""
    with dropped() as address:
        sink = {
            f"{_SINK}__KIND": "webhook",
            f"{_SINK}__URL": address,
            f"{_SINK}__SECRET": "a key of the measurement",
        }
        additions = {
            "events": ("a webhook sink", sink),
            "verifiers": ("two verifiers", _VERIFIERS),
            "rows": ("the authorizer rows", _ROWS),
        }
        compare(dict(additions[name] for name in names or additions), "without")


if __name__ == "__main__":
    main(sys.argv[1:])
