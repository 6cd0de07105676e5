# SPDX-License-Identifier: Apache-2.0
"""Sign-in on a page of the gateway against the embedded provider, with the requests of the page's script."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import httpx
import pytest

from tests.support.stack.signing_in import (
    PUBLIC_CLIENT,
    Attempt,
    browser,
    callback_parameters,
    claims_of,
    fill_in,
    form_with,
    signed_in,
)
from tests.support.stack.world import World

pytestmark = pytest.mark.servers

SCOPE = "openid profile email"


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def page_data(world: World) -> dict[str, Any]:
    """Return the page's configuration of the provider."""
    page = httpx.get(f"{world.base}/ui", trust_env=False, timeout=60)
    found = re.search(r'data-config="([^"]*)"', page.text)
    assert found is not None
    settings: dict[str, Any] = json.loads(html.unescape(found[1]))
    assert settings["setUp"] is True
    sign_in: dict[str, Any] = settings["signIn"]
    return sign_in


def _redeem(http: httpx.Client, page_data: dict[str, Any], **form: str) -> httpx.Response:
    fields = {"grant_type": "authorization_code", "client_id": PUBLIC_CLIENT} | form
    return http.post(page_data["tokenEndpoint"], data={name: value for name, value in fields.items() if value})


def _code(http: httpx.Client, world: World, page_data: dict[str, Any], attempt: Attempt, name: str = "carol") -> str:
    """Return an authorization code of a signed-in user."""
    back = f"{world.base}/ui"
    page = http.get(
        page_data["authorizationEndpoint"], params=attempt.authorization_request(PUBLIC_CLIENT, back, SCOPE)
    )
    given = callback_parameters(fill_in(http, page, name, world.ready.users[name].client_secret), back)
    assert given["state"] == attempt.state
    return given["code"]


def test_login_page_gets_the_provider_configuration_without_secrets(world: World, page_data: dict[str, Any]) -> None:
    assert page_data == {
        "issuer": world.ready.issuer,
        "clientId": PUBLIC_CLIENT,
        "scope": SCOPE,
        "authorizationEndpoint": f"{world.ready.issuer}/authorize",
        "tokenEndpoint": world.ready.token_endpoint,
        "endSessionEndpoint": page_data["endSessionEndpoint"],
    }


@pytest.mark.parametrize("path", ["/ui", "/ui/", "/swagger-ui/"])
def test_page_policy_allows_only_this_server_and_the_token_endpoint(world: World, path: str) -> None:
    page = httpx.get(f"{world.base}{path}", trust_env=False, timeout=60)
    rules = dict(rule.strip().split(" ", 1) for rule in page.headers["content-security-policy"].split(";"))
    assert rules["default-src"] == "'none'"
    # The console has one inline script, its import map, by the digest of its text.
    inline = re.findall(r'<script type="importmap">([^<]*)</script>', page.text)
    digests = [f"'sha256-{b64encode(sha256(each.encode()).digest()).decode()}'" for each in inline]
    assert rules["script-src"] == " ".join(["'self'", *digests])
    assert rules["connect-src"] == f"'self' {world.ready.issuer}", (
        "connect-src allows only the gateway and the provider's token endpoint"
    )
    assert rules["frame-ancestors"] == rules["form-action"] == rules["base-uri"] == "'none'"
    opener = {"/swagger-ui/": "same-origin-allow-popups"}.get(path, "same-origin")
    assert page.headers["cross-origin-opener-policy"] == opener, "only Swagger UI may open a window"
    assert page.headers["referrer-policy"] == "no-referrer"


def test_page_sign_in_gives_the_same_user_as_any_other_token(
    world: World, page_data: dict[str, Any], http: httpx.Client
) -> None:
    attempt = Attempt()
    code = _code(http, world, page_data, attempt)
    answer = _redeem(
        http, page_data, code=code, redirect_uri=f"{world.base}/ui", code_verifier=attempt.verifier
    ).raise_for_status()
    tokens = answer.json()
    # The page checks these before it stores anything.
    about = claims_of(tokens["id_token"])
    assert (about["nonce"], about["iss"]) == (attempt.nonce, page_data["issuer"])
    assert PUBLIC_CLIENT in ([about["aud"]] if isinstance(about["aud"], str) else about["aud"])
    assert tokens["token_type"].lower() == "bearer"
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    whoami = httpx.get(f"{world.base}/management/v1/whoami", headers=headers, trust_env=False, timeout=60)
    assert whoami.json()["id"] == "oidc~carol"
    id_token = {"Authorization": f"Bearer {tokens['id_token']}"}
    refused = httpx.get(f"{world.base}/management/v1/whoami", headers=id_token, trust_env=False, timeout=60)
    assert refused.status_code == 401, "an ID token must not authenticate a request"


@pytest.mark.parametrize("verifier", ["", "x" * 43])
def test_stolen_code_is_refused_without_the_verifier(
    world: World, page_data: dict[str, Any], http: httpx.Client, verifier: str
) -> None:
    code = _code(http, world, page_data, Attempt())
    answer = _redeem(http, page_data, code=code, redirect_uri=f"{world.base}/ui", code_verifier=verifier)
    assert answer.status_code in (400, 401) and "access_token" not in answer.text


