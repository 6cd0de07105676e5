# SPDX-License-Identifier: Apache-2.0
"""The command line for people: every kind of object by the same commands, and grants and questions by names."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import yaml

from gateway.cli.exit_codes import ExitCode
from gateway.cli.noun_declarations import CARDS
from gateway.cli.nouns import GROUPS
from tests.support.stack.command_line import done, rows, run
from tests.support.stack.world import Person, World, unique


@pytest.fixture(scope="module")
def warehouse(world: World) -> str:
    """Return the name of the warehouse of the stack."""
    path = f"/management/v1/warehouse/{world.warehouse}"
    return str(world.admin.get(path).json()["name"])


def names(world: World, *arguments: str, by: Person | None = None) -> set[str]:
    """Return the references that a list prints."""
    return {row["name"] for row in rows(world, *arguments, by=by)}


def test_every_kind_has_a_group_and_a_card() -> None:
    assert set(GROUPS) == set(CARDS)


@pytest.mark.parametrize(
    ("group", "name", "options"),
    [
        ("roles", "{}", ("--description", "people who report")),
        ("projects", "{}", ()),
        ("users", "oidc~{}", ("--full-name", "Robot", "--type", "application")),
        ("mapping-tables", "{}", ()),
        ("tags", "{}", ("--on", "table")),
        ("namespaces", "{warehouse}/{}", ("--property", "owner=crm")),
        ("tables", "{warehouse}/{ns}.{}", ("--column", "id:long", "--column", "naïve name:string")),
        ("views", "{warehouse}/{ns}.{}", ("--column", "id:long", "--sql", "SELECT 1 AS id")),
        ("generic-tables", "{warehouse}/{ns}.{}", ("--table-format", "lance")),
    ],
)
def test_each_kind_is_created_listed_shown_renamed_and_deleted(
    world: World, ns: str, warehouse: str, group: str, name: str, options: tuple[str, ...]
) -> None:
    card, stem = CARDS[group], unique("cli")
    name, renamed = (name.format(each, warehouse=warehouse, ns=ns) for each in (stem, f"{stem}2"))
    within = (f"{warehouse}/{ns}" if group in ("tables", "views", "generic-tables") else warehouse,)
    listed = (group, "list", *(within if card.containers else ()))
    made = done(world, group, "create", name, *options)
    assert f"{card.kind}/{name}" in names(world, *listed)
    shown = json.loads(done(world, group, "show", name, "--json"))
    id = shown.get("id") or shown["project-id"]
    assert id in made or group in ("users", "generic-tables")
    if card.rename is not None:
        done(world, group, "rename", name, f"{stem}2")
        assert f"{card.kind}/{renamed}" in names(world, *listed)
        assert f"{card.kind}/{name}" not in names(world, *listed)
        name = renamed
    refused = run(world, group, "delete", name)
    assert refused.exit_code == ExitCode.USAGE and f"This deletes {card.kind}/{name}." in refused.stderr
    assert f"{card.kind}/{name}" in names(world, *listed)
    done(world, group, "delete", name, "--yes")
    assert f"{card.kind}/{name}" not in names(world, *listed)
    gone = run(world, group, "show", name)
    assert gone.exit_code == ExitCode.NOT_FOUND, gone.output


def test_a_list_has_the_same_rows_in_each_form(world: World, ns: str, warehouse: str) -> None:
    made = {f"table/{warehouse}/{ns}.{world.table(ns).name}" for _ in range(3)}
    within = ("tables", "list", f"{warehouse}/{ns}")
    assert names(world, *within) == made
    assert {each["name"] for each in yaml.safe_load(done(world, *within, "--format", "yaml"))} == made
    assert {each["name"] for each in csv.DictReader(io.StringIO(done(world, *within, "--format", "csv")))} == made
    head, *lines = done(world, *within).splitlines()
    assert head.split() == ["NAME", "ID", "PROTECTED"]
    assert {line.split()[0] for line in lines} == made
    # A warehouse lists the tables of all namespaces.
    assert made <= names(world, "tables", "list", warehouse)


def test_an_empty_list_says_so_and_programs_get_an_empty_list(world: World, ns: str, warehouse: str) -> None:
    result = run(world, "views", "list", f"{warehouse}/{ns}")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "There are no views that you can see." in result.stderr
    assert rows(world, "views", "list", f"{warehouse}/{ns}") == []
    assert yaml.safe_load(done(world, "views", "list", f"{warehouse}/{ns}", "--format", "yaml")) == []


def test_names_with_dots_and_levels_are_found_in_quotation_marks(world: World, ns: str, warehouse: str) -> None:
    deep = f"{ns}.größe"
    done(world, "namespaces", "create", f"{warehouse}/{deep}")
    for name in ('"a.b"', "日本", '"say ""hi"""'):
        reference = f"{warehouse}/{deep}.{name}"
        done(world, "tables", "create", reference, "--column", "id:long")
        assert f"table/{reference}" in names(world, "tables", "list", f"{warehouse}/{deep}")
        assert done(world, "can", "read_data", f"table/{reference}") == "yes\n"
        done(world, "tables", "delete", reference, "--yes")
    missing = run(world, "tables", "show", f"{warehouse}/{deep}.a.b")
    assert missing.exit_code == ExitCode.NOT_FOUND


