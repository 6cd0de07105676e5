# SPDX-License-Identifier: Apache-2.0
"""The console in a real browser: the catalog, and the reasons of decisions. Opt-in by `make test-browser`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.engines.browser import BROWSER_TESTS, Browser
from tests.support.engines.console import faults, go, open_as
from tests.support.stack.world import World

pytestmark = BROWSER_TESTS


def test_user_walks_from_the_tree_to_a_table_and_asks_why_another_user_may_read_it(
    world: World, browser: Browser
) -> None:
    namespace = world.namespace()
    table = world.table(namespace)
    open_as(browser, world.admin)
    browser.click("lg-tree button.twist")
    browser.click("lg-tree a", namespace)
    browser.click("lg-long-list a", table.name)
    browser.find("h1", table.name)
    browser.find("td code", "long")
    browser.click(".tabs a", "Why")
    browser.type("[name=who]", "user/oidc~alice")
    browser.click("button", "Explain")
    browser.find("#summary", "user alice may read_data")
    browser.click(".graph a", "select")
    browser.find("dialog", "oidc~admin")
    assert f"#/table/{world.ready.warehouse}/{namespace}.{table.name}?tab=why" in browser.url
    assert faults(browser) == []


def test_snippets_of_a_table_page_read_the_table(world: World, browser: Browser) -> None:
    namespace = world.namespace()
    table = world.table(namespace)
    open_as(browser, world.admin, f"#/table/{world.ready.warehouse}/{namespace}.{table.name}?tab=connect")
    browser.find("#snippet-spark", f"SELECT * FROM lakegate.{namespace}.{table.name}")
    snippet = str(browser.run("return document.getElementById('snippet-pyiceberg').textContent"))
    done = subprocess.run(
        [sys.executable, "-c", f"{snippet.rstrip()}\nprint(catalog.load_table('{namespace}.{table.name}').schema())"],
        env={**os.environ, "TOKEN": world.admin.token},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and "word" in done.stdout, done.stderr


@pytest.mark.parametrize("kind", ["warehouse", "namespace", "table"])
def test_apply_file_of_a_page_changes_nothing(world: World, browser: Browser, tmp_path: Path, kind: str) -> None:
    namespace = world.namespace()
    table = world.table(namespace)
    world.grant("select", world.carol, "table", table.uuid)
    address = {"warehouse": "", "namespace": f"/{namespace}", "table": f"/{namespace}.{table.name}"}[kind]
    open_as(browser, world.admin, f"#/{kind}/{world.ready.warehouse}{address}")
    browser.click(".as-code summary", "As apply YAML")
    browser.find(".as-code pre", "version: 1")
    file = tmp_path / "page.yaml"
    file.write_text(str(browser.run("return document.querySelectorAll('.as-code pre')[1].textContent")))
    if kind == "table":
        assert "oidc~carol" in file.read_text()
    plan = subprocess.run(
        [Path(sys.executable).with_name("lakegate"), "apply", "-f", file, "--plan", "--gateway", world.base],
        env={**os.environ, "LAKEGATE_TOKEN": world.admin.token},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert plan.returncode == 0, plan.stdout + plan.stderr


def test_names_with_dots_and_slashes_have_one_form_and_an_address_that_works(world: World, browser: Browser) -> None:
    namespace = world.namespace()
    table = world.table(namespace, 'odd.name "x"')
    open_as(browser, world.admin, f"#/namespace/{world.ready.warehouse}/{namespace}")
    browser.click("lg-long-list a", table.name)
    browser.find("h1", table.name)
    browser.find(".names code", f'table/{world.ready.warehouse}/{namespace}."odd.name ""x"""')
    browser.reload()
    browser.find("h1", table.name)


def test_table_is_renamed_and_dropped_by_its_menu_after_its_name_was_typed(world: World, browser: Browser) -> None:
    namespace = world.namespace()
    table = world.table(namespace)
    open_as(browser, world.admin, f"#/table/{world.ready.warehouse}/{namespace}.{table.name}")
    browser.click(".menu button", "Actions")
    browser.click(".menu-list button", "Rename")
    browser.run("document.querySelector('dialog [name=name]').value = arguments[0]", f"{namespace}.renamed")
    browser.click("dialog button.primary", "Rename")
    browser.find("h1", "renamed")
    browser.click(".menu button", "Actions")
    browser.click(".menu-list button", "Drop")
    browser.find("dialog", f"Drops table/{world.ready.warehouse}/{namespace}.renamed")
    browser.click("dialog button.danger")
    assert world.admin.head(f"{world.root}/namespaces/{namespace}/tables/renamed").status_code == 204
    browser.type("dialog [name=name]", "renamed")
    browser.click("dialog button.danger")
    browser.find("h1", namespace)
    assert world.admin.head(f"{world.root}/namespaces/{namespace}/tables/renamed").status_code == 404
    assert faults(browser) == []


