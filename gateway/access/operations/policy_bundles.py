# SPDX-License-Identifier: Apache-2.0
"""The operation that serves policies to OPA. An addition to the reference system's API.

Policies and deny lists can be confidential, so it demands a right on the server: the privilege `policy_reader`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import ReadOperation
from gateway.access.refs import ServerRef
from gateway.access.relations import Can
from gateway.access.request import InPath


@dataclass(frozen=True)
class GetPolicyBundle(ReadOperation):
    """Return the bundle of policies for the OPA of the gateway (`gateway`) or for the OPA of Trino (`trino`)."""

    endpoint: ClassVar[str] = "GET /management/v1/policy-bundle/{bundle}"
    bundle: InPath[str]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_POLICIES, ServerRef()),)

    def facts(self) -> Facts:
        return {"bundle": self.bundle}
