# SPDX-License-Identifier: Apache-2.0
"""Settings for trusted engines, which read views with the rights of their owners, for logins, and for engine probes.

Limits on reads through views are here too. A probe tests whether an engine enforces restrictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from gateway.settings.env import Secret


class EngineIdentities(msgspec.Struct, frozen=True, kw_only=True):
    """The identities of an engine at one provider."""

    subjects: tuple[str, ...] = ()
    """Subjects at this provider that identify the engine itself."""


class TrustedEngine(msgspec.Struct, frozen=True, kw_only=True):
    """An engine that reads views for its users with the rights of the views' owners."""

    type: Literal["trino"] = "trino"
    """Type of the trusted engine."""
    owner_property: Annotated[str, Meta(min_length=1)] = "trino.run-as-owner"
    """View property in which the engine stores the owner. Only the engine can change it."""
    identities: Mapping[str, EngineIdentities] = MappingProxyType({})


#: Variables of earlier versions, with the text of the startup error for each.
REMOVED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "LAKEGATE__TRUSTED_ENGINES__<ID>__IDENTITIES__<ID>__AUDIENCES": (
            "the audience of a user's token does not identify an engine, because the user can send the token from "
            "any client. Remove the variable, set SUBJECTS of the same engine to the engine's own subject, and "
            "configure the engine to exchange its users' tokens (docs/token-exchange.md)"
        ),
        **dict.fromkeys(
            (
                "LAKEGATE__AUDIT__BUFFER_SIZE",
                "LAKEGATE__AUDIT__FLUSH_INTERVAL",
                "LAKEGATE__CANARY__TIMEOUT",
                "LAKEGATE__EVENTS__POLL_INTERVAL",
                "LAKEGATE__IDEMPOTENCY__GRACE_PERIOD",
                "LAKEGATE__LIMITS__PROPERTIES",
                "LAKEGATE__LIMITS__STRUCTURES",
                "LAKEGATE__MEMORY__ALLOWS",
                "LAKEGATE__MEMORY__POLICY_ANSWERS",
                "LAKEGATE__MEMORY__TOKENS",
            ),
            "the value is fixed, and equals the former default. Remove the variable",
        ),
    }
)


def owners_of_several_providers(engines: Mapping[str, TrustedEngine]) -> list[str]:
    """Return one line for each owner property that is trusted for identities of several providers.

    The property contains a user name without its provider. The name is resolved at the provider of the user that reads
    the view. There it may belong to another person than the owner.
    """
    providers: dict[str, set[str]] = {}
    for engine in engines.values():
        providers.setdefault(engine.owner_property.casefold(), set()).update(engine.identities)
    return [
        f"the view property {name} is trusted for engines of several providers ({' and '.join(sorted(some))}), but "
        "the same owner name can mean a different user at each; give the engines of each provider their own "
        "OWNER_PROPERTY"
        for name, some in sorted(providers.items())
        if len(some) > 1
    ]


class Ui(msgspec.Struct, frozen=True, kw_only=True):
    """Logins: in a browser on the pages `/ui` and `/swagger-ui`, and by `lakegate login`."""

    enabled: bool = True
    """Serve the page `/ui`, where users log in and see their own identity, roles, and visible projects and warehouses.
    """
    openid_provider_uri: str | None = None
    """Provider of these logins: one of the configured issuers. Default: `OPENID_PROVIDER_URI`."""
    openid_client_id: str | None = None
    """Public client (no secret) at the provider for `/ui`, `/swagger-ui/` and `lakegate login`."""
    openid_scope: str = "openid profile email"
    """Scopes that these logins request."""


class ReferencedBy(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on reading through views."""

    max_nesting_depth: Annotated[int, Meta(ge=1, le=100)] = 10
    """Maximum number of views in a chain through which a trusted engine reads an object. Longer chains are refused."""


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
