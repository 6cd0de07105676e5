# SPDX-License-Identifier: Apache-2.0
"""Every page and tab of the console in a real browser: accessibility by axe, policy violations, and small screens.

Opt-in by `make test-browser`. Node installs axe from the lock file of the console's tools.
"""

from __future__ import annotations

import json
import re

import pytest

from gateway.features.server.console_files import FILES
from tests.console.check import BUILD, install, missing
from tests.support.engines.browser import BROWSER_TESTS, Browser
from tests.support.engines.console import faults, go, open_as
from tests.support.stack.world import Person, World

pytestmark = BROWSER_TESTS

#: Rules of WCAG 2.2, levels A and AA (https://www.deque.com/axe/core-documentation/api-documentation/).
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_AXE = """const done = arguments[arguments.length - 1];
axe.run(document, {runOnly: %s}).then(
  (found) => done(found.violations.map(
    (each) => each.id + ': ' + each.nodes.map((node) => node.target.join(' ')).slice(0, 4).join(', '))),
  (error) => done([String(error)]));"""
#: Return the elements that make a page wider than its window.
_BEYOND = """const wide = document.documentElement.scrollWidth;
if (wide <= window.innerWidth && wide <= 360) return [];
return [...document.querySelectorAll('body *')].filter((each) => each.getBoundingClientRect().right > 361)
  .map((each) => each.localName + '.' + each.className).slice(0, 6);"""


@pytest.fixture(scope="module")
def axe() -> str:
    if reason := missing():
        pytest.fail(reason, pytrace=False)
    install(BUILD)
    return (BUILD / "node_modules/axe-core/axe.min.js").read_text()


def _loaded(browser: Browser) -> None:
    """Wait until the page has its data."""
    browser.find("main h1")
    browser.wait(
        lambda: browser.run("return document.querySelector('main .loading') === null") or None, "the page still loads"
    )


def _addresses(world: World) -> dict[str, str]:
    """Return an address for each page, by its name in `core/routes.js`."""
    namespace = world.namespace()
    table = world.table(namespace)
    stranger = world.stranger()
    world.grant("describe", stranger, "table", table.uuid)
    refused = stranger.get(f"{table.path}/credentials").json()["error"]["message"]
    project = {"x-project-id": world.project}
    role = world.admin.post("/management/v1/role", {"name": f"role of {namespace}"}, headers=project).json()["id"]
    tag = world.admin.post(
        "/management/v1/tag-definition", {"name": f"t{namespace}", "scope": "all"}, headers=project
    ).json()
    place = world.ready.warehouse
    return {
        "home": "#/",
        "warehouse": f"#/warehouse/{place}",
        "namespace": f"#/namespace/{place}/{namespace}",
        "table": f"#/table/{place}/{namespace}.{table.name}",
        "view": f"#/view/{place}/{namespace}.absent",
        "generic-table": f"#/generic-table/{place}/{namespace}.absent",
        "project": f"#/project/{world.project}",
        "user": f"#/user/{world.alice.id}",
        "role": f"#/role/{role}",
        "tag": f"#/tag/{tag.get('id', tag.get('tag-definition-id', ''))}",
        "denial": f"#/denial/{refused.rsplit('denial=', 1)[1]}",
    }


def _pages(world: World) -> list[str]:
    named = _addresses(world)
    kinds = re.findall(r'^  "?([a-z-]+)"?: \{ open', (FILES / "core/routes.js").read_text(), re.MULTILINE)
    assert named.keys() - {"tag"} <= set(kinds)
    return [named.get(kind, f"#/{kind}") for kind in kinds]


def _with_tabs(browser: Browser, address: str) -> list[str]:
    go(browser, address)
    _loaded(browser)
    found = browser.run(
        "return [...document.querySelectorAll('main .tabs a')].map((each) => each.getAttribute('href'))"
    )
    return [str(each) for each in found] or [address]


def _findings(browser: Browser, axe: str, person: Person, addresses: list[str]) -> dict[str, list[str]]:
    """Return what axe finds on each page and tab, in light and in dark."""
    open_as(browser, person)
    browser.run("const added = new Function(arguments[0]); added();", axe)
    found: dict[str, list[str]] = {}
    for page in addresses:
        for address in _with_tabs(browser, page):
            go(browser, address)
            _loaded(browser)
            for dark in (False, True):
                browser.dark(dark)
                if violations := browser.run_async(_AXE % json.dumps(_RULES)):
                    found[f"{address} {'dark' if dark else 'light'}"] = violations
    return found


def test_axe_finds_nothing_on_any_page_and_tab(world: World, browser: Browser, axe: str) -> None:
    assert _findings(browser, axe, world.admin, _pages(world)) == {}
    assert faults(browser) == []


def test_axe_finds_nothing_on_the_pages_of_a_user_without_rights(world: World, browser: Browser, axe: str) -> None:
    assert _findings(browser, axe, world.stranger(), _pages(world)) == {}
    assert faults(browser) == []


def test_axe_finds_a_planted_fault(world: World, browser: Browser, axe: str) -> None:
    open_as(browser, world.admin)
    browser.run("const added = new Function(arguments[0]); added();", axe)
    browser.run("document.querySelector('main').append(document.createElement('button'))")
    assert any("button-name" in each for each in browser.run_async(_AXE % json.dumps(_RULES)))


def test_no_page_is_wider_than_a_screen_of_360_pixels(world: World, browser: Browser) -> None:
    open_as(browser, world.admin)
    browser.narrow(360, 800)
    wide = []
    for page in _pages(world):
        for address in _with_tabs(browser, page):
            go(browser, address)
            _loaded(browser)
            if beyond := browser.run(_BEYOND):
                wide.append((address, beyond))
    assert wide == []
