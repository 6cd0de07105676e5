# SPDX-License-Identifier: Apache-2.0
"""A real Trino for the tests: downloaded once with Maven, verified by checksum, trimmed, and started on loopback.

The download is 800 MB and Trino needs a newer Java than Spark, so these tests are opt-in (`make test-trino`). `python
-m tests.support.engines.trino` downloads nothing; it fails if a run would need a download or lacks a requirement.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psutil

from lakegate.local import engines, jdk
from tests.support.rows.parts import free_port
from tests.support.stack.exchanging import ACCESS_TOKEN
from tests.support.stack.trino_bridge import KEY, Bridge
from tests.support.stack.world import Person, World

VERSION = "476"
SHA256 = "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f"
_OLDEST_JAVA = 24
_KEPT = Path.home() / ".cache" / "lakegate" / "trino" / VERSION
#: Only the Iceberg connector and the OPA access control; the archive has forty other connectors.
_PARTS = ("bin/", "lib/", "plugin/iceberg/", "plugin/opa/")
_LEFT_OUT = ("net.snowflake_", "-osx-", "-windows-", "aarch_64", "aarch64")
_START_SECONDS = 420.0
_QUERY_SECONDS = 180.0

_CONFIG = """\
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery.uri=http://127.0.0.1:{port}
query.max-memory=300MB
query.max-memory-per-node=300MB
memory.heap-headroom-per-node=200MB
"""
_NODE = """\
node.environment=test
node.id=trino-of-the-tests
node.data-dir={data}
node.bind-ip=127.0.0.1
node.internal-address=127.0.0.1
node.external-address=127.0.0.1
plugin.dir={plugins}
"""
_JVM = """\
-server
-Xmx1G
-XX:+UseSerialGC
-XX:TieredStopAtLevel=1
-XX:ReservedCodeCacheSize=128M
--enable-native-access=ALL-UNNAMED
-Djdk.attach.allowAttachSelf=true
"""


class Missing(Exception):
    """A requirement of a real Trino is missing; the message names it."""


class Refused(Exception):
    """Trino refused or failed a statement; the text is its message."""


def java_home() -> Path:
    """Return the home of a suitable Java: TRINO_JAVA_HOME, or one in the usual place. Raises Missing."""
    for home in (Path(os.environ.get("TRINO_JAVA_HOME", "/nowhere")), *sorted(Path("/usr/lib/jvm").glob("*"))):
        if (jdk.version_of(home) or 0) >= _OLDEST_JAVA:
            return home
    raise Missing(f"Trino {VERSION} needs Java {_OLDEST_JAVA} or newer: set TRINO_JAVA_HOME")


def kept() -> Path | None:
    """Return the trimmed server if it is cached and complete: the file cache does not start without RocksDB."""
    complete = (_KEPT / "bin" / "launcher").is_file() and any((_KEPT / "plugin" / "iceberg").glob("org.rocksdb_*"))
    return _KEPT if complete else None


def installed() -> Path:
    """Return the trimmed server; download it if it is not cached. Raises Missing."""
    if kept() is not None:
        return _KEPT
    maven = shutil.which("mvn")
    if maven is None:
        raise Missing(f"Trino {VERSION} is fetched with Maven, which is not installed")
    part = _KEPT.with_name(f"{VERSION}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    artifact = f"-Dartifact=io.trino:trino-server:{VERSION}:tar.gz"
    for goal in (["dependency:get"], ["dependency:copy", f"-DoutputDirectory={part}"]):
        done = subprocess.run(
            [maven, "-B", "-q", *goal, artifact, "-Dtransitive=false"], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise Missing(f"Trino {VERSION} could not be fetched: {done.stdout[-300:]}")
    archive = part / f"trino-server-{VERSION}.tar.gz"
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        raise Missing(f"{archive.name} has the checksum {digest}, not {SHA256}")
    _unpack(archive, part)
    archive.unlink()
    shutil.rmtree(_KEPT, ignore_errors=True)
    part.rename(_KEPT)
    return _KEPT


def _unpack(archive: Path, into: Path) -> None:
    """Extract the needed parts without the top folder. Hard links become copies.

    Nearly all files of a connector are hard links to earlier entries. In the compressed archive, each of them would be
    found by decompressing from the beginning.
    """
    plain = into / "archive.tar"
    with gzip.open(archive) as compressed, plain.open("wb") as written:
        shutil.copyfileobj(compressed, written, 1 << 20)
    with tarfile.open(plain) as packed:
        for entry in packed:
            name = entry.name.partition("/")[2]
            if not name.startswith(_PARTS) or any(word in name for word in _LEFT_OUT) or entry.isdir():
                continue
            content = packed.extractfile(entry)
            if content is None:
                continue
            target = into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as written:
                shutil.copyfileobj(content, written)
            target.chmod(entry.mode & 0o755)
    plain.unlink()


@dataclass(frozen=True)
class Trino:
    """A running Trino server."""

    url: str
    process: psutil.Process

    def run(
        self,
        person: Person,
        sql: str,
        *,
        extra: Mapping[str, str] | None = None,
        source: str = "",
        session: Mapping[str, str] | None = None,
        prepared: Mapping[str, str] | None = None,
        catalog: str = "ice",
    ) -> list[list[Any]]:
        """Run a statement as this user and return its rows. Trino acts for the user at the catalog by an exchanged
        token.

        `extra` are the credentials that the user sends, by default its own token: it proves the user, so that Trino
        gets keys of restricted tables. `source` names a session to reuse. `session` are session properties of the
        query, `prepared` are prepared statements by name, `catalog` is its default catalog. Raises Refused.
        """
        headers = {
            "X-Trino-User": person.id.removeprefix("oidc~"),
            # A new catalog session for each statement: Trino keys sessions by user and source.
            "X-Trino-Source": source or secrets.token_hex(8),
            "X-Trino-Catalog": catalog,
            # Otherwise Trino rejects `SET SESSION AUTHORIZATION` for this client before it checks the permission.
            "X-Trino-Client-Capabilities": "SESSION_AUTHORIZATION",
        }
        extra = {ACCESS_TOKEN: person.token} if extra is None else extra
        if extra:
            encoded = ",".join(f"{name}={quote(value, safe='')}" for name, value in extra.items())
            headers["X-Trino-Extra-Credential"] = encoded
        if session:
            headers["X-Trino-Session"] = ",".join(f"{name}={value}" for name, value in session.items())
        if prepared:
            encoded = ",".join(f"{name}={quote(statement, safe='')}" for name, statement in prepared.items())
            headers["X-Trino-Prepared-Statement"] = encoded
        rows: list[list[Any]] = []
        deadline = time.monotonic() + _QUERY_SECONDS
        with httpx.Client(trust_env=False, timeout=60, headers=headers) as http:
            answer = http.post(f"{self.url}/v1/statement", content=sql)
            while True:
                answer.raise_for_status()
                body: Mapping[str, Any] = answer.json()
                if "error" in body:
                    raise Refused(_reasons(body["error"]))
                rows += body.get("data") or []
                if "nextUri" not in body:
                    return rows
                if time.monotonic() > deadline:
                    raise Refused("the statement takes too long")
                answer = http.get(body["nextUri"])

    def peak_mib(self) -> int:
        """Return the peak memory of the process (`VmHWM`), in MiB."""
        family = [self.process, *self.process.children(recursive=True)]
        texts = [Path(f"/proc/{each.pid}/status").read_text() for each in family]
        return max(int(text.partition("VmHWM:")[2].split()[0]) for text in texts) // 1024


def _reasons(error: Mapping[str, Any]) -> str:
    """Return Trino's message with the messages of its causes, which contain the catalog's own error."""
    messages, cause = [str(error["message"])], error.get("failureInfo")
    while cause:
        messages.append(str(cause.get("message")))
        cause = cause.get("cause")
    return "; ".join(dict.fromkeys(messages))


@contextmanager
def trino_server(
    world: World, bridge: Bridge, folder: Path, service: Person, *, access: str = "", **properties: str
) -> Iterator[Trino]:
    """Run Trino on the world's warehouse with this bridge; `service` is its identity at the catalog.

    `access` replaces the file `access-control.properties` that the documentation demands. `properties` are further
    properties of the Iceberg catalog, with `__` for a dot and `_` for a hyphen. Without any, the caches
    and the statistics are off, as `docs/trino.md` demands.
    """
    properties = properties or {
        "iceberg__metadata_cache__enabled": "false",
        "iceberg__table_statistics_enabled": "false",
    }
    files = {
        "catalog/ice.properties": engines.catalog_properties(
            catalog=world.ready.catalog_uri,
            warehouse=world.ready.warehouse or "",
            token=service.token,
            endpoint=world.ready.s3.endpoint,
            region=world.ready.s3.region,
        )
        + "".join(f"{_property(name)}={value}\n" for name, value in properties.items()),
        "access-control.properties": access or engines.access_control_properties(bridge.url, KEY),
    }
    with launched(folder, files) as trino:
        yield trino


@contextmanager
def launched(folder: Path, files: Mapping[str, str], **variables: str) -> Iterator[Trino]:
    """Run Trino with these files of `etc/` and with these variables in its environment."""
    java, server = java_home(), installed()
    port = free_port()
    etc = folder / "etc"
    own = {
        "config.properties": _CONFIG.format(port=port),
        "node.properties": _NODE.format(data=folder / "data", plugins=server / "plugin"),
        "jvm.config": _JVM,
    }
    for name, text in {**own, **files}.items():
        (etc / name).parent.mkdir(parents=True, exist_ok=True)
        (etc / name).write_text(text)
    log = folder / "trino.log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [str(server / "bin" / "launcher"), "run", f"--etc-dir={etc}"],
            env={**variables, "PATH": f"{java / 'bin'}:{os.environ['PATH']}", "JAVA_HOME": str(java)},
            stdout=written,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + _START_SECONDS
            while not _started(url):
                assert process.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < deadline, "Trino did not answer before the deadline"
                time.sleep(1)
            yield Trino(url, psutil.Process(process.pid))
        finally:
            process.terminate()
            process.wait(timeout=60)


def _property(name: str) -> str:
    return name.replace("__", ".").replace("_", "-")


def _started(url: str) -> bool:
    try:
        answer = httpx.get(f"{url}/v1/info", trust_env=False, timeout=5)
        return answer.status_code == 200 and answer.json().get("starting") is False
    except httpx.TransportError:
        return False


def main() -> int:
    """Return 0 if all requirements of a run are present, else print the missing one and return 1."""
    try:
        java = java_home()
    except Missing as missing:
        print(missing)
        return 1
    if kept() is None:
        print(f"Trino {VERSION} is not in {_KEPT}: `make test-trino` fetches it once")
        return 1
    print(f"Trino {VERSION} on {java}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
