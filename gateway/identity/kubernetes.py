# SPDX-License-Identifier: Apache-2.0
"""Service accounts of a Kubernetes cluster: the cluster's own API server says whether a token is good (TokenReview of
authentication.k8s.io/v1), so a token ends with its pod and not with its date.

What can be told without asking is told without asking: form, issuer, audience, dates, and the signature where the
cluster lets the gateway read its public keys. Tokens whose signature cannot be judged wait apart from those whose
signature is good, so that nobody who makes tokens up keeps a pod out; and no more than a few questions are under way,
so that a storm costs the API server little.
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

from gateway.access.tuples import fits_a_tuple
from gateway.identity import claims as read
from gateway.identity.cache import RememberedTokens, TokenObserver
from gateway.identity.errors import AuthenticationFailed, IdentityProviderUnavailable
from gateway.identity.fetch import FetchFailed, check_endpoint
from gateway.identity.keys import KeyRing
from gateway.identity.tokens import KeySource, VerifiedToken, audiences_of, decode_claims, numeric_date, signed_by

_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
_KEYS_PATH = "/openid/v1/jwks"
_ACCOUNT = re.compile(r"system:serviceaccount:(?P<namespace>[a-z0-9-]{1,63}):(?P<name>[a-z0-9.-]{1,253})", re.ASCII)
#: What tokens of service accounts were issued by before they had an end; they have no audience either.
LEGACY_ISSUER = "kubernetes/serviceaccount"
_MAX_ANSWER_BYTES = 262_144
#: How many reviews may be under way, and how many may wait or be under way.
_AT_ONCE, _WAITING = 8, 64
#: The same for tokens under a key that the cluster does not publish, or not yet.
_UNKNOWN_AT_ONCE, _UNKNOWN_WAITING = 2, 16
_REFUSED_ENTRIES, _REFUSED_SECONDS = 2_000, 10.0
_RETRY_SECONDS = 5


class ClusterRules(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster. Its service accounts are `<idp_id>~<uid>`, or `<idp_id>~system:serviceaccount:<namespace>:<name>`.

    `issuers` are what its tokens name. `audiences` must not be empty: without one the API server takes tokens that were
    made for itself, which are in every pod. A name is given again when an account of that name is made again, a uid
    never. Raises `ValueError` for rules that would let others in.
    """

    idp_id: str
    issuers: frozenset[str]
    audiences: frozenset[str]
    subject_source: Literal["uid", "username"] = "uid"
    accept_legacy: bool = False
    skew_seconds: int = 30

    def __post_init__(self) -> None:
        if not self.issuers or not all(self.issuers):
            raise ValueError(f"the issuer of the cluster {self.idp_id!r} is not known; set it")
        if not self.audiences or not all(self.audiences):
            raise ValueError(f"the cluster {self.idp_id!r} needs an audience, or tokens for its own API would do")


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
    """Sends one TokenReview to the API server."""

    async def __call__(self, review: bytes) -> bytes:
        """The body of its answer. Raises `IdentityProviderUnavailable` when there is none to go by."""


class ClusterKeys(KeySource, Protocol):
    """The keys that the cluster publishes: `KeyRing`."""

    @property
    def believable(self) -> bool: ...


class _Lane:
    """Where reviews wait for each other; `waiting` counts those under way, too."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._most = waiting
        self._waiting = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A turn. Raises `IdentityProviderUnavailable` when too many wait for one."""
        if self._waiting >= self._most:
            raise unavailable("too many tokens wait to be reviewed")
        self._waiting += 1
        try:
            async with self._room:
                yield
        finally:
            self._waiting -= 1


