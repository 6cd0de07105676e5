# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of authentication: verification of a token, and of a cached token.

The floor is the signature check alone, with the same library (`cryptography`). No network: keys are loaded before the
measurement. `python -m tests.bench.tokens` runs this alone.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from rich.console import Console
from rich.table import Table

from gateway.identity.delegated import DelegatedTokens
from gateway.identity.discovery import discovery_url
from gateway.identity.keys import KeyRing
from gateway.identity.own_keys import OwnKeys
from gateway.identity.router import OpenIdLink, TokenRouter
from gateway.identity.tokens import TokenRules
from tests.support.stack.providers import AUDIENCE, StubProvider

_ROUNDS = 7
_TOKENS = 200
_PROVIDERS = 10
_GROUPS = 100


@dataclass(frozen=True, slots=True)
class Cost:
    """Median microseconds of one token, and its ratio to the floor of the same round."""

    kind: str
    microseconds: float
    ratio: float


class _Unobserved:
    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        """Ignored here."""


def _router(providers: list[StubProvider], *, groups: str | None = None) -> TokenRouter:
    links = []
    for number, provider in enumerate(providers):

        async def fetch(url: str, provider: StubProvider = provider) -> bytes:
            return json.dumps(provider.document(url)).encode()

        rules = TokenRules(
            idp_id=f"idp-{number}", issuer=provider.issuer, audiences=frozenset({AUDIENCE}), groups_claim=groups
        )
        keys = KeyRing(provider.issuer, fetch)
        links.append(OpenIdLink(rules, keys, entries=_TOKENS, seconds=600.0, observer=_Unobserved()))
    return TokenRouter(links)


def _floor(provider: StubProvider, tokens: list[str]) -> Callable[[], Awaitable[None]]:
    """Check only the signature."""
    key: RSAPublicKey = provider.key.public_key()

    async def check() -> None:
        for token in tokens:
            head, _, signature = token.rpartition(".")
            raw = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
            key.verify(raw, head.encode(), padding.PKCS1v15(), hashes.SHA256())

    return check


def _verified(router: TokenRouter | DelegatedTokens, tokens: list[str]) -> Callable[[], Awaitable[None]]:
    async def verify() -> None:
        for token in tokens:
            await router.verify(token)

    return verify


async def _microseconds(work: Callable[[], Awaitable[None]]) -> float:
    begun = time.perf_counter()
    await work()
    return (time.perf_counter() - begun) / _TOKENS * 1e6


class _Keys:
    """Keys of delegated tokens in memory instead of the database, which is read once a second."""

    def __init__(self) -> None:
        self._kept: list[_Key] = []

    async def published(self) -> list[_Key]:
        return self._kept

    async def private(self, kid: str) -> bytes:
        return next(key.secret for key in self._kept if key.kid == kid)

    async def store(self, kid: str, *, public: bytes, private: bytes) -> None:
        self._kept = [_Key(kid, public, True, private)]


@dataclass(frozen=True, slots=True)
class _Key:
    kid: str
    public: bytes
    signs: bool
    secret: bytes


async def _own() -> tuple[DelegatedTokens, list[str]]:
    """Measure delegated tokens, which are verified each time so that their keys can be revoked."""
    tokens = DelegatedTokens(UUID(int=1), OwnKeys(_Keys()))
    issued = [await _issued(tokens) for _ in range(_TOKENS)]
    return tokens, issued


async def _issued(tokens: DelegatedTokens) -> str:
    given = await tokens.issue(
        user_id="oidc~a", engine_id="oidc~e", project_id=None, groups=(), not_after=None, subject_proven=True
    )
    return given.token


def _signed(tokens: DelegatedTokens) -> Callable[[], Awaitable[None]]:
    async def sign() -> None:
        for _ in range(_TOKENS):
            await _issued(tokens)

    return sign


async def _measure() -> list[Cost]:
    providers = [StubProvider(f"https://idp-{number}.example") for number in range(_PROVIDERS)]
    first = providers[0]
    assert first.document(discovery_url(first.issuer))["issuer"] == first.issuer
    serial = itertools.count()
    found: dict[str, list[tuple[float, float]]] = {}
    groups = [f"group-{number:04d}-{'x' * 20}" for number in range(_GROUPS)]
    own, exchanged = await _own()
    for _ in range(_ROUNDS):
        plain = [first.token("alice", jti=str(next(serial))) for _ in range(_TOKENS)]
        large = [first.token("alice", jti=str(next(serial)), groups=groups) for _ in range(_TOKENS)]
        alone, among, grouped = _router([first]), _router(providers), _router([first], groups="groups")
        for router in (alone, among, grouped):
            await router.verify(first.token("warm-up"))
        floor = await _microseconds(_floor(first, plain))
        for kind, router, tokens in (
            ("verified anew", alone, plain),
            ("known", alone, plain),
            (f"verified anew, one of {_PROVIDERS} providers", among, plain),
            (f"known, one of {_PROVIDERS} providers", among, plain),
            (f"verified anew, {_GROUPS} groups", grouped, large),
            (f"known, {_GROUPS} groups", grouped, large),
        ):
            took = await _microseconds(_verified(router, tokens))
            found.setdefault(kind, []).append((took, took / floor))
        for kind, work in (
            ("of an engine for a user (Ed25519), signed", _signed(own)),
            ("of an engine for a user (Ed25519), verified, which it is each time", _verified(own, exchanged)),
        ):
            took = await _microseconds(work)
            found.setdefault(kind, []).append((took, took / floor))
    return [
        Cost(kind, statistics.median(took for took, _ in rounds), statistics.median(ratio for _, ratio in rounds))
        for kind, rounds in found.items()
    ]


def token_costs() -> Table:
    """Return the figures as a table."""
    table = Table("knowing who asks (RS256, 2048 bits)", "µs a token", "x the signature alone")
    for cost in asyncio.run(_measure()):
        table.add_row(cost.kind, f"{cost.microseconds:.0f}", f"{cost.ratio:.2f}")
    return table


if __name__ == "__main__":
    Console().print(token_costs())
