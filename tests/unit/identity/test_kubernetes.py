# SPDX-License-Identifier: Apache-2.0
"""Service accounts without a network: what is asked, what is remembered, and that a storm costs the cluster little."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.identity.errors import AuthenticationFailed, IdentityProviderUnavailable
from gateway.identity.kubernetes import ApiServer, ClusterRules, ServiceAccounts
from gateway.trust import trusted

from .conftest import NOW, Clock, Provider

ISSUER = "https://kubernetes.default.svc"


class Server:
    """An API server that knows everybody as one account; `gate` makes it wait."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.busy = self.most = 0
        self.gate: asyncio.Event | None = None

    async def __call__(self, review: bytes) -> bytes:
        self.asked.append(json.loads(review)["spec"])
        self.busy += 1
        self.most = max(self.most, self.busy)
        if self.gate is not None:
            await self.gate.wait()
        self.busy -= 1
        user = {"username": "system:serviceaccount:etl:nightly", "uid": "9e1c"}
        status = {"authenticated": True, "user": user, "audiences": ["lake"]}
        return json.dumps({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "status": status}).encode()


class Unobserved:
    def remembered(self, memory: str, *, hits: int, misses: int) -> None:
        """Not looked at here."""


def _accounts(server: Server, clock: Clock) -> ServiceAccounts:
    rules = ClusterRules(idp_id="lab", issuers=frozenset({ISSUER}), audiences=frozenset({"lake"}))
    return ServiceAccounts(rules, server, entries=10, seconds=60.0, observer=Unobserved(), clock=clock)


def _token(provider: Provider, **claims: Any) -> str:
    return provider.token(**{"iss": ISSUER, "aud": ["lake", "else"], **claims})


async def test_a_review_asks_for_our_audiences_and_is_remembered_until_the_tokens_end(provider: Provider) -> None:
    server, clock = Server(), Clock(NOW)
    accounts = _accounts(server, clock)
    token = _token(provider, exp=NOW + 20)
    for _ in range(3):
        assert (await accounts.verify(token)).user_id == "lab~9e1c"
    assert server.asked == [{"token": token, "audiences": ["lake"]}]
    clock.at += 21
    await accounts.verify(token)
    assert len(server.asked) == 2, "within the skew it is reviewed each time"
    clock.at += 60
    with pytest.raises(AuthenticationFailed, match="expired"):
        await accounts.verify(token)
    assert len(server.asked) == 2


async def test_a_storm_of_tokens_keeps_few_questions_under_way_and_the_rest_is_told_to_come_back(
    provider: Provider,
) -> None:
    server = Server()
    server.gate = asyncio.Event()
    accounts = _accounts(server, Clock(NOW))
    storm = [asyncio.create_task(accounts.verify(_token(provider, jti=str(number)))) for number in range(100)]
    while sum(task.done() for task in storm) < 36:
        await asyncio.sleep(0)
    assert server.most == 8
    server.gate.set()
    ended = await asyncio.gather(*storm, return_exceptions=True)
    assert sum(isinstance(each, IdentityProviderUnavailable) for each in ended) == 36
    assert server.most == 8


@pytest.mark.parametrize(
    "rules", [{"audiences": frozenset()}, {"audiences": frozenset({""})}, {"issuers": frozenset()}]
)
def test_rules_that_would_let_others_in_are_refused(rules: dict[str, Any]) -> None:
    good: dict[str, Any] = {"idp_id": "lab", "issuers": frozenset({ISSUER}), "audiences": frozenset({"lake"})}
    with pytest.raises(ValueError, match="issuer|audience"):
        ClusterRules(**(good | rules))


@pytest.mark.parametrize("url", ["http://127.0.0.1:6443", "https://user:pass@api", "api:6443", ""])
def test_the_gateways_own_token_is_sent_over_tls_alone(url: str) -> None:
    with pytest.raises(ValueError, match="the address of the API server"):
        ApiServer(url, Path("token"), tls=trusted(None, None).context)
