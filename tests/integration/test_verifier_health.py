# SPDX-License-Identifier: Apache-2.0
"""A gateway with verifiers: one that is down is shown in `/health` and counted in metrics, until it works again.

The tests poll with a generous deadline, and compare no times: a loaded machine only makes them slower.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import msgspec
import pytest

from lakegate.local.ready import Ready
from tests.support.load.kills import SOON
from tests.support.rows.parts import free_port
from tests.support.servers.toxic import second_gateway
from tests.support.stack.world import World

pytestmark = [pytest.mark.integration, pytest.mark.servers]

CONTRACT = {
    "name": "orders",
    "table": {"warehouse": "w", "namespace": ["a"], "name": "orders"},
    "columns": [{"name": "id"}],
    "owners": ["team-sales"],
}
SECRET = "whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="


class Judge(ThreadingHTTPServer):
    """A verifier that approves while `works` is set, and answers 503 otherwise.

    Its port stays open: another process could take a port that is closed in between.
    """

    def __init__(self) -> None:
        self.works = threading.Event()
        self.works.set()
        super().__init__(("127.0.0.1", 0), Answers)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/judge"


class Answers(BaseHTTPRequestHandler):
    server: Judge

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"verdict": "approve"}).encode()
        self.send_response(200 if self.server.works.is_set() else 503)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@contextmanager
def judging() -> Iterator[Judge]:
    with Judge() as judge:
        threading.Thread(target=judge.serve_forever, daemon=True).start()
        yield judge
        judge.shutdown()


def until(condition: Callable[[], bool], shown: Callable[[], object]) -> None:
    """Wait until the condition holds. Fail with what is shown at the deadline."""
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline, shown()
        time.sleep(0.2)


def health(base: str) -> tuple[int, dict[str, str]]:
    """Return (HTTP status, the status of each verifier)."""
    answer = httpx.get(f"{base}/health", timeout=60, trust_env=False)
    return answer.status_code, {each["name"]: each["status"] for each in answer.json()["services"].get("verifiers", [])}


def test_a_verifier_that_is_down_is_shown_until_it_works_again(stack: Ready, tmp_path: Path) -> None:
    contracts = tmp_path / "contracts"
    contracts.mkdir()
    file = contracts / "orders.json"
    file.write_bytes(msgspec.json.encode(CONTRACT))
    with judging() as judge:
        settings = {
            "VERIFIERS__AGREED__KIND": "contract",
            "VERIFIERS__AGREED__CONTRACTS_DIR": str(contracts),
            "VERIFIERS__JUDGE__KIND": "webhook",
            "VERIFIERS__JUDGE__URL": judge.url,
            "VERIFIERS__JUDGE__SECRET": SECRET,
            "VERIFIERS__JUDGE__CHANGES": "commit",
            # A result is stale after three intervals, so a short one is unsound on a loaded machine.
            "HEALTH_CHECK_FREQUENCY_SECONDS": "5",
            "METRICS__PORT": str(port := free_port()),
        }
        with second_gateway(stack, tmp_path / "gateway.log", {}, **settings) as (base, _):
            world = World(msgspec.structs.replace(stack, catalog_uri=f"{base}/catalog"))
            try:
                _down_and_up_again(world, base, port, judge, file)
            finally:
                world.close()


def _down_and_up_again(world: World, base: str, port: int, judge: Judge, contract: Path) -> None:
    table = world.table(world.namespace())

    def commit(value: str) -> int:
        return world.commit(world.admin, table.path, {"action": "set-properties", "updates": {"a": value}}).status_code

    def counted(outcome: str) -> int:
        text = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60, trust_env=False).text
        pattern = rf'lakegate_verifier_duration_seconds_count{{outcome="{outcome}",verifier="judge"}} ([0-9.]+)'
        return sum(int(float(number)) for number in re.findall(pattern, text))

    def shows(agreed: str, judged: str) -> None:
        # 200 in every state: a verifier that is down must not take the gateway out of service.
        expected = (200, {"agreed": agreed, "judge": judged})
        until(lambda: health(base) == expected, lambda: (expected, health(base)))

    shows("ok", "ok")
    assert counted("failed") == 0
    judge.works.clear()
    until(lambda: commit("down") == 429, lambda: "a commit without a verdict is not refused")
    shows("ok", "error")
    until(lambda: counted("failed") >= 1, lambda: "the failure is not counted")
    judge.works.set()
    until(lambda: commit("up") == 200, lambda: "a commit is refused although the verifier works again")
    shows("ok", "ok")
    until(lambda: counted("approved") >= 1, lambda: "the approval is not counted")
    right = contract.read_bytes()
    contract.write_text("{")
    shows("error", "ok")
    contract.write_bytes(right)
    shows("ok", "ok")
