# SPDX-License-Identifier: Apache-2.0
"""A real NATS server with JetStream on a loopback port. It can be killed and started again with the same files."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.worker_processes import die_with_parent
from tests.support.rows.parts import free_port

_START_SECONDS = 30.0


class NatsServer:
    """One server. Its stream files are written to the disk before each acknowledgement."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._config = folder / "nats.conf"
        self._config.write_text(
            f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{folder}/store", sync_interval: always }}\n'
        )

    @property
    def url(self) -> str:
        """Return the address."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server and wait until its port accepts connections."""
        with (self._folder / "nats.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(Path(sys.executable).with_name("nats-server")), "-c", str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )
        wait_for_port(self.port, _START_SECONDS, self._folder / "nats.log")

    def kill(self) -> None:
        """Kill the server without a shutdown."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def wait_for_port(port: int, seconds: float, log: Path) -> None:
    """Wait until a loopback port accepts connections."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(f"no server on port {port}: {log.read_text()[-3000:]}")


@contextmanager
def running(folder: Path) -> Iterator[NatsServer]:
    """Run a server until the end of the block."""
    server = NatsServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
