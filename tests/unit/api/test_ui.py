# SPDX-License-Identifier: Apache-2.0
"""The console: complete in the package, tokens stored per tab, no foreign script, small."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from gateway.features.server import console_files
from gateway.features.server.console_files import FILES, LIBRARIES
from gateway.identity.sign_in import SignIn
from tests.console.sbom import with_libraries
from tests.console.sizes import FILE_LINES, FIRST_LOAD, OWN_LINES, first_load, imported, own_files, own_lines
from tests.console.vendor import SUMS, digests
from tests.support.door.app import Running, running

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
    found = re.search(r'data-config="([^"]*)"', page)
    assert found is not None
    page_data: dict[str, Any] = json.loads(html.unescape(found[1]))
    return page_data


async def test_the_page_has_one_inline_script_the_import_map_and_its_csp_allows_only_that_text() -> None:
    async with running() as app:
        _with(app, PROVIDER)
        page = await app.client.get("/ui")
        assert (page.status_code, page.headers["content-type"].split(";")[0]) == (200, "text/html")
        scripts = re.findall(r"<script([^>]*)>([^<]*)</script>", page.text)
        digest = console_files.digest()
        assert [attributes for attributes, _ in scripts] == [
            ' type="importmap"', f' type="module" src="/ui/{digest}/main.js"'
        ]  # fmt: skip
        assert scripts[1][1] == ""
        assert not re.search(r"\son\w+=|<style|style=|javascript:", page.text)
        source = b64encode(sha256(scripts[0][1].encode()).digest()).decode()
        assert f"script-src 'self' 'sha256-{source}';" in page.headers["content-security-policy"]
        loaded = set(re.findall(r'(?:src|href)="([^"#]+)"', page.text))
        loaded |= set(json.loads(scripts[0][1])["imports"].values())
        types = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
        for path in loaded:
            part = await app.client.get(path)
            assert (part.status_code, part.headers["x-content-type-options"]) == (200, "nosniff"), path
            assert part.headers["content-type"].split(";")[0] == types[path.rsplit(".", 1)[1]]
            assert part.headers["cross-origin-resource-policy"] == "same-origin"
            assert part.headers["cache-control"] == "public, max-age=31536000, immutable"
        stale = await app.client.get(loaded.pop().replace(digest, "0123456789abcdef"))
        assert (stale.status_code, stale.headers["cache-control"]) == (200, "no-cache")


def test_console_modules_load_nothing_from_elsewhere_and_insert_text_as_text() -> None:
    """A static check of all modules for unsafe storage, unsafe insertion of text, and styles that the CSP blocks."""
    for each in own_files():
        text = each.read_text()
        # The SVG namespace is a name and not an address.
        assert "://" not in re.sub(
            r"//[^\n]*", "", text.replace("http://www.w3.org/2000/svg", "").replace('"http', "")
        ), each
        for never in (
            "localStorage", "document.cookie", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "unsafeHTML",
            "unsafeSVG", "client_secret", " style=",
        ):  # fmt: skip
            assert never not in text, f"{never} in {each}"


def test_each_module_imports_files_that_exist() -> None:
    for each in own_files():
        if each.suffix == ".js":
            missing = [file for lazily in (False, True) for file in imported(each, lazily=lazily) if not file.is_file()]
            assert missing == [], each


def test_each_vendored_file_equals_the_published_one() -> None:
    """The digests were written from archives whose integrity equals the one in `libraries.json`."""
    written = {path: digest for digest, path in (line.split("  ") for line in SUMS.read_text().splitlines())}
    assert digests() == written
    named = {f"{library.folder}/{file}" for library in LIBRARIES for file in library.files}
    assert written.keys() == named and all("LICENSE" in library.files for library in LIBRARIES)


def test_vendored_libraries_are_components_of_the_sbom() -> None:
    document = with_libraries({"bomFormat": "CycloneDX", "components": [{"name": "litestar"}]})
    assert [each["name"] for each in document["components"]] == ["litestar", *(each.name for each in LIBRARIES)]
    lit = document["components"][1]
    assert lit["purl"] == f"pkg:npm/lit@{lit['version']}" and len(lit["hashes"][0]["content"]) == 128


def test_the_console_stays_small() -> None:
    lines = own_lines()
    assert sum(lines.values()) <= OWN_LINES
    assert {name: count for name, count in lines.items() if count > FILE_LINES} == {}
    assert first_load() <= FIRST_LOAD


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
        for path, status in (
            ("/ui/0/index.html", 404),
            ("/ui/0/..%2Fconsole_files.py", 400),
            ("/ui/0/vendor/libraries.json", 404),
            ("/ui/0/vendor/lit/LICENSE", 404),
            ("/ui/main.js", 404),
        ):
            assert (await app.client.get(path)).status_code == status
        _with(app, PROVIDER, ui=False)
        for path in ("/ui", "/ui/", "/ui/0/main.js"):
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


def test_the_sign_in_stores_tokens_per_tab_and_checks_the_response() -> None:
    script = (FILES / "core/session.js").read_text()
    assert script.count("sessionStorage.setItem") == 2, "the pending sign-in, and the session"
    assert not any("sessionStorage" in each.read_text() for each in own_files() if each.name != "session.js")
    assert 'response_type: "code"' in script and 'code_challenge_method: "S256"' in script
    assert re.search(r"crypto\.getRandomValues\(new Uint8Array\(32\)\)", script)
    for checked in ('given.get("state") !== pending.state', "claims.nonce !== pending.nonce", 'given.get("iss") !=='):
        assert checked in script
    main = (FILES / "main.js").read_text()
    assert main.index("history.replaceState") < main.index("await session.completeSignIn(given)")
