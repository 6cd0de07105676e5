# SPDX-License-Identifier: Apache-2.0
"""A provider without a network: local keys, documents from a table, and clocks that only a test advances."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any, Literal, cast

import pytest
from joserfc import jws
from joserfc.jwk import ECKey, Key, KeyParameters, OctKey, OKPKey, RSAKey

from gateway.identity.discovery import FetchFailed, discovery_url
from gateway.identity.keys import KeyRing
from gateway.identity.tokens import TokenRules, TokenVerifier, VerifiedToken

NOW = 1_800_000_000.0
ISSUER = "https://idp.example/realms/lake"
JWKS_URI = "https://idp.example/realms/lake/keys"
AUDIENCE = "lakegate"


class Clock:
    """A clock that stays at `at` seconds."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


class Documents:
    """A `Fetcher` over a table. Records requests; `down` makes it fail, `gate` blocks it."""

    def __init__(self, table: dict[str, bytes]) -> None:
        self.table = table
        self.calls: list[str] = []
        self.down = False
        self.gate: asyncio.Event | None = None

    async def __call__(self, url: str) -> bytes:
        self.calls.append(url)
        if self.gate is not None:
            await self.gate.wait()
        if self.down or url not in self.table:
            raise FetchFailed(f"{url} could not be fetched: down")
        return self.table[url]


class Provider:
    """An identity provider that signs tokens, publishes keys and can rotate them."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.wall = Clock(NOW)
        self.monotonic = Clock(1_000.0)
        self.documents = Documents({})
        self.publish(self.key)

    def publish(self, *keys: Key | dict[str, Any], issuer: str = ISSUER, jwks_uri: str = JWKS_URI) -> None:
        """Publish these public keys (a dict is published unchanged) from now on."""
        public = [key if isinstance(key, dict) else key.as_dict(private=False) for key in keys]
        self.documents.table[discovery_url(ISSUER)] = json.dumps({"issuer": issuer, "jwks_uri": jwks_uri}).encode()
        self.documents.table[jwks_uri] = json.dumps({"keys": public}).encode()

    def ring(self, **times: Any) -> KeyRing:
        return KeyRing(ISSUER, self.documents, clock=self.monotonic, **times)

    def verifier(self, **rules: Any) -> TokenVerifier:
        settings: dict[str, Any] = {"issuer": ISSUER, "audiences": frozenset({AUDIENCE})} | rules
        return TokenVerifier(TokenRules(**settings), self.ring(), clock=self.wall)

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return claims of a valid access token; a change to `...` omits the claim."""
        good: dict[str, Any] = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": NOW + 300, "iat": NOW - 1}
        return {name: value for name, value in (good | changes).items() if value is not ...}

    def sign(
        self,
        claims: dict[str, Any] | bytes,
        *,
        key: Key | None = None,
        header: dict[str, Any] | None = None,
        kid: str | None = "k1",
    ) -> str:
        """Sign `claims` with any header. The header checks of joserfc are bypassed, as an attacker would."""
        fields = {"alg": "RS256", "typ": "JWT"} | ({} if kid is None else {"kid": kid}) | (header or {})
        payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        signed = b64(json.dumps(fields).encode()) + "." + b64(payload)
        algorithm = jws.JWSRegistry.algorithms[fields["alg"]]
        return signed + "." + b64(algorithm.sign(signed.encode(), key or self.key))

    def token(self, **changes: Any) -> str:
        return self.sign(self.claims(**changes))

    async def verify(self, token: str, **rules: Any) -> VerifiedToken:
        return await self.verifier(**rules).verify(token)


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def make_key(kind: str, **parameters: Any) -> Key:
    """Return a new private key: 'RSA', 'oct', or the name of a curve."""
    known = cast(KeyParameters, parameters)
    if kind == "RSA":
        return RSAKey.generate_key(2048, known)
    if kind == "oct":
        return OctKey.generate_key(256, known)
    if kind.startswith("Ed"):
        return OKPKey.generate_key(cast(Literal["Ed25519", "Ed448"], kind), known)
    return ECKey.generate_key(kind, known)


@pytest.fixture(scope="session")
def provider_key() -> Key:
    """Return the first key of the provider, made once because generating an RSA key takes 50 ms."""
    return RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"})


@pytest.fixture
def provider(provider_key: Key) -> Provider:
    """Return a healthy provider that publishes one RSA key, `k1`."""
    return Provider(provider_key)


@pytest.fixture
def new_key() -> Callable[..., Key]:
    """Return the function `new_key(kind, **jwk_parameters)`, which makes a private key."""
    return make_key
