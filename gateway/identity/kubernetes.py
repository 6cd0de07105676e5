# SPDX-License-Identifier: Apache-2.0
"""Authenticate the service accounts of a Kubernetes cluster.

The cluster's API server verifies each token (TokenReview of authentication.k8s.io/v1). So a token becomes invalid when
its pod is deleted, and not only when it expires.

The gateway first checks the token itself: form, issuer, audience and dates. It checks the signature too, if the cluster
lets it read the public keys. Tokens with an unknown key have a review queue of their own, so forged tokens cannot block
those of pods. The number of concurrent reviews is small, to limit the load on the API server.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, Protocol, Self
from urllib.parse import urlsplit

import aiohttp
import msgspec
from cachetools import TTLCache

from gateway.access.tuples import is_valid_in_tuples
from gateway.identity import claims as read
from gateway.identity import errors
from gateway.identity.binding import binding_of
from gateway.identity.cache import TOKENS, CachedTokens, TokenObserver
from gateway.identity.discovery import FetchFailed, check_endpoint
from gateway.identity.errors import AuthenticationFailed, IdentityProviderUnavailable, Refusal
from gateway.identity.keys import KeyRing
from gateway.identity.tokens import KeySource, VerifiedToken, audiences_of, decode_claims, numeric_date, signed_by

_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
_KEYS_PATH = "/openid/v1/jwks"
_ACCOUNT = re.compile(r"system:serviceaccount:(?P<namespace>[a-z0-9-]{1,63}):(?P<name>[a-z0-9.-]{1,253})", re.ASCII)
#: Issuer of the legacy tokens of service accounts. These tokens have no expiry and no audience.
LEGACY_ISSUER = "kubernetes/serviceaccount"
_MAX_ANSWER_BYTES = 262_144
#: Limits for concurrent reviews, and for reviews that are running or waiting.
_AT_ONCE, _WAITING = 8, 64
#: The same limits for tokens whose key the cluster does not publish, or not yet.
_UNKNOWN_AT_ONCE, _UNKNOWN_WAITING = 2, 16
_REFUSED_ENTRIES, _REFUSED_SECONDS = 2_000, 10.0
_RETRY_SECONDS = 5


class ClusterRules(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of one cluster.

    `issuers` are the accepted values of `iss`. `audiences` must not be empty: without an audience the API server
    accepts tokens for its own API, which every pod has. `accept_legacy` accepts tokens without expiry and audience.

    `subject_source` selects the user ids: `<idp_id>~<uid>`, or `<idp_id>~system:serviceaccount:<namespace>:<name>`. If
    an account is deleted and created again, it has the same name but another uid.

    Raises `ValueError` without an issuer or an audience.
    """

    idp_id: str
    issuers: frozenset[str]
    audiences: frozenset[str]
    subject_source: Literal["uid", "username"] = "uid"
    accept_legacy: bool = False
    skew_seconds: int = 30

    def __post_init__(self) -> None:
        if not self.issuers or not all(self.issuers):
            raise ValueError(f"the issuer of the cluster {self.idp_id!r} is unknown; set it")
        if not self.audiences or not all(self.audiences):
            raise ValueError(f"the cluster {self.idp_id!r} needs an audience; else tokens for its own API are valid")


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: list[str] = []


