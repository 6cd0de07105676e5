# SPDX-License-Identifier: Apache-2.0
"""OPA with the shipped policies. It rejects requests without a token.

``policies/system/authz.rego`` compares the bearer token with two values of OPA's own environment: the gateway's, which
may only query decisions, and the operator's, which may change policy data.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from uuid_utils.compat import uuid7

from lakegate.local.children import GO_RUNTIME, Child, Children, ChildSpec, until_answering
from lakegate.local.errors import StackError, ToolMissing
from lakegate.local.policy_checks import check_guardrails
from lakegate.local.ports import LOOPBACK
from lakegate.local.secrets import Secrets

_START_SECONDS = 20.0


class Opa:
    """One OPA server."""

    def __init__(self, binary: Path, policies: Path, port: int, secrets: Secrets) -> None:
        self._binary = binary
        self._policies = policies
        self._port = port
        self._secrets = secrets
        self.url = f"http://{LOOPBACK}:{port}"

    async def start(self, children: Children) -> Child:
        """Start OPA and return when it answers. It answers only after it has compiled every policy.

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
                    # Tests and schemas are in the same folders, but are not policies.
                    "--ignore=*_test.rego",
                    "--ignore=schemas",
                    ".",
                ],
                env={
                    **GO_RUNTIME,
                    "LAKEGATE_OPA_GATEWAY_TOKEN": self._secrets.opa_gateway,
                    "LAKEGATE_OPA_OPERATOR_TOKEN": self._secrets.opa_operator,
                    # The rules can differ at each start.
                    "LAKEGATE_OPA_REVISION": str(uuid7()),
                },
                cwd=self._policies,
            )
        )
        await until_answering(server, self._port, "/health", timeout=_START_SECONDS, token=self._secrets.opa_gateway)
        return server
