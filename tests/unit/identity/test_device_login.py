# SPDX-License-Identifier: Apache-2.0
"""Device login (RFC 8628) with conforming and faulty providers."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest

from gateway.identity.oauth_client import DEVICE, DeviceCode, DeviceLogin, LoginFailed, OAuthClient, Tokens

ISSUER = "https://id.example/realm"


@dataclass
class Provider:
    """A provider whose token endpoint returns `answers` in order."""

    answers: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    discovery: dict[str, Any] = field(default_factory=dict)
    code: dict[str, Any] = field(default_factory=dict)
    code_status: int = 200
    forms: list[dict[str, str]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    now: float = 1000.0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        if path.endswith("openid-configuration"):
            message = {
                "issuer": ISSUER,
                "token_endpoint": f"{ISSUER}/token",
                "device_authorization_endpoint": f"{ISSUER}/device",
            }
            return httpx2.Response(200, json={**message, **self.discovery})
        self.forms.append({name: values[0] for name, values in parse_qs(request.content.decode()).items()})
        if path.endswith("/device"):
            code: dict[str, object] = {
                "device_code": "the-device",
                "user_code": "WDJB-MJHT",
                "verification_uri": f"{ISSUER}/enter",
                "expires_in": 600,
            }
            return httpx2.Response(self.code_status, json={**code, **self.code})
        status, body = self.answers.pop(0)
        if status == 0:
            raise httpx2.ReadTimeout("slow")
        return httpx2.Response(status, json=body)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def login(self) -> DeviceLogin:
        oauth = OAuthClient("cli", transport=httpx2.MockTransport(self), clock=lambda: self.now)
        return DeviceLogin(oauth, issuer=ISSUER, scope="openid", sleep=self.sleep, clock=lambda: self.now)


PENDING = (400, {"error": "authorization_pending"})
GOOD = (200, {"access_token": "good", "token_type": "Bearer", "expires_in": 300, "refresh_token": "again"})


async def test_the_login_shows_the_code_and_polls_until_it_is_entered() -> None:
    provider, shown = Provider([PENDING, (400, {"error": "slow_down"}), PENDING, GOOD]), list[DeviceCode]()
    tokens = await provider.login().run(shown.append)
    assert [code.user_code for code in shown] == ["WDJB-MJHT"]
    assert tokens == Tokens("good", provider.now + 300, "again")
    assert provider.slept == [5.0, 5.0, 10.0, 10.0], (
        "slow_down must increase the interval of later polls (RFC 8628, section 3.5)"
    )
    begun, requested = provider.forms[0], provider.forms[1]
    verifier = requested.pop("code_verifier")
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    assert begun == {
        "client_id": "cli",
        "scope": "openid",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    assert requested == {"grant_type": DEVICE, "device_code": "the-device", "client_id": "cli"}
    assert {form["code_verifier"] for form in provider.forms[2:]} == {verifier}, (
        "all polls must send the same code verifier"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": "unauthorized_client"}, r"HTTP 400, unauthorized_client\)"),
        ({"error": "\x1b[2J"}, r"HTTP 400\)"),
        ({"error_description": "hello"}, r"HTTP 400\)"),
    ],
)
async def test_a_refused_login_reports_only_the_error_code_of_the_provider(body: dict[str, str], message: str) -> None:
    with pytest.raises(LoginFailed, match=message):
        await Provider(code_status=400, code=body).login().run(lambda code: None)


async def test_an_unresponsive_provider_is_polled_less_often() -> None:
    provider = Provider([(0, {}), GOOD])
    await provider.login().run(lambda code: None)
    assert provider.slept == [5.0, 10.0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((400, {"error": "access_denied"}), "denied at the provider"),
        ((400, {"error": "expired_token"}), "in time"),
        ((400, {"error": "invalid_client"}), "rejected the login"),
        ((500, {}), "response is invalid"),
        ((200, {"access_token": "x", "token_type": "mac"}), "not a bearer token"),
        ((200, {"token_type": "Bearer"}), "response is invalid"),
    ],
)
async def test_the_message_of_a_failed_login_contains_no_code_or_token(
    answer: tuple[int, dict[str, Any]], message: str
) -> None:
    with pytest.raises(LoginFailed, match=message) as failed:
        await Provider([answer]).login().run(lambda code: None)
    assert "the-device" not in str(failed.value)


async def test_the_login_stops_when_the_code_expires() -> None:
    provider = Provider([PENDING] * 200, code={"expires_in": 60})
    with pytest.raises(LoginFailed, match="in time"):
        await provider.login().run(lambda code: None)
    assert provider.now <= 1060


@pytest.mark.parametrize(
    "change",
    [
        {"user_code": "\x1b[2J"},
        {"user_code": ""},
        {"verification_uri": "http://elsewhere.example"},
        {"verification_uri": "javascript:alert(1)"},
        {"verification_uri_complete": "http://elsewhere.example/?code=1"},
        {"verification_uri_complete": "https://id.example/\x07"},
    ],
)
async def test_control_characters_and_unprotected_urls_are_not_shown(change: dict[str, str]) -> None:
    shown = list[DeviceCode]()
    with pytest.raises(LoginFailed):
        await Provider(code=change).login().run(shown.append)
    assert shown == []


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "https://other.example"},
        {"token_endpoint": "http://id.example/token"},
        {"token_endpoint": "http://127.0.0.1/token"},
        {"device_authorization_endpoint": "http://localhost/device"},
        {"device_authorization_endpoint": None},
        {"device_authorization_endpoint": "http://id.example/device"},
    ],
)
async def test_an_invalid_provider_receives_no_login_request(change: dict[str, Any]) -> None:
    provider = Provider(discovery=change)
    with pytest.raises(LoginFailed):
        await provider.login().run(lambda code: None)
    assert provider.forms == []


async def test_a_renewal_keeps_the_refresh_token_if_no_new_one_is_returned() -> None:
    provider = Provider([(200, {"access_token": "new", "token_type": "bearer", "expires_in": 60})])
    assert await provider.login().refresh("again") == Tokens("new", 1060.0, "again")
    with pytest.raises(LoginFailed, match="log in again"):
        await Provider([(400, {"error": "invalid_grant"})]).login().refresh("again")


@pytest.mark.parametrize("answer", [(503, {}), (429, {"error": "slow_down"}), (401, {"error": "invalid_client"})])
async def test_a_provider_outage_does_not_end_the_login(answer: tuple[int, dict[str, Any]]) -> None:
    with pytest.raises(LoginFailed, match=f"did not renew the login .HTTP {answer[0]}"):
        await Provider([answer]).login().refresh("again")
