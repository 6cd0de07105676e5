# SPDX-License-Identifier: Apache-2.0
"""Run the gateway as a child, by ``lakegate migrate`` and ``lakegate serve`` as in production.

Its settings are those that the stack chooses, and the settings in the user's environment that fit the stack.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.settings import PREFIX, hadoop_environment
from lakegate.local import decision_engines, engines, postgres
from lakegate.local.children import Child, Children, ChildSpec, until_answering
from lakegate.local.identity_provider import AUDIENCE, PUBLIC_CLIENT
from lakegate.local.ports import LOOPBACK, Ports
from lakegate.local.ready import Secrets, write_private

_MIGRATE_SECONDS = 120.0
_START_SECONDS = 60.0


class Gateway:
    """One gateway. Its configuration is in ``variables`` (``LAKEGATE__…``, and Hadoop's variables for HDFS)."""

    def __init__(self, ports: Ports, variables: Mapping[str, str], temporary: Path) -> None:
        self.url = f"http://{LOOPBACK}:{ports.gateway}"
        self._port = ports.gateway
        root = Path(__file__).parents[2]
        own = {"PYTHONPATH": str(root), "LC_ALL": "C.UTF-8", "TMPDIR": str(temporary)}
        self.variables = variables
        self._environment = {**hadoop_environment(), **own, **variables}

    async def migrate(self, children: Children) -> None:
        """Upgrade the database and the OpenFGA model. PostgreSQL and OpenFGA must be running."""
        await children.run(self._spec("migrate", order=2), timeout=_MIGRATE_SECONDS)

    async def start(self, children: Children) -> Child:
        """Start the gateway, and return when its health check passes. All other parts must be running."""
        server = await children.start(self._spec("serve", order=2))
        await until_answering(server, self._port, "/health", timeout=_START_SECONDS)
        return server

    def _spec(self, verb: str, *, order: int) -> ChildSpec:
        name = "gateway" if verb == "serve" else f"gateway-{verb}"
        argv = [sys.executable, "-m", "gateway.cli", verb]
        return ChildSpec(name=name, argv=argv, env=self._environment, cwd=Path("/"), order=order, grace=8.0)


ENVIRONMENT_FILE = "gateway.env"
"""The file in the data directory with the variables of the gateway, for commands of operators."""

#: The settings of the stack that a user may replace.
REPLACEABLE = frozenset({"STORAGE_ENDPOINT_NETWORKS", "SIGN_WITH_WAREHOUSE_KEYS", "ENGINE_PROBES__REQUIRED"})

#: The settings that the stack sets itself, or that name another database.
NOT_USED = frozenset(
    {
        "BASE_URI",
        "BIND_IP",
        "LISTEN_PORT",
        "METRICS__PORT",
        "OPA__TOKEN",
        "OPA__URL",
        "OPENFGA__API_KEY",
        "OPENFGA__ENDPOINT",
        "OPENFGA__STORE_NAME",
        "OPENID_AUDIENCE",
        "OPENID_PROVIDER_URI",
        "PG_DATABASE",
        "PG_DATABASE_URL_READ",
        "PG_DATABASE_URL_WRITE",
        "PG_ENCRYPTION_KEY",
        "PG_HOST_R",
        "PG_HOST_W",
        "PG_PASSWORD",
        "PG_PORT",
        "PG_SSL_MODE",
        "PG_SSL_ROOT_CERT",
        "PG_USER",
        "POLICY_DIRECTORY",
        "UI__OPENID_CLIENT_ID",
    }
)
_OF_THE_COMMAND = ("EMBEDDED__", "POLICY_COMPLETE", "SETTINGS_DIRECTORY")


def stack_settings(chosen: Ports, secrets: Secrets) -> dict[str, str]:
    """Return the settings by which the gateway uses the other parts of the stack. Their names have no prefix."""
    return {
        "BIND_IP": LOOPBACK,
        "LISTEN_PORT": str(chosen.gateway),
        "METRICS__PORT": str(chosen.metrics),
        "BASE_URI": f"http://{LOOPBACK}:{chosen.gateway}",
        "PG_DATABASE_URL_WRITE": postgres.url(postgres.GATEWAY_ROLE, secrets.postgres_gateway, chosen.postgres),
        "PG_ENCRYPTION_KEY": secrets.encryption_key,
        "OPENID_PROVIDER_URI": f"http://{LOOPBACK}:{chosen.identity_provider}",
        "OPENID_AUDIENCE": AUDIENCE,
        "UI__OPENID_CLIENT_ID": PUBLIC_CLIENT,
        "OPENFGA__ENDPOINT": f"http://{LOOPBACK}:{chosen.openfga_http}",
        "OPENFGA__STORE_NAME": decision_engines.STORE_NAME,
        "OPENFGA__API_KEY": secrets.openfga,
        "OPA__URL": f"http://{LOOPBACK}:{chosen.opa}",
        "OPA__TOKEN": secrets.opa_gateway,
        # The embedded object store listens on loopback.
        "STORAGE_ENDPOINT_NETWORKS": "127.0.0.0/8,::1/128",
        # The tests verify remote signing with this store.
        "SIGN_WITH_WAREHOUSE_KEYS": "true",
        # This package configures the embedded Trino. A required probe would need Trino to run before the first query.
        "ENGINE_PROBES__REQUIRED": "false",
    }


def gateway_variables(
    chosen: Ports, secrets: Secrets, given: Mapping[str, str], origins: Sequence[str] = ()
) -> dict[str, str]:
    """Return the environment variables of the gateway. Settings in ``given``, whose names have no prefix, take
    precedence.

    ``origins``: those of pages that sign users in and query the gateway, in addition to the given ones.
    """
    allowed = ",".join(filter(None, (given.get("ALLOW_ORIGIN"), *origins)))
    combined = {**stack_settings(chosen, secrets), **given, **({"ALLOW_ORIGIN": allowed} if allowed else {})}
    return {PREFIX + name: value for name, value in combined.items()}


def passed_on(given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return (the user's settings for the gateway, names of the user's variables that the stack does not use).

    ``given``: the user's settings, without prefix. The settings of the command itself are in neither part.
    """
    of_gateway = {name: value for name, value in given.items() if not name.startswith(_OF_THE_COMMAND)}
    used = {name: value for name, value in of_gateway.items() if name not in NOT_USED}
    return used, sorted(PREFIX + name for name in of_gateway.keys() & NOT_USED)


def write_environment(data: Path, variables: Mapping[str, str]) -> Path:
    """Write the variables to a file for a shell in the data directory. Only its owner can read it. Return the file."""
    file = data / ENVIRONMENT_FILE
    write_private(file, engines.environment_file(variables).encode())
    return file
