# SPDX-License-Identifier: Apache-2.0
"""Verify bearer tokens: RFC 7519 (JWT) and RFC 9068 (access tokens), with the advice of RFC 8725.

Checks that need no key come first, so that invalid tokens cost little: size, form, header and issuer. Then follow the
key, the signature, and at last the other claims. A token of another issuer never causes a network request.
"""

import re
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import msgspec
from joserfc import jws
from joserfc.errors import JoseError, UnsupportedAlgorithmError

from gateway.access.tuples import is_valid_in_tuples
from gateway.identity import claims as read
from gateway.identity.binding import KeyBinding, ProofMethod, binding_of
from gateway.identity.claims import SELF_ASSERTED, PolicyClaims, UserKind, policy_claims_of
from gateway.identity.discovery import check_endpoint
from gateway.identity.errors import (
    AuthenticationFailed,
    Refusal,
    invalid_signature,
    not_yet_valid,
    unknown_issuer,
    wrong_audience,
)
from gateway.identity.keys import ALGORITHMS, VerificationKey

_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_IDP_ID = re.compile(r"[a-z0-9-]+", re.ASCII)
_LATEST_DATE = 253_402_300_799  # the end of the year 9999, in seconds since 1970
_ACCESS_TOKEN_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
# Claims in which some providers (such as Cognito and Keycloak) name the kind of a token, and their values for access
# tokens.
_KIND_CLAIMS = ("token_use", "typ", "token_type")
_ACCESS_KINDS = frozenset({"access", "bearer", "jwt", "at+jwt"})
# Claims that access tokens never contain: those of ID tokens (OpenID Connect Core section 3.3.2.11) and of security
# events such as logout tokens (RFC 8417).
_CLAIMS_OF_OTHER_TOKENS = ("at_hash", "c_hash", "s_hash", "events")


class TokenRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for the tokens of one provider.

    `issuer` and `additional_issuers` are compared as identical strings. `audiences` must not be empty.
    `project_audiences` maps further audiences to project ids: a token with such an audience is valid in that project
    only. `subject_claims` are the claims that may identify the user, in order. `required_scope` is a scope that each
    token must have. `policy_claims` are the paths of the claims that row filters may use. `skew_seconds` is the
    tolerated difference of clocks. `proofs` are the kinds of proofs of possession that the caller of the verifier
    checks. Tokens that need another kind of proof are refused.

    Raises `ValueError` for an invalid issuer, id or skew, without an audience or a subject claim, for a subject claim
    or policy claim that users can change, and for an audience that is both general and bound to a project.
    """

    issuer: str
    audiences: frozenset[str]
    project_audiences: Mapping[str, str] = MappingProxyType({})
    idp_id: str = "oidc"
    additional_issuers: frozenset[str] = frozenset()
    required_scope: str | None = None
    subject_claims: tuple[str, ...] = ("oid", "sub")
    groups_claim: str | None = None
    policy_claims: tuple[str, ...] = ()
    display_name_template: str | None = None
    skew_seconds: int = 30
    max_token_bytes: int = 16_384
    proofs: frozenset[ProofMethod] = frozenset()

    def __post_init__(self) -> None:
        check_endpoint(self.issuer, "the identity provider's URI")
        if _IDP_ID.fullmatch(self.idp_id) is None:
            raise ValueError(f"the id of an identity provider is made of a-z, 0-9 and '-', not {self.idp_id!r}")
        if not self.audiences or any(not audience.strip() for audience in self.audiences):
            raise ValueError(
                "an audience is required; without one, tokens that the provider issued for other services would be "
                "accepted"
            )
        if twice := self.audiences & set(self.project_audiences):
            raise ValueError(
                f"{', '.join(sorted(twice))} is both an audience of one project and a general audience; it must be "
                "one of them"
            )
        if not self.subject_claims or any(not claim for claim in self.subject_claims):
            raise ValueError("at least one subject claim is required")
        if changeable := read.NOT_AN_IDENTITY.intersection(self.subject_claims):
            raise ValueError(
                f"{', '.join(sorted(changeable))} cannot identify a user: its value can change and be assigned to "
                "another user"
            )
        if asserted := [each for each in self.policy_claims if each.partition(".")[0] in SELF_ASSERTED]:
            raise ValueError(
                f"{', '.join(sorted(asserted))} cannot be a policy claim: users could change the value, and with it "
                "the rows that they see; use a claim that only administrators set"
            )
        if not 0 <= self.skew_seconds <= 300:
            raise ValueError("skew_seconds must be between 0 and 300")


class VerifiedToken(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a verified token. It does not contain the token itself or any other credential.

    `user_id` is `<idp_id>~<subject>`, the only identifier of the user. `actor_user_id` is the user id of the actor that
    uses the token on behalf of the user, or None. `project_id` is the only project that the token is valid in, or None.
    `expires_at` and `issued_at` are seconds since 1970. `name`, `email` and `kind` are descriptive: no decision depends
    on them.
    """

    idp_id: str
    subject: str
    user_id: str
    actor_user_id: str | None
    issuer: str
    audiences: tuple[str, ...]
    expires_at: float
    issued_at: float | None
    name: str | None
    email: str | None
    kind: UserKind
    project_id: str | None
    client_id: str | None
    token_id: str | None
    groups: tuple[str, ...]
    scopes: frozenset[str]
    policy_claims: PolicyClaims = ()
    """The claims that row filters may use, by path. Only claims of the user's own token."""
    groups_known: bool = True
    """False if the token lacks the claim of groups: its user may be in some."""
    may_act: str | None = None
    """User id of the only actor that the provider allows for the subject. None: no limit. "": no actor is allowed."""
    subject_proven: bool = True
    """False if the engine asserted the subject without a token of the subject."""
    engine: str | None = None
    """User id of the engine that acts for the user with a delegated token (`delegated.py`), else None.

    The `act` claim of a provider's token does not set it: some providers let users choose claims of their tokens.
    """
    binding: KeyBinding | None = None
    """The key that the token is bound to. The request must prove it (`possession.py`). None: a bearer token."""


class KeySource(Protocol):
    """Source of public keys. `KeyRing` implements it."""

    async def candidates(self, kid: str | None, algorithm: str) -> tuple[VerificationKey, ...]:
        """Return the keys that fit the `kid` and `algorithm` of a token's header.

        Raises `AuthenticationFailed` or `IdentityProviderUnavailable`.
        """


class _SignatureRegistry(jws.JWSRegistry):
    """joserfc's registry, restricted to the accepted algorithms.

    The subclass has two reasons. joserfc reads an empty list of algorithms as its recommended ones, which include HMAC.
    And it limits headers to 512 bytes, which a header with a certificate chain exceeds, although the chain is ignored.
    `TokenRules.max_token_bytes` limits the whole token.
    """

    max_header_length = 16_384
    max_signature_length = 2_048

    def get_alg(self, name: str) -> Any:
        if name not in ALGORITHMS:
            raise UnsupportedAlgorithmError(f"{name!r} is not an accepted algorithm")
        return self.algorithms[name]


_REGISTRY = _SignatureRegistry(algorithms=sorted(ALGORITHMS), strict_check_header=False)


