# SPDX-License-Identifier: Apache-2.0
"""The services that handlers use: the door, which decides operations, authentication, use cases and limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from litestar.types import Scope

from gateway.access.actor import Actor
from gateway.access.authzen_mapping import AuthZenMapping
from gateway.access.door.door import Door
from gateway.access.idempotency import IdempotencyStore
from gateway.access.nouns.warehouse_names import WarehouseNames
from gateway.access.shares.shares import Shares
from gateway.audit.refused_logins import RefusedLogins
from gateway.iceberg.limits import Limits
from gateway.identity.sign_in import SignIn
from gateway.identity.tokens import VerifiedToken
from gateway.telemetry.health import HealthMonitor


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services that handlers use. `gateway.assembly.use_cases` creates one instance in each process."""

    door: Door
    use_case: Callable[[type[Any]], Any]
    """Returns the only instance of a class with use cases."""
    shares: Shares
    """The admission control: limits the part of this process that one principal uses."""
    authenticate: Callable[[list[bytes], Scope], Awaitable[Actor]]
    """Returns the caller, by the values of the Authorization header and the proofs in the request."""
    authenticate_provisioner: Callable[[list[bytes], Scope], Awaitable[Actor]]
    """As `authenticate`, for SCIM: it accepts provisioning tokens too."""
    verify: Callable[[str], Awaitable[VerifiedToken]]
    """Verifies a token of an identity provider or of the gateway itself. Raises 401 and 503.

    It is for tokens in bodies. A token that is bound to a key of its client is refused there.
    """
    verify_caller: Callable[[list[bytes], Scope], Awaitable[VerifiedToken]]
    """As `verify`, for the values of the Authorization header: the request must prove the key of a bound token."""
    actor_of: Callable[[VerifiedToken], Actor]
    health: HealthMonitor
    warehouse_names: WarehouseNames
    page_size_max: int
    max_view_depth: int
    """The largest number of views in `referenced-by`."""
    default_project_id: str | None
    base_uri: str | None
    """The address of the gateway for its users; None if the settings have none."""
    limits: Limits
    known_callers: set[str]
    """Cached ids of callers with a user record; bounded by `gateway.features.principals.routes.register_caller`."""
    authzen: AuthZenMapping = AuthZenMapping({}, {})
    """The names of policy enforcement points (AuthZEN) for types and actions."""
    swagger_ui: bool = True
    """True if Swagger UI and the OpenAPI documents are served."""
    ui: bool = True
    """True if the page `/ui` is served."""
    sign_in: Callable[[], Awaitable[SignIn | None]] | None = None
    """Returns the endpoints for signing in with a browser; None if sign-in is not configured."""
    idempotency: IdempotencyStore | None = None
    """The store of idempotency keys; None if keys are disabled."""
    refused_logins: RefusedLogins | None = None
    """Counts refused logins for the audit log; None if they are not recorded."""
