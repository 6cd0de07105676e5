# SPDX-License-Identifier: Apache-2.0
"""The process that sends the load, and the requests that it can send."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field

import msgspec

from tests.bench.load import Load, Request, Result
from tests.bench.stacks import OURS


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One kind of request, in the form in which one server gets it.

    `{n}` in url and body is a unique number, `{k}` a number below `vary` that changes with each request (with each pass
    of the mix). `mix`: requests that are sent in turn instead of the one request.
    """

    method: str
    url: str
    headers: dict[str, str]
    body: str | None = None
    mix: list[Request] = field(default_factory=list)
    vary: int = 1


class Generator:
    """The process that sends requests."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.load"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=OURS,
        )
        self._next = 0

    @property
    def pid(self) -> int:
        """Return the process id of the generator."""
        return self._process.pid

    def send(self, sent: Sent, connections: int, *, seconds: float, requests: int = 0) -> Result:
        """Send one load for a time, or until `requests` are sent if that is not 0. Return its result."""
        load = Load(
            method=sent.method,
            url=sent.url,
            headers=sent.headers,
            body=sent.body,
            connections=connections,
            seconds=seconds,
            first=self._next,
            mix=sent.mix,
            vary=sent.vary,
            requests=requests,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(load).decode() + "\n")
        self._process.stdin.flush()
        result = msgspec.json.decode(self._process.stdout.readline(), type=Result)
        self._next = result.last
        return result

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait(10)
