# SPDX-License-Identifier: Apache-2.0
"""Keycloak as the identity provider of users and services, with the features that a company uses: client credentials,
sign-in with a browser, the device flow, groups as roles, and key rotation.

Opt-in by `make test-keycloak`, which sets LAKEGATE_TEST_KEYCLOAK: see `tests/support/servers/keycloak.py`. The realm is
`keycloak_realm.json`.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.servers.keycloak import Keycloak, Missing, keycloak_server
from tests.support.servers.toxic import second_gateway
from tests.support.stack.roles import make
from tests.support.stack.signing_in import Attempt, browser, callback_parameters, claims_of, fill_in, form_with
from tests.support.stack.world import Person, World, error_triple, unique

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_KEYCLOAK"), reason="needs Keycloak: run `make test-keycloak`"),
]

CLIENT = "lakegate-ui"
#: The redirect URI of the realm. No server listens there: the tests read the redirect and do not follow it.
BACK = "http://127.0.0.1:8181/ui"
SCOPE = "openid profile email"
_PATIENCE_SECONDS = 90.0


@dataclass(frozen=True)
class Company:
    """A Keycloak, and a gateway that accepts its tokens as well as those of the stack's own provider."""

    keycloak: Keycloak
    base: str

    def person(self, token: str) -> Person:
        """Return the principal of a token."""
        return Person("somebody", f"keycloak~{claims_of(token)['sub']}", token, self.base)

    def status(self, token: str) -> int:
        """Return the status of a self-registration request with this token."""
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.post(f"{self.base}/management/v1/user", json={}, headers=headers, trust_env=False, timeout=60)
        return answer.status_code


