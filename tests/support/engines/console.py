# SPDX-License-Identifier: Apache-2.0
"""Open the console of a running stack in a real browser, as one of its users."""

from __future__ import annotations

from tests.support.engines.browser import Browser
from tests.support.stack.world import Person

#: Words of console messages that a page must not cause.
_FAULTS = ("Content Security Policy", "Uncaught", "CORS", "Cross-Origin", "Failed to load module")


def open_as(browser: Browser, person: Person, address: str = "#/") -> None:
    """Sign in with the user's token, and open a page by its address, such as `#/table/demo/hr.people`.

    `tests/e2e/test_browser.py` tests the sign-in at the provider's own page.
    """
    base = str(person.http.base_url).rstrip("/")
    browser.open(f"{base}/ui")
    browser.find("#sign-in, #sign-out")
    browser.run(
        "sessionStorage.setItem('lakegate.session', JSON.stringify({token: arguments[0], ends: Date.now() + 3e6}))",
        person.token,
    )
    browser.open(f"{base}/ui{address}")
    browser.reload()
    browser.find("#sign-out")


def go(browser: Browser, address: str) -> None:
    """Open another page of the console."""
    browser.run("window.location.hash = arguments[0]", address)


def faults(browser: Browser) -> list[str]:
    """Return the violations of the page's policy and the errors of its scripts since the last call."""
    return [each for each in browser.console() if any(word in each for word in _FAULTS)]
