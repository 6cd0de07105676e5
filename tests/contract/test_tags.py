# SPDX-License-Identifier: Apache-2.0
"""Tags: definitions of a project, attachments to objects and columns, inheritance, and the list of tagged objects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stack.columns import evolve, wide
from tests.support.stack.tags import (
    EVERYWHERE,
    FREE_TEXT,
    TAG,
    attach,
    define,
    detach,
    enumerated,
    search,
    shown,
    tags_path,
)
from tests.support.stack.world import World, error_triple, send_until_decided, unique


def test_definition_is_created_read_listed_changed_and_deleted(world: World) -> None:
    name = unique("Pii.Class")
    tag = define(
        world,
        name=name,
        description="d",
        scope=["column", "table"],
        **enumerated("public", "internal"),
    )
    path = f"{TAG}/{tag['id']}"
    assert (tag["scope"], tag["allowed-values"]) == (["table", "column"], ["internal", "public"])
    assert world.admin.get(path).json() == tag
    [listed] = world.admin.get(TAG, params={"name": name.upper()}).json()["tag-definitions"]
    assert listed == {key: value for key, value in tag.items() if key != "allowed-values"}
    body = {"name": name + "s", "scope": ["view", "table", "column"], "add-allowed-values": ["secret", "public"]}
    changed = world.admin.post(path, body)
    assert changed.status_code == 200, changed.text
    found = changed.json()
    assert (found["name"], "description" in found) == (name + "s", False)
    assert found["scope"] == ["table", "view", "column"]
    assert found["allowed-values"] == ["internal", "public", "secret"]
    assert found["updated-at"]
    assert world.admin.delete(path).status_code == 204
    assert error_triple(world.admin.get(path))[:2] == (404, "TagNotFound")
    assert world.sql("select 1 from grants where object_type = 'tag' and object_id = $1", tag["id"]) == []


@pytest.mark.parametrize(
    ("more", "type"),
    [
        ({"name": ".pii"}, "InvalidTagDefinition"),
        ({"name": "pii."}, "InvalidTagDefinition"),
        ({"name": "pii..email"}, "InvalidTagDefinition"),
        ({"name": "System.x"}, "InvalidTagDefinition"),
        ({"value-kind": "enumerated"}, "InvalidTagDefinition"),
        ({"allowed-values": ["a"]}, "InvalidTagDefinition"),
        ({"value-kind": "enumerated", "allowed-values": ["a", "a"]}, "InvalidTagDefinition"),
        ({"value-kind": "enumerated", "allowed-values": ["a" * 257]}, None),
        ({"scope": []}, None),
        ({"scope": ["project"]}, None),
        ({"value-kind": "number"}, None),
    ],
)
def test_invalid_definition_is_refused(world: World, more: dict[str, Any], type: str | None) -> None:
    body = {"name": unique("t"), "scope": ["table"], "value-kind": "marker", **more}
    refused = world.admin.post(TAG, body)
    assert refused.status_code == 400, refused.text
    assert type in (None, refused.json()["error"]["type"])


def test_scope_is_never_narrowed_and_names_are_unique(world: World) -> None:
    tag = define(world, scope=["table", "view"])
    path = f"{TAG}/{tag['id']}"
    narrower = world.admin.post(path, {"name": tag["name"], "scope": ["view", "column"]})
    assert error_triple(narrower)[:2] == (400, "TagScopeNarrowed")
    kind = world.admin.post(path, {"name": tag["name"], "scope": ["table", "view"], "value-kind": "free-text"})
    assert kind.status_code == 400, "the kind of the value must not change"
    values = world.admin.post(path, {"name": tag["name"], "scope": ["table", "view"], "add-allowed-values": ["a"]})
    assert error_triple(values)[:2] == (400, "InvalidTagDefinition")
    twin = world.admin.post(TAG, {"name": tag["name"].upper(), "scope": ["table"], "value-kind": "marker"})
    assert error_triple(twin)[:2] == (409, "TagNameAlreadyExists")
    other = define(world)
    taken = world.admin.post(f"{TAG}/{other['id']}", {"name": tag["name"], "scope": EVERYWHERE})
    assert error_triple(taken)[:2] == (409, "TagNameAlreadyExists")


def test_pages_list_every_definition_once(world: World) -> None:
    made = {define(world)["id"] for _ in range(3)}
    seen: list[str] = []
    token = None
    while True:
        params = {"pageSize": "2", **({"pageToken": token} if token else {})}
        page = world.admin.get(TAG, params=params).json()
        assert len(page["tag-definitions"]) <= 2
        seen += [tag["id"] for tag in page["tag-definitions"]]
        token = page.get("next-page-token")
        if token is None:
            break
    assert len(seen) == len(set(seen))
    assert made <= set(seen)


def test_values_must_fit_the_definition(world: World, ns: str) -> None:
    table = tags_path(world, "table", world.table(ns).uuid)
    marker, text = define(world), define(world, **FREE_TEXT)
    chosen = define(world, **enumerated("High"))
    for tag, value in ((marker, "x"), (text, None), (chosen, None), (chosen, "high")):
        assert error_triple(attach(world, tag, table, value))[:2] == (400, "InvalidTagValue")
    assert attach(world, text, table, "x" * 257).status_code == 400
    assert shown(world, table) == []
    columns_only = define(world, scope=["column"])
    assert error_triple(attach(world, columns_only, table))[:2] == (400, "TagScopeNotAllowed")
    applied = attach(world, chosen, table, "High")
    assert applied.status_code == 200, applied.text
    first = applied.json()
    assert (first["tag-definition-id"], first["name"], first["value"]) == (chosen["id"], chosen["name"], "High")
    assert attach(world, chosen, table, "High").json() == first, "the same value must not change the time"
    attach(world, text, table, "one")
    assert attach(world, text, table, "two").status_code == 200
    assert sorted(shown(world, table)) == sorted([(chosen["name"], "High"), (text["name"], "two")])
    assert detach(world, text, table).status_code == 204
    assert detach(world, text, table).status_code == 204, "detaching must be idempotent"
    assert shown(world, table) == [(chosen["name"], "High")]


def test_effective_tags_are_the_nearest(world: World, ns: str) -> None:
    outer, inner = world.namespace_id(ns), unique("inner")
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": [ns, inner]})
    assert made.status_code == 200, made.text
    path = f"{ns}%1F{inner}"
    low, table = world.namespace_id(path), world.table(path)
    tag, marker = define(world, **FREE_TEXT), define(world)
    on_table = tags_path(world, "table", table.uuid)
    try:
        for value, at in (("w", tags_path(world)), ("outer", tags_path(world, "namespace", outer))):
            assert attach(world, tag, at, value).status_code == 200
        attach(world, marker, tags_path(world, "namespace", low))
        assert shown(world, on_table) == []
        [inherited] = [
            each
            for each in world.admin.get(on_table, params={"effective": "true"}).json()["tags"]
            if each["name"] == tag["name"]
        ]
        source = {"type": "namespace", "warehouse-id": world.warehouse, "namespace-id": outer}
        assert (inherited["value"], inherited["inherited-from"]) == ("outer", source)
        assert (marker["name"], None) in shown(world, on_table, effective="true")
        assert (tag["name"], "w") in shown(world, tags_path(world), effective="true")
        attach(world, tag, on_table, "own")
        [own] = [
            each
            for each in world.admin.get(on_table, params={"effective": "true"}).json()["tags"]
            if each["name"] == tag["name"]
        ]
        assert (own["value"], "inherited-from" in own) == ("own", False)
        assert shown(world, tags_path(world, "table", table.uuid, "word"), effective="true") == []
    finally:
        detach(world, tag, tags_path(world))


def test_column_tags_follow_the_field_and_not_the_name(world: World, ns: str) -> None:
    table = wide(world, ns)
    tag = define(world, scope=["column"])
    assert attach(world, tag, tags_path(world, "table", table.uuid, "name")).status_code == 200
    fields = [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "surname", "type": "string", "required": False},
        {"id": 3, "name": "card", "type": "string", "required": True},
        {"id": 6, "name": "name", "type": "string", "required": False},
    ]
    evolve(world, table, fields, 6)
    at = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/column-tags"
    [column] = world.admin.get(at).json()["columns"]
    assert (column["field-id"], column["name"], [each["name"] for each in column["tags"]]) == (
        2,
        "surname",
        [tag["name"]],
    )
    assert shown(world, tags_path(world, "table", table.uuid, "surname")) == [(tag["name"], None)]
    assert shown(world, tags_path(world, "table", table.uuid, "name")) == []
    evolve(world, table, [fields[0], *fields[2:]], 6)
    [dropped] = world.admin.get(at).json()["columns"]
    assert (dropped["field-id"], dropped["name"], dropped["dropped"]) == (2, "surname", True)
    assert detach(world, tag, tags_path(world, "table", table.uuid, "field-id:2")).status_code == 204
    assert world.admin.get(at).json() == {"columns": []}


def test_nested_and_unknown_columns_are_refused_with_the_reason(world: World, ns: str) -> None:
    table = wide(world, ns)
    tag = define(world, scope=["column"])
    nested = attach(world, tag, tags_path(world, "table", table.uuid, "address.street"))
    assert nested.status_code == 400
    assert "field inside a column" in nested.text
    for column in ("nobody", "NAME"):
        unknown = attach(world, tag, tags_path(world, "table", table.uuid, column))
        assert error_triple(unknown)[:2] == (404, "ColumnNotFound")


def test_attachments_list_direct_objects_and_block_the_deletion(world: World, ns: str) -> None:
    table, other = world.table(ns), world.table(ns)
    tag = define(world, **FREE_TEXT)
    path = f"{TAG}/{tag['id']}"
    namespace = world.namespace_id(ns)
    attach(world, tag, tags_path(world, "namespace", namespace), "a")
    attach(world, tag, tags_path(world, "table", table.uuid), "b")
    attach(world, tag, tags_path(world, "table", other.uuid, "word"), "b")

    def listed(**query: str) -> list[dict[str, Any]]:
        targets: list[dict[str, Any]] = []
        token = None
        while True:
            page = world.admin.get(
                f"{path}/attachments", params={"pageSize": "1", **query, **({"pageToken": token} if token else {})}
            )
            assert page.status_code == 200, page.text
            targets += [each["target"] for each in page.json()["attachments"]]
            token = page.json().get("next-page-token")
            if token is None:
                return targets

    within = {"warehouse-id": world.warehouse}
    on_table = {"type": "table", **within, "table-id": table.uuid}
    on_column = {"type": "column", **within, "table-id": other.uuid, "field-id": 2}
    on_namespace = {"type": "namespace", **within, "namespace-id": namespace}
    assert sorted(map(str, listed())) == sorted(map(str, (on_table, on_column, on_namespace)))
    assert sorted(map(str, listed(value="b"))) == sorted(map(str, (on_table, on_column)))
    assert listed(targetType="column") == [on_column]
    assert listed(createdBefore="2020-01-01T00:00:00Z") == []
    wrong = {"targetType": "project"}, {"createdAfter": "now"}, {"createdAfter": "0001-01-01T00:00:00+14:00"}
    for query in (*wrong, {"createdBefore": "2026-01-01T00:00:00"}, {"pageToken": "x"}):
        assert world.admin.get(f"{path}/attachments", params=query).status_code == 400, query
    assert error_triple(world.admin.delete(path))[:2] == (409, "TagDefinitionInUse")
    detach(world, tag, tags_path(world, "namespace", namespace))
    detach(world, tag, tags_path(world, "table", other.uuid, "word"))
    assert error_triple(world.admin.delete(path))[:2] == (409, "TagDefinitionInUse")
    assert world.admin.delete(f"{table.path}?purgeRequested=true").status_code == 204
    assert listed() == []
    assert world.admin.delete(path).status_code == 204, "a deleted table must not block the deletion for ever"


def test_views_and_generic_tables_carry_tags(world: World, ns: str) -> None:
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": True}]}
    version = {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": "select 1 as id", "dialect": "spark"}],
        "default-namespace": [ns],
    }
    body = {"name": unique("v"), "schema": schema, "view-version": version, "properties": {}}
    view = world.admin.post(f"{world.root}/namespaces/{ns}/views", body)
    assert view.status_code == 200, view.text
    tag = define(world)
    path = tags_path(world, "view", view.json()["metadata"]["view-uuid"])
    assert attach(world, tag, path).status_code == 200
    assert shown(world, path) == [(tag["name"], None)]


def test_grants_of_apply_and_ownership_are_listed_and_take_effect(world: World, ns: str) -> None:
    tag, user = define(world), world.stranger()
    table = world.table(ns)
    grants = f"{TAG}/{tag['id']}/grants"
    change = {"writes": [{"privilege": "apply", "principal": {"user": user.id}}]}
    assert world.admin.post(grants, change).status_code == 204
    [grant] = [each for each in world.admin.get(grants).json()["grants"] if each["privilege"] == "apply"]
    ids = {"project-id": world.project, "tag-id": tag["id"], "tag-definition-id": tag["id"]}
    assert grant["resource"] == {"type": "tag-definition", **ids}
    [own] = user.get("/management/v1/grants").json()["grants"]
    assert own["resource"] == grant["resource"]
    assert user.get(f"{TAG}/{tag['id']}").status_code == 200
    world.grant("manage_tags", user, "table", table.uuid)
    world.grant("describe", user, "table", table.uuid)
    assert attach(world, tag, tags_path(world, "table", table.uuid), by=user).status_code == 200
    world.revoke("apply", user, "tag", tag["id"])
    assert attach(world, tag, tags_path(world, "table", table.uuid), by=user).status_code == 404
    world.grant("ownership", user, "tag", tag["id"])
    assert detach(world, tag, tags_path(world, "table", table.uuid), by=user).status_code == 204
    assert user.delete(f"{TAG}/{tag['id']}").status_code == 204


def test_project_with_tags_is_not_empty(world: World) -> None:
    project = world.admin.post("/management/v1/project", {"project-name": unique("tagged")})
    assert project.status_code == 201, project.text
    id = project.json()["project-id"]
    at = {"x-project-id": id}
    body = {"name": "pii", "scope": ["table"], "value-kind": "marker"}
    tag = send_until_decided(lambda: world.admin.post(TAG, body, headers=at))
    assert tag.status_code == 201, tag.text
    assert error_triple(world.admin.delete(f"/management/v1/project/{id}"))[:2] == (409, "ProjectNotEmpty")
    assert world.admin.delete(f"{TAG}/{tag.json()['id']}", headers=at).status_code == 204
    assert world.admin.delete(f"/management/v1/project/{id}").status_code == 204


def test_search_finds_visible_objects_by_tag(world: World, ns: str) -> None:
    tag, user = define(world), world.stranger()
    own, by_column, other, apart = (world.table(ns, unique(name)) for name in ("own", "column", "other", "apart"))
    away = world.table(world.namespace())
    attach(world, tag, tags_path(world, "table", own.uuid))
    attach(world, tag, tags_path(world, "table", by_column.uuid, "word"))
    attach(world, tag, tags_path(world, "table", away.uuid))
    assert set(search(world, tag["name"].upper())) == {own.uuid, by_column.uuid, away.uuid}
    assert search(world, tag["name"], "OWN") == [own.uuid]
    assert search(world, unique("unknown")) == []
    world.grant("select", user, "table", own.uuid)
    world.grant("describe", user, "table", other.uuid)
    assert search(world, tag["name"], by=user) == [own.uuid]
    attach(world, tag, tags_path(world, "namespace", world.namespace_id(ns)))
    assert set(search(world, tag["name"])) == {own.uuid, by_column.uuid, other.uuid, apart.uuid, away.uuid}
    assert set(search(world, tag["name"], by=user)) == {own.uuid, other.uuid}


def test_suggestions_are_off_by_default(world: World, ns: str) -> None:
    at = f"/management/v1/warehouse/{world.warehouse}/table/{world.table(ns).uuid}/tag-suggestions"
    assert error_triple(world.admin.get(at))[:2] == (404, "TagSuggestionsDisabled")


def test_commands_define_attach_show_and_detach(world: World, ns: str) -> None:
    table, name = world.table(ns), unique("by.command")
    login = ("--gateway", world.base, "--token", world.admin.token)

    def run(*arguments: str) -> str:
        done = world.lakegate("tag", *arguments, *login)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    id = run("define", name, "--on", "table", "--on", "column", "--value", "high", "--value", "low")
    assert f"{id}\t{name}\tenumerated\ttable,column" in run("list").splitlines()
    on = ("--warehouse", world.warehouse, "--table", table.uuid, "--column", "word")
    assert run("attach", name, "--value", "high", *on) == "Attached."
    assert '"field-id": 2' in run("show", id)
    refused = world.lakegate("tag", "attach", name, "--value", "none", *on, *login)
    assert refused.returncode == 1
    assert "InvalidTagValue" in refused.stderr
    assert run("detach", name, *on) == "Detached."
    assert shown(world, tags_path(world, "table", table.uuid, "word")) == []
