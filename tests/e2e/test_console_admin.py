# SPDX-License-Identifier: Apache-2.0
"""The console's pages for administrators in a real browser. Opt-in by `make test-browser`."""

from __future__ import annotations

from typing import Any

from tests.support.engines.browser import BROWSER_TESTS, Browser
from tests.support.engines.console import faults, go, open_as
from tests.support.stack.world import Person, World, unique

pytestmark = BROWSER_TESTS


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


def _fill(browser: Browser, values: dict[str, str]) -> None:
    for name, value in values.items():
        browser.type(f"[name='{name}']", value)


def _select(browser: Browser, css: str, value: str) -> None:
    browser.find(css)
    browser.run(
        "const list = document.querySelector(arguments[0]); list.value = arguments[1];"
        "list.dispatchEvent(new Event('change', {bubbles: true}))",
        css,
        value,
    )


def test_administrator_creates_a_warehouse_after_checks_and_sees_the_proof_of_scope(
    world: World, browser: Browser
) -> None:
    name, store = unique("lake"), world.ready.s3
    open_as(browser, world.admin, "#/new-warehouse")
    _select(browser, "#store", "compatible")
    _fill(
        browser,
        {
            "name": name,
            "p-bucket": store.bucket,
            "p-endpoint": store.endpoint,
            "p-key-prefix": name,
            "p-sts-role-arn": str(store.profile["sts-role-arn"]),
            "c-access-key-id": store.access_key,
            "c-secret-access-key": "wrong",
        },
    )
    browser.click("form button[type=submit]", "Verify")
    browser.find(".checks li", "storage-client-initialized")
    browser.find(".badge.bad", "a check failed")
    assert browser.run("return document.querySelector('form.wizard .buttons button:last-child').disabled") is True
    browser.run("document.querySelector('[name=c-secret-access-key]').value = ''")
    browser.type("[name=c-secret-access-key]", store.secret_key)
    browser.click("form button[type=submit]", "Verify")
    browser.find(".badge.good", "all checks passed")
    browser.find(".checks li", "Such a credential reaches no file outside of its folder")
    browser.click("form .buttons button", "Create")
    browser.find("#scope-proof .badge.good", "proven")
    browser.run("for (const each of document.querySelectorAll('.as-code details')) each.open = true")
    assert store.secret_key not in browser.text(browser.find("main"))
    browser.click("a.button", "Open the warehouse")
    browser.find("h1", name)
    browser.click(".tabs a", "Settings")
    browser.click(".settings button", "Protect")
    browser.find("[role=status]", "protected")
    browser.click(".settings button", "Delete")
    browser.type("dialog [name=name]", name)
    browser.click("dialog button.danger", "Delete")
    browser.find("h1 .type", "project")
    rows = _listed(world.admin, "/management/v1/warehouse", "warehouses")
    assert name not in [each["name"] for each in rows]
    assert faults(browser) == []


def test_administrator_replaces_the_credential_of_a_warehouse_after_a_check(world: World, browser: Browser) -> None:
    store = world.ready.s3
    open_as(browser, world.admin, f"#/warehouse/{world.ready.warehouse}?tab=storage")
    browser.find("#scope-proof .badge", "proven")
    browser.click("button", "Replace the credential")
    _fill(browser, {"c-access-key-id": store.access_key, "c-secret-access-key": store.secret_key})
    browser.click("form button", "Verify")
    browser.find(".badge.good", "all checks passed")
    browser.click("form button[type=submit]", "Save")
    browser.find("[role=status]", "Credentials that were issued before stay valid")
    assert faults(browser) == []


