# SPDX-License-Identifier: Apache-2.0
"""An OpenFGA server of a test's own, which keeps its tuples in memory."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import pytest

from lakegate.local.children import GO_RUNTIME
from tests.support.rows.parts import free_port
from tests.support.servers.openfga_program import openfga_program

#: The preshared key that the server accepts.
KEY = "key-of-the-test"

_START_SECONDS = 60
#: In seconds. Long, because the machine may be busy; tests of durations measure them themselves.
_REQUEST_SECONDS = 60


@contextmanager
def openfga_in_memory(settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Run a server with further `settings` while the block runs. Yield its address."""
    binary = openfga_program()
    http, grpc = free_port(), free_port()
    environment = {
        "PATH": os.environ["PATH"],
        **GO_RUNTIME,
        "OPENFGA_HTTP_ADDR": f"127.0.0.1:{http}",
        "OPENFGA_GRPC_ADDR": f"127.0.0.1:{grpc}",
        "OPENFGA_AUTHN_METHOD": "preshared",
        "OPENFGA_AUTHN_PRESHARED_KEYS": KEY,
        "OPENFGA_PLAYGROUND_ENABLED": "false",
        "OPENFGA_METRICS_ENABLED": "false",
        "OPENFGA_LOG_LEVEL": "error",
        "OPENFGA_REQUEST_TIMEOUT": f"{_REQUEST_SECONDS}s",
        "OPENFGA_HTTP_UPSTREAM_TIMEOUT": f"{_REQUEST_SECONDS + 1}s",
        **settings,
    }
    process = subprocess.Popen([str(binary), "run"], env=environment, stdout=subprocess.DEVNULL)
    try:
        _wait_until_serving(f"http://127.0.0.1:{http}/healthz", process)
        yield f"http://127.0.0.1:{http}"
    finally:
        process.terminate()
        process.wait(timeout=60)


def _wait_until_serving(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the server ended with exit code {process.returncode}"
        try:
            with urllib.request.urlopen(url, timeout=1):  # noqa: S310 - http on loopback
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise AssertionError(f"{url} did not answer within {_START_SECONDS} seconds")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Run an OpenFGA with its tuples in memory."""
    with openfga_in_memory() as address:
        yield address
