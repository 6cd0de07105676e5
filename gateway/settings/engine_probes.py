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

    identity: Annotated[str, Meta(min_length=3, description="The engine's own user id, such as `oidc~trino`.")]
    url: Annotated[
        str,
        Meta(
            pattern="^https?://",
            description="Address of Trino's HTTP API, or of the service that reads a canary (`KIND=http`).",
        ),
    ]
    user: Annotated[
        str, Meta(min_length=3, description="Id of the test user that is restricted on canaries, such as `oidc~probe`.")
    ]
    control: Annotated[
        str,
        Meta(min_length=3, description="Id of a second test user, which reads all of a canary. It needs no grants."),
    ]
    kind: Annotated[
        Literal["trino", "http"],
        Meta(
            description="`trino`: Trino's protocol. `http`: a GET with the parameters `namespace`, `table` and `user` "
            "returns what the service shows this user."
        ),
    ] = "trino"
    catalog: Annotated[str, Meta(description="Trino's catalog for the warehouse.")] = "lakegate"
    warehouse: Annotated[
        UUID | None, Meta(description="Id of the warehouse that this entry is for. Without it: all warehouses.")
    ] = None
    user_token: Annotated[Secret | None, Meta(description="Token of the test user for the engine.")] = None
    control_token: Annotated[Secret | None, Meta(description="Token of the control user for the engine.")] = None


class EngineProbes(msgspec.Struct, frozen=True, kw_only=True):
    """Probes, in which an engine shows that it enforces restrictions."""

    required: Annotated[
        bool,
        Meta(
            description="True: an engine with `enforcer` is trusted in a warehouse only while its last probe there "
            "passed and is recent. Only the gateway's own read passes a probe. False: also without a probe. A failed "
            "probe ends the trust in both cases."
        ),
    ] = True
    valid_days: Annotated[
        float,
        Meta(gt=0, le=365, description="Time in days for which a passed probe counts. Probe engines more often."),
    ] = 7.0
    vouched: Annotated[
        tuple[str, ...],
        Meta(
            description="Ids of engines that the operator trusts without a probe, because they cannot be queried: "
            "batch jobs, for example. A failed probe ends this trust too."
        ),
    ] = ()
    engines: Mapping[str, ProbedEngine] = MappingProxyType({})
