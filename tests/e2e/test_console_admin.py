# SPDX-License-Identifier: Apache-2.0
"""The console's pages for administrators in a real browser. Opt-in by `make test-browser`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines.browser import Browser, Missing, browsing
from tests.support.engines.console import faults, go, open_as
from tests.support.stack.world import Person, World, unique

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_BROWSER"), reason="needs a browser: run `make test-browser`"),
]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    try:
        with browsing(tmp_path) as made:
            made.resize(1300, 1000)
            yield made
    except Missing as missing:
        pytest.fail(str(missing), pytrace=False)


def _registered(world: World) -> Person:
    """Return a user without grants that has signed in once."""
    person = world.stranger()
    assert person.post("/management/v1/user", {}).status_code in (200, 201)
    return person


def _listed(person: Person, path: str, member: str, **more: Any) -> list[Any]:
    answer = person.get(path, **more)
    assert answer.status_code == 200, answer.text
    return list(answer.json()[member])


def _choose(browser: Browser, menu: str, entry: str) -> None:
    """Open a menu of the page and choose an entry."""
    browser.click(".menu > button", menu)
    browser.click(".menu-list button", entry)


def test_administrator_creates_a_role_adds_members_and_sees_the_nesting(world: World, browser: Browser) -> None:
    person, name, outer = _registered(world), unique("analysts"), unique("finance")
    project = {"x-project-id": world.ready.project_id}
    above = world.admin.post("/management/v1/role", {"name": outer}, headers=project).json()["id"]
    open_as(browser, world.admin, "#/roles")
    _choose(browser, "Roles", "Create a role")
    browser.type("dialog [name=name]", name)
    browser.click("dialog button", "Create")
    browser.find("h1", name)
    role = browser.url.split("#/role/")[1].split("?")[0]
    _choose(browser, "Role", "Add a member")
    browser.type("dialog [name=member]", person.id)
    browser.click("dialog button", "Add")
    browser.find("[role=status]", "The member was added")
    browser.find("lg-long-list a", person.id.removeprefix("oidc~"))
    members = _listed(world.admin, f"/management/v1/role/{role}/members", "members")
    assert [each["id"] for each in members] == [person.id]
    nested = world.admin.post(f"/management/v1/role/{above}/members", {"members": [{"type": "role", "id": role}]})
    assert nested.status_code == 204, nested.text
    go(browser, f"#/role/{role}?tab=nesting")
    browser.reload()
    browser.find(".graph .node", outer)
    browser.find(".graph .node", person.id.removeprefix("oidc~"))
    go(browser, f"#/user/{person.id}?tab=roles")
    browser.find("tr", outer)
    assert "through another role" in browser.text(browser.find("tr", outer))
    assert "direct" in browser.text(browser.find("tr", name))
    assert faults(browser) == []


def test_administrator_sees_who_holds_live_credentials_and_ends_the_right_behind(
    world: World, browser: Browser
) -> None:
    table, holder = world.table(world.namespace()), _registered(world)
    world.grant("select", holder, "table", table.uuid)
    assert holder.get(f"{table.path}/credentials").status_code == 200
    open_as(browser, world.admin, f"#/user/{holder.id}?tab=credentials")
    row = browser.find("lg-long-list .drawn [role=row]", table.uuid)
    assert "read" in browser.text(row)
    browser.click("lg-long-list button", "End")
    browser.find("dialog .check", "select on table")
    browser.find("dialog summary", "Stop it at the store")
    browser.click("dialog button", "Revoke the selected grants")
    browser.find("[role=status]", "not renewed without a right")
    grants = f"/management/v1/warehouse/{world.ready.warehouse_id}/table/{table.uuid}/grants"
    assert _listed(world.admin, f"{grants}?principalUser={holder.id}", "grants") == []
    assert holder.get(f"{table.path}/credentials").status_code in (403, 404)
    assert faults(browser) == []


def test_two_users_are_compared_and_a_user_is_deleted_by_its_id_only(world: World, browser: Browser) -> None:
    one, other = _registered(world), _registered(world)
    table = world.table(world.namespace())
    world.grant("select", one, "table", table.uuid)
    open_as(browser, world.admin, f"#/user/{one.id}?tab=compare&with={other.id}")
    row = browser.text(browser.find("main tr", table.uuid))
    assert "read data" in row
    _choose(browser, "User", "Delete")
    browser.type("dialog [name=name]", other.id)
    browser.click("dialog button.danger", "Delete")
    assert world.admin.get(f"/management/v1/user/{one.id}").status_code == 200
    browser.click("dialog button", "Cancel")
    _choose(browser, "User", "Delete")
    browser.type("dialog [name=name]", one.id)
    browser.click("dialog button.danger", "Delete")
    browser.find("h1", "Users")
    assert world.admin.get(f"/management/v1/user/{one.id}").status_code == 404
    assert faults(browser) == []


def test_without_the_right_a_menu_names_what_is_missing(world: World, browser: Browser) -> None:
    person = _registered(world)
    open_as(browser, person, f"#/user/{world.ready.users['alice'].id}")
    browser.click(".menu > button", "User")
    assert "ask an administrator" in browser.text(browser.find(".menu-list button[aria-disabled=true]", "Delete"))
    go(browser, "#/roles")
    browser.find("main .empty, main .problem")