def test_reader_sees_disabled_actions_with_the_missing_right(world: World, browser: Browser) -> None:
    namespace = world.namespace()
    table = world.table(namespace)
    open_as(browser, world.alice, f"#/table/{world.ready.warehouse}/{namespace}.{table.name}")
    browser.click(".menu button", "Actions")
    browser.find(".menu-list button[aria-disabled=true]", "Drop")
    browser.find(".menu-list button", "needs the right “drop”")


def test_refused_user_finds_the_reason_and_requests_access_from_the_link(world: World, browser: Browser) -> None:
    table = world.table(world.namespace())
    stranger = world.stranger()
    world.grant("describe", stranger, "table", table.uuid)
    refused = stranger.get(f"{table.path}/credentials")
    assert refused.status_code == 403, refused.text
    denial = refused.json()["error"]["message"].rsplit("denial=", 1)[1]
    open_as(browser, stranger, f"?denial={denial}")
    browser.find("#summary", "may not")
    assert browser.url.endswith(f"#/denial/{denial}")
    browser.click(".repairs button", "Request")
    browser.type("dialog [name=reason]", "monthly report")
    browser.click("dialog button", "Send the request")
    browser.find("[role=status]", "The request was sent")
    mine = stranger.get("/management/v1/access/requests?mine=true").json()["access-requests"]
    assert [each["reason"] for each in mine] == ["monthly report"]
    assert faults(browser) == []


def test_auditor_sees_who_read_a_table(world: World, browser: Browser) -> None:
    namespace = world.namespace()
    table = world.table(namespace)
    auditor = world.stranger("auditor")
    world.grant("auditor", auditor, "server", "")
    world.grant("describe", auditor, "table", table.uuid)
    assert world.alice.get(table.path).status_code == 200
    open_as(browser, auditor, f"#/table/{world.ready.warehouse}/{namespace}.{table.name}?tab=history")
    browser.click("main a", "Who read it")
    browser.find("h1", "Audit")
    browser.find("[role=cell]", "oidc~alice")
    browser.click("[role=cell] button", "Open")
    browser.find("dialog pre", table.uuid)
    browser.click("dialog button.primary", "Close")
    browser.click(".tabs a", "Over time")
    browser.find("lg-chart .uplot")
    browser.find("h2", "Integrity")
    assert faults(browser) == []


def test_policy_author_reads_the_model_and_the_guardrails_and_tries_a_decision(world: World, browser: Browser) -> None:
    table = world.table(world.namespace())
    open_as(browser, world.admin, "#/policies")
    browser.type("main input[type=search]", "can_read_data")
    browser.find("th code", "can_read_data")
    browser.click(".tabs a", "Guardrails")
    browser.click("summary", "contractors.rego")
    browser.find("pre", "package gateway.guardrails.contractors")
    go(browser, "#/explain")
    browser.type("main [name=object]", f"table/{world.ready.warehouse}/{table.namespace}.{table.name}")
    browser.type("main [name=who]", "user/oidc~contractor")
    browser.click("button", "Ask")
    browser.find("#summary", "user contractor may not read_data")
    browser.click("summary", "With other circumstances")
    browser.run("document.querySelector('main [name=time]').value = '2026-11-28T03:00'")
    browser.click("button", "Explain")
    browser.find("#summary", "contractor")
    assert faults(browser) == []


def test_end_of_the_session_closes_dialogs_with_the_data_of_the_user(world: World, browser: Browser) -> None:
    auditor = world.stranger("auditor")
    world.grant("auditor", auditor, "server", "")
    open_as(browser, auditor, "#/audit")
    browser.click("[role=cell] button", "Open")
    browser.find("dialog pre", "decisions")
    browser.run("sessionStorage.setItem('lakegate.session', JSON.stringify({token: 'x', ends: 0}))")
    # Back, and other addresses, work while a dialog is open.
    go(browser, "#/roles")
    browser.find("#status", "Your sign-in has ended.")
    assert browser.run("return document.querySelectorAll('dialog[open]').length") == 0


def test_absent_and_invisible_tables_look_the_same(world: World, browser: Browser) -> None:
    namespace = world.namespace()
    table = world.table(namespace)
    stranger = world.stranger()
    world.grant("describe", stranger, "table", world.table(namespace).uuid)
    texts = []
    open_as(browser, stranger)
    for name in (table.name, "absent"):
        go(browser, f"#/table/{world.ready.warehouse}/{namespace}.{name}")
        text = browser.text(browser.find("main .problem", name)).replace(name, "NAME")
        texts.append(text.split("Request id")[0])
    assert texts[0] == texts[1]
