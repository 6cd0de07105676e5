# SPDX-License-Identifier: Apache-2.0
"""Verifies a bearer token: RFC 7519 (JWT) and RFC 9068 (access tokens) with the advice of RFC 8725.

The order is chosen so that a stranger's token costs little: size and form, header, issuer — all without a key — then
the key, the signature, and only then what the claims say. A token of another issuer never causes a request to
anybody.
"""

import re
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import msgspec
from joserfc import jws
from joserfc.errors import JoseError, UnsupportedAlgorithmError

from gateway.access.tuples import fits_a_tuple
from gateway.identity import claims as read
from gateway.identity.claims import UserKind
from gateway.identity.errors import AuthenticationFailed
from gateway.identity.fetch import check_endpoint
from gateway.identity.keys import ALGORITHMS, VerificationKey

_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_IDP_ID = re.compile(r"[a-z0-9-]+", re.ASCII)
_LATEST_DATE = 253_402_300_799  # the end of the year 9999, in seconds since 1970
_ACCESS_TOKEN_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
# Claims in which providers (Cognito, Keycloak and others) say what kind of token it is, and what an access token has
# there.
_KIND_CLAIMS = ("token_use", "typ", "token_type")
_ACCESS_KINDS = frozenset({"access", "bearer", "jwt", "at+jwt"})
# Claims that only other kinds of tokens carry: ID tokens (OpenID Connect Core 3.3.2.11) and security events such as
# logout tokens (RFC 8417).
_CLAIMS_OF_OTHER_TOKENS = ("at_hash", "c_hash", "s_hash", "events")


class TokenRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a token of one provider has to look like. Raises `ValueError` for rules that would let anybody in.

    `issuer` and `additional_issuers` are compared as they are, `audiences` must not be empty, `skew_seconds` is what
    clocks may differ by. `project_audiences` are further ones, each with the id of the project a token that names it is
    valid for, and for nothing else.
    """

    issuer: str
    audiences: frozenset[str]
    project_audiences: Mapping[str, str] = MappingProxyType({})
    idp_id: str = "oidc"
    additional_issuers: frozenset[str] = frozenset()
    required_scope: str | None = None
    subject_claims: tuple[str, ...] = ("oid", "sub")
    groups_claim: str | None = None
    display_name_template: str | None = None
    skew_seconds: int = 30
    max_token_bytes: int = 16_384

    def __post_init__(self) -> None:
        check_endpoint(self.issuer, "the identity provider's URI")
        if _IDP_ID.fullmatch(self.idp_id) is None:
            raise ValueError(f"the id of an identity provider is made of a-z, 0-9 and '-', not {self.idp_id!r}")
        if not self.audiences or any(not audience.strip() for audience in self.audiences):
            raise ValueError(
                "an audience is required, or tokens the provider issued for any other service would be accepted"
            )
        if twice := self.audiences & set(self.project_audiences):
            raise ValueError(f"{', '.join(sorted(twice))} cannot be bound to a project and be for everything too")
        if not self.subject_claims or any(not claim for claim in self.subject_claims):
            raise ValueError("at least one subject claim is required")
        if changeable := read.NOT_AN_IDENTITY.intersection(self.subject_claims):
            raise ValueError(f"{', '.join(sorted(changeable))} cannot identify a user: it changes and is reused")
        if not 0 <= self.skew_seconds <= 300:
            raise ValueError("skew_seconds must be between 0 and 300")


class VerifiedToken(msgspec.Struct, frozen=True, kw_only=True):
    """What a good token says. Holds nothing that could be used to act as its owner.

    `user_id` is `<idp_id>~<subject>`, the only name of the user that counts. `actor_user_id` is who uses the token
    on the user's behalf. `project_id` is the only project it is valid for, if it is for one. `expires_at` and
    `issued_at` are seconds since 1970. `name`, `email` and `kind` describe and decide nothing.
    """

    idp_id: str
    subject: str
    user_id: str
    actor_user_id: str | None
    issuer: str
    audiences: tuple[str, ...]
    expires_at: float
    issued_at: float | None
    name: str
    email: str | None
    kind: UserKind
    project_id: str | None
    client_id: str | None
    token_id: str | None
    groups: tuple[str, ...]
    scopes: frozenset[str]
    may_act: str | None = None
    """The user id of the only one who may act for the subject, where the provider says so; "" for nobody known here."""
    subject_proven: bool = True
    """False when the engine asserted the subject, and no token of the subject's own proved it."""
    engine: str | None = None
    """Who acts for the user by a token of this server's own (`delegated.py`). What a provider says in `act` is no
    proof: some let their users choose what is in a token.
    """


