# SPDX-License-Identifier: Apache-2.0
"""The gateway itself as a child: the same ``lakegate migrate`` and ``lakegate serve`` as in production."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from gateway.embedded.children import Child, Children, ChildSpec
from gateway.embedded.ports import LOOPBACK, Ports
from gateway.embedded.probe import until_answering

_MIGRATE_SECONDS = 120.0
_START_SECONDS = 60.0


class Gateway:
    """One gateway with its configuration in ``LAKEGATE__`` variables of its environment, and nowhere else."""

    def __init__(self, ports: Ports, variables: Mapping[str, str], temporary: Path) -> None:
        self.url = f"http://{LOOPBACK}:{ports.gateway}"
        self._port = ports.gateway
        checkout = Path(__file__).parents[2]
        self._environment = {"PYTHONPATH": str(checkout), "LC_ALL": "C.UTF-8", "TMPDIR": str(temporary), **variables}

    async def migrate(self, children: Children) -> None:
        """Bring database and relationship model up to date; PostgreSQL and OpenFGA must be up."""
        await children.run(self._spec("migrate", order=2), timeout=_MIGRATE_SECONDS)

    async def start(self, children: Children) -> Child:
        """Start serving; every other part must be up. Returns when its health check passes."""
        server = await children.start(self._spec("serve", order=2))
        await until_answering(server, self._port, "/health", timeout=_START_SECONDS)
        return server

    def _spec(self, verb: str, *, order: int) -> ChildSpec:
        name = "gateway" if verb == "serve" else f"gateway-{verb}"
        argv = [sys.executable, "-m", "gateway.cli", verb]
        return ChildSpec(name=name, argv=argv, env=self._environment, cwd=Path("/"), order=order, grace=8.0)