def test_administrator_trusts_an_engine_and_ends_its_trust(world: World, browser: Browser) -> None:
    engine = _registered(world)
    grants = f"/management/v1/warehouse/{world.ready.warehouse_id}/grants?principalUser={engine.id}"
    open_as(browser, world.admin, "#/engines")
    browser.click("button", "Trust an engine")
    _fill(browser, {"engine": engine.id, "reason": "queries of the board"})
    browser.click("dialog button", "Grant")
    browser.find("[role=status]", "Probe the engine now")
    row = browser.find("main tr", engine.id)
    assert "not probed" in browser.text(row)
    assert [each["privilege"] for each in _listed(world.admin, grants, "grants")] == ["enforcer"]
    at = browser.run(
        "return [...document.querySelectorAll('main tbody tr')]"
        ".findIndex((row) => row.innerText.includes(arguments[0]))",
        engine.id,
    )
    browser.click(f"main tbody tr:nth-child({at + 1}) button.danger", "End trust")
    browser.find("dialog p", "from the next request on")
    browser.click("dialog button.danger", "End trust")
    browser.find("[role=status]", "has ended")
    assert _listed(world.admin, grants, "grants") == []
    assert faults(browser) == []


def test_administrator_runs_a_task_now_and_sees_its_attempt(world: World, browser: Browser) -> None:
    table = world.table(world.namespace())
    assert world.admin.delete(table.path).status_code == 204
    open_as(browser, world.admin, f"#/warehouse/{world.ready.warehouse}?tab=tasks")
    browser.find("lg-long-list [role=row]", table.name)
    _open_task(browser, table.name)
    browser.find("dialog p", "No attempt has ended yet")
    browser.click("dialog button[type=submit]", "Do it")
    browser.find("[role=status]", "run now")
    world.tasks_ended()
    browser.reload()
    browser.find("lg-long-list [role=row]", table.name)
    _open_task(browser, table.name)
    browser.find("dialog tbody tr .badge.good", "success")
    assert faults(browser) == []


def _open_task(browser: Browser, name: str) -> None:
    """Open the first task about a table."""
    browser.run(
        "[...document.querySelectorAll('lg-long-list .drawn [role=row]')]"
        ".find((row) => row.innerText.includes(arguments[0])).querySelector('button').click()",
        name,
    )


def test_operator_sees_health_requests_queues_and_sinks(world: World, browser: Browser) -> None:
    open_as(browser, world.admin, "#/server")
    browser.find("main tr", "openfga")
    browser.find("main dd", world.admin.get("/management/v1/info").json()["server-id"])
    go(browser, "#/server?tab=requests")
    browser.find("lg-chart .u-wrap, main .empty")
    go(browser, "#/tasks?tab=queues")
    browser.find("main th", "tabular purge")
    go(browser, "#/events")
    browser.find("main .empty, main table")
    go(browser, "#/first-run")
    browser.find("main .lead", "has an administrator already")
    assert faults(browser) == []


def test_administrator_creates_renames_and_deletes_a_project(world: World, browser: Browser) -> None:
    name = unique("shop")
    open_as(browser, world.admin, f"#/project/{world.ready.project_id}")
    browser.find("lg-long-list [role=row]", world.ready.warehouse)
    _choose(browser, "Project", "Create another project")
    browser.type("dialog [name=name]", name)
    browser.click("dialog button", "Create")
    browser.find("h1", name)
    _choose(browser, "Project", "Rename")
    browser.type("dialog [name=name]", "new-")
    browser.click("dialog button", "Rename")
    browser.find("h1", f"new-{name}")
    _choose(browser, "Project", "Delete")
    browser.type("dialog [name=name]", "new-")
    browser.click("dialog button.danger", "Delete")
    listed = _listed(world.admin, "/management/v1/project-list", "projects")
    assert f"new-{name}" in [each["project-name"] for each in listed]
    browser.run("document.querySelector('dialog [name=name]').value = ''")
    browser.type("dialog [name=name]", f"new-{name}")
    browser.click("dialog button.danger", "Delete")
    browser.find("h1", "Welcome")
    names = [each["project-name"] for each in _listed(world.admin, "/management/v1/project-list", "projects")]
    assert f"new-{name}" not in names and name not in names
    assert faults(browser) == []
