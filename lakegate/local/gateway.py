# SPDX-License-Identifier: Apache-2.0
"""The gateway itself as a child: the same ``lakegate migrate`` and ``lakegate serve`` as in production."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from gateway.settings import hadoop_environment
from lakegate.local.children import Child, Children, ChildSpec
from lakegate.local.ports import LOOPBACK, Ports
from lakegate.local.probe import until_answering

_MIGRATE_SECONDS = 120.0
_START_SECONDS = 60.0


class Gateway:
    """One gateway. It is configured by its ``variables`` (``LAKEGATE__…``), and Hadoop's for HDFS."""

    def __init__(self, ports: Ports, variables: Mapping[str, str], temporary: Path) -> None:
        self.url = f"http://{LOOPBACK}:{ports.gateway}"
        self._port = ports.gateway
        root = Path(__file__).parents[2]
        own = {"PYTHONPATH": str(root), "LC_ALL": "C.UTF-8", "TMPDIR": str(temporary)}
        self.variables = variables
        self._environment = {**hadoop_environment(), **own, **variables}

    async def migrate(self, children: Children) -> None:
        """Upgrade the database and the relationship model. PostgreSQL and OpenFGA must be running."""
        await children.run(self._spec("migrate", order=2), timeout=_MIGRATE_SECONDS)

    async def start(self, children: Children) -> Child:
        """Start the gateway; return when its health check passes. Every other part must be running."""
        server = await children.start(self._spec("serve", order=2))
        await until_answering(server, self._port, "/health", timeout=_START_SECONDS)
        return server

    def _spec(self, verb: str, *, order: int) -> ChildSpec:
        name = "gateway" if verb == "serve" else f"gateway-{verb}"
        argv = [sys.executable, "-m", "gateway.cli", verb]
        return ChildSpec(name=name, argv=argv, env=self._environment, cwd=Path("/"), order=order, grace=8.0)
