# SPDX-License-Identifier: Apache-2.0
"""Run OPA with the policies of the package, and OpenFGA on PostgreSQL, as children of the stack.

``policies/system/authz.rego`` compares the bearer token with two values of OPA's own environment: the gateway's, which
may only query decisions, and the operator's, which may change policy data.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
from uuid_utils.compat import uuid7

from lakegate.local import postgres
from lakegate.local.children import GO_RUNTIME, Child, Children, ChildSpec, until_answering
from lakegate.local.errors import StackError, ToolMissing
from lakegate.local.policy_checks import check_guardrails
from lakegate.local.ports import LOOPBACK, Ports, without_tls
from lakegate.local.ready import Secrets

_OPA_SECONDS = 20.0


class Opa:
    """One OPA server."""

    def __init__(self, binary: Path, policies: Path, port: int, secrets: Secrets) -> None:
        self._binary = binary
        self._policies = policies
        self._port = port
        self._secrets = secrets
        self.url = f"http://{LOOPBACK}:{port}"

    async def start(self, children: Children) -> Child:
        """Start OPA, and return when it responds, which it does after it has compiled all policies.

        Raises:
            ToolMissing: the authorization policy for OPA itself is missing; OPA would refuse every request.
            StackError: a guardrail is invalid; main.rego would deny each request for which it is evaluated.
        """
        if not (self._policies / "system" / "authz.rego").is_file():
            raise ToolMissing(
                f"no OPA policies found in {self._policies}; install Lakegate again, or use a whole checkout"
            )
        if faults := await asyncio.to_thread(check_guardrails, self._binary, self._policies):
            raise StackError("\n".join(["invalid guardrails in the policies:", *faults]))
        server = await children.start(
            ChildSpec(
                name="opa",
                argv=[
                    str(self._binary),
                    "run",
                    "--server",
                    f"--addr={LOOPBACK}:{self._port}",
                    "--authentication=token",
                    "--authorization=basic",
                    "--skip-version-check",
                    "--log-level=error",
                    "--shutdown-grace-period=2",
                    # The folders of the policies also contain tests and schemas, which are not policies.
                    "--ignore=*_test.rego",
                    "--ignore=schemas",
                    ".",
                ],
                env={
                    **GO_RUNTIME,
                    "LAKEGATE_OPA_GATEWAY_TOKEN": self._secrets.opa_gateway,
                    "LAKEGATE_OPA_OPERATOR_TOKEN": self._secrets.opa_operator,
                    # The rules may have changed since the last start, so each start has a new revision.
                    "LAKEGATE_OPA_REVISION": str(uuid7()),
                },
                cwd=self._policies,
            )
        )
        await until_answering(server, self._port, "/health", timeout=_OPA_SECONDS, token=self._secrets.opa_gateway)
        return server


STORE_NAME = "lakegate"

_MIGRATE_SECONDS = 60.0
_OPENFGA_SECONDS = 30.0
_CALL_SECONDS = 5.0


class OpenFga:
    """One OpenFGA server. It stores its tuples in a PostgreSQL database of its own."""

    def __init__(self, binary: Path, ports: Ports, secrets: Secrets) -> None:
        self._binary = binary
        self._ports = ports
        self._secrets = secrets
        self.url = f"http://{LOOPBACK}:{ports.openfga_http}"

    async def start(self, children: Children) -> Child:
        """Migrate OpenFGA's tables, start the server, and return when it responds. PostgreSQL must be running."""
        environment = {
            "OPENFGA_DATASTORE_ENGINE": "postgres",
            "OPENFGA_DATASTORE_URI": self._database_url(),
            "OPENFGA_LOG_LEVEL": "warn",
            "OPENFGA_LOG_FORMAT": "json",
        }
        migrate = ChildSpec(name="openfga-migrate", argv=[str(self._binary), "migrate"], env=environment)
        await children.run(migrate, timeout=_MIGRATE_SECONDS)
        serving = environment | {
            "OPENFGA_HTTP_ADDR": f"{LOOPBACK}:{self._ports.openfga_http}",
            "OPENFGA_GRPC_ADDR": f"{LOOPBACK}:{self._ports.openfga_grpc}",
            "OPENFGA_AUTHN_METHOD": "preshared",
            "OPENFGA_AUTHN_PRESHARED_KEYS": self._secrets.openfga,
            "OPENFGA_PLAYGROUND_ENABLED": "false",
            "OPENFGA_METRICS_ENABLED": "false",
            "OPENFGA_PROFILER_ENABLED": "false",
            # Set explicitly, because the gateway relies on this timeout: afterwards, a write of unknown outcome is
            # final.
            "OPENFGA_REQUEST_TIMEOUT": "3s",
            "OPENFGA_SHUTDOWN_TIMEOUT": "2s",
            **GO_RUNTIME,
        }
        server = await children.start(ChildSpec(name="openfga", argv=[str(self._binary), "run"], env=serving))
        await until_answering(server, self._ports.openfga_http, "/healthz", timeout=_OPENFGA_SECONDS)
        return server

    def _database_url(self) -> str:
        plain = postgres.url(postgres.OPENFGA_ROLE, self._secrets.postgres_openfga, self._ports.postgres)
        return f"{plain}?sslmode=disable"

    async def store_and_model(self) -> tuple[str, str]:
        """Return (id of the gateway's store, id of its newest model), which ``lakegate migrate`` created.

        Raises:
            StackError: the store is missing or has no model.
        """
        headers = {"Authorization": f"Bearer {self._secrets.openfga}"}
        async with httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=_CALL_SECONDS, trust_env=False, verify=without_tls()
        ) as client:
            stores = (await client.get("/stores", params={"name": STORE_NAME})).raise_for_status().json()["stores"]
            if not stores:
                raise StackError(f"OpenFGA has no store named {STORE_NAME!r}, although `lakegate migrate` has run")
            store = str(stores[0]["id"])
            answer = await client.get(f"/stores/{store}/authorization-models", params={"page_size": 1})
            models = answer.raise_for_status().json()["authorization_models"]
        if not models:
            raise StackError(
                f"the OpenFGA store {store} has no authorization model, although `lakegate migrate` has run"
            )
        return store, str(models[0]["id"])
