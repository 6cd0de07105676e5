# SPDX-License-Identifier: Apache-2.0
"""Token verification against a provider that is a real HTTP server: key rotation, outage, slow answers, redirects, a
different issuer, and oversized answers.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey

from gateway.identity.discovery import MAX_DOCUMENT_BYTES, FetchFailed, HttpFetcher
from gateway.identity.errors import AuthenticationFailed, IdentityProviderUnavailable
from gateway.identity.keys import KeyRing
from gateway.identity.tokens import TokenRules, TokenVerifier

pytestmark = pytest.mark.integration


class OidcServer:
    """A provider on a free loopback port whose answers a test can change or delay."""

    def __init__(self) -> None:
        self.keys = [ECKey.generate_key("P-256", {"kid": "first"})]
        self.issuer = ""
        self.spoken_issuer: str | None = None
        self.requests: list[str] = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.redirect_to: str | None = None
        self.padding = 0
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/realm/.well-known/openid-configuration", self._document)
        app.router.add_get("/realm/keys", self._jwks)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.issuer = f"http://127.0.0.1:{self.port}/realm"

    async def stop(self) -> None:
        self.answers.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def token(self, **changes: Any) -> str:
        key = self.keys[-1]
        claims = {"iss": self.issuer, "aud": "lakegate", "sub": "alice", "exp": int(time.time()) + 60} | changes
        return jwt.encode({"alg": "ES256", "kid": key.kid}, claims, key, algorithms=["ES256"])

    async def _document(self, request: web.Request) -> web.Response:
        return await self._answer(
            request, {"issuer": self.spoken_issuer or self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        )

    async def _jwks(self, request: web.Request) -> web.Response:
        return await self._answer(request, {"keys": [key.as_dict(private=False) for key in self.keys]})

    async def _answer(self, request: web.Request, document: dict[str, Any]) -> web.Response:
        self.requests.append(request.path)
        await self.answers.wait()
        if self.redirect_to is not None:
            raise web.HTTPFound(self.redirect_to)
        return web.Response(text=json.dumps(document) + " " * self.padding, content_type="application/json")


@pytest.fixture
async def server() -> AsyncIterator[OidcServer]:
    made = OidcServer()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def fetch() -> AsyncIterator[HttpFetcher]:
    async with HttpFetcher(timeout_seconds=30) as made:
        yield made


class Seconds:
    """A monotonic clock that a test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def verifier(server: OidcServer, fetch: HttpFetcher, clock: Seconds) -> TokenVerifier:
    rules = TokenRules(issuer=server.issuer, audiences=frozenset({"lakegate"}))
    return TokenVerifier(rules, KeyRing(server.issuer, fetch, clock=clock))


async def test_a_token_is_verified_with_the_keys_the_provider_serves(server: OidcServer, fetch: HttpFetcher) -> None:
    tokens = verifier(server, fetch, Seconds())
    verified = await asyncio.gather(*(tokens.verify(server.token()) for _ in range(20)))
    assert {one.user_id for one in verified} == {"oidc~alice"}
    assert len(server.requests) == 2


async def test_rotated_key_is_accepted_and_the_withdrawn_one_refused(server: OidcServer, fetch: HttpFetcher) -> None:
    clock = Seconds()
    tokens = verifier(server, fetch, clock)
    old = server.token()
    await tokens.verify(old)
    server.keys = [ECKey.generate_key("P-256", {"kid": "second"})]
    clock.now += 10
    assert (await tokens.verify(server.token())).subject == "alice"
    with pytest.raises(AuthenticationFailed):
        await tokens.verify(old)


async def test_cached_keys_bridge_an_outage_until_they_expire(server: OidcServer, fetch: HttpFetcher) -> None:
    clock = Seconds()
    tokens = verifier(server, fetch, clock)
    await tokens.verify(server.token())
    await server.stop()
    clock.now += 3599
    assert (await tokens.verify(server.token())).subject == "alice"
    clock.now += 1
    with pytest.raises(IdentityProviderUnavailable):
        await tokens.verify(server.token())
    await server.start()
    clock.now += 10
    assert (await tokens.verify(server.token())).subject == "alice"


async def test_a_provider_that_is_down_at_the_start_is_unavailable(server: OidcServer, fetch: HttpFetcher) -> None:
    await server.stop()
    with pytest.raises(IdentityProviderUnavailable):
        await verifier(server, fetch, Seconds()).verify(server.token())


async def test_slow_provider_request_times_out(server: OidcServer) -> None:
    server.answers.clear()
    async with HttpFetcher(timeout_seconds=0.5) as fetch, asyncio.timeout(30):
        with pytest.raises(IdentityProviderUnavailable):
            await verifier(server, fetch, Seconds()).verify(server.token())
    assert not server.answers.is_set()


@pytest.mark.parametrize("same_host", [True, False])
async def test_a_redirect_is_not_followed(server: OidcServer, fetch: HttpFetcher, same_host: bool) -> None:
    other = OidcServer()
    await other.start()
    try:
        other.spoken_issuer = server.issuer
        server.redirect_to = f"{server.issuer if same_host else other.issuer}/.well-known/openid-configuration?x"
        with pytest.raises(IdentityProviderUnavailable) as caught:
            await verifier(server, fetch, Seconds()).verify(server.token())
        assert "302" in caught.value.reason
        assert other.requests == []
        assert len(server.requests) == 1
    finally:
        await other.stop()


async def test_discovery_document_of_another_issuer_is_an_outage(server: OidcServer, fetch: HttpFetcher) -> None:
    server.spoken_issuer = server.issuer + "/"
    with pytest.raises(IdentityProviderUnavailable) as caught:
        await verifier(server, fetch, Seconds()).verify(server.token())
    assert "another issuer" in caught.value.reason


async def test_endless_response_is_aborted(server: OidcServer, fetch: HttpFetcher) -> None:
    server.padding = MAX_DOCUMENT_BYTES
    with pytest.raises(FetchFailed, match="more than"):
        await fetch(server.issuer + "/keys")


async def test_token_of_another_issuer_causes_no_request(server: OidcServer, fetch: HttpFetcher) -> None:
    other = OidcServer()
    await other.start()
    try:
        with pytest.raises(AuthenticationFailed):
            await verifier(server, fetch, Seconds()).verify(other.token())
        assert (server.requests, other.requests) == ([], [])
    finally:
        await other.stop()


async def test_the_proxy_of_the_environment_is_not_used(
    server: OidcServer, fetch: HttpFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert b"keys" in await fetch(server.issuer + "/keys")


async def test_a_closed_fetcher_fails_like_an_outage(server: OidcServer) -> None:
    async with HttpFetcher() as fetch:
        pass
    with pytest.raises(FetchFailed):
        await fetch(server.issuer + "/keys")
