# SPDX-License-Identifier: Apache-2.0
"""Service accounts without a network: reviews, their cache, and few requests under load."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.identity.errors import AuthenticationFailed, IdentityProviderUnavailable
from gateway.identity.kubernetes import ApiServer, ClusterRules, ServiceAccounts
from gateway.tls import trusted

from .conftest import NOW, Clock, Provider, b64

ISSUER = "https://kubernetes.default.svc"


class Server:
    """An API server that reviews every token as one account; `gate` blocks it."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.busy = self.most = 0
        self.gate: asyncio.Event | None = None

    async def __call__(self, review: bytes) -> bytes:
        self.calls.append(json.loads(review)["spec"])
        self.busy += 1
        self.most = max(self.most, self.busy)
        if self.gate is not None:
            await self.gate.wait()
        self.busy -= 1
        user = {"username": "system:serviceaccount:etl:nightly", "uid": "9e1c"}
        status = {"authenticated": True, "user": user, "audiences": ["lake"]}
        return json.dumps({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "status": status}).encode()


class Unobserved:
    def count_lookups(self, memory: str, *, hits: int, misses: int) -> None:
        """Ignored here."""


def _accounts(server: Server, clock: Clock, provider: Provider) -> ServiceAccounts:
    """Return accounts of a cluster that publishes the keys of the provider."""
    rules = ClusterRules(idp_id="lab", issuers=frozenset({ISSUER}), audiences=frozenset({"lake"}))
    keys = provider.ring()
    return ServiceAccounts(rules, server, keys, entries=10, seconds=60.0, observer=Unobserved(), clock=clock)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0)


def _made_up(provider: Provider, number: int, *, kid: str) -> str:
    """Return a token with a forged signature that is otherwise valid."""
    head, payload, signature = _token(provider, jti=f"made-up-{number}").split(".")
    header = {"alg": "RS256", "kid": kid}
    return f"{b64(json.dumps(header).encode())}.{payload}.{signature}"


def _token(provider: Provider, **claims: Any) -> str:
    return provider.token(**{"iss": ISSUER, "aud": ["lake", "else"], **claims})


async def test_a_review_names_the_audiences_and_is_cached_until_the_token_expires(provider: Provider) -> None:
    server, clock = Server(), Clock(NOW)
    accounts = _accounts(server, clock, provider)
    token = _token(provider, exp=NOW + 20)
    for _ in range(3):
        assert (await accounts.verify(token)).user_id == "lab~9e1c"
    assert server.calls == [{"token": token, "audiences": ["lake"]}]
    clock.at += 21
    await accounts.verify(token)
    assert len(server.calls) == 2, "an expired token within the clock skew must be reviewed each time"
    clock.at += 60
    with pytest.raises(AuthenticationFailed, match="expired"):
        await accounts.verify(token)
    assert len(server.calls) == 2


async def test_many_tokens_cause_few_concurrent_reviews_and_the_rest_may_retry(
    provider: Provider,
) -> None:
    server = Server()
    server.gate = asyncio.Event()
    accounts = _accounts(server, Clock(NOW), provider)
    storm = [asyncio.create_task(accounts.verify(_token(provider, jti=str(number)))) for number in range(100)]
    await _until(lambda: sum(task.done() for task in storm) >= 36)
    assert server.most == 8
    server.gate.set()
    ended = await asyncio.gather(*storm, return_exceptions=True)
    assert sum(isinstance(each, IdentityProviderUnavailable) for each in ended) == 36
    assert server.most == 8


async def test_tokens_not_signed_by_the_cluster_are_refused_without_a_review(provider: Provider) -> None:
    server = Server()
    accounts = _accounts(server, Clock(NOW), provider)
    for number in range(3):
        with pytest.raises(AuthenticationFailed, match="signature"):
            await accounts.verify(_made_up(provider, number, kid="k1"))
    assert server.calls == []


