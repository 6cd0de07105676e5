# SPDX-License-Identifier: Apache-2.0
"""Cache a provider's public keys: load and refresh them, and select them by key id.

The age of the keys is in seconds of the monotonic clock, from the start of the load that fetched them:

* younger than `refresh_seconds`: the keys are used;
* older: the keys are used, and one load runs in the background;
* older than `max_age_seconds`: the keys are not used; if the provider does not respond, no token is accepted.

At most one load starts per `refetch_seconds`, for any number of requests. Two loads never run at the same time.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey

from gateway.identity.discovery import Fetcher, FetchFailed, check_endpoint, find_jwks_uri
from gateway.identity.errors import AuthenticationFailed, IdentityProviderUnavailable, Refusal

_RSA_ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_EC_ALGORITHMS = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_OKP_CURVES = frozenset({"Ed25519", "Ed448"})

ALGORITHMS = _RSA_ALGORITHMS | frozenset(_EC_ALGORITHMS.values()) | {"EdDSA"} | _OKP_CURVES
"""Accepted signature algorithms (RFC 7518, 8037, 9864). HMAC is not accepted: its verification key can also sign."""

MAX_KEYS = 100
# RFC 7518 section 3.3 requires 2048 bits. The upper limit bounds the cost of one verification (about 0.3 ms).
_RSA_BITS = range(2048, 8192 + 1)


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """One public key, and the algorithms that its type, its size or curve, and its `alg` parameter allow."""

    kid: str | None
    algorithms: frozenset[str]
    key: Key


def parse_jwks(document: bytes) -> tuple[VerificationKey, ...]:
    """Read a JWK set (RFC 7517). Keys that cannot verify a signature are left out, as section 5 recommends.

    Raises `ValueError` if the document is not a key set, has more than `MAX_KEYS` keys, or has no usable key.
    """
    try:
        raw_keys = msgspec.json.decode(document, type=_KeySet).keys
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a key set: {type(error).__name__}") from error
    if len(raw_keys) > MAX_KEYS:
        raise ValueError(f"the key set has {len(raw_keys)} keys; at most {MAX_KEYS} are allowed")
    usable = tuple(key for raw in raw_keys if (key := _usable(raw)) is not None)
    if not usable:
        raise ValueError(f"none of the {len(raw_keys)} keys can verify a signature")
    return usable


class _KeySet(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]]


def _usable(raw: dict[str, Any]) -> VerificationKey | None:
    # Anyone can sign with a published private key ("d"), so its signatures prove nothing.
    if raw.get("use", "sig") != "sig" or "d" in raw or raw.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    try:
        if "verify" not in raw.get("key_ops", ["verify"]):
            return None
        key = JWKRegistry.import_key(raw)
        algorithms = _algorithms_of(key)
        if "alg" in raw:
            algorithms &= {raw["alg"]}
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return VerificationKey(raw.get("kid"), algorithms, key) if algorithms else None


def _algorithms_of(key: Key) -> frozenset[str]:
    match key:
        case RSAKey():
            return _RSA_ALGORITHMS if key.public_key.key_size in _RSA_BITS else frozenset()
        case ECKey():
            return frozenset({_EC_ALGORITHMS[key.curve_name]}) if key.curve_name in _EC_ALGORITHMS else frozenset()
        case OKPKey():
            return frozenset({"EdDSA", key.curve_name}) if key.curve_name in _OKP_CURVES else frozenset()
        case _:
            return frozenset()


class KeyRing:
    """The keys of one provider, for concurrent requests on one event loop. Close it with `aclose`."""

    def __init__(
        self,
        issuer: str,
        fetch: Fetcher,
        *,
        refetch_seconds: float = 10.0,
        refresh_seconds: float = 300.0,
        max_age_seconds: float = 3600.0,
        jwks_uri: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the provider. Without `jwks_uri`, the metadata of `issuer` contains the address of the keys.

        Raises `ValueError` if `issuer` is not an accepted address (`check_endpoint`), or unless
        0 < refetch_seconds <= refresh_seconds <= max_age_seconds.
        """
        check_endpoint(issuer, "the identity provider's URI")
        if not 0 < refetch_seconds <= refresh_seconds <= max_age_seconds:
            raise ValueError("0 < refetch_seconds <= refresh_seconds <= max_age_seconds is required")
        self._issuer = issuer
        self._jwks_uri = jwks_uri
        self._fetch = fetch
        self._refetch_seconds = refetch_seconds
        self._refresh_seconds = refresh_seconds
        self._max_age_seconds = max_age_seconds
        self._clock = clock
        self._keys: tuple[VerificationKey, ...] = ()
        self._published: bytes | None = None
        self._generation = 0
        self._loaded_at: float | None = None
        self._attempted_at: float | None = None
        self._failure: str | None = "no key has been loaded yet"
        self._loading: asyncio.Task[None] | None = None

    @property
    def generation(self) -> int:
        """A number that changes when the provider publishes different keys. It is -1 while `believable` is False.

        Cached verifications of another generation are invalid, because their key may have been removed.
        """
        return self._generation if self.believable else -1

    @property
    def believable(self) -> bool:
        """True if keys are loaded and younger than `max_age_seconds`."""
        age = self._age()
        return age is not None and age < self._max_age_seconds

    async def candidates(self, kid: str | None, algorithm: str) -> tuple[VerificationKey, ...]:
        """Return the keys that fit the `kid` and `algorithm` in a token's header. There is at least one.

        Raises `AuthenticationFailed` if no published key fits, or if several fit a header without `kid`. Raises
        `IdentityProviderUnavailable` if the keys are too old, or if none fits and the last load failed.
        """
        await self._ensure_believable()
        if not self._knows(kid, algorithm):
            # The provider may have published a new key since the last load.
            await self._reload()
            if not self._knows(kid, algorithm) and self._failure is not None:
                raise self._unavailable(self._failure)
        return self._select(kid, algorithm)

    async def check(self) -> None:
        """Check the provider for the health endpoint: load the keys if they are due, or if the last load failed.

        Raises `IdentityProviderUnavailable` if the last load failed.
        """
        age = self._age()
        if age is None or age >= self._refresh_seconds or self._failure is not None:
            await self._reload()
        if self._failure is not None:
            raise self._unavailable(self._failure)

    async def aclose(self) -> None:
        """Cancel a running load."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    async def _ensure_believable(self) -> None:
        if not self.believable:
            await self._reload()
            if not self.believable:
                raise self._unavailable(self._failure or "the keys are older than their maximum age")
        elif (self._age() or 0.0) >= self._refresh_seconds:
            self._start_load()

    def _age(self) -> float | None:
        return None if self._loaded_at is None else self._clock() - self._loaded_at

    def _knows(self, kid: str | None, algorithm: str) -> bool:
        if kid is None:
            return any(algorithm in key.algorithms for key in self._keys)
        return any(kid == key.kid for key in self._keys)

    def _select(self, kid: str | None, algorithm: str) -> tuple[VerificationKey, ...]:
        fitting = tuple(key for key in self._keys if algorithm in key.algorithms and (kid is None or kid == key.kid))
        if not fitting:
            raise AuthenticationFailed(
                "the identity provider publishes no key with the key id (kid) and algorithm of the token; get a new "
                "token",
                Refusal.SIGNATURE,
            )
        if kid is None and len(fitting) > 1:
            # OpenID Connect Core section 10.1: if the set has several keys, the header must contain `kid`.
            raise AuthenticationFailed(
                "the token's header has no key id (kid), which is required because the identity provider publishes "
                "several keys",
                Refusal.SIGNATURE,
            )
        return fitting

    def _start_load(self) -> asyncio.Task[None] | None:
        """Return the load that is running, or start one. Return None if the last one started less than
        `refetch_seconds` ago.
        """
        if self._loading is not None:
            return self._loading
        now = self._clock()
        if self._attempted_at is not None and now - self._attempted_at < self._refetch_seconds:
            return None
        self._attempted_at = now
        self._loading = asyncio.create_task(self._load(now), name="identity-keys")
        self._loading.add_done_callback(self._load_ended)
        return self._loading

    def _load_ended(self, _task: asyncio.Task[None]) -> None:
        self._loading = None

    async def _reload(self) -> None:
        task = self._start_load()
        if task is not None:
            # Shielded: other requests may wait for this load when the request that started it is cancelled.
            await asyncio.shield(task)

    async def _load(self, started_at: float) -> None:
        try:
            jwks_uri = self._jwks_uri or await find_jwks_uri(self._issuer, self._fetch)
            published = await self._fetch(jwks_uri)
            self._keys = parse_jwks(published)
        except (FetchFailed, ValueError) as error:
            self._failure = str(error)
        else:
            self._loaded_at = started_at
            self._failure = None
            if published != self._published:
                self._published = published
                self._generation += 1

    def _unavailable(self, reason: str) -> IdentityProviderUnavailable:
        return IdentityProviderUnavailable(reason, retry_after_s=max(1, round(self._refetch_seconds)))
