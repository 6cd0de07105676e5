# SPDX-License-Identifier: Apache-2.0
"""Decisions for policy enforcement points by AuthZEN: evaluation, batches, searches, and the discovery document."""

from __future__ import annotations

import random
from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.authzen import (
    EVALUATION,
    EVALUATIONS,
    SEARCH,
    action,
    evaluate,
    evaluate_all,
    resource,
    search,
    subject,
)
from tests.support.stack.role_policies import make_role, put_in
from tests.support.stack.world import Table, World

ABSENT = "01890000-0000-4000-8000-000000000000"


def test_decision_is_the_one_that_the_subject_gets(world: World, table: Table) -> None:
    reader, on = world.stranger(), resource(world, table)
    assert not evaluate(world.admin, subject(reader), "read_data", on)
    world.grant("select", reader, "table", table.uuid)
    assert evaluate(world.admin, subject(reader), "read_data", on)
    assert evaluate(reader, subject(reader), "read_data", on), "each caller may ask about itself"
    assert not evaluate(world.admin, subject(reader), "drop", on)
    world.revoke("select", reader, "table", table.uuid)
    assert not evaluate(world.admin, subject(reader), "read_data", on)


def test_each_type_and_each_form_of_an_id_is_understood(world: World, table: Table) -> None:
    role, namespace = make_role(world), world.namespace_id(table.namespace)
    forms = [
        ("server", "server", "create_project"),
        ("project", world.project, "create_warehouse"),
        ("warehouse", world.warehouse, "create_namespace"),
        ("namespace", f"{world.warehouse}/{namespace}", "create_table"),
        ("namespace", f"{world.warehouse}/{table.namespace}", "create_table"),
        ("table", f"{world.warehouse}/{table.uuid}", "read_data"),
        ("table", f"{world.warehouse}/{table.namespace}/{table.name}", "read_data"),
        ("role", role, "update"),
    ]
    for type, id, name in forms:
        assert evaluate(world.admin, subject(world.admin), name, {"type": type, "id": id}), (type, id)
        assert not evaluate(world.admin, subject(world.carol), name, {"type": type, "id": id}), (type, id)
    about_role = {"type": "role", "id": role}
    assert not evaluate(world.admin, about_role, "read_data", resource(world, table))


@pytest.mark.parametrize(
    ("type", "id", "name"),
    [
        ("table", "no id", "read_data"),
        ("table", "%FF/%FF", "read_data"),
        ("table", ABSENT, "read_data"),
        ("table", f"{ABSENT}/{ABSENT}", "read_data"),
        ("table", f"{ABSENT}/" + "/".join("abcdefgh"), "read_data"),
        ("table", "", "read_data"),
        ("spaceship", "x", "read_data"),
        ("warehouse", "{warehouse}", "fly"),
        ("table", "{warehouse}/{table}", "read_columns"),
    ],
)
def test_unknown_names_and_ids_are_a_no(world: World, table: Table, type: str, id: str, name: str) -> None:
    on = {"type": type, "id": id.format(warehouse=world.warehouse, table=table.uuid)}
    assert not evaluate(world.admin, subject(world.admin), name, on)
    assert search(world.admin, "subject", subject={"type": "user"}, action=action(name), resource=on) == []


@pytest.mark.parametrize("part", ["subject", "action", "resource"])
def test_missing_and_malformed_parts_are_400(world: World, table: Table, part: str) -> None:
    whole: dict[str, Any] = {
        "subject": subject(world.alice),
        "action": action("read_data"),
        "resource": resource(world, table),
    }
    members = [name for name in whole[part] if name != "properties"]
    wrong: list[dict[str, Any]] = [
        {name: value for name, value in whole.items() if name != part},
        {**whole, part: None},
        {**whole, part: "text"},
        {**whole, part: []},
        *({**whole, part: {k: v for k, v in whole[part].items() if k != name}} for name in members),
        *({**whole, part: {**whole[part], name: 7}} for name in members),
        *({**whole, part: {**whole[part], name: None}} for name in members),
        {**whole, part: {**whole[part], "properties": [1]}},
        {**whole, "context": "text"},
    ]
    for body in wrong:
        answer = world.admin.post(EVALUATION, body)
        assert answer.status_code == 400, (body, answer.text)
    assert world.admin.post(EVALUATION, {**whole, "more": 1, part: {**whole[part], "more": 2}}).status_code == 200


