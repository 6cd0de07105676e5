# SPDX-License-Identifier: Apache-2.0
"""The sign-in page: complete in the package, tokens stored per tab, no foreign script."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.features.server import sign_in_routes
from gateway.identity.sign_in import SignIn
from tests.support.door.app import Running, running

FILES = Path(sign_in_routes.__file__).parent / "ui_files"
PROVIDER = SignIn(
    issuer='https://id.example/"><script>alert(1)</script>',
    client_id="the-client",
    scope="openid profile",
    authorization_endpoint="https://id.example/auth",
    token_endpoint="https://tokens.example/token",
)


def _with(app: Running, sign_in: SignIn | None, **more: Any) -> None:
    async def place() -> SignIn | None:
        return sign_in

    app.app.state.services = replace(app.app.state.services, sign_in=place, **more)


def _page_data(page: str) -> dict[str, Any]:
    found = re.search(r'data-told="([^"]*)"', page)
    assert found is not None
    page_data: dict[str, Any] = json.loads(html.unescape(found[1]))
    return page_data


async def test_the_page_loads_only_own_files_and_has_no_inline_script() -> None:
    async with running() as app:
        _with(app, PROVIDER)
        page = await app.client.get("/ui")
        assert (page.status_code, page.headers["content-type"].split(";")[0]) == (200, "text/html")
        assert page.text.count("<script") == 1 and '<script src="/ui/ui.js" defer></script>' in page.text
        assert not re.search(r"\son\w+=|<style|style=|javascript:", page.text)
        loaded = set(re.findall(r'(?:src|href)="([^"#]+)"', page.text)) - {"/ui", "/swagger-ui/"}
        assert loaded == {"/ui/ui.js", "/ui/ui.css", "/ui/mark.svg"}
        types = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
        for path in loaded:
            part = await app.client.get(path)
            assert (part.status_code, part.headers["x-content-type-options"]) == (200, "nosniff")
            assert part.headers["content-type"].split(";")[0] == types[path.rsplit(".", 1)[1]]
            assert part.headers["cross-origin-resource-policy"] == "same-origin"
            assert not re.search(r"\burl\(|@import|\bimport\b", part.text)
            # The SVG namespace is a name and not an address.
            assert "://" not in part.text.replace("http://www.w3.org/2000/svg", "")


async def test_the_csp_names_the_token_endpoint_and_provider_text_is_escaped() -> None:
    async with running() as app:
        _with(app, PROVIDER)
        page = await app.client.get("/ui")
        policy = page.headers["content-security-policy"]
        assert "connect-src 'self' https://tokens.example;" in policy
        assert "style-src 'self';" in policy and "unsafe" not in policy
        assert page.headers["cross-origin-opener-policy"] == "same-origin"
        assert "alert(1)</script>" not in page.text
        page_data = _page_data(page.text)
        assert page_data["signIn"]["issuer"] == PROVIDER.issuer and page_data["signIn"]["clientId"] == "the-client"


@pytest.mark.parametrize("set_up", [False, True])
async def test_the_page_reports_a_missing_provider_and_its_csp_allows_no_other_server(set_up: bool) -> None:
    async with running() as app:
        if set_up:
            _with(app, None)
        page = await app.client.get("/ui")
        assert "connect-src 'self';" in page.headers["content-security-policy"]
        assert _page_data(page.text) == {"setUp": set_up, "signIn": None, "interface": True}


async def test_the_page_can_be_disabled_and_serves_no_other_file() -> None:
    async with running() as app:
        for path, status in (("/ui/ui.html", 404), ("/ui/..%2Fui.py", 400), ("/ui/start.js", 404)):
            assert (await app.client.get(path)).status_code == status
        _with(app, PROVIDER, ui=False)
        for path in ("/ui", "/ui/", "/ui/ui.js"):
            assert (await app.client.get(path)).status_code == 404


def _swagger(sign_in: SignIn | None) -> Callable[[Running], Awaitable[dict[str, Any]]]:
    async def read(app: Running) -> dict[str, Any]:
        if sign_in is not None:
            _with(app, sign_in)
        return {
            name: await app.client.get(path)
            for name, path in {
                "page": "/swagger-ui/",
                "start": "/swagger-ui/start.js",
                "back": "/swagger-ui/oauth2-redirect.html",
                "document": "/api-docs/catalog/v1/openapi.json",
            }.items()
        }

    return read


async def test_swagger_signs_in_with_pkce_and_without_a_secret() -> None:
    async with running() as app:
        read = await _swagger(PROVIDER)(app)
        assert read["page"].headers["cross-origin-opener-policy"] == "same-origin-allow-popups"
        assert "connect-src 'self' https://tokens.example;" in read["page"].headers["content-security-policy"]
        options = re.search(r"initOAuth\((.*)\)", read["start"].text)
        assert options is not None
        assert json.loads(options[1]) == {
            "clientId": "the-client",
            "scopes": "openid profile",
            "usePkceWithAuthorizationCodeGrant": True,
        }
        assert read["back"].headers["cross-origin-opener-policy"] == "unsafe-none", (
            "the redirect page must be able to reach its opener"
        )
        assert "script-src 'self'" in read["back"].headers["content-security-policy"]
        scripts = re.findall(r"<script[^>]*>", read["back"].text)
        assert scripts == ['<script src="oauth2-redirect.js">']
        assert (await app.client.get("/swagger-ui/oauth2-redirect.js")).status_code == 200
        document = read["document"].json()
        flows = document["components"]["securitySchemes"]["sign-in"]["flows"]
        assert list(flows) == ["authorizationCode"], "only the authorization code flow may be offered"
        assert flows["authorizationCode"]["tokenUrl"] == PROVIDER.token_endpoint
        assert document["security"] == [{"bearer": []}, {"sign-in": ["openid", "profile"]}]


async def test_swagger_without_a_public_client_has_no_sign_in() -> None:
    async with running() as app:
        read = await _swagger(None)(app)
        assert read["page"].headers["cross-origin-opener-policy"] == "same-origin"
        assert "connect-src 'self';" in read["page"].headers["content-security-policy"]
        assert "initOAuth" not in read["start"].text
        assert read["back"].status_code == 404
        assert list(read["document"].json()["components"]["securitySchemes"]) == ["bearer"]


def test_the_script_stores_tokens_per_tab_and_inserts_text_as_text() -> None:
    """A static check of the script for unsafe storage and unsafe insertion of text."""
    script = (FILES / "ui.js").read_text()
    for never in (
        "localStorage",
        "document.cookie",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "eval(",
        "client_secret",
    ):
        assert never not in script, never
    assert script.count("sessionStorage.setItem") == 3, "the pending sign-in, the session, and the id of a denial"
    assert 'response_type: "code"' in script and 'code_challenge_method: "S256"' in script
    assert re.search(r"crypto\.getRandomValues\(new Uint8Array\(32\)\)", script)
    for checked in ('given.get("state") !== pending.state', "claims.nonce !== pending.nonce", 'given.get("iss") !=='):
        assert checked in script
    assert script.index("history.replaceState") < script.index("await comeBack(given)")
