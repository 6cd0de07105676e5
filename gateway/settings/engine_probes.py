# SPDX-License-Identifier: Apache-2.0
"""Settings of the probes of engines (``LAKEGATE__ENGINE_PROBES__…``)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from gateway.settings.env import Secret


class ProbedEngine(msgspec.Struct, frozen=True, kw_only=True):
    """An engine through which the gateway reads canaries. Only the operator can state its address."""

    identity: Annotated[str, Meta(min_length=3)]
    """The engine's own user id, such as `oidc~trino`."""
    url: Annotated[str, Meta(pattern="^https?://")]
    """Address of Trino's HTTP API, or of the service that reads a canary (`KIND=http`)."""
    user: Annotated[str, Meta(min_length=3)]
    """Id of the test user that is restricted on canaries, such as `oidc~probe`."""
    control: Annotated[str, Meta(min_length=3)]
    """Id of a second test user, which reads all of a canary. It needs no grants."""
    kind: Literal["trino", "http"] = "trino"
    """`trino`: Trino's protocol. `http`: a GET with the parameters `namespace`, `table` and `user` returns what the
    service shows this user.
    """
    catalog: str = "lakegate"
    """Trino's catalog for the warehouse."""
    warehouse: UUID | None = None
    """Id of the warehouse that this entry is for. Without it: all warehouses."""
    user_token: Secret | None = None
    """Token of the test user for the engine."""
    control_token: Secret | None = None
    """Token of the control user for the engine."""


class EngineProbes(msgspec.Struct, frozen=True, kw_only=True):
    """Probes, in which an engine shows that it enforces restrictions."""

    required: bool = True
    """True: an engine with `enforcer` is trusted in a warehouse only while its last probe there passed and is recent.
    Only the gateway's own read passes a probe. False: also without a probe. A failed probe ends the trust in both
    cases.
    """
    valid_days: Annotated[float, Meta(gt=0, le=365)] = 7.0
    """Time in days for which a passed probe counts. Probe engines more often."""
    vouched: tuple[str, ...] = ()
    """Ids of engines that the operator trusts without a probe, because they cannot be queried: batch jobs, for example.
    A failed probe ends this trust too.
    """
    engines: Mapping[str, ProbedEngine] = MappingProxyType({})
