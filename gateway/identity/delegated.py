# SPDX-License-Identifier: Apache-2.0
"""Tokens that the gateway signs itself: an engine acting for a user (RFC 8693), good nowhere else.

They are told from a provider's tokens by their type, before any key is looked at (RFC 8725 section 3.11), and are for
this server alone: issuer and audience are its own name. joserfc signs and verifies them, as it verifies those of
providers; Authlib, whose author made joserfc out of Authlib's own JOSE part, has no grant for token exchange, and what
it has for OAuth servers begins at a framework's request object.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from typing import Annotated, Final
from uuid import UUID, uuid4

import msgspec
from joserfc import jws
from joserfc.errors import JoseError

from gateway.identity.errors import AuthenticationFailed
from gateway.identity.own_keys import CURVE, OwnKeys
from gateway.identity.tokens import VerifiedToken

LIFE_SECONDS: Final = 900
KEY_SIGNS_SECONDS: Final = 86_400
"""For how long a key signs: then the next one is made."""
KEY_VERIFIES_SECONDS: Final = LIFE_SECONDS + 300
"""For how long it verifies after that: until all that it signed has ended, whatever clocks differ by."""
SCOPE: Final = "catalog"
_TYPE: Final = "lakegate-delegated+jwt"
_MAX_BYTES: Final = 8_192
_MAX_SKEW_SECONDS: Final = 30
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_REGISTRY: Final = jws.JWSRegistry(algorithms=[CURVE], strict_check_header=False)
_UserId = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]+~.", max_length=512)]


class _Header(msgspec.Struct, frozen=True):
    """`sub_proven` stands here and not among the claims: earlier versions refuse unknown claims, and may serve beside
    this one. The header is signed as well. A token of theirs has none, and counts as asserted.
    """

    typ: str
    alg: str = ""
    kid: str = ""
    sub_proven: bool = False


class _Actor(msgspec.Struct, frozen=True):
    sub: _UserId


class _Claims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """RFC 8693 section 4. `sub` and `act` hold whole user ids, since several providers may have one subject."""

    iss: str
    aud: str
    sub: _UserId
    act: _Actor
    iat: int
    exp: int
    jti: str
    scope: str
    project: str | None = None
    groups: tuple[str, ...] = ()


class TooMuchToCarry(Exception):
    """The subject's groups do not fit into a token."""


class IssuedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token that was signed, its id, and for how many seconds it is good."""

    token: str
    token_id: str
    seconds: int


class DelegatedTokens:
    """Issues and verifies them for the server of this id."""

    def __init__(self, server_id: UUID, keys: OwnKeys, *, clock: Callable[[], float] = time.time) -> None:
        self._name = f"urn:lakegate:{server_id}"
        self._keys = keys
        self._clock = clock

    @staticmethod
    def claims_to_be_one(token: str) -> bool:
        """Whether the token says of itself that it is of this kind; whoever made it. Then it is judged as one, and
        nothing else, whatever comes of that.
        """
        header = token.partition(".")[0]
        try:
            return msgspec.json.decode(_b64(header), type=_Header).typ == _TYPE
        except (ValueError, RecursionError):
            return False

    async def issue(
        self,
        *,
        user_id: str,
        engine_id: str,
        project_id: str | None,
        groups: tuple[str, ...],
        not_after: float | None,
        subject_proven: bool,
    ) -> IssuedToken:
        """A token of the engine for the user, for fifteen minutes, and no longer than `not_after` (seconds since 1970).
        `subject_proven` says that a token of the user was verified; otherwise the engine asserted the user.

        Raises TooMuchToCarry, and what reading keys raises.
        """
        now = int(self._clock())
        expires_at = now + LIFE_SECONDS if not_after is None else min(now + LIFE_SECONDS, int(not_after))
        claims = _Claims(
            iss=self._name,
            aud=self._name,
            sub=user_id,
            act=_Actor(sub=engine_id),
            iat=now,
            exp=expires_at,
            jti=str(uuid4()),
            scope=SCOPE,
            project=project_id,
            groups=groups,
        )
        kid, key = await self._keys.signing()
        header = {"typ": _TYPE, "alg": CURVE, "kid": kid, "sub_proven": subject_proven}
        token = jws.serialize_compact(header, msgspec.json.encode(claims), key, registry=_REGISTRY)
        if len(token) > _MAX_BYTES:
            raise TooMuchToCarry
        return IssuedToken(token=token, token_id=claims.jti, seconds=max(0, expires_at - now))

    async def verify(self, token: str) -> VerifiedToken:
        """What the token proves. Raises `AuthenticationFailed`, and what reading keys raises."""
        if len(token) > _MAX_BYTES or _COMPACT.fullmatch(token) is None:
            raise AuthenticationFailed("the token is not one of this server's")
        claims, subject_proven = await self._signed_claims(token)
        now = self._clock()
        if claims.iss != self._name or claims.aud != self._name or claims.scope != SCOPE:
            raise AuthenticationFailed("the token was issued by or for another server than this one")
        # Issued by a process of this server: clocks may differ, but a life is never longer than it was given.
        if now >= claims.exp or claims.exp - claims.iat > LIFE_SECONDS or now < claims.iat - _MAX_SKEW_SECONDS:
            raise AuthenticationFailed("the token has expired")
        idp_id, _, subject = claims.sub.partition("~")
        return VerifiedToken(
            idp_id=idp_id,
            subject=subject,
            user_id=claims.sub,
            actor_user_id=claims.act.sub,
            engine=claims.act.sub,
            subject_proven=subject_proven,
            issuer=claims.iss,
            audiences=(claims.aud,),
            expires_at=claims.exp,
            issued_at=claims.iat,
            name=subject,
            email=None,
            kind="human",
            project_id=claims.project,
            client_id=None,
            token_id=claims.jti,
            groups=claims.groups,
            scopes=frozenset({claims.scope}),
        )

    async def _signed_claims(self, token: str) -> tuple[_Claims, bool]:
        """Return (the claims, True if the subject was proven)."""
        try:
            signed = jws.extract_compact(token.encode("ascii"), registry=_REGISTRY)
            header = msgspec.convert(signed.protected, _Header)
        except (JoseError, ValueError, TypeError, RecursionError):
            raise AuthenticationFailed("the token is not one of this server's") from None
        if header.typ != _TYPE or header.alg != CURVE:
            raise AuthenticationFailed("the token is not one of this server's")
        key = await self._keys.verifying(header.kid)
        if key is None:
            raise AuthenticationFailed("the token is signed with a key that this server does not have, or no longer")
        try:
            if not jws.validate_compact(signed, key, registry=_REGISTRY):
                raise AuthenticationFailed("the token's signature is not valid")
            return msgspec.json.decode(signed.payload or b"", type=_Claims), header.sub_proven
        except (JoseError, ValueError, TypeError, RecursionError):
            raise AuthenticationFailed("the token's signature is not valid") from None


def _b64(text: str) -> bytes:
    """base64url without padding (RFC 7515 section 2). Raises ValueError."""
    if len(text) > _MAX_BYTES:
        raise ValueError("too long")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