@pytest.mark.parametrize("path", [EVALUATION, EVALUATIONS, f"{SEARCH}subject", f"{SEARCH}resource", f"{SEARCH}action"])
def test_every_endpoint_demands_json_and_a_token(world: World, path: str) -> None:
    json = {"content-type": "application/json"}
    assert world.admin.send("POST", path, content=b"{}", headers={"content-type": "text/plain"}).status_code == 400
    assert world.admin.send("POST", path, content=b"{}").status_code == 400
    for broken in (b"", b"{", b"[]", b"null"):
        assert world.admin.send("POST", path, content=broken, headers=json).status_code == 400, broken
    assert world.unauthenticated.post(path, {}).status_code == 401


def test_the_request_id_is_repeated(world: World, table: Table) -> None:
    body = {"subject": subject(world.alice), "action": action("read_data"), "resource": resource(world, table)}
    id = str(uuid4())
    for path, sent in ((EVALUATION, body), (EVALUATION, {}), (f"{SEARCH}action", body)):
        assert world.admin.post(path, sent, headers={"X-Request-ID": id}).headers["x-request-id"] == id
    own = world.admin.post(EVALUATION, body).headers["x-request-id"]
    assert own and own != id
    other = world.admin.get("/management/v1/whoami", headers={"X-Request-ID": id}).headers["x-request-id"]
    assert other != id, "elsewhere the id is the gateway's own"


def test_batch_members_replace_defaults_and_keep_their_order(world: World, ns: str) -> None:
    one, two = world.table(ns), world.table(ns)
    reader = world.stranger()
    world.grant("select", reader, "table", one.uuid)
    first, second = resource(world, one), resource(world, two)
    defaults = {"subject": subject(reader), "action": action("read_data")}
    assert evaluate_all(world.admin, [{"resource": first}, {"resource": second}], **defaults) == [True, False]
    mixed = [
        {"resource": second},
        {"resource": first, "action": action("drop")},
        {"resource": second, "subject": subject(world.admin)},
        {"resource": {"type": "spaceship", "id": "x"}},
        {"resource": first},
    ]
    assert evaluate_all(world.admin, mixed, **defaults) == [False, False, True, False, True]
    single = world.admin.post(EVALUATIONS, {**defaults, "resource": first})
    assert single.json() == {"decision": True}
    assert world.admin.post(EVALUATIONS, {**defaults, "resource": first, "evaluations": []}).json() == single.json()
    assert world.admin.post(EVALUATIONS, {**defaults, "evaluations": []}).status_code == 400


def test_a_batch_member_that_lacks_a_part_is_a_no_with_the_reason(world: World, table: Table) -> None:
    on = resource(world, table)
    defaults = {"subject": subject(world.admin), "action": action("read_data")}
    answer = world.admin.post(EVALUATIONS, {**defaults, "evaluations": [{"resource": on}, {}, {"resource": {}}]})
    assert answer.status_code == 200
    yes, *lacking = answer.json()["evaluations"]
    assert yes == {"decision": True}
    assert [each["decision"] for each in lacking] == [False, False]
    assert [each["context"]["error"]["status"] for each in lacking] == [400, 400]
    assert "resource" in lacking[0]["context"]["error"]["message"]


def test_each_semantic_of_a_batch(world: World, table: Table) -> None:
    on, defaults = resource(world, table), {"subject": subject(world.admin)}
    yes, no = {"resource": on, "action": action("read_data")}, {"resource": on, "action": action("fly")}
    for semantic, expected in (
        ("execute_all", [True, False, True, False]),
        ("deny_on_first_deny", [True, False]),
        ("permit_on_first_permit", [True]),
    ):
        options = {"evaluations_semantic": semantic}
        assert evaluate_all(world.admin, [yes, no, yes, no], options=options, **defaults) == expected
    assert evaluate_all(world.admin, [no, yes], options={"evaluations_semantic": "permit_on_first_permit"}, **defaults)
    unknown = {**defaults, "evaluations": [yes], "options": {"evaluations_semantic": "guess"}}
    assert world.admin.post(EVALUATIONS, unknown).status_code == 400


def test_restricted_data_is_a_no(world: World, table: Table) -> None:
    reader = world.stranger()
    columns = f"/management/v1/permissions/warehouse/{world.warehouse}/table/{table.uuid}/columns/id/assignments"
    granted = world.admin.post(columns, {"writes": [{"type": "select", "user": reader.id}]})
    assert granted.status_code == 204, granted.text
    on = resource(world, table)
    assert not evaluate(world.admin, subject(reader), "read_data", on), "one column is not the table"
    assert evaluate(world.admin, subject(reader), "include_in_list", on)
    found = search(world.admin, "subject", subject={"type": "user"}, action=action("include_in_list"), resource=on)
    assert reader.id in found


