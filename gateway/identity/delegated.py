# SPDX-License-Identifier: Apache-2.0
"""Delegated tokens: the gateway signs them for an engine that acts for a user (RFC 8693).

The header's `typ` distinguishes them from the tokens of providers before any key is selected (RFC 8725 section 3.11).
They are valid for this server only: issuer and audience are its own name. joserfc signs and verifies them. Authlib is
not used here: it has no grant for token exchange, and its server classes need the request object of a web framework.
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

from gateway.identity.claims import PolicyClaims
from gateway.identity.errors import (
    AuthenticationFailed,
    Refusal,
    invalid_signature,
)
from gateway.identity.own_keys import CURVE, OwnKeys
from gateway.identity.tokens import VerifiedToken

LIFE_SECONDS: Final = 900
KEY_SIGNS_SECONDS: Final = 86_400
"""Seconds for which a key signs. Then the next key is generated."""
KEY_VERIFIES_SECONDS: Final = LIFE_SECONDS + 300
"""Seconds for which a key verifies after that. All its tokens have expired by then, with a margin for clock skew."""
SCOPE: Final = "catalog"
_TYPE: Final = "lakegate-delegated+jwt"
_MAX_BYTES: Final = 8_192
_MAX_SKEW_SECONDS: Final = 30
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_REGISTRY: Final = jws.JWSRegistry(algorithms=[CURVE], strict_check_header=False)
_UserId = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]+~.", max_length=512)]


class _Header(msgspec.Struct, frozen=True):
    """The protected header of a delegated token.

    `sub_proven` is True if a token of the user was verified, and False if the engine asserted the user. It is a header
    parameter and not a claim, because earlier versions reject unknown claims and may run at the same time. The
    signature covers the header too. Tokens of earlier versions lack the parameter, so it is False for them. The same
    applies to `groups_known`, which is True if the user's token had a claim with groups.
    """

    typ: str
    alg: str = ""
    kid: str = ""
    sub_proven: bool = False
    groups_known: bool = False


class _Actor(msgspec.Struct, frozen=True):
    sub: _UserId


class _Claims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The claims of a delegated token (RFC 8693 section 4).

    `sub` and `act` contain user ids with the id of the provider, since several providers may use the same subject.
    """

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
    policy_claims: PolicyClaims = ()
    """Earlier versions reject tokens with this claim. It is absent unless the settings name policy claims."""


class TokenTooLarge(Exception):
    """The subject's groups and claims do not fit into a token."""


class IssuedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A signed token, its id (`jti`), and its remaining lifetime in seconds."""

    token: str
    token_id: str
    seconds: int


class DelegatedTokens:
    """Issues and verifies the delegated tokens of the server `server_id`."""

    def __init__(self, server_id: UUID, keys: OwnKeys, *, clock: Callable[[], float] = time.time) -> None:
        self._name = f"urn:lakegate:{server_id}"
        self._keys = keys
        self._clock = clock

    @staticmethod
    def has_token_type(token: str) -> bool:
        """Return True if the header names the type of delegated tokens. The signature is not verified.

        The caller must then verify the token as a delegated token, and must not offer it to a provider.
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
        policy_claims: PolicyClaims = (),
        groups_known: bool = True,
    ) -> IssuedToken:
        """Issue a token with which the engine acts for the user, valid for fifteen minutes.

        `not_after` (seconds since 1970) can shorten the lifetime. `project_id` limits the token to one project, and
        `groups` and `policy_claims` are those of the user's token. `subject_proven` is True if a token of the user was
        verified, and False if the engine asserted the user. Then the token has no policy claims. `groups_known` is
        False if that token did not state the user's groups.

        Raises TokenTooLarge if the groups or claims make the token too long, and the errors of reading keys.
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
            policy_claims=policy_claims if subject_proven else (),
        )
        kid, key = await self._keys.signing()
        header = {"typ": _TYPE, "alg": CURVE, "kid": kid, "sub_proven": subject_proven, "groups_known": groups_known}
        token = jws.serialize_compact(header, msgspec.json.encode(claims), key, registry=_REGISTRY)
        if len(token) > _MAX_BYTES:
            raise TokenTooLarge
        return IssuedToken(token=token, token_id=claims.jti, seconds=max(0, expires_at - now))

    async def verify(self, token: str) -> VerifiedToken:
        """Verify a delegated token. Raises `AuthenticationFailed`, and the errors of reading keys."""
        if len(token) > _MAX_BYTES or _COMPACT.fullmatch(token) is None:
            raise AuthenticationFailed("this server did not issue the token; exchange the user's token again")
        claims, header = await self._signed_claims(token)
        now = self._clock()
        if claims.iss != self._name or claims.aud != self._name or claims.scope != SCOPE:
            raise AuthenticationFailed(
                "the token was issued by another server, or for another server; exchange the user's token at this "
                "server",
                Refusal.ISSUER,
            )
        # Another process may have issued the token, and its clock may be ahead. The lifetime never exceeds
        # LIFE_SECONDS.
        if now >= claims.exp or claims.exp - claims.iat > LIFE_SECONDS or now < claims.iat - _MAX_SKEW_SECONDS:
            raise AuthenticationFailed("the token has expired; exchange the user's token again", Refusal.EXPIRED)
        idp_id, _, subject = claims.sub.partition("~")
        return VerifiedToken(
            idp_id=idp_id,
            subject=subject,
            user_id=claims.sub,
            actor_user_id=claims.act.sub,
            engine=claims.act.sub,
            subject_proven=header.sub_proven,
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
            groups_known=header.groups_known,
            policy_claims=claims.policy_claims if header.sub_proven else (),
            scopes=frozenset({claims.scope}),
        )

    async def _signed_claims(self, token: str) -> tuple[_Claims, _Header]:
        """Verify the signature and return the claims and the header. Raises `AuthenticationFailed`."""
        try:
            signed = jws.extract_compact(token.encode("ascii"), registry=_REGISTRY)
            header = msgspec.convert(signed.protected, _Header)
        except (JoseError, ValueError, TypeError, RecursionError):
            raise AuthenticationFailed("this server did not issue the token; exchange the user's token again") from None
        if header.typ != _TYPE or header.alg != CURVE:
            raise AuthenticationFailed("this server did not issue the token; exchange the user's token again")
        key = await self._keys.verifying(header.kid)
        if key is None:
            raise AuthenticationFailed(
                "the signing key of the token is unknown or was revoked; exchange the user's token again",
                Refusal.SIGNATURE,
            )
        try:
            if not jws.validate_compact(signed, key, registry=_REGISTRY):
                raise invalid_signature()
            return msgspec.json.decode(signed.payload or b"", type=_Claims), header
        except (JoseError, ValueError, TypeError, RecursionError):
            raise invalid_signature() from None


def _b64(text: str) -> bytes:
    """Decode base64url text without padding (RFC 7515 section 2). Raises ValueError."""
    if len(text) > _MAX_BYTES:
        raise ValueError("too long")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
