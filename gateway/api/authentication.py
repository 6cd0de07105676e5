# SPDX-License-Identifier: Apache-2.0
"""Authenticate requests: verify the token in the Authorization header.

If the token is bound to a key, also verify the proof that the client has the key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from litestar.types import Scope

from gateway.access.actor import Actor
from gateway.identity.bearer import bearer_token
from gateway.identity.possession import PossessionRules, PresentedRequest
from gateway.identity.tokens import VerifiedToken


@dataclass(frozen=True, slots=True, kw_only=True)
class Authentication:
    """Verifies tokens and returns their actors.

    `verify_any` verifies tokens without their proofs of possession. `possession` checks these proofs; None if they are
    not supported. `provisioner_of` returns the actor of a provisioning token (SCIM), and None for other tokens.
    """

    verify_any: Callable[[str], Awaitable[VerifiedToken]]
    possession: PossessionRules | None
    actor_of: Callable[[VerifiedToken], Actor]
    provisioner_of: Callable[[str], Awaitable[Actor | None]]

    async def authenticate(self, header_values: list[bytes], scope: Scope) -> Actor:
        """Return the caller of a request. Raises errors of status 401 and 503."""
        return self.actor_of(await self.verify_caller(header_values, scope))

    async def authenticate_provisioner(self, header_values: list[bytes], scope: Scope) -> Actor:
        """Return the caller of a SCIM operation, which also accepts provisioning tokens. Raises errors of status 401
        and 503.
        """
        provisioner = await self.provisioner_of(bearer_token(header_values))
        return await self.authenticate(header_values, scope) if provisioner is None else provisioner

    async def verify(self, token: str) -> VerifiedToken:
        """Verify a token that is in a request body. Raises errors of status 401 and 503; 401 also if the token is bound
        to a key of its client.
        """
        verified = await self.verify_any(token)
        if self.possession is not None:
            self.possession.require(verified, None)
        return verified

    async def verify_caller(self, header_values: list[bytes], scope: Scope) -> VerifiedToken:
        """Verify the token in the Authorization header, and its proof of possession in the request. Raises errors of
        status 401 and 503.
        """
        verified = await self.verify_any(bearer_token(header_values))
        if self.possession is not None:
            self.possession.require(verified, _presented(scope))
        return verified


def _presented(scope: Scope) -> PresentedRequest:
    client = scope["client"]
    return PresentedRequest(headers=scope["headers"], peer=None if client is None else client[0])