@pytest.mark.parametrize("seed", range(3))
def test_searches_and_evaluations_agree(world: World, seed: int) -> None:
    """Compare all searches in a random world with one evaluation for each combination."""
    chance = random.Random(seed)
    namespace = world.namespace()
    tables = [world.table(namespace) for _ in range(4)]
    people = [world.stranger() for _ in range(4)]
    inner, outer = make_role(world), make_role(world)
    put_in(world, outer, "role", inner)
    put_in(world, inner, "user", people[0].id)
    put_in(world, outer, "user", people[1].id)
    namespace_id = world.namespace_id(namespace)
    for _ in range(5):
        kind, id = chance.choice([("namespace", namespace_id), *(("table", each.uuid) for each in tables)])
        privilege = chance.choice(["select", "modify", "describe"])
        holder = chance.choice([*({"user": each.id} for each in people), {"role": outer}, {"role": inner}])
        given = world.admin.post(world.grants_path(kind, id), {"writes": [{"type": privilege, **holder}]})
        assert given.status_code in (204, 409), given.text
    subjects = [*(subject(each) for each in people), *({"type": "role", "id": each} for each in (inner, outer))]
    resources = [resource(world, each) for each in tables]
    resources.append({"type": "namespace", "id": f"{world.warehouse}/{namespace_id}"})
    names = ["get_metadata", "read_data", "write_data", "include_in_list", "create_table"]
    asked = [(about, name, on) for about in subjects for name in names for on in resources]
    decisions = evaluate_all(
        world.admin, [{"subject": about, "action": action(name), "resource": on} for about, name, on in asked]
    )
    yes = {
        (about["id"], name, on["id"]) for (about, name, on), decision in zip(asked, decisions, strict=True) if decision
    }
    ids = {each["id"] for each in subjects}, {each["id"] for each in resources}
    found = set()
    for name in names:
        for on in resources:
            for type in ("user", "role"):
                limit = chance.choice([None, 2])
                some = search(
                    world.admin, "subject", limit=limit, subject={"type": type}, action=action(name), resource=on
                )
                assert len(some) == len(set(some))
                found |= {(id, name, on["id"]) for id in some if id in ids[0]}
    assert found == yes, "subject search"
    found = set()
    for name in names:
        for about in subjects:
            for type in ("table", "namespace"):
                limit = chance.choice([None, 1])
                some = search(
                    world.admin, "resource", limit=limit, subject=about, action=action(name), resource={"type": type}
                )
                found |= {(about["id"], name, id) for id in some}
    assert found == yes, "resource search"
    for about in subjects:
        for on in resources:
            some = search(world.admin, "action", limit=chance.choice([None, 3]), subject=about, resource=on)
            assert {name for name in some if name in names} == {
                name for id, name, of in yes if (id, of) == (about["id"], on["id"])
            }


def test_pages_of_a_search(world: World, ns: str) -> None:
    reader = world.stranger()
    tables = [world.table(ns) for _ in range(3)]
    world.grant("select", reader, "namespace", world.namespace_id(ns))
    body: dict[str, Any] = {
        "subject": subject(reader),
        "action": action("read_data"),
        "resource": {"type": "table"},
    }
    expected = {f"{world.warehouse}/{each.uuid}" for each in tables}
    first = world.admin.post(f"{SEARCH}resource", {**body, "page": {"limit": 2}}).json()
    assert len(first["results"]) == 2 and first["page"]["next_token"]
    assert {each["type"] for each in first["results"]} == {"table"}
    token = {"limit": 2, "token": first["page"]["next_token"]}
    last = world.admin.post(f"{SEARCH}resource", {**body, "page": token}).json()
    assert last["page"] == {"next_token": ""}
    assert {each["id"] for each in first["results"] + last["results"]} == expected
    assert set(search(reader, "resource", limit=1, **body)) == expected, "about oneself no right is needed"
    with_id = {**body, "resource": {"type": "table", "id": f"{world.warehouse}/{tables[0].uuid}"}}
    assert set(search(world.admin, "resource", **with_id)) == expected, "an id is ignored"
    wrong: tuple[object, ...] = ({"limit": 0}, {"limit": "2"}, {"token": "§"}, {"token": "bm9wZQ"}, [])
    for page in wrong:
        assert world.admin.post(f"{SEARCH}resource", {**body, "page": page}).status_code == 400, page


def test_the_discovery_document_names_every_endpoint(world: World) -> None:
    answer = world.unauthenticated.get("/.well-known/authzen-configuration")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/json")
    document = answer.json()
    base = document.pop("policy_decision_point")
    assert set(document) == {
        "access_evaluation_endpoint",
        "access_evaluations_endpoint",
        "search_subject_endpoint",
        "search_resource_endpoint",
        "search_action_endpoint",
    }
    for address in document.values():
        assert address.startswith(f"{base}/access/v1/")
        assert world.admin.post(address.removeprefix(base), {}).status_code == 400, "it is served"