def test_authorization_code_is_valid_once(world: World, page_data: dict[str, Any], http: httpx.Client) -> None:
    attempt = Attempt()
    form = {
        "code": _code(http, world, page_data, attempt),
        "redirect_uri": f"{world.base}/ui",
        "code_verifier": attempt.verifier,
    }
    assert [_redeem(http, page_data, **form).status_code for _ in range(2)] == [200, 400]


@pytest.mark.parametrize(
    "change",
    [
        {"redirect_uri": "http://127.0.0.1:1/elsewhere"},
        {"redirect_uri": "https://attacker.example/ui"},
        {"response_type": "token"},
        {"response_type": "id_token token"},
        {"code_challenge": ""},
        {"code_challenge_method": "plain"},
    ],
)
def test_sign_in_without_pkce_or_to_a_foreign_redirect_gets_no_code(
    world: World, page_data: dict[str, Any], http: httpx.Client, change: dict[str, str]
) -> None:
    requested = Attempt().authorization_request(PUBLIC_CLIENT, f"{world.base}/ui", SCOPE) | change
    page = http.get(
        page_data["authorizationEndpoint"], params={name: value for name, value in requested.items() if value}
    )
    assert page.status_code in (302, 303, 400), page.text[:500]
    location = page.headers.get("location", "")
    assert "code=" not in location and "access_token" not in location
    assert "attacker.example" not in location and "127.0.0.1:1/" not in location
    if page.status_code != 400:
        assert "error=" in location


def test_wrong_password_and_service_client_get_no_code(
    world: World, page_data: dict[str, Any], http: httpx.Client
) -> None:
    requested = Attempt().authorization_request(PUBLIC_CLIENT, f"{world.base}/ui", SCOPE)
    page = http.get(page_data["authorizationEndpoint"], params=requested)
    for name, password in (("carol", "wrong"), ("etl", world.ready.users["etl"].client_secret)):
        answer = fill_in(http, page, name, password)
        assert "location" not in answer.headers
        form_with(answer, "password")


def test_public_client_gets_no_client_credentials_token(page_data: dict[str, Any], http: httpx.Client) -> None:
    for more in ({}, {"client_secret": "x"}):
        requested = {"grant_type": "client_credentials", "client_id": PUBLIC_CLIENT, **more}
        answer = http.post(page_data["tokenEndpoint"], data=requested)
        assert answer.status_code in (400, 401) and "access_token" not in answer.text


def test_provider_cors_allows_only_pages_of_the_gateway(world: World, page_data: dict[str, Any]) -> None:
    """Without this header a browser does not let the page read the token."""
    allowed = {}
    for origin in (world.base, "https://attacker.example", "http://127.0.0.1:1"):
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        answer = httpx.options(page_data["tokenEndpoint"], headers=headers, trust_env=False, timeout=60)
        allowed[origin] = answer.headers.get("access-control-allow-origin")
    assert allowed == {world.base: world.base, "https://attacker.example": None, "http://127.0.0.1:1": None}


def test_page_shows_only_objects_visible_to_the_user(world: World) -> None:
    """The test sends the page's requests for a user without rights and for the administrator."""
    world.strip(world.contractor)
    contractor, admin = signed_in(world, "contractor"), signed_in(world, "admin")
    try:
        mine = contractor.post("/management/v1/user", {})
        assert mine.status_code in (200, 201) and mine.json()["id"] == contractor.id
        assert contractor.get("/management/v1/whoami").json()["id"] == contractor.id
        roles = contractor.get(f"/management/v1/user/{contractor.id}/roles/transitive")
        assert roles.status_code == 200
        assert contractor.get("/management/v1/project-list").json() == {"projects": []}
        projects = admin.get("/management/v1/project-list").json()["projects"]
        assert world.project in {each["project-id"] for each in projects}
        listed = admin.get(
            "/management/v1/warehouse?warehouseStatus=active,inactive", headers={"x-project-id": world.project}
        )
        assert world.warehouse in {each["warehouse-id"] for each in listed.json()["warehouses"]}
    finally:
        contractor.http.close()
        admin.http.close()


def test_development_provider_users_cannot_administer_it(world: World) -> None:
    """A password of the provider signs in to the gateway's pages; it gives no administration of the provider."""
    issuer = world.ready.issuer
    with browser() as http:
        page = http.get(f"{issuer}/login")
        password = world.ready.users["carol"].client_secret
        assert fill_in(http, page, "carol", password).status_code == 302
        made = http.post(f"{issuer}/users/create", data={"username": "mallory", "password": "mallory-mallory"})
        assert made.status_code in (302, 303, 401, 403)
        assert http.post(f"{issuer}/api/users/admin/token").status_code in (401, 403)
        entered = http.post(f"{issuer}/login", data={"username": "mallory", "password": "mallory-mallory"})
        assert "error" in entered.headers.get("location", "error")