def test_a_grant_has_an_end_and_a_reason_and_is_revoked(world: World, ns: str, warehouse: str) -> None:
    table, reader = world.table(ns), world.stranger("reader")
    on, to = f"table/{warehouse}/{ns}.{table.name}", f"user/{reader.id}"
    asked = ("can", "read_data", on, "--principal", to)
    assert run(world, *asked).exit_code == ExitCode.DIFFERS
    said = done(world, "grant", "select,describe", on, "--to", to, "--for", "2d", "--reason", "quarterly report")
    assert said.startswith(f"granted select,describe on {on} to {to}, until ")
    mine = [row for row in rows(world, "grants", "list", on) if row["principal"] == to]
    assert {row["privilege"] for row in mine} == {"select", "describe"}
    assert all(row["reason"] == "quarterly report" and row["expires-at"] and row["object"] == on for row in mine)
    assert done(world, *asked) == "yes\n"
    assert "may read_data" in done(world, "explain", "read_data", on, by=reader)
    done(world, "revoke", "select", on, "--from", to)
    assert run(world, *asked).exit_code == ExitCode.DIFFERS
    explained = done(world, "explain", *asked[1:])
    assert "decision: denied" in explained and "would be allowed with: select on table/" in explained
    ended = rows(world, "grants", "list", on, "--history")
    assert [row["privilege"] for row in ended if row["principal"] == to] == ["select"]


def test_roles_and_columns_are_principals_and_objects_by_name(world: World, ns: str, warehouse: str) -> None:
    role, table = unique("team"), world.table(ns)
    done(world, "roles", "create", role)
    column = f"column/{warehouse}/{ns}.{table.name}/id"
    done(world, "grant", "select", column, "--to", f"role/{role}")
    assert [row["principal"] for row in rows(world, "grants", "list", column)] == [f"role/{role}"]
    listed = rows(world, "grants", "list", "--principal", f"role/{role}")
    assert [(row["privilege"], row["object"]) for row in listed] == [
        ("select", f"column/{world.warehouse}/{table.uuid}/id")
    ]


def test_tags_policies_and_clients_take_the_same_names(world: World, ns: str, warehouse: str, tmp_path: Path) -> None:
    tag, policy, client, table = unique("pii"), unique("mask"), f"oidc~{unique('engine')}", world.table(ns)
    on = f"table/{warehouse}/{ns}.{table.name}"
    done(world, "tags", "create", tag, "--on", "column")
    done(world, "tags", "attach", tag, "--on", f"column/{warehouse}/{ns}.{table.name}/id")
    path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/column/id/tags"
    assert tag in world.admin.get(path).text
    done(world, "tags", "detach", tag, "--on", f"column/{warehouse}/{ns}.{table.name}/id")
    assert tag not in world.admin.get(path).text
    definition = tmp_path / "mask.json"
    definition.write_text('{"kind": "mask", "action": "replace-with-null"}')
    done(world, "data-policies", "create", policy, str(definition))
    done(world, "data-policies", "bind", policy, "--on", f"tag/{tag}")
    id = json.loads(done(world, "tags", "show", tag, "--json"))["id"]
    assert id in done(world, "data-policy", "show", policy)
    done(world, "data-policies", "unbind", policy, "--on", f"tag/{tag}")
    assert id not in done(world, "data-policy", "show", policy)
    done(world, "client", "register", client, "--name", "e", "--grant", "describe", "--on", on)
    listed = rows(world, "grants", "list", on)
    assert ("describe", f"user/{client}") in {(row["privilege"], row["principal"]) for row in listed}
    both = run(world, "tags", "attach", tag, "--on", on, "--warehouse", world.warehouse)
    assert both.exit_code == ExitCode.USAGE


def test_the_audit_log_is_searched_by_names_and_only_by_auditors(world: World, ns: str, warehouse: str) -> None:
    table, auditor = world.table(ns), world.stranger("auditor")
    on = f"table/{warehouse}/{ns}.{table.name}"
    world.admin.get(table.path)
    refused = run(world, "audit", "search", f"warehouse/{warehouse}", by=auditor)
    assert refused.exit_code in (ExitCode.REFUSED, ExitCode.NOT_FOUND)
    world.grant("auditor", auditor, "warehouse", world.warehouse)
    found = rows(world, "audit", "search", on, "--for", "1h", "--operation", "load_table", by=auditor)
    assert found and {(each["user"], tuple(each["outcome"])) for each in found} == {(world.admin.id, ("allowed",))}
    assert world.admin.id in done(world, "audit", "search", on, by=auditor)
    assert rows(world, "audit", "search", on, "--principal", f"user/{auditor.id}", by=auditor) == []


def test_absent_and_invisible_objects_have_the_same_message(world: World, ns: str, warehouse: str) -> None:
    stranger, table, visible = world.stranger(), world.table(ns), world.namespace()
    world.grant("describe", stranger, "namespace", world.namespace_id(visible))
    assert names(world, "namespaces", "list", warehouse, by=stranger) == {f"namespace/{warehouse}/{visible}"}
    texts = set()
    for namespace, name in ((ns, table.name), (unique("absent"), table.name), (visible, table.name)):
        result = run(world, "grants", "list", f"table/{warehouse}/{namespace}.{name}", by=stranger)
        assert result.exit_code == ExitCode.NOT_FOUND
        texts.add(result.stderr.replace(namespace, "NS"))
    assert len(texts) == 1, texts


def test_the_caller_is_shown(world: World) -> None:
    assert json.loads(done(world, "whoami", "--json"))["id"] == world.admin.id
    assert world.admin.id in done(world, "whoami")
