# SPDX-License-Identifier: Apache-2.0
"""Vend a credential for one table's prefix, when its location and the authorization are known.

The caller has already made the decision. The location is checked again against the *current* base location of the
warehouse: if that was narrowed, a table outside of it gets no credentials. Policy and lifetime are determined before
the call of the store.

The session has a name, by which the store's logs show the principal of a vended credential. A name has a readable part
and a digest. Principals with the same readable part have different digests. An auditor can compute the name of a known
principal and search for it.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from gateway.iceberg.errors import CatalogError
from gateway.scope.credential import AccessLevel, Credential, TemporaryCredential
from gateway.scope.location import Location
from gateway.scope.profile import NoVending, StorageProfile
from gateway.spans import span
from gateway.storage.provider import StorageClients
from gateway.vending.cache import CredentialCache, VendKey, uncached

__all__ = [
    "FLOOR_SECONDS",
    "NoCredentials",
    "SessionIdentity",
    "Vended",
    "Vendor",
    "session_name",
]


MAX_CHARACTERS: Final = 64  # the strictest rule of all stores: 2 to 64 of [\w+=,.@-]
_DIGEST_CHARACTERS: Final = 16
_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9_+=,.@-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionIdentity:
    """The principal for which a credential is vended.

    `principal` is the full id (`<idp>~<subject>`), `role` the id of the assumed role, None if absent. `readable` may
    be a user name. It is part of the name but not of the digest, because users can choose and change it. `context` is a
    digest of everything else on which the response depends (groups, obligations); only the cache uses it.
    """

    principal: str
    role: str | None = None
    readable: str | None = None
    context: str = ""


def session_name(identity: SessionIdentity) -> str:
    """Return the session name `<readable>-<16 hexadecimal characters>`. It has at most 64 characters, which every store
    accepts.
    """
    readable = identity.readable or identity.principal.partition("~")[2] or identity.principal
    cleaned = _NOT_ALLOWED.sub("-", readable).strip("-")[: MAX_CHARACTERS - _DIGEST_CHARACTERS - 1] or "x"
    return f"{cleaned}-{principal_digest(identity.principal, identity.role)}"


def principal_digest(principal: str, role: str | None) -> str:
    """Return 16 hexadecimal characters of SHA-256 over both ids, each prefixed by its length."""
    framed = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in (principal, role or ""))
    return hashlib.sha256(framed).hexdigest()[:_DIGEST_CHARACTERS]


class BelowCredentialFloor(CatalogError, code=403):
    """The allowed lifetime is shorter than the shortest session of the store."""


class LocationOutsideWarehouse(CatalogError, code=403):
    """The table's location is not below the current base location of the warehouse."""


FLOOR_SECONDS: Final = 900
"""The minimum lifetime of a session that every store supports, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vended:
    """A credential and the details for the audit record and the register. Only `temporary` contains secrets.

    A cached credential keeps its `id`. `policy_digest` is the SHA-256 of the policy that limits it, and `lifetime` the
    number of seconds that were requested from the store.

    `prefix` ends with a slash: clients match it as a plain string prefix.
    """

    id: UUID
    temporary: TemporaryCredential
    policy_digest: str
    lifetime: int
    prefix: str
    level: AccessLevel
    expires_at: datetime
    session_name: str
    role: str | None


@dataclass(frozen=True, slots=True)
class _Made:
    """A credential in the cache, with the id and the policy digest that it got at its creation."""

    id: UUID
    temporary: TemporaryCredential
    policy_digest: str

    @property
    def expires_at(self) -> datetime:
        return self.temporary.expires_at


@dataclass(frozen=True, slots=True)
class NoCredentials:
    """The warehouse vends no credentials. `reason` is for the audit record and the operator."""

    reason: str


class Vendor:
    """Vends credentials by sessions of the stores. `cache` may return a credential that was created earlier."""

    def __init__(self, clients: StorageClients, *, cache: CredentialCache = uncached) -> None:
        self._clients = clients
        self._cache = cache

    async def vend(
        self,
        *,
        profile: StorageProfile,
        profile_version: str,
        credential: Credential | None,
        location: Location,
        level: AccessLevel,
        seconds: int,
        session: SessionIdentity,
        just_before: Callable[[], Awaitable[None]] | None = None,
    ) -> Vended | NoCredentials:
        """Return a credential for all keys below `location`, with the rights of `level`, for at most `seconds`.

        `seconds` is the minimum of the limits of policies and grants; the profile's limit applies too. Raises
        `LocationOutsideWarehouse`, `BelowCredentialFloor`, `PolicyTooLarge` and `InvalidLocation` before the call of
        the store, and `ShortTermCredentialError` from it. `just_before` is awaited before a credential is made, and by
        requests that waited for it; its errors are raised.
        """
        downscoping = profile.downscoping
        if isinstance(downscoping, NoVending):
            return NoCredentials(downscoping.reason)
        if credential is None:
            return NoCredentials("the warehouse has no storage credential")
        if not profile.base_location().contains(location, strict=True):
            raise LocationOutsideWarehouse(
                "The table's location is not below the base location of its warehouse, so no credentials are "
                "issued. Create or register the table below the base location."
            )
        if level not in downscoping.levels:
            # A credential of a broader level is never issued instead.
            return NoCredentials(f"the storage cannot issue a credential for {level} that allows nothing more")
        life = min(seconds, downscoping.seconds)
        if life < downscoping.shortest_seconds:
            raise BelowCredentialFloor(
                f"A credential for this caller may live at most {max(life, 0)} seconds, but the shortest lifetime "
                f"that the store supports is {downscoping.shortest_seconds} seconds"
            )
        sessions = self._clients.of(profile).sessions
        if sessions is None:
            raise LookupError(
                f"the provider {profile.provider} cannot issue temporary credentials, although its profile says so"
            )
        name = session_name(session)
        key = VendKey(
            principal=session.principal,
            role=session.role,
            context=session.context,
            session_name=name,
            location=location,
            level=level,
            profile_version=profile_version,
            credential_digest=credential.digest,
            seconds=life,
        )

        async def make() -> _Made:
            # The cache key contains the profile, the location and the level. They determine the policy, so a cached
            # credential has this policy.
            policy = downscoping.policy(location, level)
            with span("store.session", {"lakegate.store": profile.provider, "lakegate.seconds": life}):
                temporary = await sessions.make(
                    profile=profile, credential=credential, policy=policy, session_name=name, seconds=life
                )
            return _Made(uuid7(), temporary, hashlib.sha256(policy.encode()).hexdigest())

        made = await self._cache(key, make, just_before)
        return Vended(
            id=made.id,
            temporary=made.temporary,
            policy_digest=made.policy_digest,
            lifetime=life,
            prefix=location.prefix_text,
            level=level,
            expires_at=made.expires_at,
            session_name=name,
            role=downscoping.role,
        )

    async def narrowed(
        self,
        *,
        profile: StorageProfile,
        profile_version: str,
        credential: Credential,
        location: Location,
        level: AccessLevel,
        seconds: int,
        purpose: str,
    ) -> Credential:
        """Return a credential for work of the gateway itself, limited to one location (LG-LOC-24 in `docs/threats.md`).

        If the store has no sessions, return the warehouse's own credential. `purpose` is part of the session's name.
        Raises the errors of `vend`.
        """
        vended = await self.vend(
            profile=profile,
            profile_version=profile_version,
            credential=credential,
            location=location,
            level=level,
            seconds=seconds,
            session=SessionIdentity(principal=f"system~{purpose}"),
        )
        return vended.temporary if isinstance(vended, Vended) else credential