class _Status(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()
    audiences: list[str] = []


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    status: _Status
    kind: Literal["TokenReview"] = "TokenReview"
    api_version: Literal["authentication.k8s.io/v1"] = "authentication.k8s.io/v1"


class Reviews(Protocol):
    """A function that sends TokenReviews to the API server."""

    async def __call__(self, review: bytes) -> bytes:
        """Send one review and return the response body. Raises `IdentityProviderUnavailable`."""


class ClusterKeys(KeySource, Protocol):
    """The published keys of the cluster. `KeyRing` implements it."""

    @property
    def believable(self) -> bool: ...


class _Lane:
    """A queue that limits reviews: `at_once` run concurrently, and at most `waiting` are running or waiting."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._most = waiting
        self._waiting = 0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it. Raises `IdentityProviderUnavailable` if the queue is full."""
        if self._waiting >= self._most:
            raise unavailable("too many tokens are waiting for a review")
        self._waiting += 1
        try:
            async with self._room:
                yield
        finally:
            self._waiting -= 1


class ServiceAccounts:
    """Verifies the tokens of the service accounts of one cluster. Implements `router.Link`."""

    def __init__(
        self,
        rules: ClusterRules,
        reviews: Reviews,
        keys: ClusterKeys,
        *,
        entries: int = TOKENS,
        seconds: float,
        observer: TokenObserver,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Set the limits of the cache: `entries` tokens, and `seconds` until a token is reviewed again.

        A token of a deleted pod or account is accepted until its entry in the cache expires.
        """
        self._rules = rules
        self._reviews = reviews
        self._keys = keys
        self._clock = clock
        self._seconds = seconds
        self._lane = _Lane(_AT_ONCE, _WAITING)
        self._lane_of_unknown = _Lane(_UNKNOWN_AT_ONCE, _UNKNOWN_WAITING)
        self._under_way: dict[bytes, asyncio.Task[_Status]] = {}
        self._refused: TTLCache[bytes, tuple[str, Refusal]] = TTLCache(_REFUSED_ENTRIES, _REFUSED_SECONDS)
        self._cached_tokens = CachedTokens(
            self._verify, generation=lambda: 0, entries=entries, seconds=seconds, observer=observer, clock=clock
        )

    @property
    def idp_id(self) -> str:
        """The prefix of the ids of this cluster's users."""
        return self._rules.idp_id

    @property
    def issuers(self) -> frozenset[str]:
        """Accepted issuers of tokens."""
        return self._rules.issuers | ({LEGACY_ISSUER} if self._rules.accept_legacy else frozenset())

    @property
    def audiences(self) -> frozenset[str]:
        """Accepted audiences of tokens."""
        return self._rules.audiences

    async def verify(self, token: str) -> VerifiedToken:
        """Verify `token`, from the cache if possible.

        Raises `AuthenticationFailed`, and `IdentityProviderUnavailable` if the API server cannot review it now.
        """
        return await self._cached_tokens.verify(token)

    async def check(self) -> None:
        """Check the API server by the review of a text that is not a token. Raises `IdentityProviderUnavailable`."""
        await self._review("no-token", self._lane)

    async def _verify(self, token: str) -> VerifiedToken:
        claims = _unverified(token)
        issuer, audiences, expires_at = self._require_reviewable(claims)
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        if (refusal := self._refused.get(digest)) is not None:
            raise AuthenticationFailed(*refusal)
        lane = await self._lane_for(token)
        try:
            status = await self._reviewed(digest, token, lane, legacy=issuer == LEGACY_ISSUER)
            return self._read(claims, status, issuer, audiences, expires_at)
        except AuthenticationFailed as refused:
            self._refused[digest] = (refused.message, refused.reason)
            raise

    def _require_reviewable(self, claims: read.Claims) -> tuple[str, tuple[str, ...], float]:
        """Return the unverified (issuer, audiences, expiry in seconds since 1970) of a token that may be valid.

        Raises `AuthenticationFailed` if the token needs no review, because its claims violate the rules.
        """
        issuer = claims.get("iss")
        if not isinstance(issuer, str) or issuer not in self.issuers:
            raise errors.unknown_issuer()
        binding_of(claims, frozenset())  # Refuses bound tokens: no proof is checked for clusters.
        now, skew = self._clock(), self._rules.skew_seconds
        expires_at, not_before = numeric_date(claims, "exp"), numeric_date(claims, "nbf")
        if issuer == LEGACY_ISSUER:
            # The review of a legacy token requests no audience, so the API server also accepts tokens for itself. A
            # token with an audience is not a legacy token, and must not be accepted here if it is for the API server.
            if "aud" in claims:
                raise AuthenticationFailed("a token of this issuer must not have an audience (aud)", Refusal.AUDIENCE)
            return issuer, (), now + self._seconds if expires_at is None else expires_at
        if expires_at is None or now >= expires_at + skew:
            raise AuthenticationFailed("the token has expired, or has no expiry (exp); get a new one", Refusal.EXPIRED)
        if not_before is not None and now < not_before - skew:
            raise errors.not_yet_valid()
        audiences = audiences_of(claims)
        if self._rules.audiences.isdisjoint(audiences):
            raise errors.wrong_audience()
        return issuer, audiences, expires_at

    async def _lane_for(self, token: str) -> _Lane:
        """Return the queue for the review of a token. Raises `AuthenticationFailed` if its signature is invalid.

        A token with an unknown key is not rejected: during a restart of the API servers, some do not publish a new key
        yet.
        """
        try:
            if await signed_by(token, self._keys):
                return self._lane
        except (AuthenticationFailed, IdentityProviderUnavailable):
            # Without usable keys no signature can be verified, so all tokens use the larger queue.
            return self._lane_of_unknown if self._keys.believable else self._lane
        raise errors.invalid_signature()

    async def _reviewed(self, digest: bytes, token: str, lane: _Lane, *, legacy: bool) -> _Status:
        """Share one review between all concurrent requests with the same token."""
        review = self._under_way.get(digest)
        if review is None:
            review = asyncio.create_task(self._review(token, lane, legacy=legacy), name="token-review")
            self._under_way[digest] = review
            review.add_done_callback(lambda _: self._under_way.pop(digest))
        # Shielded: other requests may wait for this review when the request that started it is cancelled.
        return await asyncio.shield(review)

    async def _review(self, token: str, lane: _Lane, *, legacy: bool = False) -> _Status:
        """Send one review and return its status. Raises `IdentityProviderUnavailable`.

        The API server treats a token without an audience as a token for its own audience, and rejects it if the review
        contains another one. Therefore the review of a legacy token contains no audience.
        """
        spec: dict[str, Any] = {"token": token}
        if not legacy:
            spec["audiences"] = sorted(self._rules.audiences)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        async with lane.slot():
            answer = await self._reviews(msgspec.json.encode(review))
        try:
            return msgspec.json.decode(answer, type=_Review).status
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise unavailable(f"the response of the API server is not a TokenReview: {error}") from None

    def _read(
        self, claims: read.Claims, status: _Status, issuer: str, audiences: tuple[str, ...], expires_at: float
    ) -> VerifiedToken:
        """Return the verified token of a review. Raises `AuthenticationFailed` if the review rejects the token.

        API servers also authenticate human users and nodes. Only service accounts are accepted.
        """
        if not status.authenticated:
            raise errors.rejected_by_cluster()
        # Without support for audiences, an API server omits them, and has validated the token for its own API only.
        if issuer != LEGACY_ISSUER and self._rules.audiences.isdisjoint(status.audiences):
            raise errors.unconfirmed_audience()
        account = _ACCOUNT.fullmatch(status.user.username)
        if account is None:
            raise AuthenticationFailed("the token does not belong to a service account", Refusal.WRONG_KIND)
        by_uid = self._rules.subject_source == "uid"
        subject = read.checked_subject(status.user.uid if by_uid else status.user.username, "the account's id")
        user_id = f"{self._rules.idp_id}~{subject}"
        if not is_valid_in_tuples(user_id):
            raise AuthenticationFailed("the id of the service account has more bytes than a user id can have")
        token_id = claims.get("jti")
        return VerifiedToken(
            idp_id=self._rules.idp_id,
            subject=subject,
            user_id=user_id,
            actor_user_id=None,
            issuer=issuer,
            audiences=audiences,
            expires_at=expires_at,
            issued_at=numeric_date(claims, "iat"),
            name=f"{account['namespace']}/{account['name']}",
            email=None,
            kind="application",
            project_id=None,
            client_id=None,
            token_id=token_id if isinstance(token_id, str) and len(token_id) <= 255 else None,
            groups=read.groups_of({"groups": status.user.groups}, "groups"),
            scopes=frozenset(),
        )


def unavailable(reason: str) -> IdentityProviderUnavailable:
    """Return the error (503) for a cluster that is not available. `reason` is for the log."""
    return IdentityProviderUnavailable(reason, retry_after_s=_RETRY_SECONDS)


def _unverified(token: str) -> read.Claims:
    return decode_claims(read.payload_of(token))


def issuer_in(token: str) -> str | None:
    """Return the unverified issuer of a token, or None if it has none or is not a JWT.

    The token of the gateway's own service account contains the issuer of the cluster.
    """
    try:
        issuer = _unverified(token).get("iss")
    except AuthenticationFailed:
        return None
    return issuer if isinstance(issuer, str) else None


class ApiServer:
    """Client of the API server. Implements `Reviews`, and with its method `fetch` the `Fetcher` of the cluster's keys.

    It uses HTTPS and the token of the gateway's own service account, without redirects or proxies. Time and size of
    responses are limited. Create it inside the running event loop: `async with ApiServer(...) as reviews`. The token is
    read from `token_file` for each request, because the kubelet replaces it before it expires.
    """

    def __init__(self, url: str, token_file: Path, *, tls: ssl.SSLContext, timeout_seconds: float = 5.0) -> None:
        """Set the address of the API server. Raises ValueError if it is not https."""
        check_endpoint(url, "the address of the API server")
        if not url.startswith("https://"):
            raise ValueError("the address of the API server must begin with https")
        self._url = url.rstrip("/")
        self._token_file = token_file
        self._tls = tls
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls),
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_exc: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def key_ring(self) -> KeyRing:
        """Return a `KeyRing` of the keys that sign the cluster's tokens.

        The keys are read from the API server and not from the issuer's address, which may not be reachable from here.
        """
        return KeyRing(self._url, self.fetch, jwks_uri=self._url + _KEYS_PATH)

    async def __call__(self, review: bytes) -> bytes:
        """Send one review and return the response body. Raises `IdentityProviderUnavailable`."""
        return await self._call_api("POST", self._url + _PATH, review)

    async def fetch(self, url: str) -> bytes:
        """GET a document of the API server. Raises `FetchFailed`."""
        try:
            return await self._call_api("GET", url, None)
        except IdentityProviderUnavailable as error:
            raise FetchFailed(error.reason) from error

    async def _call_api(self, method: str, url: str, body: bytes | None) -> bytes:
        if self._session is None:
            raise unavailable("the connection to the API server is not open")
        try:
            own = (await asyncio.to_thread(self._token_file.read_text)).strip()
            headers = {"Authorization": f"Bearer {own}"} | ({"Content-Type": "application/json"} if body else {})
            async with self._session.request(method, url, data=body, headers=headers, allow_redirects=False) as answer:
                found = await answer.content.read(_MAX_ANSWER_BYTES + 1)
                if answer.status not in (200, 201):
                    # 401 and 403 concern the gateway's own account, for example if it lacks system:auth-delegator.
                    raise unavailable(f"the API server answered {method} {urlsplit(url).path} with {answer.status}")
                while len(found) <= _MAX_ANSWER_BYTES and (more := await answer.content.read(_MAX_ANSWER_BYTES)):
                    found += more
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise unavailable(f"the API server did not answer: {type(error).__name__}") from error
        if len(found) > _MAX_ANSWER_BYTES:
            raise unavailable(f"the response of the API server has more than {_MAX_ANSWER_BYTES} bytes")
        return found
