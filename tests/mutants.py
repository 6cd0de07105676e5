# SPDX-License-Identifier: Apache-2.0
"""Count how many mutants of `gateway/` the tests without a stack kill: `python -m tests.mutants now`.

Cosmic Ray changes one place of a function's body (`tests/support/mutants/generation.py`). The tests of `tests/unit`
and `tests/access` that reach this place run until one fails (`tests/support/mutants/mutant_session.py`). The sample
depends on the seed and on the functions, not on their modules: two versions have the mutants of equal functions in
common. `--root` names the checkout of another version. `tests/results/mutants.json` records one result for each name.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULT = Path(__file__).with_name("results") / "mutants.json"
LOCK = Path(__file__).with_name("locks") / "mutants.lock"
PLUGIN = Path(__file__).with_name("support") / "mutants"
WORK = ROOT / ".lakegate" / "mutants"
TESTS = ("tests/unit", "tests/access")
#: Tests of the tests and of the documentation: they run no code of `gateway/` in their own process.
_WITHOUT_GATEWAY = ("stages", "pytest_hooks", "assertions", "house", "threats", "worker_processes", "docs_*", "mutants")

KILLED, TIMEOUT, NOT_REACHED, SURVIVED = "killed", "timeout", "not reached", "survived"
#: The digits of a rank in the record.
_RANK = 12


def interval(killed: int, reached: int) -> tuple[float, float]:
    """Return the 95 % interval of a share by Wilson's formula."""
    if reached == 0:
        return 0.0, 1.0
    z, share = 1.959964, killed / reached
    center = share + z * z / (2 * reached)
    half = z * math.sqrt(share * (1 - share) / reached + z * z / (4 * reached * reached))
    scale = 1 + z * z / reached
    return max(0.0, (center - half) / scale), min(1.0, (center + half) / scale)


def summary(mutants: Sequence[Mapping[str, Any]], outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the counts, the survivors and all outcomes by the rank of the mutant.

    A mutant that exceeds its time is killed. One whose compiled code is that of the original survived.
    """
    kinds = [SURVIVED if each["outcome"] == "unchanged" else each["outcome"] for each in outcomes]
    killed, reached = kinds.count(KILLED) + kinds.count(TIMEOUT), len(kinds) - kinds.count(NOT_REACHED)
    survivors = [
        {"at": f"{each['file']}:{each['line']}", "operator": each["operator"], "becomes": each["becomes"]}
        for each, kind in zip(mutants, kinds, strict=True)
        if kind == SURVIVED
    ]
    return {
        "sampled": len(kinds),
        "reached": reached,
        "killed": killed,
        "killed_of_reached": round(killed / reached, 4) if reached else 0.0,
        "interval_95": [round(each, 4) for each in interval(killed, reached)],
        "survivors": sorted(survivors, key=lambda each: (each["at"], each["operator"], each["becomes"])),
        "outcomes": dict(sorted((each["rank"][:_RANK], kind) for each, kind in zip(mutants, kinds, strict=True))),
    }


def in_common(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, Any]:
    """Return the number of mutants that two samples share, and how many of them each version killed."""
    both = one.keys() & other.keys()
    return {
        "mutants": len(both),
        "killed": [sum(each[rank] in (KILLED, TIMEOUT) for rank in both) for each in (one, other)],
    }


def _environment() -> Path:
    """Create the environment of Cosmic Ray from the lock file; return its interpreter."""
    directory = WORK / "environment"
    python, complete = directory / "bin" / "python", directory / LOCK.name
    if not complete.is_file() or complete.read_bytes() != LOCK.read_bytes():
        shutil.rmtree(directory, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--require-hashes", "-r", str(LOCK)], check=True)
        complete.write_bytes(LOCK.read_bytes())
    return python


def run(root: Path, name: str, seed: int, count: int, budget: float, anew: bool) -> dict[str, Any]:
    """Test a sample of the mutants of a checkout; return the record.

    A run that was interrupted continues. A run `anew` starts from the beginning.
    """
    work = WORK / name
    if anew:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    sample, outcomes = work / "mutants.json", work / "outcomes.jsonl"
    if not sample.is_file():
        argv = [str(_environment()), str(PLUGIN / "generation.py"), str(root), str(seed), str(count)]
        sample.write_text(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    interpreter = root / ".venv" / "bin" / "python"
    argv = [str(interpreter), "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-p", "mutant_session"]
    ignored = [f"--ignore-glob=*/tests/unit/test_{each}.py" for each in _WITHOUT_GATEWAY]
    environment = {**os.environ, "PYTHONPATH": str(PLUGIN), "MUTANT_WORK": str(work), "MUTANT_BUDGET": str(budget)}
    with (work / "log").open("w") as log:
        subprocess.run(
            [*argv, "-m", "not long", *ignored, *TESTS],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        )
    made = json.loads(sample.read_text())
    results = [json.loads(line) for line in outcomes.read_text().splitlines()] if outcomes.is_file() else []
    if len(results) != len(made["mutants"]):
        raise SystemExit(f"Only {len(results)} of {len(made['mutants'])} mutants were tested: see {work / 'log'}")
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=root, capture_output=True, text=True, check=True
    )
    return {"commit": commit.stdout.strip(), "mutants": made["possible"], **summary(made["mutants"], results)}


def main(arguments: list[str]) -> int:
    """Test the sample and write the record."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Test a sample of mutants.")
    parser.add_argument("name", help="the name of the result: now, for example")
    parser.add_argument("--root", type=Path, default=ROOT, help="a checkout with an environment in .venv")
    parser.add_argument("--seed", type=int, default=39)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--budget", type=float, default=8.0, help="seconds of CPU of the tests of one mutant")
    parser.add_argument("--anew", action="store_true", help="do not continue an interrupted run")
    given = parser.parse_args(arguments)
    record = run(given.root.resolve(), given.name, given.seed, given.count, given.budget, given.anew)
    tool = next(line.split(" ")[0] for line in LOCK.read_text().splitlines() if line.startswith("cosmic-ray=="))
    settings = {"seed": given.seed, "tool": tool, "tests": list(TESTS), "seconds_of_a_mutant": given.budget}
    before = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    same = all(before.get(key) == value for key, value in settings.items())  # others cannot be compared
    versions = {**(before["versions"] if same else {}), given.name: record}
    RESULT.write_text(json.dumps({**settings, "versions": versions}, indent=1, ensure_ascii=False) + "\n")
    print(
        f"{given.name}: {record['killed']} of {record['reached']} reached mutants killed, {record['sampled']} sampled"
    )
    for name, other in versions.items():
        if name != given.name:
            print(f"in common with {name}: {in_common(other['outcomes'], record['outcomes'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
