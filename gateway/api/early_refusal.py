# SPDX-License-Identifier: Apache-2.0
"""Refuse requests to an overloaded process before routing, authentication and logging, which cost more than a refusal.

Only requests of known callers are refused here: those whose token was accepted before. Being known never gives a
request access.
"""

from __future__ import annotations

from litestar import Litestar
from litestar.types import Scope

from gateway.access.nouns.authz_errors import Overloaded
from gateway.api.services import Services

_AUTHORIZATION = b"authorization"


class EarlyRefusal:
    """The check of each request against the load of its process. `app` has the services once it has started."""

    def __init__(self, app: Litestar) -> None:
        self._app = app

    def of(self, scope: Scope) -> Overloaded | None:
        """Return the error for a request that would wait too long; None for all others."""
        services: Services | None = self._app.state.get("services")
        if services is None or not services.shares.is_full:
            return None
        given = credential_of(scope)
        return None if given is None else services.shares.early_refusal(given)


def authorizations_of(scope: Scope) -> list[bytes]:
    """Return all values of the Authorization header."""
    return [value for name, value in scope["headers"] if name.lower() == _AUTHORIZATION]


def credential_of(scope: Scope) -> bytes | None:
    """Return the value of the only Authorization header; None if there is not exactly one."""
    given = authorizations_of(scope)
    return given[0] if len(given) == 1 else None
