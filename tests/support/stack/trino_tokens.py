# SPDX-License-Identifier: Apache-2.0
"""`lakegate trino tokens` as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakegate.local.ready import Ready
from tests.support.rows.parts import free_port


@contextmanager
def token_service(ready: Ready, folder: Path, name: str = "trino") -> Iterator[tuple[str, Path]]:
    """Run the service for this client of the stack; yield its address and its log."""
    client = ready.users[name]
    listen, log = f"127.0.0.1:{free_port()}", folder / "tokens.log"
    arguments = ["--listen", listen, "--gateway", ready.catalog_uri, "--token-endpoint", ready.token_endpoint]
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway.cli", "trino", "tokens", *arguments],
            env=os.environ | {"LAKEGATE_TRINO_CREDENTIAL": f"{client.client_id}:{client.client_secret}"},
            stdout=written,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + 90
        while "Serving tokens" not in log.read_text():
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield f"http://{listen}/tokens", log
    finally:
        process.terminate()
        code = process.wait(timeout=60)
    assert code == 0, log.read_text()
