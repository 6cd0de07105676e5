# SPDX-License-Identifier: Apache-2.0
"""The long comparison with the Java library: `python -m tests.reference_judge.run`, or `make reference-agreement-long`.

A run that finds no difference writes `tests/results/reference_judge.json`. Otherwise it prints the differences and ends
with exit status 1.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from lakegate.local.spark_jars import ARCHIVES
from tests.reference_judge.comparison import Tally, answer
from tests.reference_judge.defaults import defaults
from tests.reference_judge.judge import Judge
from tests.reference_judge.random_tables import Tables
from tests.reference_judge.random_views import Views

RESULT = Path(__file__).parents[1] / "results" / "reference_judge.json"


def compare_all(judge: Judge, seed: int, *, commits: int, views: int, documents: int) -> Tally:
    """Ask random questions until each kind has its number, and return the results."""
    tally = Tally()
    for question in defaults():
        tally.add(answer(question, judge))
    tables, changes = Tables(Random(seed)), Views(Random(seed + 1))
    for _ in range(commits):
        case = answer(tables.question(), judge)
        tally.add(case)
        if case.ours is not None and case.verdict.unreadable is None:
            tables.keep(case.ours)
    for _ in range(documents):
        tally.add(answer(tables.document_question(), judge))
        if tables.random.random() < 0.5:
            case = answer(tables.question(), judge)
            tally.add(case)
            if case.ours is not None and case.verdict.unreadable is None:
                tables.keep(case.ours)
    for _ in range(views):
        case = answer(changes.question(), judge)
        tally.add(case)
        if case.ours is not None and case.verdict.unreadable is None and case.question["kind"] != "read":
            changes.keep(case.ours)
    return tally


def main() -> int:
    """Run the comparison. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--views", type=int, default=1_000)
    parser.add_argument("--documents", type=int, default=1_000)
    options = parser.parse_args()
    started = time.monotonic()
    with Judge() as judge:
        tally = compare_all(
            judge, options.seed, commits=options.commits, views=options.views, documents=options.documents
        )
    kinds = Counter(re.sub(r"[0-9]+|'[^']*'", "…", text.split("\n", 1)[0])[:150] for text in tally.differences)
    result = {
        "library": ARCHIVES[0].file_name,
        "seed": options.seed,
        "seconds": round(time.monotonic() - started),
        "accepted": dict(sorted(tally.accepted.items())),
        "refused": dict(sorted(tally.refused.items())),
        "exceptions": dict(sorted(tally.excepted.items())),
        "differences": sum(kinds.values()),
    }
    print(json.dumps(result, indent=2))
    if kinds:
        for text, count in kinds.most_common():
            print(f"{count:5} {text}")
        print("\n".join(tally.differences), file=sys.stderr)
        return 1
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