class KeySource(Protocol):
    """Where public keys come from: `KeyRing`, or a table in tests."""

    async def candidates(self, kid: str | None, algorithm: str) -> tuple[VerificationKey, ...]:
        """Keys that may have signed a token with this header; raises `AuthenticationFailed` or
        `IdentityProviderUnavailable`.
        """


class _SignatureRegistry(jws.JWSRegistry):
    """joserfc's algorithms behind our allow-list.

    Own class for two reasons: joserfc reads an empty list of algorithms as "the recommended ones", which include
    HMAC, and it bounds headers at 512 bytes, which a certificate chain (ignored here) exceeds.
    `TokenRules.max_token_bytes` bounds the whole.
    """

    max_header_length = 16_384
    max_signature_length = 2_048

    def get_alg(self, name: str) -> Any:
        if name not in ALGORITHMS:
            raise UnsupportedAlgorithmError(f"{name!r} is not an accepted algorithm")
        return self.algorithms[name]


_REGISTRY = _SignatureRegistry(algorithms=sorted(ALGORITHMS), strict_check_header=False)


class TokenVerifier:
    """Verifies tokens of one provider, on the event loop: the slowest accepted signature takes half a millisecond, less
    than handing it to a thread and back would cost under load.

    Keeps nothing between calls: a cache, by digest of the token and until its expiry, belongs around it.
    """

    def __init__(self, rules: TokenRules, keys: KeySource, *, clock: Callable[[], float] = time.time) -> None:
        self._rules = rules
        self._keys = keys
        self._clock = clock
        self._issuers = rules.additional_issuers | {rules.issuer}

    async def verify(self, token: str) -> VerifiedToken:
        """Return what `token` proves.

        Raises `AuthenticationFailed` (401) when it breaks a rule, `IdentityProviderUnavailable` (503) when its
        signature cannot be judged.
        """
        if len(token) > self._rules.max_token_bytes:
            raise AuthenticationFailed(f"the token is longer than {self._rules.max_token_bytes} bytes")
        signed = _extract(token)
        algorithm, kid = _checked_header(signed)
        claims = decode_claims(signed.payload)
        issuer = claims.get("iss")
        if not isinstance(issuer, str) or issuer not in self._issuers:
            raise AuthenticationFailed("the token comes from an issuer that is not configured here")
        _check_signature(signed, await self._keys.candidates(kid, algorithm))
        return self._read(claims, issuer)

    def _read(self, claims: read.Claims, issuer: str) -> VerifiedToken:
        rules = self._rules
        expires_at, issued_at = self._checked_dates(claims)
        audiences = audiences_of(claims)
        project_id = self._project_of(audiences)
        if project_id is None and rules.audiences.isdisjoint(audiences):
            raise AuthenticationFailed("the token was issued for another audience than this service")
        _check_is_access_token(claims)
        scopes = read.scopes_of(claims)
        if rules.required_scope is not None and rules.required_scope not in scopes:
            raise AuthenticationFailed(f"the token lacks the scope '{rules.required_scope}'")
        subject = read.subject_of(claims, rules.subject_claims)
        user_id = f"{rules.idp_id}~{subject}"
        if not fits_a_tuple(user_id):
            raise AuthenticationFailed("the token's subject has more bytes than a relationship can hold")
        actor, may_act = read.actor_of(claims, issuer), read.may_act_of(claims, issuer)
        token_id = claims.get("jti")
        return VerifiedToken(
            idp_id=rules.idp_id,
            subject=subject,
            user_id=user_id,
            actor_user_id=None if actor is None else f"{rules.idp_id}~{actor}",
            issuer=issuer,
            audiences=audiences,
            expires_at=expires_at,
            issued_at=issued_at,
            name=read.display_name_of(claims, subject, rules.display_name_template),
            email=read.email_of(claims),
            kind=read.kind_of(claims, subject),
            project_id=project_id,
            client_id=read.client_id_of(claims),
            token_id=token_id if isinstance(token_id, str) and len(token_id) <= 255 else None,
            groups=read.groups_of(claims, rules.groups_claim),
            scopes=scopes,
            may_act=f"{rules.idp_id}~{may_act}" if may_act else may_act,
        )

    def _project_of(self, audiences: tuple[str, ...]) -> str | None:
        """The project that the audiences bind the token to: one is enough, whatever others it names."""
        bound = {self._rules.project_audiences[each] for each in audiences if each in self._rules.project_audiences}
        if len(bound) > 1:
            raise AuthenticationFailed("the token is for several projects at once")
        return bound.pop() if bound else None

    def _checked_dates(self, claims: read.Claims) -> tuple[float, float | None]:
        """RFC 7519 sections 4.1.4 to 4.1.6, with skew: valid while nbf - skew <= now < exp + skew, and not issued in
        the future.
        """
        now, skew = self._clock(), self._rules.skew_seconds
        expires_at, not_before, issued_at = (numeric_date(claims, name) for name in ("exp", "nbf", "iat"))
        if expires_at is None:
            raise AuthenticationFailed("the token has no expiry (exp)")
        if now >= expires_at + skew:
            raise AuthenticationFailed("the token has expired")
        if not_before is not None and now < not_before - skew:
            raise AuthenticationFailed("the token is not valid yet (nbf)")
        if issued_at is not None and now < issued_at - skew:
            raise AuthenticationFailed("the token was issued in the future (iat)")
        return expires_at, issued_at


