# SPDX-License-Identifier: Apache-2.0
"""Route tokens to several identity providers: exactly one provider verifies each token.

The router selects the provider by the unverified `iss` of the token, and by its `aud` if several providers share an
issuer. The selected provider then verifies the token completely. If it rejects the token, no other provider verifies
it: otherwise the provider with the weakest rules would decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Protocol

import msgspec

from gateway.identity.cache import TOKENS, CachedTokens, TokenObserver
from gateway.identity.claims import payload_of
from gateway.identity.errors import (
    AuthenticationFailed,
    Refusal,
    unknown_issuer,
    wrong_audience,
)
from gateway.identity.keys import KeyRing
from gateway.identity.tokens import TokenRules, TokenVerifier, VerifiedToken


class Judge(Protocol):
    """A verifier of tokens: of one provider, a cache in front of it, or the router in front of all providers."""

    async def verify(self, token: str) -> VerifiedToken:
        """Verify `token`. Raises `AuthenticationFailed` or `IdentityProviderUnavailable`."""


class Link(Judge, Protocol):
    """One identity provider. Only its users have ids of the form `<idp_id>~<subject>`.

    The router selects it only by the `issuers` and `audiences` of its tokens.
    """

    @property
    def idp_id(self) -> str: ...
    @property
    def issuers(self) -> frozenset[str]: ...
    @property
    def audiences(self) -> frozenset[str]: ...


class _RoutingClaims(msgspec.Struct, frozen=True):
    """The unverified claims by which a token is routed."""

    iss: Any = None
    aud: Any = None


class TokenRouter:
    """Routes tokens to the identity providers of one process.

    Raises `ValueError` if two providers have the same id, or share an issuer and an audience.
    """

    def __init__(self, links: Sequence[Link]) -> None:
        self._by_issuer: dict[str, list[Link]] = {}
        for one, other in combinations(links, 2):
            if one.idp_id == other.idp_id:
                raise ValueError(f"two identity providers have the id {one.idp_id!r}")
            if one.issuers & other.issuers and one.audiences & other.audiences:
                raise ValueError(
                    f"the identity providers {one.idp_id!r} and {other.idp_id!r} have the same issuer and the same "
                    "audience, so a token could belong to either; give each its own audience"
                )
        for link in links:
            for issuer in link.issuers:
                self._by_issuer.setdefault(issuer, []).append(link)

    async def verify(self, token: str) -> VerifiedToken:
        """Verify `token` with the provider that it is routed to.

        Raises `AuthenticationFailed` (401) if no provider fits or the provider rejects the token. Raises
        `IdentityProviderUnavailable` (503) if the provider cannot verify it now.
        """
        return await self.route(token).verify(token)

    def route(self, token: str) -> Link:
        """Return the provider for `token`, without a network request. Raises `AuthenticationFailed`."""
        routing = _read(token)
        fitting = self._by_issuer.get(routing.iss, []) if isinstance(routing.iss, str) else []
        if not fitting:
            raise unknown_issuer()
        if len(fitting) == 1:
            return fitting[0]
        named = {routing.aud} if isinstance(routing.aud, str) else routing.aud
        try:
            addressed = [link for link in fitting if not link.audiences.isdisjoint(named or ())]
        except TypeError:
            raise AuthenticationFailed(
                "the token's audience (aud) is missing or is not text", Refusal.AUDIENCE
            ) from None
        if not addressed:
            raise wrong_audience()
        if len(addressed) > 1:
            # Each provider would return another user id. The order of the settings must not select the identity.
            raise AuthenticationFailed(
                "the token's audiences (aud) belong to several providers with the same issuer; request a token for "
                "one of them",
                Refusal.AUDIENCE,
            )
        return addressed[0]


def _read(token: str) -> _RoutingClaims:
    try:
        return msgspec.json.decode(payload_of(token), type=_RoutingClaims)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise AuthenticationFailed("the token's claims must be a JSON object") from None


class OpenIdLink:
    """One OpenID provider: its token rules, its keys, and its cache of verified tokens.

    Providers share no state. Equal key ids or subjects, an outage, or many unknown key ids at one provider do not
    affect the users of another.
    """

    def __init__(
        self, rules: TokenRules, keys: KeyRing, *, entries: int = TOKENS, seconds: float, observer: TokenObserver
    ) -> None:
        """Set the limits of the cache: at most `entries` verified tokens, each for at most `seconds`."""
        self._rules = rules
        self._cached_tokens = CachedTokens(
            TokenVerifier(rules, keys).verify,
            generation=lambda: keys.generation,
            entries=entries,
            seconds=seconds,
            observer=observer,
        )

    @property
    def idp_id(self) -> str:
        """Prefix of the user ids of this provider."""
        return self._rules.idp_id

    @property
    def issuers(self) -> frozenset[str]:
        """Accepted spellings of the issuer."""
        return self._rules.additional_issuers | {self._rules.issuer}

    @property
    def audiences(self) -> frozenset[str]:
        """Accepted audiences, including those of single projects."""
        return self._rules.audiences | frozenset(self._rules.project_audiences)

    async def verify(self, token: str) -> VerifiedToken:
        """Verify `token`, from the cache if possible.

        Raises `AuthenticationFailed` or `IdentityProviderUnavailable`.
        """
        return await self._cached_tokens.verify(token)
