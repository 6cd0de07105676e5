# SPDX-License-Identifier: Apache-2.0
"""Several parties that vouch for callers: each token is judged by exactly one of them.

A token is *routed* by what it says of itself (`iss`, and `aud` where several vouch for one issuer), which proves
nothing, and is then verified in full by the link it was routed to. What that link says is final: a token that it
refuses is offered to no other one, or the weakest of all would decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Protocol

import msgspec

from gateway.identity.cache import RememberedTokens, TokenObserver
from gateway.identity.claims import payload_of
from gateway.identity.errors import AuthenticationFailed
from gateway.identity.keys import KeyRing
from gateway.identity.tokens import TokenRules, TokenVerifier, VerifiedToken


class Judge(Protocol):
    """Says what a token proves: a verifier, a memory before it, or the router before all of them."""

    async def verify(self, token: str) -> VerifiedToken:
        """What `token` proves. Raises `AuthenticationFailed` or `IdentityProviderUnavailable`."""


class Link(Judge, Protocol):
    """One party that vouches for callers; the users it names are `<idp_id>~<subject>`, and no other party's are.

    `issuers` and `audiences` are what its tokens name; a token is routed to it by them and by nothing else.
    """

    @property
    def idp_id(self) -> str: ...
    @property
    def issuers(self) -> frozenset[str]: ...
    @property
    def audiences(self) -> frozenset[str]: ...


class _Says(msgspec.Struct, frozen=True):
    """What a token says of itself, unverified."""

    iss: Any = None
    aud: Any = None


class TokenRouter:
    """All links of one process. Raises `ValueError` for links that could not be told apart."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._by_issuer: dict[str, list[Link]] = {}
        for one, other in combinations(links, 2):
            if one.idp_id == other.idp_id:
                raise ValueError(f"two identity providers have the id {one.idp_id!r}")
            if one.issuers & other.issuers and one.audiences & other.audiences:
                raise ValueError(
                    f"the identity providers {one.idp_id!r} and {other.idp_id!r} have the same issuer and the same "
                    "audience; nobody could tell whose token one is"
                )
        for link in links:
            for issuer in link.issuers:
                self._by_issuer.setdefault(issuer, []).append(link)

    async def verify(self, token: str) -> VerifiedToken:
        """What `token` proves, by the one link it belongs to.

        Raises `AuthenticationFailed` (401) when it belongs to none or breaks a rule of its own one, and
        `IdentityProviderUnavailable` (503) when that one cannot judge it now.
        """
        return await self.route(token).verify(token)

    def route(self, token: str) -> Link:
        """The link that `token` belongs to, found without asking anybody. Raises `AuthenticationFailed`."""
        says = _read(token)
        fitting = self._by_issuer.get(says.iss, []) if isinstance(says.iss, str) else []
        if not fitting:
            raise AuthenticationFailed("the token comes from an issuer that is not configured here")
        if len(fitting) == 1:
            return fitting[0]
        named = {says.aud} if isinstance(says.aud, str) else says.aud
        try:
            addressed = [link for link in fitting if not link.audiences.isdisjoint(named or ())]
        except TypeError:
            raise AuthenticationFailed("the token names no audience (aud), or one that is not text") from None
        if not addressed:
            raise AuthenticationFailed("the token was issued for another audience than this service")
        if len(addressed) > 1:
            # By either provider it would be somebody else: the order of settings must not choose who one is.
            raise AuthenticationFailed("the token is for the audiences of several providers that share its issuer")
        return addressed[0]


def _read(token: str) -> _Says:
    try:
        return msgspec.json.decode(payload_of(token), type=_Says)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise AuthenticationFailed("the token's claims are not a JSON object") from None


class OpenIdLink:
    """One OpenID provider: what its tokens have to look like, its keys, and what was verified a moment ago.

    Nothing in it is shared with another provider, so that equal key ids, equal subjects, an outage and a storm of
    unknown keys of the one mean nothing to the users of the other.
    """

    def __init__(
        self, rules: TokenRules, keys: KeyRing, *, entries: int, seconds: float, observer: TokenObserver
    ) -> None:
        """At most `entries` verified tokens are remembered, each for at most `seconds`."""
        self._rules = rules
        self._remembered = RememberedTokens(
            TokenVerifier(rules, keys).verify,
            generation=lambda: keys.generation,
            entries=entries,
            seconds=seconds,
            observer=observer,
        )

    @property
    def idp_id(self) -> str:
        """The first part of its users' ids."""
        return self._rules.idp_id

    @property
    def issuers(self) -> frozenset[str]:
        """The spellings of its issuer."""
        return self._rules.additional_issuers | {self._rules.issuer}

    @property
    def audiences(self) -> frozenset[str]:
        """All audiences that its tokens may be for."""
        return self._rules.audiences | frozenset(self._rules.project_audiences)

    async def verify(self, token: str) -> VerifiedToken:
        """What `token` proves. Raises `AuthenticationFailed` or `IdentityProviderUnavailable`."""
        return await self._remembered.verify(token)
