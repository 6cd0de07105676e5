# SPDX-License-Identifier: Apache-2.0
"""Sign-in on the gateway's pages with a real browser. Only a browser applies the Content-Security-Policy, the
cross-origin opener policy, and the provider's CORS rules.

Opt-in by `make test-browser`, which sets LAKEGATE_TEST_BROWSER. If LAKEGATE_TEST_PICTURES names a folder, screenshots
are saved there. The requests themselves are tested in `tests/contract/test_browser_login.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.engines.browser import BROWSER_TESTS, Browser
from tests.support.stack.world import World

#: Saves a screenshot under a name.
Picture = Callable[[str], None]

pytestmark = BROWSER_TESTS


@pytest.fixture
def picture(browser: Browser) -> Picture:
    folder = os.environ.get("LAKEGATE_TEST_PICTURES")

    def take(name: str) -> None:
        if folder:
            browser.picture(Path(folder) / f"{name}.png")

    return take


def _sign_in(browser: Browser, world: World, name: str) -> None:
    """Sign in on the provider's own page."""
    browser.wait(
        lambda: True if browser.url.startswith(world.ready.issuer) else None, "the provider's page is not there"
    )
    browser.type("#username", name)
    browser.type("#password", world.ready.users[name].client_secret)
    browser.click("button[type=submit]")


def _stopped(browser: Browser) -> list[str]:
    """Return the page's policy violations and errors from the console."""
    words = ("Content Security Policy", "Uncaught", "CORS", "Cross-Origin")
    return [each for each in browser.console() if any(word in each for word in words)]


def test_user_signs_in_on_the_page_sees_their_identity_and_signs_out(
    world: World, browser: Browser, picture: Picture
) -> None:
    browser.resize(1000, 900)
    browser.open(f"{world.base}/ui")
    browser.find("#sign-in")
    picture("ui-welcome")
    browser.click("#sign-in")
    browser.wait(lambda: True if "/authorize" in browser.url else None, "the page did not redirect to the provider")
    requested = {name: values[0] for name, values in parse_qs(urlsplit(browser.url).query).items()}
    if requested:  # a provider may keep the request and show its page at another address
        assert requested["response_type"] == "code" and requested["code_challenge_method"] == "S256"
        assert len(requested["code_challenge"]) == 43 and len(requested["state"]) == len(requested["nonce"]) == 43
        assert "client_secret" not in requested
    picture("provider")
    _sign_in(browser, world, "admin")
    browser.find("h1", "Welcome, admin")
    assert browser.url == f"{world.base}/ui", "the address must not contain the authorization code"
    browser.find("code", "oidc~admin")
    browser.find("main h3", "Default Project")
    assert world.ready.warehouse is not None
    browser.find("main li", world.ready.warehouse)
    picture("ui-light")
    browser.dark(True)
    browser.find("#me")
    picture("ui-dark")
    assert browser.run("return [localStorage.length, document.cookie]") == [0, ""]
    assert browser.run("return Object.keys(sessionStorage)") == ["lakegate.session"], (
        "only the session may stay in the session storage"
    )
    browser.reload()
    browser.find("h1", "Welcome, admin")
    browser.click("#sign-out")
    browser.find("#status", "You are signed out here")
    assert browser.run("return sessionStorage.length") == 0
    assert browser.run("return document.body.textContent.includes('admin')") is False
    browser.reload()
    browser.find("#status", "You are not signed in")
    assert _stopped(browser) == []


def test_unsolicited_authorization_response_signs_no_user_in(world: World, browser: Browser) -> None:
    """Login CSRF: a link with an authorization code of another user must not sign the victim in as that user."""
    browser.open(f"{world.base}/ui?code=stolen&state=made-up")
    browser.find("#problem", "was not begun in this tab")
    assert browser.url == f"{world.base}/ui"
    assert browser.run("return sessionStorage.length") == 0
    browser.run(
        "sessionStorage.setItem('lakegate.sign-in', JSON.stringify({state: 's', nonce: 'n', verifier: 'v', "
        "begun: Date.now()}))"
    )
    browser.open(f"{world.base}/ui?code=stolen&state=s&iss=https%3A%2F%2Fother.example")
    browser.find("#problem", "Another provider answered")
    assert browser.run("return sessionStorage.length") == 0, "the sign-in state must be removed"


