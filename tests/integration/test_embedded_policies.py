# SPDX-License-Identifier: Apache-2.0
"""`lakegate up --policies`: a stack with the policies of a repository."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from lakegate.local import ready
from lakegate.local.policy_repository import create_repository
from lakegate.local.ready import Ready
from tests.support.servers.opa_bundles import until

pytestmark = [pytest.mark.integration, pytest.mark.servers]

GUARDRAIL = """package gateway.guardrails.mine

denials[index] contains {"code": "no_lists", "message": "Bob reads no lists."} if {
	some index, question in input.questions
	question.operation == "list_namespaces"
	input.actor.id == "oidc~bob"
}
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Ready]:
    create_repository(tmp_path / "repository")
    (tmp_path / "repository" / "policies" / "gateway" / "guardrails" / "mine.rego").write_text(GUARDRAIL)
    file, log = tmp_path / "ready.json", tmp_path / "up.log"
    command = [sys.executable, "-m", "gateway.cli", "up", "--data", str(tmp_path / "data"), "--ready-file", str(file)]
    with log.open("wb") as written:
        process = subprocess.Popen(
            [*command, "--policies", str(tmp_path / "repository")],
            env=os.environ | {"LAKEGATE__EMBEDDED__FAST": "true"},
            stdout=written,
            stderr=subprocess.STDOUT,
        )

    def started() -> bool:
        assert process.poll() is None, log.read_text()[-3000:]
        return file.exists()

    try:
        until(started, lambda: log.read_text()[-3000:])
        yield ready.read(file)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=120)


def test_guardrails_of_the_repository_decide_and_are_served(running: Ready) -> None:
    def get(user: str, uri: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {running.users[user].token}"}
        return httpx.get(uri, headers=headers, trust_env=False, timeout=60)

    config = get("alice", f"{running.catalog_uri}/v1/config?warehouse={running.warehouse}").json()
    namespaces = f"{running.catalog_uri}/v1/{config['defaults']['prefix']}/namespaces"
    assert get("alice", namespaces).status_code == 200
    denied = get("bob", namespaces)
    assert (denied.status_code, "Bob reads no lists." in denied.text) == (403, True), denied.text
    served = get("admin", f"{running.management_uri}/v1/policy-bundle/gateway")
    with tarfile.open(fileobj=io.BytesIO(served.content)) as archive:
        assert {"gateway/guardrails/mine.rego", "policy_data/freeze/data.json"} <= set(archive.getnames())
