# SPDX-License-Identifier: Apache-2.0
"""An OPA with the shipped policies and exchangeable guardrails, and the comparison of partial with full evaluation."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from gateway.opa import explanation
from lakegate.local.children import GO_RUNTIME
from tests.support.policies.residual_styles import CALLERS, STYLES, Style, requests_of

POLICIES = Path(__file__).parents[3] / "policies"

_DECIDE = """[decision |
    some i, asked in input.requests
    decision := object.get({"one": d | d := data.gateway.decisions with input as asked}, "one", {}).decisions
]"""
_OPEN = "package system.authz\n\ndefault allow := true\n"
_PLAIN = {"allow": True, "reasons": [], "obligations": {}}


@dataclass(frozen=True)
class Opa:
    """A running OPA that accepts every request."""

    client: httpx.Client

    def load(self, style: Style) -> None:
        """Add a guardrail to the shipped ones, in the place of the last one that was added."""
        answer = self.client.put("/v1/policies/style", content=style.module, headers={"Content-Type": "text/plain"})
        assert answer.status_code == 200, answer.text

    def proof(self, caller: str) -> explanation.Proof | None:
        """Return the proof that no guardrail can speak about this caller."""
        answer = self.client.post(explanation.PATH, content=explanation.compile_request(CALLERS[caller]))
        return explanation.proof_in(answer.content) if answer.status_code == 200 else None

    def decisions(self, requests: list[dict[str, Any]]) -> list[Any]:
        """Return the decisions about each request, null for an undefined one."""
        answer = self.client.post("/v1/query", json={"query": f"x = {_DECIDE}", "input": {"requests": requests}})
        assert answer.status_code == 200, answer.text
        found: list[Any] = answer.json()["result"][0]["x"]
        return found


@contextmanager
def running(
    binary: Path, folder: Path, changes: Sequence[tuple[str, str, str]] = (), *, bundle: str | None = None
) -> Iterator[Opa]:
    """Context manager. Run OPA with a copy of the policies in `folder`, with (file, text, other text) replaced.

    With `bundle` OPA loads them as a bundle of that revision, else from the folder.
    """
    shutil.copytree(POLICIES, folder, ignore=shutil.ignore_patterns("*_test.rego", "schemas", "trino"))
    (folder / "system" / "authz.rego").write_text(_OPEN)
    for name, right, wrong in changes:
        text = (folder / name).read_text()
        assert right in text, f"the policy no longer contains the text to change: {right!r}"
        (folder / name).write_text(text.replace(right, wrong, 1))
    loaded = ["."]
    if bundle is not None:
        archive = folder.parent / "bundle.tar.gz"
        built = [str(binary), "build", "--bundle", ".", f"--revision={bundle}", f"--output={archive}"]
        subprocess.run(built, cwd=folder, check=True, timeout=120)
        loaded = ["--bundle", str(archive)]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [str(binary), "run", "--server", f"--addr=127.0.0.1:{port}", "--log-level=error", *loaded],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **GO_RUNTIME, "LAKEGATE_STYLE": "on", "LAKEGATE_OPA_REVISION": "1"},
    )
    try:
        # An explanation has 0.8 MB. To compress it, OPA would need a third of the time of its evaluation.
        headers = {"Accept-Encoding": "identity"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120, trust_env=False) as client:
            deadline = time.monotonic() + 60
            while not _answers(client):
                assert process.poll() is None, "the OPA process ended"
                assert time.monotonic() < deadline, "OPA did not listen before the deadline"
                time.sleep(0.05)
            yield Opa(client)
    finally:
        process.terminate()
        process.wait(timeout=60)


@dataclass
class Comparison:
    """The result of comparing partial with full evaluation.

    `wrong` has each (style: caller) with a proof of silence and another decision than a plain allow. `missing` has each
    that should have a proof and has none. `compared` is the number of requests with a proof.
    """

    wrong: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    compared: int = 0


def compare(opa: Opa, source: random.Random, each: int, only: Iterable[str] = STYLES) -> Comparison:
    """Compare `each` requests of each caller under each of the styles `only`."""
    found = Comparison()
    for name in only:
        opa.load(STYLES[name])
        for caller, actor in CALLERS.items():
            if opa.proof(caller) is None:
                found.missing += [f"{name}: {caller}"] * (caller in STYLES[name].silent_for)
                continue
            requests = list(requests_of(actor, source, each))
            found.compared += len(requests)
            plain = [[_PLAIN] * len(request["questions"]) for request in requests]
            if opa.decisions(requests) != plain:
                found.wrong.append(f"{name}: {caller}")
    return found


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except httpx.TransportError:
        return False
