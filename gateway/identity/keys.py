# SPDX-License-Identifier: Apache-2.0
"""The provider's public keys: loaded once, kept fresh, found by key id, and given up when they are too old to be
believed.

Times, all in seconds of the monotonic clock, counted from the start of the load that brought the keys:

* younger than `refresh_seconds`: used as they are;
* older: used, while one load runs in the background;
* older than `max_age_seconds`: not used any more; no answer from the provider means no authentication (fail closed);
* at most one load per `refetch_seconds` whatever the requests ask for, and never two at once.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey

from gateway.identity.discovery import find_jwks_uri
from gateway.identity.errors import AuthenticationFailed, IdentityProviderUnavailable
from gateway.identity.fetch import Fetcher, FetchFailed, check_endpoint

_RSA_ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_EC_ALGORITHMS = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_OKP_CURVES = frozenset({"Ed25519", "Ed448"})

ALGORITHMS = _RSA_ALGORITHMS | frozenset(_EC_ALGORITHMS.values()) | {"EdDSA"} | _OKP_CURVES
"""All signature algorithms that are accepted (RFC 7518, 8037, 9864). Public keys only: with HMAC whoever can verify
can also sign.
"""

MAX_KEYS = 100
# 2048 is the floor of RFC 7518 section 3.3; the ceiling bounds what one verification may cost (about 0.3 ms).
_RSA_BITS = range(2048, 8192 + 1)


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """One public key, and the algorithms that its type, its curve and its own `alg` leave to it."""

    kid: str | None
    algorithms: frozenset[str]
    key: Key


def parse_jwks(document: bytes) -> tuple[VerificationKey, ...]:
    """Read a JWK set (RFC 7517); keys that cannot verify a signature are left out, as section 5 asks.

    Raises `ValueError` when it is no key set, has more than `MAX_KEYS` keys or none that is usable.
    """
    try:
        raw_keys = msgspec.json.decode(document, type=_KeySet).keys
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a key set: {type(error).__name__}") from error
    if len(raw_keys) > MAX_KEYS:
        raise ValueError(f"a key set of {len(raw_keys)} keys; at most {MAX_KEYS} are read")
    usable = tuple(key for raw in raw_keys if (key := _usable(raw)) is not None)
    if not usable:
        raise ValueError(f"none of the {len(raw_keys)} keys can verify a signature")
    return usable


class _KeySet(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]]


def _usable(raw: dict[str, Any]) -> VerificationKey | None:
    # A published private key ("d") is known to everybody: whatever it signed proves nothing.
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
    """The keys of one provider, for any number of concurrent requests on one event loop. Close it with `aclose`."""

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
        """`issuer` is the configured provider, which says where its keys are unless `jwks_uri` does. Raises
        `ValueError` when its address may not be used or the times are not in order.
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
        self._failure: str | None = "no key was loaded yet"
        self._loading: asyncio.Task[None] | None = None

    @property
    def generation(self) -> int:
        """Another number whenever the provider published other keys than before, and one of its own while the keys are
        too old to be believed: what was verified by a key that is gone is verified no longer.
        """
        return self._generation if self.believable else -1

    @property
    def believable(self) -> bool:
        """Whether there are keys that are not too old."""
        age = self._age()
        return age is not None and age < self._max_age_seconds

    async def candidates(self, kid: str | None, algorithm: str) -> tuple[VerificationKey, ...]:
        """The keys that may have signed a token whose header names `kid` and `algorithm`; never empty.

        Raises `AuthenticationFailed` when the provider has no such key, `IdentityProviderUnavailable` when nobody
        can tell.
        """
        await self._ensure_believable()
        if not self._knows(kid, algorithm):
            # Not known here may mean: rotated a moment ago.
            await self._reload()
            if not self._knows(kid, algorithm) and self._failure is not None:
                raise self._unavailable(self._failure)
        return self._select(kid, algorithm)

    async def check(self) -> None:
        """For health: load the keys when that is due; raises `IdentityProviderUnavailable` when the last attempt
        failed.
        """
        age = self._age()
        if age is None or age >= self._refresh_seconds or self._failure is not None:
            await self._reload()
        if self._failure is not None:
            raise self._unavailable(self._failure)

    async def aclose(self) -> None:
        """Stop a load that is under way."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    async def _ensure_believable(self) -> None:
        if not self.believable:
            await self._reload()
            if not self.believable:
                raise self._unavailable(self._failure or "the keys are past their maximum age")
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
                "the token is signed with a key or an algorithm that the identity provider does not publish"
            )
        if kid is None and len(fitting) > 1:
            # OpenID Connect Core 10.1: with several keys in the set the header has to say which.
            raise AuthenticationFailed(
                "the token's header names no key (kid), and the identity provider publishes several"
            )
        return fitting

    def _start_load(self) -> asyncio.Task[None] | None:
        """The load under way, or a new one; None while the last attempt is too recent."""
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
            # Shielded: the request that started the load may be cancelled while others wait for the same load.
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
