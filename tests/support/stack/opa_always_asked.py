# SPDX-License-Identifier: Apache-2.0
"""A gateway that asks OPA for every decision."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from lakegate.local.ready import Ready


def last(stack: Ready, seconds: int) -> None:
    url = f"{stack.opa.url}/v1/data/policy_data/memory"
    headers = {"Authorization": f"Bearer {stack.opa.token}"}
    httpx.put(url, json={"answers_last_seconds": seconds}, headers=headers, trust_env=False).raise_for_status()


@pytest.fixture
def opa_always_asked(stack: Ready) -> Iterator[None]:
    """Let no decision of OPA be cacheable; undo it after the test."""
    last(stack, 0)
    yield
    last(stack, 1)
