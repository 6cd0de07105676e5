# SPDX-License-Identifier: Apache-2.0
"""Where vended credentials would be kept. The key is what matters: all that could make two answers differ is in it.

Nothing is kept yet. Leaving the actor out of the key would share one credential between principals, whose uses the
store's logs could not tell apart and whose revocations would not reach each other.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gateway.scope.credential import TemporaryCredential
from gateway.scope.location import Location
from gateway.scope.session_policy import AccessLevel

__all__ = ["CredentialCache", "VendKey", "uncached"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VendKey:
    """Two requests may share a credential only when all of these are equal."""

    principal: str
    role: str | None
    context: str
    session_name: str
    location: Location
    level: AccessLevel
    profile_version: str
    credential_digest: str
    seconds: int


CredentialCache = Callable[[VendKey, Callable[[], Awaitable[TemporaryCredential]]], Awaitable[TemporaryCredential]]


async def uncached(key: VendKey, make: Callable[[], Awaitable[TemporaryCredential]]) -> TemporaryCredential:
    """Make a new credential for every request."""
    return await make()