class TokenVerifier:
    """Verifies the tokens of one provider, without a cache. `CachedTokens` adds a cache.

    It runs on the event loop: the slowest accepted signature takes half a millisecond. Under load, a worker thread
    would cost more.
    """

    def __init__(self, rules: TokenRules, keys: KeySource, *, clock: Callable[[], float] = time.time) -> None:
        self._rules = rules
        self._keys = keys
        self._clock = clock
        self._issuers = rules.additional_issuers | {rules.issuer}

    async def verify(self, token: str) -> VerifiedToken:
        """Verify `token`.

        Raises `AuthenticationFailed` (401) if it violates a rule, and `IdentityProviderUnavailable` (503) if the keys
        to verify its signature are not available.
        """
        if len(token) > self._rules.max_token_bytes:
            raise AuthenticationFailed(f"the token is longer than {self._rules.max_token_bytes} bytes")
        signed = _extract(token)
        algorithm, kid = _checked_header(signed)
        claims = decode_claims(signed.payload)
        issuer = claims.get("iss")
        if not isinstance(issuer, str) or issuer not in self._issuers:
            raise unknown_issuer()
        _check_signature(signed, await self._keys.candidates(kid, algorithm))
        return self._read(claims, issuer)

    def _read(self, claims: read.Claims, issuer: str) -> VerifiedToken:
        rules = self._rules
        expires_at, issued_at = self._checked_dates(claims)
        audiences = audiences_of(claims)
        project_id = self._project_of(audiences)
        if project_id is None and rules.audiences.isdisjoint(audiences):
            raise wrong_audience()
        _check_is_access_token(claims)
        scopes = read.scopes_of(claims)
        if rules.required_scope is not None and rules.required_scope not in scopes:
            raise AuthenticationFailed(
                f"the token lacks the scope '{rules.required_scope}'; request a token with it", Refusal.SCOPE
            )
        subject = read.subject_of(claims, rules.subject_claims)
        user_id = f"{rules.idp_id}~{subject}"
        if not is_valid_in_tuples(user_id):
            raise AuthenticationFailed("the token's subject has more bytes than a user id can have")
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
            name=read.display_name_of(claims, rules.display_name_template),
            email=read.email_of(claims),
            kind=read.kind_of(claims, subject),
            project_id=project_id,
            client_id=read.client_id_of(claims),
            token_id=token_id if isinstance(token_id, str) and len(token_id) <= 255 else None,
            groups=read.groups_of(claims, rules.groups_claim),
            groups_known=read.has_groups(claims, rules.groups_claim),
            scopes=scopes,
            policy_claims=policy_claims_of(claims, rules.policy_claims, rules.idp_id),
            may_act=f"{rules.idp_id}~{may_act}" if may_act else may_act,
            binding=binding_of(claims, rules.proofs),
        )

    def _project_of(self, audiences: tuple[str, ...]) -> str | None:
        """Return the project to which the token's audiences limit it, or None if no audience is bound to a project.

        One such audience is enough to limit the token to its project, even if the token also has general audiences.
        Raises `AuthenticationFailed` if the audiences belong to several projects.
        """
        bound = {self._rules.project_audiences[each] for each in audiences if each in self._rules.project_audiences}
        if len(bound) > 1:
            raise AuthenticationFailed(
                "the token's audiences (aud) are bound to several projects; request a token for one project",
                Refusal.AUDIENCE,
            )
        return bound.pop() if bound else None

    def _checked_dates(self, claims: read.Claims) -> tuple[float, float | None]:
        """Check the dates (RFC 7519 sections 4.1.4 to 4.1.6) and return (expiry, issue date or None).

        A token is valid while nbf - skew <= now < exp + skew, and if iat - skew <= now. Raises `AuthenticationFailed`.
        """
        now, skew = self._clock(), self._rules.skew_seconds
        expires_at, not_before, issued_at = (numeric_date(claims, name) for name in ("exp", "nbf", "iat"))
        if expires_at is None:
            raise AuthenticationFailed("the token has no expiry (exp), which is required", Refusal.EXPIRED)
        if now >= expires_at + skew:
            raise AuthenticationFailed(
                "the token has expired; get a new one from the identity provider", Refusal.EXPIRED
            )
        if not_before is not None and now < not_before - skew:
            raise not_yet_valid()
        if issued_at is not None and now < issued_at - skew:
            raise AuthenticationFailed(
                "the token's time of issue (iat) is in the future; check the clocks of the servers",
                Refusal.NOT_YET_VALID,
            )
        return expires_at, issued_at


