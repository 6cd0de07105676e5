# SPDX-License-Identifier: Apache-2.0
"""Seeds of random values in tests.

Without `--seed` every run is the same: Hypothesis derives its examples from each test, and `random` is seeded with the
test's id. `--seed N` draws other examples and numbers; the same N repeats them.
"""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import HealthCheck, settings

#: The profile of `make test` and CI.
SAME = "the same everywhere"
#: The profile of `--seed N`.
SEEDED = "seeded"

# The duration of an example, and the number of rejected ones, depend on the machine and not on the code.
_MACHINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def register_profiles() -> None:
    """Register both profiles with Hypothesis and load the one of `make test`."""
    settings.register_profile(SAME, deadline=None, suppress_health_check=_MACHINE, derandomize=True, print_blob=True)
    settings.register_profile(
        SEEDED, deadline=None, suppress_health_check=_MACHINE, derandomize=False, database=None, print_blob=True
    )
    settings.load_profile(SAME)


def add_option(parser: pytest.Parser) -> None:
    """Add `--seed` to pytest's options."""
    parser.addoption("--seed", type=int, default=None, help="draw other examples; the number repeats them")


def load_profile(config: pytest.Config) -> None:
    """Load the seeded profile if `--seed` was given, and hand the seed to Hypothesis."""
    if config.option.seed is None:
        return
    settings.load_profile(SEEDED)
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(config.option.seed)


def header(config: pytest.Config) -> str:
    """Return the line of the report header with the command that repeats this run."""
    seed = config.option.seed
    return "seed: none, examples are the same in every run" if seed is None else f"seed: {seed} (repeat: --seed {seed})"


def seed_of(nodeid: str, seed: int | None) -> int:
    """Return the seed of `random` for one test of a run."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{nodeid}".encode(errors="backslashreplace")).digest()[:8], "big")