@pytest.fixture(scope="module")
def company(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    directory = tmp_path_factory.mktemp("company")
    try:
        with keycloak_server(directory / "keycloak") as keycloak:
            settings = {
                "OPENID_PROVIDERS__KEYCLOAK__URI": keycloak.issuer,
                "OPENID_PROVIDERS__KEYCLOAK__AUDIENCE": "lakegate",
                "OPENID_PROVIDERS__KEYCLOAK__ROLES_CLAIM": "groups",
                "OPENID_PROVIDERS__KEYCLOAK__KEYS_REFRESH": "10s",
                "UI__OPENID_PROVIDER_URI": keycloak.issuer,
                "UI__OPENID_CLIENT_ID": CLIENT,
            }
            with second_gateway(world.ready, directory / "gateway.log", **settings) as (base, _):
                yield Company(keycloak, base)
    except Missing as missing:
        pytest.fail(str(missing), pytrace=False)
    assert not (directory / "keycloak").exists(), "the directory of Keycloak must be removed"


def _signed_in(keycloak: Keycloak, name: str) -> dict[str, Any]:
    """Return the tokens of a user who signed in with a browser."""
    attempt = Attempt()
    with browser() as http:
        page = http.get(
            keycloak.endpoint("authorization_endpoint"), params=attempt.authorization_request(CLIENT, BACK, SCOPE)
        )
        given = callback_parameters(fill_in(http, page, name, keycloak.password), BACK)
        assert given["state"] == attempt.state
        assert given["iss"] == keycloak.issuer, "the response must contain the issuer (RFC 9207)"
        requested = {
            "grant_type": "authorization_code",
            "code": given["code"],
            "redirect_uri": BACK,
            "client_id": CLIENT,
            "code_verifier": attempt.verifier,
        }
        unproven = http.post(keycloak.endpoint("token_endpoint"), data=requested | {"code_verifier": "x" * 43})
        assert unproven.status_code == 400
        # A failed exchange uses up the code, so request another one; the session needs no password this time.
        page = http.get(
            keycloak.endpoint("authorization_endpoint"), params=attempt.authorization_request(CLIENT, BACK, SCOPE)
        )
        requested["code"] = callback_parameters(page, BACK)["code"]
        answer = http.post(keycloak.endpoint("token_endpoint"), data=requested)
    tokens: dict[str, Any] = answer.raise_for_status().json()
    assert claims_of(tokens["id_token"])["nonce"] == attempt.nonce
    return tokens


def test_client_credentials_give_a_service_principal(company: Company) -> None:
    with closing(company.person(company.keycloak.token_of_client("etl")).http) as http:
        known = http.post("/management/v1/user", json={})
        assert known.status_code == 201
        me = http.get("/management/v1/whoami").json()
    assert me["id"].startswith("keycloak~") and me["user-type"] == "application"


def test_token_for_another_client_of_the_realm_is_refused(company: Company) -> None:
    token = company.keycloak.token_of_client("elsewhere")
    assert "lakegate" not in json.dumps(claims_of(token).get("aud", ""))
    assert company.status(token) == 401


def test_browser_sign_in_gives_a_human_user_with_a_name(company: Company) -> None:
    tokens = _signed_in(company.keycloak, "anna")
    with closing(company.person(tokens["access_token"]).http) as http:
        assert http.post("/management/v1/user", json={}).status_code in (200, 201)
        me = http.get("/management/v1/whoami").json()
    assert (me["name"], me["email"], me["user-type"]) == ("Anna Analyst", "anna@example.com", "human")
    assert company.status(tokens["id_token"]) == 401, "an ID token must not authenticate a request"
    assert company.status(tokens["refresh_token"]) == 401


def test_sign_in_without_pkce_or_to_a_foreign_redirect_is_refused(company: Company) -> None:
    requested = Attempt().authorization_request(CLIENT, BACK, SCOPE)
    for change in (
        {"code_challenge": "", "code_challenge_method": ""},
        {"code_challenge_method": "plain"},
        {"response_type": "token"},
        {"redirect_uri": "https://attacker.example/ui"},
    ):
        fields = {name: value for name, value in (requested | change).items() if value}
        answer = httpx.get(
            company.keycloak.endpoint("authorization_endpoint"), params=fields, trust_env=False, timeout=60
        )
        assert "code=" not in answer.headers.get("location", "") and 'type="password"' not in answer.text, change
        assert "attacker.example" not in answer.headers.get("location", "")


def test_gateway_page_redirects_to_keycloak_and_its_policy_allows_no_other(company: Company) -> None:
    page = httpx.get(f"{company.base}/ui", trust_env=False, timeout=60)
    found = re.search(r'data-config="([^"]*)"', page.text)
    assert found is not None
    sign_in = json.loads(html.unescape(found[1]))["signIn"]
    assert sign_in["authorizationEndpoint"] == company.keycloak.endpoint("authorization_endpoint")
    assert f"connect-src 'self' {company.keycloak.url};" in page.headers["content-security-policy"]
    origin = BACK.removesuffix("/ui")
    requested = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    allowed = httpx.options(company.keycloak.endpoint("token_endpoint"), headers=requested, trust_env=False, timeout=60)
    assert allowed.headers.get("access-control-allow-origin") == origin, "CORS must allow the realm's web origins only"


def test_a_group_of_the_realm_is_a_role_of_the_project(world: World, company: Company, ns: str) -> None:
    named: dict[str, Any] = {"provider-id": "keycloak", "source-id": "analysts"}
    role = make(world, **named)
    table = world.table(ns)
    given = {"writes": [{"type": "select", "role": role["id"]}]}
    assert world.admin.post(world.grants_path("table", table.uuid), given).status_code == 204
    anna = company.person(_signed_in(company.keycloak, "anna")["access_token"])
    bert = company.person(_signed_in(company.keycloak, "bert")["access_token"])
    with closing(anna.http), closing(bert.http):
        assert claims_of(anna.token)["groups"] == ["analysts"]
        assert anna.get(table.path).status_code == 200
        assert error_triple(bert.get(table.path))[:2] == (404, "NoSuchTableException")
        roles = anna.get(f"/management/v1/user/{anna.id}/roles").json()["roles"]
        assert role["id"] in {each["id"] for each in roles}, "the list of roles must contain the role"
    world.admin.delete(f"/management/v1/role/{role['id']}")


def test_device_login_completes_after_approval_in_the_realm(company: Company, tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PYTHONUNBUFFERED": "1",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        "LAKEGATE__OPENID_PROVIDER_URI": company.keycloak.issuer,
        "LAKEGATE__UI__OPENID_CLIENT_ID": CLIENT,
    }
    command = [sys.executable, "-m", "gateway.cli"]
    with subprocess.Popen([*command, "login"], env=environment, stdout=subprocess.PIPE, text=True) as login:
        assert login.stdout is not None
        shown = login.stdout.readline() + login.stdout.readline()
        complete = re.search(r"or open (\S+)", shown)
        assert complete is not None, shown
        with browser(follows=True) as http:
            page = fill_in(http, http.get(complete[1]), "anna", company.keycloak.password)
            # The provider asks the user who entered the code to confirm the sign-in.
            consent = form_with(page, "accept")
            done = http.post(consent.action, data=consent.values | {"accept": "Yes"})
            assert done.status_code == 200
        assert login.wait(_PATIENCE_SECONDS) == 0
    printed = subprocess.run([*command, "token"], env=environment, capture_output=True, text=True, check=True)
    token = printed.stdout.strip()
    assert claims_of(token)["preferred_username"] == "anna"
    assert company.status(token) in (200, 201)


def test_withdrawn_realm_key_ends_its_tokens_and_a_new_key_needs_no_restart(company: Company) -> None:
    keycloak = company.keycloak
    before = keycloak.token_of_client("etl")
    assert company.status(before) in (200, 201)
    kind = "org.keycloak.keys.KeyProvider"
    old = [
        each
        for each in keycloak.administered("GET", f"/components?type={kind}").json()
        if each["providerId"] == "rsa-generated"
    ]
    realm = keycloak.administered("GET", "").json()["id"]
    new = {
        "name": unique("next"),
        "providerId": "rsa-generated",
        "providerType": kind,
        "parentId": realm,
        "config": {"priority": ["500"], "active": ["true"], "enabled": ["true"], "algorithm": ["RS256"]},
    }
    keycloak.administered("POST", "/components", json=new)
    after = keycloak.token_of_client("etl")
    assert _kid(after) != _kid(before)
    _until(company, after, {200, 201})
    assert company.status(before) in (200, 201), "tokens of both published keys must be valid"
    for each in old:
        keycloak.administered("DELETE", f"/components/{each['id']}")
    _until(company, before, {401})
    assert company.status(after) in (200, 201)
    assert company.status(keycloak.token_of_client("etl")) in (200, 201)


def _kid(token: str) -> str:
    head = token.split(".")[0]
    return str(json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))["kid"])


def _until(company: Company, token: str, expected: set[int]) -> None:
    """Wait for one of the wanted statuses, until the gateway must have read the provider's new keys."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (status := company.status(token)) not in expected:
        assert time.monotonic() < deadline, status
        time.sleep(0.5)
