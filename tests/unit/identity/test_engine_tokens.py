# SPDX-License-Identifier: Apache-2.0
"""The token service of an engine: the requests that Trino 476 (Iceberg 1.9.1) sends, and what others get."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl

import httpx2
import pytest

from gateway.identity.engine_tokens import ACCESS_TOKEN, EXCHANGE, Answer, EngineTokens
from gateway.identity.oauth_client import OAuthClient

SECRET = "s3cret of trino"
OWN = {"grant_type": "client_credentials", "client_id": "trino", "client_secret": SECRET, "scope": "catalog"}
JWT = "urn:ietf:params:oauth:token-type:jwt"


class Servers:
    """A provider that numbers its tokens, a gateway that records requests, and a clock."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.issued = 0
        self.status = 200
        self.received: list[tuple[dict[str, str], str]] = []

    def provide(self, request: httpx2.Request) -> httpx2.Response:
        assert request.headers["authorization"] == _basic("trino", SECRET)
        if self.status != 200:
            return httpx2.Response(self.status, json={"error": "invalid_client"})
        self.issued += 1
        return httpx2.Response(
            200, json={"access_token": f"token-{self.issued}", "token_type": "Bearer", "expires_in": 300}
        )

    def exchange(self, request: httpx2.Request) -> httpx2.Response:
        self.received.append((dict(parse_qsl(request.content.decode())), request.headers["authorization"]))
        return httpx2.Response(200, json={"access_token": "of-alice"})


def _basic(name: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()


@pytest.fixture
def servers() -> Servers:
    return Servers()


@pytest.fixture
async def service(servers: Servers) -> AsyncIterator[EngineTokens]:
    provider = OAuthClient(
        "trino", client_secret=SECRET, transport=httpx2.MockTransport(servers.provide), clock=lambda: servers.now
    )
    gateway = httpx2.AsyncClient(base_url="http://gateway/tokens", transport=httpx2.MockTransport(servers.exchange))
    async with provider, gateway:
        yield EngineTokens(
            provider=provider,
            endpoint="http://provider/token",
            secret=SECRET,
            scope=None,
            gateway=gateway,
            clock=lambda: servers.now,
        )


def _renewal(token: str) -> dict[str, str]:
    return {
        "grant_type": EXCHANGE,
        "subject_token": token,
        "subject_token_type": ACCESS_TOKEN,
        "scope": "catalog",
    }


def _body(answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.body)
    return found


async def test_trino_gets_its_token_and_renews_it_for_as_long_as_it_runs(
    service: EngineTokens, servers: Servers
) -> None:
    first = _body(await service.answer(OWN, None))
    assert (first["access_token"], first["expires_in"], first["token_type"]) == ("token-1", 300, "Bearer")
    token = "token-1"
    for number in range(2, 100):  # more renewals than tokens that the service recognizes
        servers.now += 270
        renewed = _body(await service.answer(_renewal(token), f"Bearer {token}"))
        assert (renewed["access_token"], renewed["issued_token_type"]) == (f"token-{number}", ACCESS_TOKEN)
        token = renewed["access_token"]
    assert (await service.answer(_renewal("token-1"), "Bearer token-1")).status == 401


async def test_an_expired_token_is_renewed_with_the_credential(service: EngineTokens, servers: Servers) -> None:
    await service.answer(OWN, None)
    servers.now += 1_000
    assert _body(await service.answer(_renewal("token-1"), _basic("trino", SECRET)))["access_token"] == "token-2"


async def test_an_expired_token_does_not_renew_itself(service: EngineTokens, servers: Servers) -> None:
    await service.answer(OWN, None)
    servers.now += 300
    renewed = await service.answer(_renewal("token-1"), "Bearer token-1")
    assert _body(renewed)["access_token"] == "token-2", "clocks can differ by some seconds"
    servers.now += 100
    for subject in ("token-1", "token-2"):
        answer = await service.answer(_renewal(subject), "Bearer token-1")
        assert (answer.status, _body(answer)["error"]) == (401, "invalid_client")
    assert servers.issued == 2


async def test_a_users_exchange_reaches_the_gateway_with_the_current_token(
    service: EngineTokens, servers: Servers
) -> None:
    await service.answer(OWN, None)
    servers.now += 290
    user = {"grant_type": EXCHANGE, "subject_token": "e30.e30.", "subject_token_type": JWT, "scope": "catalog"}
    sent = {**user, "actor_token": "token-1", "actor_token_type": ACCESS_TOKEN}
    answer = await service.answer(sent, "Bearer token-1")
    assert (answer.status, _body(answer)) == (200, {"access_token": "of-alice"})
    assert servers.received == [(user, "Bearer token-2")]


@pytest.mark.parametrize(
    ("form", "authorization"),
    [
        ({**OWN, "client_secret": "other"}, None),
        ({**OWN, "client_id": "other"}, None),
        ({"grant_type": "client_credentials"}, None),
        ({"grant_type": "client_credentials"}, _basic("trino", "other")),
        ({"grant_type": "client_credentials"}, "Basic %%%"),
        (_renewal("token-1"), None),
        (_renewal("token-1"), "Bearer of-a-user"),
        (_renewal("of-a-user"), "Bearer of-a-user"),
        ({**_renewal("e30.e30."), "subject_token_type": JWT}, "Bearer of-a-user"),
        ({**_renewal("e30.e30."), "actor_token": "token-1"}, None),
    ],
)
async def test_only_the_engine_gets_a_token(
    service: EngineTokens, servers: Servers, form: dict[str, str], authorization: str | None
) -> None:
    await service.answer(OWN, None)
    answer = await service.answer(form, authorization)
    assert (answer.status, _body(answer)["error"]) == (401, "invalid_client")
    assert servers.received == [] and b"token-1" not in answer.body and SECRET.encode() not in answer.body


async def test_another_grant_and_a_refusal_of_the_provider_are_explained(
    service: EngineTokens, servers: Servers
) -> None:
    other = await service.answer({"grant_type": "password"}, None)
    assert (other.status, _body(other)["error"]) == (400, "unsupported_grant_type")
    servers.status = 401
    refused = await service.answer(OWN, None)
    assert (refused.status, _body(refused)["error"]) == (400, "unauthorized_client")
    assert SECRET not in refused.body.decode()
