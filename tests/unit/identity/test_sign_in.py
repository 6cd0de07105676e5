# SPDX-License-Identifier: Apache-2.0
"""The sign-in endpoint of the page: only the one that the provider publishes, within the content security policy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.identity.discovery import FetchFailed
from gateway.identity.sign_in import SignInProvider, origin_of

ISSUER = "https://id.example/realm"


class Provider:
    """A provider that returns its document, or fails while it is `down`; counts requests."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes
        self.down = False
        self.calls = 0
        self.now = 0.0

    async def __call__(self, url: str) -> bytes:
        self.calls += 1
        if self.down:
            raise FetchFailed("down")
        assert url == f"{ISSUER}/.well-known/openid-configuration"
        document = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/auth?kc=1",
            "token_endpoint": "https://Tokens.example:8443/token",
        }
        return json.dumps({**document, **self.changes}).encode()

    def sign_in(self) -> SignInProvider:
        return SignInProvider(self, issuer=ISSUER, client_id="ui", scope="openid", clock=lambda: self.now)


async def test_the_page_may_connect_only_to_the_token_endpoint_origin() -> None:
    found = await Provider().sign_in()()
    assert found is not None
    assert found.origins() == ("https://tokens.example:8443",)
    assert (found.client_id, found.scope, found.end_session_endpoint) == ("ui", "openid", None)


async def test_provider_metadata_is_cached_five_minutes_and_through_an_outage() -> None:
    provider = Provider()
    sign_in = provider.sign_in()
    first = await sign_in()
    assert [await sign_in() for _ in range(5)] == [first] * 5
    assert provider.calls == 1
    provider.now, provider.down = 301.0, True
    assert [await sign_in() for _ in range(5)] == [first] * 5, "an outage must return the cached addresses"
    assert provider.calls == 2, "requests for the page must not each cause a provider request"
    provider.now, provider.down = 312.0, False
    assert await sign_in() == first
    assert provider.calls == 3


async def test_an_unresponsive_provider_is_retried_after_a_pause() -> None:
    provider = Provider()
    provider.down = True
    sign_in = provider.sign_in()
    assert [await sign_in() for _ in range(3)] == [None] * 3
    assert provider.calls == 1
    provider.now, provider.down = 11.0, False
    assert await sign_in() is not None


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "https://other.example"},
        {"token_endpoint": "http://id.example/token"},
        {"token_endpoint": "http://127.0.0.1/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": "http://id.example/auth"},
        {"end_session_endpoint": "data:text/html,x"},
        {"token_endpoint": "https://id.example;script-src/token"},
        {"token_endpoint": "https://id.example,*/token"},
        {"token_endpoint": "https://*.example/token"},
        {"token_endpoint": None},
    ],
)
async def test_unsafe_sign_in_urls_are_rejected(change: dict[str, Any]) -> None:
    assert await Provider(**change).sign_in()() is None


@pytest.mark.parametrize("issuer", ["http://id.example", "id.example", "https://user:secret@id.example"])
def test_a_provider_without_tls_is_refused_at_startup(issuer: str) -> None:
    with pytest.raises(ValueError, match="identity provider"):
        SignInProvider(Provider(), issuer=issuer, client_id="ui", scope="openid")


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://id.example/a/b?c", "https://id.example"),
        ("http://127.0.0.1:8080/token", "http://127.0.0.1:8080"),
        ("http://[::1]:8080/token", "http://[::1]:8080"),
        ("https://[::1]/token", "https://[::1]"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert origin_of(url) == origin
