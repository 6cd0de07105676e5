# SPDX-License-Identifier: Apache-2.0
"""The console's pages about rights in a real browser. Opt-in by `make test-browser`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.engines.browser import BROWSER_TESTS, Browser
from tests.support.engines.console import faults, go, open_as
from tests.support.stack.lifecycle import soft_world
from tests.support.stack.world import Table, World, unique

pytestmark = BROWSER_TESTS


@pytest.fixture
def seen(world: World) -> Table:
    """Create a table in a namespace of its own."""
    return world.table(world.namespace())


def _page(world: World, table: Table, tab: str) -> str:
    return f"#/table/{world.ready.warehouse}/{table.namespace}.{table.name}?tab={tab}"


def _management(world: World, table: Table) -> str:
    return f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}"


def _grants(world: World, table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.admin.get(f"{_management(world, table)}/grants").json()["grants"]
    return found


def test_owner_grants_for_a_week_and_revokes(world: World, browser: Browser, seen: Table) -> None:
    stranger = world.stranger()
    open_as(browser, world.admin, _page(world, seen, "access"))
    browser.click("#grant")
    browser.type("dialog [name=principal]", f"user/{stranger.id}")
    browser.click("dialog button", "Grant")
    browser.find("dialog [role=alert]", "Choose at least one privilege.")
    browser.click("dialog [name='privilege:select']")
    browser.click("dialog button", "One week")
    browser.type("dialog [name=reason]", "quarterly report")
    browser.click("dialog button", "Grant")
    browser.find("[role=status]", "The grant was made")
    (made,) = [each for each in _grants(world, seen) if each["principal"] == {"user": stranger.id}]
    assert (made["privilege"], made["reason"]) == ("select", "quarterly report")
    left = datetime.fromisoformat(made["expires-at"]) - datetime.now(UTC)
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)
    assert stranger.get(f"{seen.path}/credentials").status_code == 200
    browser.click(f"button[aria-label='Revoke select of user/{stranger.id}']")
    browser.find("dialog", "One live credential for files stay valid")
    browser.click("dialog button", "Revoke")
    browser.find("[role=status]", "The grant was revoked")
    assert {each["principal"].get("user") for each in _grants(world, seen)} == {world.admin.id}
    browser.click("lg-access nav a", "Former")
    browser.find("lg-long-list [role=row]", "quarterly report")
    assert faults(browser) == []


def test_list_of_grants_is_saved_without_formulas(world: World, browser: Browser, seen: Table) -> None:
    stranger = world.stranger()
    write = {"privilege": "describe", "principal": {"user": stranger.id}, "reason": '=HYPERLINK("http://x")'}
    assert world.admin.post(f"{_management(world, seen)}/grants", {"writes": [write]}).status_code == 204
    open_as(browser, world.admin, _page(world, seen, "access"))
    browser.find("lg-long-list [role=row]", stranger.id)
    browser.run(
        "window.saved = []; URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); "
        "return '#/home'; }"
    )
    browser.click("button", "Download CSV")
    text = browser.wait(lambda: browser.run("return window.saved[0] ?? null"), "no file was saved")
    assert '"\'=HYPERLINK(""http://x"")"' in text and stranger.id in text


def test_who_can_shows_the_reason_of_each_principal_and_leads_to_the_explanation(
    world: World, browser: Browser, seen: Table
) -> None:
    stranger = world.stranger()
    world.grant("select", stranger, "table", seen.uuid)
    open_as(browser, world.admin, _page(world, seen, "who-can"))
    browser.find("lg-long-list [role=row]", f"select on warehouse {world.ready.warehouse}")
    browser.find("lg-long-list [role=row]", "select on this table")
    browser.click(f"a[aria-label='Why user/{stranger.id}']")
    browser.find("#summary", f"user {stranger.name} may read_data")
    go(browser, _page(world, seen, "access") + "&view=inherited")
    browser.find("lg-long-list [role=row]", "oidc~alice")
    assert stranger.id not in browser.text(browser.find("lg-long-list"))
    assert faults(browser) == []


def test_request_is_approved_in_part_by_another_principal_and_ended(
    world: World, browser: Browser, seen: Table
) -> None:
    stranger = world.stranger()
    world.grant("describe", stranger, "table", seen.uuid)
    open_as(browser, stranger, "#/requests?tab=new")
    browser.type("[name=object]", f"table/{world.ready.warehouse}/{seen.namespace}.{seen.name}")
    browser.click("button", "Choose privileges")
    browser.click("dialog [name='privilege:select']")
    browser.click("dialog [name='privilege:modify']")
    browser.type("dialog [name=reason]", "quarterly report")
    browser.click("dialog button", "See what it would open")
    browser.find("dialog", "Opens this object only.")
    browser.click("dialog button", "Send the request")
    browser.find("lg-page-requests .badge", "pending")
    (made,) = stranger.get("/management/v1/access/requests?mine=true").json()["access-requests"]
    open_as(browser, world.admin, "#/requests?tab=inbox")
    browser.click(f"a[href='#/requests/{made['id']}']")
    browser.click("lg-page-requests button", "Approve")
    browser.click("dialog [name='privilege:modify']")
    browser.click("dialog button", "One day")
    browser.type("dialog [name=comment]", "read only")
    browser.click("dialog button", "Approve")
    browser.find("[role=status]", "The request was approved")
    (given,) = [each for each in _grants(world, seen) if each["privilege"] == "select"]
    assert given["principal"] == {"user": stranger.id}
    assert datetime.fromisoformat(given["expires-at"]) - datetime.now(UTC) <= timedelta(days=1)
    open_as(browser, stranger, f"#/requests/{made['id']}")
    browser.find("dd", "read only")
    browser.click("lg-page-requests button", "End access")
    browser.click("dialog button", "End access")
    browser.find("[role=status]", "The access has ended")
    assert "select" not in {each["privilege"] for each in _grants(world, seen)}
    assert faults(browser) == []


def test_dropped_table_is_restored_and_protected(world: World, browser: Browser) -> None:
    soft = soft_world(world)
    seen = soft.table(soft.namespace())
    assert world.admin.delete(seen.path).status_code == 204
    open_as(browser, world.admin, f"#/warehouse/{soft.warehouse}?tab=deleted")
    browser.find("lg-long-list [role=row]", f"{seen.namespace}.{seen.name}")
    browser.click(f"button[aria-label='Undrop {seen.name}']")
    browser.click("dialog button", "Undrop")
    browser.find("[role=status]", "was restored")
    assert world.admin.get(seen.path).status_code == 200
    go(browser, f"#/namespace/{soft.warehouse}/{seen.namespace}?tab=access")
    browser.click("summary", "Protection against drops")
    browser.click("#protect", "Protect")
    browser.find("lg-protection [role=status]", "A drop is refused")
    protection = f"/management/v1/warehouse/{soft.warehouse}/namespace/{soft.namespace_id(seen.namespace)}/protection"
    assert world.admin.get(protection).json()["protected"] is True
    browser.click("#protect", "Remove the protection")
    browser.find("lg-protection [role=status]", "can drop it")
    assert world.admin.get(protection).json()["protected"] is False
    assert faults(browser) == []


def test_activation_of_break_glass_is_confirmed_by_another_principal_and_ended(
    world: World, browser: Browser, seen: Table
) -> None:
    stranger = world.stranger()
    world.grant("break_glass", stranger, "namespace", world.namespace_id(seen.namespace))
    open_as(browser, stranger, "#/break-glass")
    browser.click("button", "Activate")
    browser.type("dialog [name=object]", f"table/{world.warehouse}/{seen.namespace}.{seen.name}")
    browser.click("dialog [name='privilege:select']")
    browser.click("dialog [name=second]")
    browser.type("dialog [name=reason]", "the load fails")
    browser.click("dialog button", "Activate")
    browser.find("[role=status]", "Another person must confirm")
    open_as(browser, world.admin, "#/break-glass?status=pending")
    browser.click("lg-page-break-glass button.small", "Confirm")
    browser.click("dialog button", "Confirm")
    browser.find("[role=status]", "was confirmed")
    assert stranger.get(f"{seen.path}/credentials").status_code == 200
    go(browser, "#/break-glass?status=active")
    browser.click("lg-page-break-glass button.small", "End")
    browser.click("dialog button", "End")
    browser.find("[role=status]", "The activation has ended")
    assert stranger.get(f"{seen.path}/credentials").status_code in (403, 404)
    assert faults(browser) == []


def test_column_is_masked_in_three_clicks_and_previewed_as_another_person(
    world: World, browser: Browser, seen: Table
) -> None:
    open_as(browser, world.admin, _page(world, seen, "schema"))
    browser.click("button[aria-label='Mask word']")
    browser.type("dialog input[name=who]", "user/oidc~alice")
    browser.click("dialog [name=exempt]")
    browser.click("dialog button", "See who is affected")
    browser.find("dialog li", "word: mask alphanum")
    browser.find("dialog li", "oidc~alice")
    browser.click("dialog button", "Mask")
    browser.find("lg-table-policies tr", "user/oidc~alice sees")
    assert browser.text(browser.find("lg-table-policies tbody tr", "word")).startswith("word as it is mask alphanum")
    browser.click("lg-table-policies li a", f"mask-{seen.name}-word")
    browser.find(".verdict", "Masks word")
    browser.click(".tabs a", "Bindings")
    browser.find("lg-long-list [role=row]", seen.uuid)
    browser.click(".tabs a", "Versions")
    browser.find(".timeline", "Version 1")
    world.remove_policies()
    assert faults(browser) == []


def test_tag_is_defined_attached_to_a_column_and_detached(world: World, browser: Browser, seen: Table) -> None:
    name = unique("tag").replace("_", "-")
    open_as(browser, world.admin, "#/tags")
    browser.click("button", "New tag")
    browser.type("dialog [name=name]", name)
    browser.click("dialog button", "Create")
    browser.find("h1", name)
    go(browser, _page(world, seen, "tags"))
    browser.click("button[aria-label='Attach a tag to word']")
    browser.find("dialog [name=tag]")
    browser.run("document.querySelector('dialog [name=tag]').value = arguments[0]", name)
    browser.click("dialog button", "Attach")
    browser.find("lg-tags tr", name)
    (tagged,) = world.admin.get(f"{_management(world, seen)}/column-tags").json()["columns"]
    assert (tagged["name"], [each["name"] for each in tagged["tags"]]) == ("word", [name])
    browser.click(f"button[aria-label='Detach {name} from word']")
    browser.click("dialog button", "Detach")
    browser.wait(
        lambda: True if not world.admin.get(f"{_management(world, seen)}/column-tags").json()["columns"] else None,
        "the tag is attached",
    )
    assert faults(browser) == []
