# SPDX-License-Identifier: Apache-2.0
"""A gateway with verifiers in its settings: it starts, shows them in `/health`, and refuses unusable ones."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import msgspec
import pytest

from gateway.embedded.ready import Ready
from tests.integration.kills import SOON, Killable

pytestmark = [pytest.mark.integration, pytest.mark.servers]

CONTRACT = {
    "name": "orders",
    "table": {"warehouse": "w", "namespace": ["a"], "name": "orders"},
    "columns": [{"name": "id"}],
    "owners": ["team-sales"],
}


def status(base: str, expected: str) -> None:
    """Wait until `/health` shows the contracts with this status, and require that the gateway stays in service."""
    deadline = time.monotonic() + SOON
    while True:
        answer = httpx.get(f"{base}/health", timeout=30, trust_env=False)
        shown = {each["name"]: each["status"] for each in answer.json()["services"].get("verifiers", [])}
        if shown == {"agreed": expected, "compatible": "ok"}:
            assert answer.status_code == 200
            return
        assert time.monotonic() < deadline, shown
        time.sleep(0.2)


def test_gateway_reads_contracts_again_and_shows_invalid_ones(
    killed_stack: Ready, gateway: Killable, tmp_path: Path
) -> None:
    base = killed_stack.catalog_uri.removesuffix("/catalog")
    assert "verifiers" not in httpx.get(f"{base}/health", timeout=30, trust_env=False).json()["services"]
    contracts = tmp_path / "contracts"
    contracts.mkdir()
    file = contracts / "orders.json"
    file.write_bytes(msgspec.json.encode(CONTRACT))
    gateway.kill()
    gateway.start(
        VERIFIERS__COMPATIBLE__KIND="schema",
        VERIFIERS__AGREED__KIND="contract",
        VERIFIERS__AGREED__CONTRACTS_DIR=str(contracts),
        HEALTH_CHECK_FREQUENCY_SECONDS="1",
    )
    status(base, "ok")
    file.write_text("{")
    status(base, "error")
    file.write_bytes(msgspec.json.encode(CONTRACT))
    status(base, "ok")
    refused = gateway.run("contracts", "check", str(contracts / "absent"))
    assert refused.returncode == 1 and "is no directory" in refused.stderr
