# SPDX-License-Identifier: Apache-2.0
"""A real HDFS with one name node and one data node, on loopback ports and with its files in one directory.

The servers are one archive of Hadoop, downloaded once and verified by its checksum. Hadoop's client classes are part of
PySpark. `python -m tests.support.servers.hdfs_servers` downloads the archive, and `make test-servers` does so first.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from gateway.settings import load
from gateway.worker_processes import die_with_parent
from lakegate.local import jdk, spark_jars, toolchain
from lakegate.local.spark_jars import Archive
from tests.support.rows.parts import free_port

ARCHIVE = Archive(
    "org.apache.hadoop",
    "hadoop-client-minicluster",
    "3.4.2",  # the version of Hadoop in PySpark, whose classes the servers use
    "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77",
    40,
)
_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_START_SECONDS = 90.0
_STOP_SECONDS = 20.0
_STOPPED = 128 + signal.SIGTERM  # the exit code of a Java process after SIGTERM


@dataclass(frozen=True)
class Hdfs:
    """A running HDFS. The user of this process may do everything in it; other users are names without a password."""

    authority: str

    def url(self, path: str = "") -> str:
        """Return the location of an absolute path."""
        return f"hdfs://{self.authority}{path}"


def fetched() -> Path:
    """Return the archive; download it if it is not cached. Raises StackError."""
    directory = toolchain.cache(load({})).jars()
    path = directory / ARCHIVE.file_name
    if not spark_jars.is_right(path, ARCHIVE):
        print(f"Downloading {ARCHIVE.file_name} ({ARCHIVE.megabytes} MB, once)", file=sys.stderr)
        spark_jars.fetch(ARCHIVE, directory, java_home=os.environ.get("JAVA_HOME"), environment=dict(os.environ))
    return path


@contextmanager
def running(folder: Path) -> Iterator[Hdfs]:
    """Run HDFS until the end of the block, with all files in `folder`. Requires that both servers end."""
    pyspark = importlib.util.find_spec("pyspark")
    assert pyspark is not None and pyspark.origin is not None
    java = jdk.find(os.environ.get("JAVA_HOME"), os.environ.get("PATH", os.defpath)) / "bin" / "java"
    port, http_port = free_port(), free_port()
    _configure(folder, port, http_port)
    jars = [fetched(), Path(pyspark.origin).parent / "jars" / "*"]
    command = [str(java), *_JVM, "-cp", os.pathsep.join(map(str, [folder, *jars]))]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HADOOP_")}
    subprocess.run(
        [*command, _NAME_NODE, "-format", "-nonInteractive"],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_START_SECONDS,
    )  # fmt: skip
    with ExitStack() as servers:
        for server in (_NAME_NODE, _DATA_NODE):
            log = folder / f"{server.rpartition('.')[2]}.log"
            servers.enter_context(_server([*command, server], folder, environment, log))
        _wait(http_port, folder)
        yield Hdfs(f"127.0.0.1:{port}")


def _configure(folder: Path, port: int, http_port: int) -> None:
    properties: Mapping[str, Mapping[str, str]] = {
        "core-site.xml": {"fs.defaultFS": f"hdfs://127.0.0.1:{port}", "hadoop.tmp.dir": str(folder / "data")},
        "hdfs-site.xml": {
            "dfs.replication": "1",
            "dfs.namenode.http-address": f"127.0.0.1:{http_port}",
            "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.http.address": "127.0.0.1:0",
            "dfs.datanode.ipc.address": "127.0.0.1:0",
            "dfs.datanode.hostname": "127.0.0.1",
            "dfs.namenode.safemode.extension": "0",
        },
    }
    for name, values in properties.items():
        lines = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in values.items())
        (folder / name).write_text(f"<configuration>{''.join(lines)}</configuration>")
    (folder / "log4j2.properties").write_text(
        "appender.out.type=Console\nappender.out.name=out\nappender.out.layout.type=PatternLayout\n"
        "appender.out.layout.pattern=%d %p %c: %m%n\nrootLogger.level=warn\nrootLogger.appenderRef.out.ref=out\n"
    )


@contextmanager
def _server(command: list[str], folder: Path, environment: Mapping[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            code = process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
    assert code == _STOPPED, log.read_text()[-3000:]


def _wait(http_port: int, folder: Path) -> None:
    """Wait until a data node has registered and the name node accepts writes."""
    found: dict[str, object] = {}
    deadline = time.monotonic() + _START_SECONDS
    with httpx.Client(base_url=f"http://127.0.0.1:{http_port}", trust_env=False, timeout=5) as http:
        while (found.get("NumLiveDataNodes"), found.get("FSState")) != (1, "Operational"):
            if time.monotonic() > deadline:
                logs = "\n".join(log.read_text()[-3000:] for log in folder.glob("*.log"))
                raise AssertionError(f"HDFS did not start: {found}\n{logs}")
            with suppress(httpx.TransportError):
                [found] = http.get("/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState").json()["beans"] or [{}]
            time.sleep(0.1)


if __name__ == "__main__":
    fetched()