@pytest.mark.parametrize("confirmation", [{"x5t#S256": "A" * 43}, None])
async def test_a_token_that_is_bound_to_a_key_is_refused_without_a_review(
    provider: Provider, confirmation: dict[str, str] | None
) -> None:
    server = Server()
    with pytest.raises(AuthenticationFailed, match="cnf"):
        await _accounts(server, Clock(NOW), provider).verify(_token(provider, cnf=confirmation))
    assert server.calls == []


async def test_tokens_with_unknown_keys_queue_separately_and_do_not_block_pods(
    provider: Provider,
) -> None:
    server = Server()
    server.gate = asyncio.Event()
    accounts = _accounts(server, Clock(NOW), provider)
    made_up = [_made_up(provider, number, kid=f"made-up-{number}") for number in range(100)]
    storm = [asyncio.create_task(accounts.verify(token)) for token in made_up]
    await _until(lambda: sum(task.done() for task in storm) >= 84)
    assert server.most == 2
    pods = [asyncio.create_task(accounts.verify(_token(provider, jti=f"pod-{number}"))) for number in range(64)]
    await _until(lambda: server.most >= 10)
    assert not any(pod.done() for pod in pods), "no waiting pod may be refused"
    server.gate.set()
    assert {(await pod).user_id for pod in pods} == {"lab~9e1c"}
    ended = await asyncio.gather(*storm, return_exceptions=True)
    assert sum(isinstance(each, IdentityProviderUnavailable) for each in ended) == 84
    assert len(provider.documents.calls) <= 4, "the keys must not be loaded again for each token"


async def test_a_key_that_the_cluster_has_not_published_yet_is_not_refused(provider: Provider, new_key: Any) -> None:
    server = Server()
    token = provider.sign(provider.claims(iss=ISSUER, aud=["lake"]), key=new_key("RSA"), kid="k2")
    assert (await _accounts(server, Clock(NOW), provider).verify(token)).user_id == "lab~9e1c"


async def test_a_cluster_without_published_keys_reviews_each_token_in_all_slots(
    provider: Provider,
) -> None:
    provider.documents.down = True
    server = Server()
    server.gate = asyncio.Event()
    accounts = _accounts(server, Clock(NOW), provider)
    tokens = [_token(provider, jti=str(number)) for number in range(64)]
    waiting = [asyncio.create_task(accounts.verify(token)) for token in tokens]
    await _until(lambda: server.most >= 8)
    server.gate.set()
    assert {(await each).user_id for each in waiting} == {"lab~9e1c"}
    assert len(provider.documents.calls) == 1


async def test_concurrent_uses_of_a_token_share_one_review_despite_cancellations(provider: Provider) -> None:
    server = Server()
    server.gate = asyncio.Event()
    accounts = _accounts(server, Clock(NOW), provider)
    token = _token(provider)
    asking = [asyncio.create_task(accounts.verify(token)) for _ in range(200)]
    await _until(lambda: bool(server.calls))
    asking[0].cancel()
    server.gate.set()
    ended = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(ended[0], asyncio.CancelledError)
    assert not [each for each in ended[1:] if isinstance(each, BaseException)]
    assert len(server.calls) == 1
    assert not accounts._under_way


@pytest.mark.parametrize(
    "rules", [{"audiences": frozenset()}, {"audiences": frozenset({""})}, {"issuers": frozenset()}]
)
def test_cluster_rules_without_issuer_or_audience_are_refused(rules: dict[str, Any]) -> None:
    good: dict[str, Any] = {"idp_id": "lab", "issuers": frozenset({ISSUER}), "audiences": frozenset({"lake"})}
    with pytest.raises(ValueError, match="issuer|audience"):
        ClusterRules(**(good | rules))


@pytest.mark.parametrize("url", ["http://127.0.0.1:6443", "https://user:pass@api", "api:6443", ""])
def test_the_token_of_the_gateway_is_sent_only_over_tls(url: str) -> None:
    with pytest.raises(ValueError, match="the address of the API server"):
        ApiServer(url, Path("token"), tls=trusted(None, None).context)
