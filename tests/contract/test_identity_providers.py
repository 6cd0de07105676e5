# SPDX-License-Identifier: Apache-2.0
"""Several identity providers at one gateway over HTTP: token ownership, and the outage of one provider."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from gateway import settings
from gateway.assembly.identity import open_identity
from gateway.identity.errors import IdentityProviderUnavailable
from gateway.telemetry.metrics import Metrics
from gateway.tls import trusted
from tests.support.servers.toxic import second_gateway
from tests.support.stack.providers import AUDIENCE, StubProvider, stub_provider
from tests.support.stack.world import Person, World, error_triple, unique

pytestmark = pytest.mark.servers

USER = "/management/v1/user"


@dataclass(frozen=True)
class Two:
    """A gateway that trusts the stack's provider, the partner, and the partner's robots by has no audience."""

    base: str
    partner: StubProvider
    gone: StubProvider

    def person(self, subject: str, **claims: Any) -> Person:
        """A user with a token of the partner; a context manager that closes its connections."""
        token = self.partner.token(subject, **claims)
        return Person(subject, f"partner~{subject}", token, self.base)

    def whoami(self, token: str) -> httpx.Response:
        """Return the principal that the gateway reports for the caller."""
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.post(f"{self.base}{USER}", json={}, headers=headers, timeout=60, trust_env=False)


@pytest.fixture(scope="module")
def two(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    with stub_provider() as partner, stub_provider() as gone:
        gone.down = True
        known = {
            "OPENID_PROVIDERS__PARTNER__URI": partner.issuer,
            "OPENID_PROVIDERS__PARTNER__AUDIENCE": AUDIENCE,
            "OPENID_PROVIDERS__PARTNER__SUBJECT_CLAIMS": "employee,sub",
            "OPENID_PROVIDERS__PARTNER__DISPLAY_NAME_TEMPLATE": "{team} of {site.name}",
            "OPENID_PROVIDERS__PARTNER_ROBOTS__URI": partner.issuer,
            "OPENID_PROVIDERS__PARTNER_ROBOTS__AUDIENCE": "robots",
            "OPENID_PROVIDERS__PARTNER_ROBOTS__SCOPE": "lake",
            "OPENID_PROVIDERS__GONE__URI": gone.issuer,
            "OPENID_PROVIDERS__GONE__AUDIENCE": AUDIENCE,
            "HEALTH_CHECK_FREQUENCY_SECONDS": "0.5",
        }
        log = tmp_path_factory.mktemp("two") / "gateway.log"
        with second_gateway(world.ready, log, **known) as (base, _):
            yield Two(base, partner, gone)


def test_same_subject_of_two_providers_is_two_users(world: World, two: Two, ns: str) -> None:
    subject = unique("erin")
    ours = f"oidc~{subject}"
    assert world.admin.post(USER, {"id": ours, "name": "Erin"}).status_code == 201
    theirs = two.whoami(two.partner.token(subject))
    assert (theirs.status_code, theirs.json()["id"]) == (201, f"partner~{subject}")
    table = world.table(ns)
    given = {"writes": [{"type": "select", "user": ours}]}
    assert world.admin.post(world.grants_path("table", table.uuid), given).status_code == 204
    erin = two.person(subject)
    assert error_triple(erin.get(table.path))[:2] == (404, "NoSuchTableException"), (
        "a user of another provider must not have the grants of its namesake"
    )
    given = {"writes": [{"type": "select", "user": erin.id}]}
    assert world.admin.post(world.grants_path("table", table.uuid), given).status_code == 204
    assert erin.get(table.path).status_code == 200
    erin.http.close()


def test_one_issuer_with_two_audiences_is_two_providers(two: Two) -> None:
    subject = unique("robot")
    as_robot = two.whoami(two.partner.token(subject, aud="robots", scope="read lake"))
    assert as_robot.json()["id"] == f"partner-robots~{subject}"
    assert two.whoami(two.partner.token(subject)).json()["id"] == f"partner~{subject}"
    for claims, message in (
        ({"aud": "robots"}, "lacks the scope"),
        ({"aud": ["robots", AUDIENCE], "scope": "lake"}, "several providers"),
        ({"aud": "else"}, "has no audience"),
        ({"aud": ...}, "has no audience"),
    ):
        refused = two.whoami(two.partner.token(subject, **claims))
        assert refused.status_code == 401 and message in refused.json()["error"]["message"], claims


def test_configured_claims_determine_user_id_and_name(two: Two) -> None:
    number = unique("e")
    token = two.partner.token("changeable", employee=number, team="Ingest", site={"name": "Ghent"})
    made = two.whoami(token).json()
    assert (made["id"], made["name"], made["user-type"]) == (f"partner~{number}", "Ingest of Ghent", "application")
    claims = {"name": "Pia", "email": "pia@example.com"}
    person = two.whoami(two.partner.token(unique("p"), **claims, email_verified=True)).json()
    assert (person["name"], person["email"], person["user-type"]) == ("Pia", "pia@example.com", "human")
    assert "email" not in two.whoami(two.partner.token(unique("p"), **claims)).json(), (
        "an unverified address must not be stored"
    )


def test_opaque_token_error_names_the_expected_form(two: Two) -> None:
    refused = two.whoami("2YotnFZFEjr1zCsicMWpAA")
    assert refused.status_code == 401 and "opaque tokens are not supported" in refused.json()["error"]["message"]


def test_provider_outage_affects_its_own_users_only(world: World, two: Two) -> None:
    answer = two.whoami(two.gone.token(unique("late")))
    assert error_triple(answer)[0] == 503 and int(answer.headers["retry-after"]) > 0
    assert two.gone.issuer not in answer.text, "the response must not name the provider's address"
    assert two.whoami(world.carol.token).status_code == 200
    assert two.whoami(two.partner.token(unique("p"))).status_code == 201
    health = httpx.get(f"{two.base}/health", timeout=60, trust_env=False)
    assert health.status_code == 200, "a gateway with one available provider must report itself healthy"
    shown = {each["name"]: each["status"] for each in health.json()["services"]["identity"]}
    assert (shown["gone"], shown["oidc"], shown["partner"]) == ("error", "ok", "ok")


def test_unknown_key_ids_cause_few_provider_requests(world: World, two: Two) -> None:
    requested, began = len(two.partner.calls), time.monotonic()
    for number in range(40):
        assert two.whoami(two.partner.token("x", kid=f"made-up-{number}")).status_code == 401
    intervals = 1 + (time.monotonic() - began) // 10
    assert len(two.partner.calls) - requested <= 12 * intervals, (
        "each worker process may request the keys once in ten seconds"
    )
    assert two.whoami(world.carol.token).status_code == 200


def test_a_gateway_that_needs_a_provider_does_not_start_without_its_keys() -> None:
    async def opened(provider: StubProvider) -> int:
        prefix = "LAKEGATE__OPENID_PROVIDERS__NEEDED__"
        error_triple = {"URI": provider.issuer, "AUDIENCE": AUDIENCE, "REQUIRE_CONNECTED_ON_STARTUP": "true"}
        read = settings.load({prefix + name: value for name, value in error_triple.items()})
        async with AsyncExitStack() as stack:
            return len((await open_identity(read, trusted(None, None), Metrics(), stack)).checks)

    with stub_provider() as provider:
        assert asyncio.run(opened(provider)) == 1
        provider.down = True
        with pytest.raises(IdentityProviderUnavailable):
            asyncio.run(opened(provider))
