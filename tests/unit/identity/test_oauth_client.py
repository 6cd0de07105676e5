# SPDX-License-Identifier: Apache-2.0
"""Token requests through Authlib: the request, and responses that are refused."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest

from gateway.identity.discovery import (
    DocumentMissing,
    Fetcher,
    FetchFailed,
    discovery_url,
    oauth_metadata_url,
    read_metadata,
)
from gateway.identity.oauth_client import LoginFailed, OAuthClient, ProviderSilent, TokenRefused, Tokens

URL = "https://id.example/token"
GOOD: dict[str, Any] = {"access_token": "good", "token_type": "Bearer", "expires_in": 300}


def client(answer: Callable[[httpx2.Request], httpx2.Response], secret: str | None = None) -> OAuthClient:
    return OAuthClient("job", client_secret=secret, transport=httpx2.MockTransport(answer), clock=lambda: 1000.0)


async def test_a_client_secret_is_sent_only_in_the_header() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json=GOOD)

    assert await client(answer, "hidden").fetch_token(URL, "client_credentials") == Tokens("good", 1300.0)
    (request,) = seen
    assert parse_qs(request.content.decode()) == {"grant_type": ["client_credentials"]}
    assert request.headers["authorization"] == "Basic " + base64.b64encode(b"job:hidden").decode()
    assert "hidden" not in str(request.url)


@pytest.mark.parametrize("status", [201, 302, 307, 400, 401])
async def test_a_token_response_other_than_200_is_refused_and_not_redirected(status: int) -> None:
    requested: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requested.append(request.url.host)
        return httpx2.Response(status, json=GOOD, headers={"Location": "https://elsewhere.example/token"})

    oauth = client(answer)
    with pytest.raises(TokenRefused):
        await oauth.fetch_token(URL, "client_credentials")
    with pytest.raises(TokenRefused):
        await oauth.refresh_token(URL, "again")
    assert requested == ["id.example"] * 2


@pytest.mark.parametrize(
    "change",
    [
        {"expires_in": "soon"},
        {"expires_in": 1e300},
        {"expires_in": -1},
        {"expires_at": []},
        {"expires_at": {"a": 1}},
        {"access_token": "two words"},
        {"access_token": "\x1b[2J"},
        {"access_token": 5},
        {"token_type": "mac"},
        {"refresh_token": 5},
        {"error": "invalid_grant"},
        {"filling": "x" * 70_000},
    ],
)
async def test_an_invalid_token_response_is_refused_without_its_content(change: dict[str, Any]) -> None:
    oauth = client(lambda request: httpx2.Response(200, json=GOOD | change))
    with pytest.raises(LoginFailed) as failed:
        await oauth.fetch_token(URL, "client_credentials")
    assert "good" not in str(failed.value) and "\x1b" not in str(failed.value)
    with pytest.raises(LoginFailed):
        await oauth.refresh_token(URL, "again")


@pytest.mark.parametrize("body", [b"", b"[]", b"[" * 60_000, b'"x"', b"\xff"])
async def test_a_token_response_that_is_not_a_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(LoginFailed, match="response is invalid"):
        await client(lambda request: httpx2.Response(200, content=body)).fetch_token(URL, "client_credentials")


async def test_proxy_environment_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    # No server listens at either port; a proxied request would fail at the proxy of its scheme.
    oauth = OAuthClient("job")
    assert not oauth._client._mounts
    with pytest.raises(ProviderSilent):
        await oauth.fetch_token("http://127.0.0.1:1/token", "client_credentials")


def documents(table: dict[str, bytes], status: type[FetchFailed] = DocumentMissing) -> Fetcher:
    async def fetch(url: str) -> bytes:
        if url not in table:
            raise status(f"{url} answered")
        return table[url]

    return fetch


ISSUER = "https://id.example/realm"
DOCUMENT = b'{"issuer": "https://id.example/realm", "token_endpoint": "https://id.example/realm/token"}'


def test_discovery_documents_have_their_specified_urls() -> None:
    assert discovery_url(ISSUER) == f"{ISSUER}/.well-known/openid-configuration"
    assert discovery_url(f"{ISSUER}/") == f"{ISSUER}/.well-known/openid-configuration"
    assert oauth_metadata_url(ISSUER) == "https://id.example/.well-known/oauth-authorization-server/realm"


async def test_a_provider_without_an_openid_document_is_found_by_its_oauth_document() -> None:
    found = await read_metadata(ISSUER, documents({oauth_metadata_url(ISSUER): DOCUMENT}))
    assert found.endpoint("token_endpoint") == f"{ISSUER}/token"
    with pytest.raises(FetchFailed, match="has no jwks_uri"):
        found.endpoint("jwks_uri")


async def test_a_failing_provider_causes_no_fallback_discovery() -> None:
    with pytest.raises(FetchFailed):
        await read_metadata(ISSUER, documents({oauth_metadata_url(ISSUER): DOCUMENT}, FetchFailed))


async def test_a_discovery_document_with_a_plain_http_issuer_is_refused() -> None:
    issuer = "http://id.example"
    document = DOCUMENT.replace(b"https://id.example/realm", b"http://id.example")
    with pytest.raises(FetchFailed, match="https"):
        await read_metadata(issuer, documents({discovery_url(issuer): document}))