class ServiceAccounts:
    """A link of the router: the service accounts of one cluster."""

    def __init__(
        self,
        rules: ClusterRules,
        reviews: Reviews,
        keys: ClusterKeys,
        *,
        entries: int,
        seconds: float,
        observer: TokenObserver,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """A token counts as reviewed for `seconds` at most: so long may one work whose pod or account is gone."""
        self._rules = rules
        self._reviews = reviews
        self._keys = keys
        self._clock = clock
        self._seconds = seconds
        self._lane = _Lane(_AT_ONCE, _WAITING)
        self._lane_of_unknown = _Lane(_UNKNOWN_AT_ONCE, _UNKNOWN_WAITING)
        self._under_way: dict[bytes, asyncio.Task[_Status]] = {}
        self._refused: TTLCache[bytes, str] = TTLCache(_REFUSED_ENTRIES, _REFUSED_SECONDS)
        self._remembered = RememberedTokens(
            self._verify, generation=lambda: 0, entries=entries, seconds=seconds, observer=observer, clock=clock
        )

    @property
    def idp_id(self) -> str:
        """The first part of its users' ids."""
        return self._rules.idp_id

    @property
    def issuers(self) -> frozenset[str]:
        """What its tokens name as their issuer."""
        return self._rules.issuers | ({LEGACY_ISSUER} if self._rules.accept_legacy else frozenset())

    @property
    def audiences(self) -> frozenset[str]:
        """What its tokens have to be for."""
        return self._rules.audiences

    async def verify(self, token: str) -> VerifiedToken:
        """What `token` proves. Raises `AuthenticationFailed` or `IdentityProviderUnavailable`."""
        return await self._remembered.verify(token)

    async def check(self) -> None:
        """For health: have a text reviewed that is no token. Raises `IdentityProviderUnavailable`."""
        await self._review("no-token", self._lane)

    async def _verify(self, token: str) -> VerifiedToken:
        claims = _unverified(token)
        issuer, audiences, expires_at = self._worth_asking(claims)
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        if (refusal := self._refused.get(digest)) is not None:
            raise AuthenticationFailed(refusal)
        lane = await self._lane_for(token)
        try:
            status = await self._reviewed(digest, token, lane, legacy=issuer == LEGACY_ISSUER)
            return self._read(claims, status, issuer, audiences, expires_at)
        except AuthenticationFailed as refused:
            self._refused[digest] = refused.message
            raise

    def _worth_asking(self, claims: read.Claims) -> tuple[str, tuple[str, ...], float]:
        """(issuer, audiences, end) of a token that could be good; nothing of it is believed yet."""
        issuer = claims.get("iss")
        if not isinstance(issuer, str) or issuer not in self.issuers:
            raise AuthenticationFailed("the token comes from an issuer that is not configured here")
        now, skew = self._clock(), self._rules.skew_seconds
        expires_at, not_before = numeric_date(claims, "exp"), numeric_date(claims, "nbf")
        if issuer == LEGACY_ISSUER:
            # What names an audience is no such token, whatever its cluster calls itself: that audience would count.
            if "aud" in claims:
                raise AuthenticationFailed("a token of this issuer names no audience")
            return issuer, (), now + self._seconds if expires_at is None else expires_at
        if expires_at is None or now >= expires_at + skew:
            raise AuthenticationFailed("the token has expired, or has no expiry (exp)")
        if not_before is not None and now < not_before - skew:
            raise AuthenticationFailed("the token is not valid yet (nbf)")
        audiences = audiences_of(claims)
        if self._rules.audiences.isdisjoint(audiences):
            raise AuthenticationFailed("the token was issued for another audience than this service")
        return issuer, audiences, expires_at

    async def _lane_for(self, token: str) -> _Lane:
        """Where the token's review waits. Raises `AuthenticationFailed` when the cluster cannot have signed it.

        That a key is not published proves nothing: API servers that are started anew one after the other publish a new
        key one after the other.
        """
        try:
            if await signed_by(token, self._keys):
                return self._lane
        except (AuthenticationFailed, IdentityProviderUnavailable):
            # Without any keys all tokens are alike, and have the whole room.
            return self._lane_of_unknown if self._keys.believable else self._lane
        raise AuthenticationFailed("the token's signature is not valid")

    async def _reviewed(self, digest: bytes, token: str, lane: _Lane, *, legacy: bool) -> _Status:
        """One review for all requests that come with the same token at the same time."""
        review = self._under_way.get(digest)
        if review is None:
            review = asyncio.create_task(self._review(token, lane, legacy=legacy), name="token-review")
            self._under_way[digest] = review
            review.add_done_callback(lambda _: self._under_way.pop(digest))
        # The request that asked first may be cancelled while others wait for the same answer.
        return await asyncio.shield(review)

    async def _review(self, token: str, lane: _Lane, *, legacy: bool = False) -> _Status:
        """What the API server says. It takes a token without an audience for its own audience alone, and refuses it
        when another one is asked for; so for such a token it is asked for none.
        """
        spec: dict[str, Any] = {"token": token}
        if not legacy:
            spec["audiences"] = sorted(self._rules.audiences)
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        async with lane.place():
            answer = await self._reviews(msgspec.json.encode(asked))
        try:
            return msgspec.json.decode(answer, type=_Review).status
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise unavailable(f"the API server answered something else than a TokenReview: {error}") from None

    def _read(
        self, claims: read.Claims, status: _Status, issuer: str, audiences: tuple[str, ...], expires_at: float
    ) -> VerifiedToken:
        """What a review says. Only accounts of services count: an API server knows people and machines, too."""
        if not status.authenticated:
            raise AuthenticationFailed("the cluster does not know the token, or it is over")
        # An API server that does not know of audiences leaves them out, and then took the token for its own.
        if issuer != LEGACY_ISSUER and self._rules.audiences.isdisjoint(status.audiences):
            raise AuthenticationFailed("the cluster did not confirm that the token is for this service")
        account = _ACCOUNT.fullmatch(status.user.username)
        if account is None:
            raise AuthenticationFailed("the token is not one of a service account")
        by_uid = self._rules.subject_source == "uid"
        subject = read.checked_subject(status.user.uid if by_uid else status.user.username, "the account's id")
        user_id = f"{self._rules.idp_id}~{subject}"
        if not fits_a_tuple(user_id):
            raise AuthenticationFailed("the account's id has more bytes than a relationship can hold")
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
    """The 503 for a cluster that cannot be asked; `reason` is for the log."""
    return IdentityProviderUnavailable(reason, retry_after_s=_RETRY_SECONDS)


def _unverified(token: str) -> read.Claims:
    return decode_claims(read.payload_of(token))


def issuer_in(token: str) -> str | None:
    """The issuer that a token names; None when it names none. The gateway's own token tells the cluster's issuer."""
    try:
        issuer = _unverified(token).get("iss")
    except AuthenticationFailed:
        return None
    return issuer if isinstance(issuer, str) else None


class ApiServer:
    """`Reviews`, and by `fetch` a `Fetcher` of the cluster's keys, over HTTPS as the gateway's own service account: no
    redirects, no proxies, bounded time and size.

    Make it inside the running loop: `async with ApiServer(...) as reviews`. The token is read anew for each question:
    the kubelet replaces it before it ends.
    """

    def __init__(self, url: str, token_file: Path, *, tls: ssl.SSLContext, timeout_seconds: float = 5.0) -> None:
        check_endpoint(url, "the address of the API server")
        if not url.startswith("https://"):
            raise ValueError("the address of the API server must be https: the gateway's own token is sent to it")
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
        """The keys its tokens are signed with, which it publishes. They are read here and not where the issuer says:
        its address need not be reachable, and this is who is asked about tokens anyway.
        """
        return KeyRing(self._url, self.fetch, jwks_uri=self._url + _KEYS_PATH)

    async def __call__(self, review: bytes) -> bytes:
        """The body of the answer to one review. Raises `IdentityProviderUnavailable`."""
        return await self._ask("POST", self._url + _PATH, review)

    async def fetch(self, url: str) -> bytes:
        """One of its documents. Raises `FetchFailed`."""
        try:
            return await self._ask("GET", url, None)
        except IdentityProviderUnavailable as error:
            raise FetchFailed(error.reason) from error

    async def _ask(self, method: str, url: str, body: bytes | None) -> bytes:
        if self._session is None:
            raise unavailable("the connection to the API server is not open")
        try:
            own = (await asyncio.to_thread(self._token_file.read_text)).strip()
            headers = {"Authorization": f"Bearer {own}"} | ({"Content-Type": "application/json"} if body else {})
            async with self._session.request(method, url, data=body, headers=headers, allow_redirects=False) as answer:
                found = await answer.content.read(_MAX_ANSWER_BYTES + 1)
                if answer.status not in (200, 201):
                    # 401 and 403 are about the gateway's own account: it lacks system:auth-delegator.
                    raise unavailable(f"the API server answered {answer.status} to {method} {urlsplit(url).path}")
                while len(found) <= _MAX_ANSWER_BYTES and (more := await answer.content.read(_MAX_ANSWER_BYTES)):
                    found += more
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise unavailable(f"the API server could not be asked: {type(error).__name__}") from error
        if len(found) > _MAX_ANSWER_BYTES:
            raise unavailable(f"the API server answered more than {_MAX_ANSWER_BYTES} bytes")
        return found
