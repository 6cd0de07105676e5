# SPDX-License-Identifier: Apache-2.0
"""A real Kafka broker (KRaft, one node) on a loopback port. It can be killed and started again with the same files.

`python -m tests.support.servers.kafka_server` downloads its archives with Maven, and `make test-servers` does so first.
The file tests/locks/kafka_jars.txt has the name and the SHA-256 checksum of each.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.settings import load
from gateway.worker_processes import die_with_parent
from lakegate.local import jdk, toolchain
from tests.support.rows.parts import free_port
from tests.support.servers.nats_server import wait_for_port

VERSION = "4.1.0"
_POM = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>lakegate.tests</groupId><artifactId>kafka</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
</dependencies></project>"""
_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_SECONDS = 300.0
_FETCH_SECONDS = 900.0
_CLUSTER = "bGFrZWdhdGUtdGVzdHMtMQ"


def _is_right(folder: Path) -> bool:
    for line in (Path(__file__).parents[2] / "locks" / "kafka_jars.txt").read_text().splitlines():
        name, digest = line.split()
        path = folder / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            return False
    return True


def fetched() -> Path:
    """Return the directory of the archives; download them if they are not cached. Requires Maven for that."""
    folder = toolchain.cache(load({})).jars() / f"kafka-{VERSION}"
    if _is_right(folder):
        return folder
    maven = shutil.which("mvn")
    assert maven is not None, (
        "Maven is needed to download Kafka; install it, then run python -m tests.support.servers.kafka_server"
    )
    print(f"Downloading Kafka {VERSION} (43 MB, once)", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="part-", dir=folder.parent) as part:
        (Path(part) / "pom.xml").write_text(_POM)
        subprocess.run(
            [maven, "-B", "-q", "dependency:copy-dependencies", f"-DoutputDirectory={part}/jars"],
            cwd=part, stdin=subprocess.DEVNULL, check=True, timeout=_FETCH_SECONDS,
        )  # fmt: skip
        assert _is_right(Path(part) / "jars"), "an archive of Kafka does not have its pinned checksum"
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(Path(part) / "jars", folder)
    return folder


class KafkaServer:
    """One broker that is its own controller. Clients use the port `advertised`, that of a proxy, if it is given."""

    def __init__(self, folder: Path, *, advertised: int | None = None) -> None:
        self.port, controller = free_port(), free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        java = jdk.find(os.environ.get("JAVA_HOME"), os.environ.get("PATH", os.defpath)) / "bin" / "java"
        self._java = [str(java), *_JVM, "-cp", f"{fetched()}/*"]
        self._config = folder / "server.properties"
        self._config.write_text(
            "process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{advertised or self.port}\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={folder}/logs\noffsets.topic.replication.factor=1\nauto.create.topics.enable=false\n"
            "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\nlog.flush.interval.messages=1\n"
        )
        subprocess.run(
            [*self._java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._config)],
            cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_SECONDS,
        )  # fmt: skip

    @property
    def bootstrap(self) -> str:
        """Return the address of the broker."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the broker and wait until its port accepts connections."""
        log = self._folder / "kafka.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._config)],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )
        wait_for_port(self.port, _SECONDS, log)

    def kill(self) -> None:
        """Kill the broker without a shutdown."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def running(folder: Path) -> Iterator[KafkaServer]:
    """Run a broker until the end of the block."""
    server = KafkaServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


if __name__ == "__main__":
    fetched()
