# SPDX-License-Identifier: Apache-2.0
"""`lakegate up` as users see it: the ready file, the first warehouse and grants, a restart, and the end."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest

from lakegate.local import account, ready
from lakegate.local.ready import Ready

pytestmark = pytest.mark.chaos

StartStack = Callable[..., Ready]

_KEYS = {
    "catalog_uri": str,
    "management_uri": str,
    "metrics_uri": str,
    "issuer": str,
    "token_endpoint": str,
    "project_id": str,
    "warehouse": str,
    "warehouse_id": str,
    "users": dict,
    "s3": dict,
    "postgres": str,
    "openfga": dict,
    "opa": dict,
    "bridge_key": str,
    "pids": dict,
    "environment": str,
}


def _get(ready: Ready, uri: str, user: str) -> httpx.Response:
    return httpx.get(uri, headers={"Authorization": f"Bearer {ready.users[user].token}"}, trust_env=False, timeout=30)


def _namespaces(ready: Ready, user: str) -> httpx.Response:
    config = _get(ready, f"{ready.catalog_uri}/v1/config?warehouse={ready.warehouse}", user)
    if not config.is_success:
        return config
    return _get(ready, f"{ready.catalog_uri}/v1/{config.json()['defaults']['prefix']}/namespaces", user)


def test_catalog_refuses_requests_without_a_token(stack: Ready) -> None:
    assert httpx.get(f"{stack.catalog_uri}/v1/config", trust_env=False).status_code == 401


def test_every_pid_of_the_ready_file_is_alive_and_the_gateway_has_workers(stack: Ready) -> None:
    assert all(psutil.pid_exists(pid) for pids in stack.pids.values() for pid in pids)
    assert len(stack.pids["gateway"]) == 3


def test_an_empty_stack_waits_for_its_bootstrap(start_stack: StartStack) -> None:
    ready = start_stack(empty=True)
    assert ready.warehouse is None
    info = _get(ready, f"{ready.management_uri}/v1/info", "admin")
    assert info.json()["bootstrapped"] is False


def _up(data: Path, ready_file: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "gateway.cli", "up", "--data", str(data), "--ready-file", str(ready_file)],
        env=os.environ
        | {"LAKEGATE__EMBEDDED__FAST": "true", "LAKEGATE__EMBEDDED__FREE_PORTS": "true"}
        | {"LAKEGATE__TAG_LABELS": "true", "LAKEGATE__OPA__URL": "http://127.0.0.1:9"},
        stdout=ready_file.with_suffix(".log").open("wb"),
        stderr=subprocess.STDOUT,
    )


def _delete_profile(ready_file: Path) -> object:
    """Return the delete profile of the stack's warehouse."""
    described = ready.read(ready_file)
    listed = _get(described, f"{described.management_uri}/v1/warehouse", "admin").json()["warehouses"]
    return listed[0]["delete-profile"]


def _await_ready(process: subprocess.Popen[bytes], ready_file: Path) -> dict[str, object]:
    deadline = time.monotonic() + 150
    while not ready_file.exists():
        assert process.poll() is None, "lakegate up ended before it was ready"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    described: dict[str, object] = json.loads(ready_file.read_text())
    return described


def _require_grants_of_the_demonstration(stack: Ready) -> None:
    assert _namespaces(stack, "alice").status_code == 200
    assert _namespaces(stack, "bob").status_code == 200
    assert _namespaces(stack, "carol").status_code == 404


def _require_a_line_for_each_part(log: Path) -> None:
    """Require progress in a pipe, the variables that are not used, and a short summary."""
    until = time.monotonic() + 10
    while "Ctrl-C stops everything" not in log.read_text():
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.05)
    lines = log.read_text().splitlines()
    assert "LAKEGATE__OPA__URL" in lines[0] and "LAKEGATE__TAG_LABELS" not in lines[0]
    assert [line.split(":")[0] for line in lines[2:10]] == [f"✓ {number} of 8" for number in range(1, 9)]
    assert len(lines) == 22, log.read_text()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_restart_keeps_all_data_and_stop_leaves_no_process(tmp_path: Path) -> None:
    """Use one data directory for three runs, ended by SIGTERM, SIGKILL and Ctrl-C."""
    data, ready_file = tmp_path / "data", tmp_path / "ready.json"
    seen = []
    for number, expected in ((signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 0)):
        ready_file.unlink(missing_ok=True)
        process = _up(data, ready_file)
        described = _await_ready(process, ready_file)
        assert stat.S_IMODE(ready_file.stat().st_mode) == 0o600
        assert {name: type(value) for name, value in described.items()} == _KEYS
        _require_grants_of_the_demonstration(ready.read(ready_file))
        assert _delete_profile(ready_file) == {"type": "soft", "expiration-seconds": 604_800}
        _require_a_line_for_each_part(ready_file.with_suffix(".log"))
        variables = Path(str(described["environment"])).read_text().splitlines()
        assert "LAKEGATE__TAG_LABELS=true" in variables and "LAKEGATE__OPA__URL=http://127.0.0.1:9" not in variables
        assert (data / ready.FILE).read_text() == ready_file.read_text()
        seen.append((described["catalog_uri"], described["s3"], described["postgres"], described["openfga"]))
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        assert process.wait(90) == expected
        assert ready_file.exists() is (data / ready.FILE).exists() is (number == signal.SIGKILL)
        _, alive = psutil.wait_procs(family, timeout=60)
        assert alive == []
    assert seen[0] == seen[1] == seen[2]
    account.remove_data(data / "postgres")