async def signed_by(token: str, keys: KeySource) -> bool:
    """Whether one of the keys that it names signed the token; nothing else is looked at.

    Raises `AuthenticationFailed` and `IdentityProviderUnavailable` when there is no such key to tell by.
    """
    signed = _extract(token)
    algorithm, kid = _checked_header(signed)
    candidates = await keys.candidates(kid, algorithm)
    try:
        _check_signature(signed, candidates)
    except AuthenticationFailed:
        return False
    return True


def _extract(token: str) -> jws.CompactSignature:
    if _COMPACT.fullmatch(token) is None:
        raise AuthenticationFailed("the token is not a signed JWT of three base64url parts")
    try:
        return jws.extract_compact(token.encode("ascii"), registry=_REGISTRY)
    except (JoseError, ValueError, TypeError, RecursionError):
        raise AuthenticationFailed("the token is not a signed JWT that can be decoded") from None


def _checked_header(signed: jws.CompactSignature) -> tuple[str, str | None]:
    """(algorithm, key id) of a header that breaks no rule. `jku`, `x5u`, `x5c` and `jwk` are never looked at: a
    token cannot bring its own key.
    """
    header: object = signed.protected
    if not isinstance(header, dict):
        raise AuthenticationFailed("the token's header is not an object")
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise AuthenticationFailed(f"the token's signature algorithm is not one of {', '.join(sorted(ALGORITHMS))}")
    # RFC 7515 section 4.1.11: an extension that must be understood and is not means reject; no extension is
    # understood here.
    if "crit" in header or "b64" in header:
        raise AuthenticationFailed("the token demands an extension (crit) that is not supported")
    if not isinstance(kind, str) or kind.lower() not in _ACCESS_TOKEN_TYPES:
        raise AuthenticationFailed("the token's type (typ) is not that of an access token")
    if kid is not None and not isinstance(kid, str):
        raise AuthenticationFailed("the token's key id (kid) is not text")
    return algorithm, kid


def decode_claims(payload: bytes | None) -> read.Claims:
    """The claims of a payload. Raises `AuthenticationFailed`."""
    try:
        return msgspec.json.decode(payload or b"", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise AuthenticationFailed("the token's claims are not a JSON object") from None


def _check_signature(signed: jws.CompactSignature, candidates: tuple[VerificationKey, ...]) -> None:
    for candidate in candidates:
        try:
            if jws.validate_compact(signed, candidate.key, registry=_REGISTRY):
                return
        except (JoseError, ValueError, TypeError):
            # The next key may fit; a key that cannot even be tried has verified nothing.
            continue
    raise AuthenticationFailed("the token's signature is not valid")


def numeric_date(claims: read.Claims, name: str) -> float | None:
    """A NumericDate (RFC 7519 section 2): a JSON number of seconds. Text, true and dates past the year 9999 are
    none.
    """
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST_DATE:
        raise AuthenticationFailed(f"the token's '{name}' is not a number of seconds since 1970")
    return float(value)


def audiences_of(claims: read.Claims) -> tuple[str, ...]:
    """The audiences that a token names, one or several. Raises `AuthenticationFailed`."""
    value = claims.get("aud")
    audiences = [value] if isinstance(value, str) else value
    if not isinstance(audiences, list) or not all(isinstance(audience, str) for audience in audiences):
        raise AuthenticationFailed("the token names no audience (aud), or one that is not text")
    return tuple(audiences)


def _check_is_access_token(claims: read.Claims) -> None:
    """Refuse ID tokens, refresh tokens and the like, and tokens bound to a key of the client (RFC 8705, RFC 9449)
    that came without its proof.
    """
    for claim in _KIND_CLAIMS:
        value = claims.get(claim)
        if value is not None and (not isinstance(value, str) or value.lower() not in _ACCESS_KINDS):
            raise AuthenticationFailed(f"the token is not an access token (claim '{claim}')")
    if found := [claim for claim in _CLAIMS_OF_OTHER_TOKENS if claim in claims]:
        raise AuthenticationFailed(f"the token is not an access token (it carries '{found[0]}')")
    if "cnf" in claims:
        raise AuthenticationFailed(
            "the token is bound to a key of its client (cnf) and cannot be used as a plain bearer token"
        )