def test_expired_token_ends_the_session(world: World, browser: Browser) -> None:
    browser.open(f"{world.base}/ui")
    browser.find("#sign-in")
    browser.run(
        "sessionStorage.setItem('lakegate.session', JSON.stringify({token: 'x.y.z', ends: Date.now() + 60000}))"
    )
    browser.reload()
    browser.find("#status", "Your sign-in has ended")
    assert browser.run("return sessionStorage.length") == 0


def test_content_security_policy_blocks_foreign_content(world: World, browser: Browser) -> None:
    """Scripts that WebDriver runs are exempt from the policy; the content that they insert into the page is not."""
    browser.open(f"{world.base}/ui")
    browser.find("#sign-in")
    browser.run(
        "const s = document.createElement('script'); s.textContent = 'window.ran = true'; document.head.append(s);"
    )
    assert browser.run("return window.ran === undefined")
    assert _stopped(browser) != []
    sent = browser.run("return fetch('http://127.0.0.1:1/').then(() => 'sent', (error) => error.name)")
    assert sent == "TypeError"
    assert any("connect-src" in each or "Content Security Policy" in each for each in browser.console())


def test_swagger_signs_in_by_a_window_and_sends_the_token(world: World, browser: Browser, picture: Picture) -> None:
    browser.resize(1200, 1000)
    browser.open(f"{world.base}/swagger-ui/?urls.primaryName=Management")
    browser.click("button.authorize")
    browser.find(".modal-ux", "authorizationCode")
    picture("swagger-authorize")
    questions = (
        "return [...document.querySelectorAll('[data-name=clientSecret]')].some((each) => each.offsetParent !== null)"
    )
    assert browser.run(questions) is False, "the form must have no field for a client secret"
    first = browser.windows()
    browser.click(".modal-ux .auth-container:last-child button.authorize")
    (window,) = browser.wait(lambda: sorted(set(browser.windows()) - set(first)) or None, "no window was opened")
    browser.to_window(window)
    _sign_in(browser, world, "carol")
    browser.wait(lambda: True if browser.windows() == first else None, "the window was not closed")
    browser.to_window(first[0])
    browser.find(".modal-ux button", "Logout")
    picture("swagger-signed-in")
    browser.click(".modal-ux .btn-done")
    assert _stopped(browser) == []


def test_swagger_draws_all_tags_of_the_management_api_folded_and_filters_operations(
    world: World, browser: Browser, picture: Picture, record_property: Callable[[str, object], None]
) -> None:
    """The document has hundreds of operations. The limit is generous, because the machine of a test may be busy."""
    browser.resize(1200, 1000)
    began = time.monotonic()
    browser.open(f"{world.base}/swagger-ui/?urls.primaryName=Management")
    browser.find(".opblock-tag", "warehouses")
    record_property("swagger_management_seconds", round(time.monotonic() - began, 1))
    assert time.monotonic() - began < 20
    assert browser.run("return document.querySelectorAll('.opblock-tag').length") > 25
    assert browser.run("return document.querySelectorAll('.opblock').length") == 0, "operations must be folded"
    picture("swagger-folded")
    browser.type(".operation-filter-input", "undrop")
    shown = "return [...document.querySelectorAll('.opblock-tag')].map((each) => each.dataset.tag)"
    browser.wait(lambda: True if browser.run(shown) == ["deleted-tabulars"] else None, "the filter has no effect")
    browser.click(".opblock-tag")
    browser.click(".opblock-summary-control")
    browser.find(".opblock-description", "Rights")
    browser.find(".body-param__example", "targets")
    picture("swagger-operation")
    assert browser.url.endswith("#/deleted-tabulars/UndropTabulars"), "each operation must have an address"
    assert _stopped(browser) == []