async def signed_by(token: str, keys: KeySource) -> bool:
    """Return True if the signature of the token is valid. Its claims are not checked.

    Raises `AuthenticationFailed` if the token or its header is malformed, or if no key fits the header. Raises
    `IdentityProviderUnavailable` if the keys are not available.
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
        raise AuthenticationFailed("the token must be a signed JWT of three base64url parts")
    try:
        return jws.extract_compact(token.encode("ascii"), registry=_REGISTRY)
    except (JoseError, ValueError, TypeError, RecursionError):
        raise AuthenticationFailed("the token cannot be decoded as a signed JWT") from None


def _checked_header(signed: jws.CompactSignature) -> tuple[str, str | None]:
    """Check the header and return (algorithm, key id or None). Raises `AuthenticationFailed`.

    `jku`, `x5u`, `x5c` and `jwk` are ignored, so a token cannot supply its own key.
    """
    header: object = signed.protected
    if not isinstance(header, dict):
        raise AuthenticationFailed("the token's header must be a JSON object")
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise AuthenticationFailed(f"the token's signature algorithm must be one of {', '.join(sorted(ALGORITHMS))}")
    # RFC 7515 section 4.1.11: a token with an unsupported critical extension must be rejected. None is supported here.
    if "crit" in header or "b64" in header:
        raise AuthenticationFailed("the token requires an extension (crit) that is not supported")
    if not isinstance(kind, str) or kind.lower() not in _ACCESS_TOKEN_TYPES:
        raise AuthenticationFailed("the token's type (typ) is not that of an access token; send an access token")
    if kid is not None and not isinstance(kid, str):
        raise AuthenticationFailed("the token's key id (kid) must be text")
    return algorithm, kid


def decode_claims(payload: bytes | None) -> read.Claims:
    """Decode the claims of a payload. Raises `AuthenticationFailed` if it is not a JSON object."""
    try:
        return msgspec.json.decode(payload or b"", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise AuthenticationFailed("the token's claims must be a JSON object") from None


def _check_signature(signed: jws.CompactSignature, candidates: tuple[VerificationKey, ...]) -> None:
    for candidate in candidates:
        try:
            if jws.validate_compact(signed, candidate.key, registry=_REGISTRY):
                return
        except (JoseError, ValueError, TypeError):
            # This key cannot verify the signature. Another candidate key may.
            continue
    raise invalid_signature()


def numeric_date(claims: read.Claims, name: str) -> float | None:
    """Return the NumericDate claim `name` (RFC 7519 section 2) in seconds since 1970, or None if it is absent.

    Raises `AuthenticationFailed` unless the value is a JSON number from 1970 to the end of the year 9999.
    """
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST_DATE:
        raise AuthenticationFailed(f"the token's claim '{name}' must be a number of seconds since 1970")
    return float(value)


def audiences_of(claims: read.Claims) -> tuple[str, ...]:
    """Return the audiences of a token. Raises `AuthenticationFailed` if `aud` is absent or not text."""
    value = claims.get("aud")
    audiences = [value] if isinstance(value, str) else value
    if not isinstance(audiences, list) or not all(isinstance(audience, str) for audience in audiences):
        raise AuthenticationFailed("the token's audience (aud) is missing or is not text")
    return tuple(audiences)


def _check_is_access_token(claims: read.Claims) -> None:
    """Raise `AuthenticationFailed` if the token is not an access token, but for example an ID token or refresh
    token.
    """
    for claim in _KIND_CLAIMS:
        value = claims.get(claim)
        if value is not None and (not isinstance(value, str) or value.lower() not in _ACCESS_KINDS):
            raise AuthenticationFailed(
                f"the token is not an access token: its claim '{claim}' names another kind of token; send an access "
                "token"
            )
    if found := [claim for claim in _CLAIMS_OF_OTHER_TOKENS if claim in claims]:
        raise AuthenticationFailed(
            f"the token is not an access token: it has the claim '{found[0]}' of another kind of token; send an "
            "access token"
        )
