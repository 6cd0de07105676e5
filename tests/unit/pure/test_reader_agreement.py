# SPDX-License-Identifier: Apache-2.0
"""The Python reader applies compiled `read-restrictions` as the reference interpreter does."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.policies.policy_agreement import Engine, compare_masks, compare_predicates
from tests.support.policies.policy_engines import reader_engine


@pytest.fixture(scope="module")
def engine() -> Engine:
    return reader_engine()


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_random_predicates_agree_with_the_reference_interpreter(engine: Engine, seed: int) -> None:
    assert compare_predicates(engine, random.Random(seed), rows=20, predicates=10) == 10


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_masks_agree_with_the_reference_interpreter(engine: Engine, seed: int) -> None:
    assert compare_masks(engine, random.Random(seed), rows=20) > 50
