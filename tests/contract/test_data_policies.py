# SPDX-License-Identifier: Apache-2.0
"""Data policies over HTTP: versions, bindings, exemptions, affected tables, and the data policy revision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.stack.columns import evolve, wide
from tests.support.stack.data_policies import FILTER, MASK, POLICY, change, loads, make, revision, target
from tests.support.stack.tags import attach, define, detach, tags_path
from tests.support.stack.world import World, error_triple, send_until_decided, unique


def test_a_policy_is_created_changed_and_its_versions_are_kept(world: World) -> None:
    policy = make(world, FILTER)
    path = f"{POLICY}/{policy['id']}"
    assert world.admin.get(path).json() == policy
    assert (policy["version"], policy["applies-to"], policy["allow-append"]) == (1, "everyone", False)
    assert policy["definition"] == FILTER
    body = {"name": policy["name"], "definition": MASK, "reason": "mask instead", "if-version": 1}
    changed = send_until_decided(lambda: world.admin.send("PUT", path, json=body))
    assert changed.status_code == 200, changed.text
    assert (changed.json()["version"], changed.json()["definition"]) == (2, MASK)
    late = send_until_decided(lambda: world.admin.send("PUT", path, json=body))
    assert error_triple(late)[:2] == (409, "DataPolicyVersionConflict")
    versions = world.admin.get(f"{path}/version").json()["versions"]
    assert [(each["version"], each["document"]["definition"], each.get("reason")) for each in versions] == [
        (2, MASK, "mask instead"),
        (1, FILTER, None),
    ]
    assert {each["changed-by"] for each in versions} == {world.admin.id}
    twin = world.admin.post(POLICY, {"name": policy["name"].upper(), "definition": MASK})
    assert error_triple(twin)[:2] == (409, "DataPolicyNameAlreadyExists")


def test_an_invalid_definition_is_refused_with_its_place(world: World) -> None:
    wrong = {"kind": "row-filter", "test": {"type": "and", "operands": [{"type": "like"}]}}
    refused = world.admin.post(POLICY, {"name": unique("policy"), "definition": wrong})
    assert refused.status_code == 400
    assert "$.definition.test.operands" in refused.text


def test_a_stranger_neither_sees_nor_creates_policies(world: World) -> None:
    stranger = world.stranger()
    policy = make(world)
    for path in ("", "/version", "/bindings", "/affected", "/alerts"):
        assert stranger.get(f"{POLICY}/{policy['id']}{path}").status_code == 404, path
    assert stranger.get(f"{POLICY}/{uuid4()}").status_code == 404
    assert stranger.post(POLICY, {"name": unique("policy"), "definition": MASK}).status_code == 404


def test_a_binding_records_field_ids_and_a_new_version_records_its_own(world: World, ns: str) -> None:
    policy, table = make(world), wide(world, ns)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    (binding,) = world.admin.get(f"{POLICY}/{policy['id']}/bindings").json()["bindings"]
    assert (binding["type"], binding["id"], binding["recorded-fields"]) == ("table", table.uuid, [2])
    # A restricted principal cannot commit, not even the owner.
    world.grant("exempt", world.admin, "data-policy", policy["id"])
    renamed = {"id": 2, "name": "called", "type": "string", "required": False}
    evolve(world, table, [{"id": 1, "name": "id", "type": "long", "required": True}, renamed], 5)
    path = f"{POLICY}/{policy['id']}"
    same = {"name": policy["name"], "definition": {**MASK, "action": "replace-with-null"}}
    send_until_decided(lambda: world.admin.send("PUT", path, json=same))
    (binding,) = world.admin.get(f"{path}/bindings").json()["bindings"]
    assert binding["recorded-fields"] == [2], "the renamed column stays covered while the policy names the same columns"
    other = {"name": policy["name"], "definition": {**MASK, "columns": [{"name": "ID"}]}}
    send_until_decided(lambda: world.admin.send("PUT", path, json=other))
    (binding,) = world.admin.get(f"{path}/bindings").json()["bindings"]
    assert binding["recorded-fields"] == [1]
    world.admin.send("DELETE", path, params={"force": "true"})


def test_binding_needs_rights_on_the_policy_and_on_the_object(world: World, ns: str) -> None:
    policy, table = make(world), wide(world, ns)
    owner = world.stranger("owner")
    world.grant("ownership", owner, "table", table.uuid)
    assert change(world, policy, owner, add=[target(world, table)]).status_code == 404
    manager = world.stranger("manager")
    world.grant("ownership", manager, "data-policy", policy["id"])
    assert change(world, policy, manager, add=[target(world, table)]).status_code == 404
    assert world.admin.get(f"{POLICY}/{policy['id']}/bindings").json()["bindings"] == []
    world.grant("describe", manager, "table", table.uuid)
    world.grant("manage_grants", manager, "table", table.uuid)
    assert change(world, policy, manager, add=[target(world, table)]).status_code == 204
    world.revoke("manage_grants", manager, "table", table.uuid)
    assert change(world, policy, manager, remove=[target(world, table)]).status_code == 403
    assert change(world, policy, owner, remove=[target(world, table)]).status_code == 404
    assert change(world, policy, remove=[target(world, table)]).status_code == 204


def test_every_change_writes_a_new_revision_and_the_last_unbinding_none(world: World, ns: str) -> None:
    policy, table = make(world), wide(world, ns)
    seen = [revision(world)]

    def moved() -> bool:
        seen.append(revision(world))
        return seen[-1] is not None and seen[-1] not in seen[:-1]

    assert change(world, policy, add=[target(world, table)]).status_code == 204
    assert moved()
    body = {"name": policy["name"], "definition": {**MASK, "action": "replace-with-null"}}
    send_until_decided(lambda: world.admin.send("PUT", f"{POLICY}/{policy['id']}", json=body))
    assert moved()
    person = world.stranger()
    world.grant("exempt", person, "data-policy", policy["id"])
    assert moved()
    world.revoke("exempt", person, "data-policy", policy["id"])
    assert moved()
    world.grant("subject", person, "data-policy", policy["id"])
    assert moved()
    released = {"table-id": table.uuid, "field-id": 2}
    done = send_until_decided(lambda: world.admin.post(f"{POLICY}/{policy['id']}/release", released))
    assert done.status_code == 204, done.text
    assert moved()
    others = world.sql(f"select count(*) as n from data_policy_bindings where policy_id <> '{policy['id']}'")[0]["n"]
    assert change(world, policy, remove=[target(world, table)]).status_code == 204
    assert others or revision(world) is None


def test_affected_lists_the_effect_on_each_table_and_no_table_without_one(world: World, ns: str) -> None:
    tag = define(world)
    tagged, untagged = wide(world, ns), wide(world, ns)
    attached = attach(world, tag, tags_path(world, "table", tagged.uuid, "card"))
    assert attached.status_code < 300, attached.text
    test = {"type": "compare", "operator": "eq", "column": {"name": "card"}, "value": "a"}
    missing = {**test, "column": {"name": "absent"}}
    by_tag = make(world, {**MASK, "columns": [{"tag": tag["name"]}]})
    here = {"type": "namespace", "id": world.namespace_id(ns), "warehouse-id": world.warehouse}
    by_name, filtering = make(world), make(world, {"kind": "row-filter", "test": test})
    hiding = make(world, {"kind": "row-filter", "test": missing})
    always = make(world, {"kind": "row-filter", "test": {"type": "constant", "value": True}})
    both = {tagged.uuid, untagged.uuid}
    masked: dict[str, Any] = {"masked-columns": [{"name": "name", "field-id": 2, "action": "mask-alphanum"}]}
    card = {"masked-columns": [{"name": "card", "field-id": 3, "action": "mask-alphanum"}]}
    for policy, ids, effect in (
        (by_tag, {tagged.uuid}, card),
        (by_name, both, masked),
        (filtering, both, {"filtered-columns": ["card"]}),
        (hiding, both, {"hides-all-rows": True}),
        (always, set(), {}),
    ):
        assert change(world, policy, add=[here]).status_code == 204
        path = f"{POLICY}/{policy['id']}/affected"
        found: list[dict[str, Any]] = []
        token: str | None = ""
        while token is not None:
            page = world.admin.get(path, params={"pageSize": 1, **({"pageToken": token} if token else {})}).json()
            found, token = [*found, *page["tables"]], page.get("next-page-token")
        assert {each["table-id"] for each in found} == ids
        every = world.admin.get(path, params={"withoutEffect": "true"}).json()["tables"]
        assert {each["table-id"] for each in every} == both, "`lakegate apply` reads the bound tables from it"
        named = ("masked-columns", "filtered-columns", "hides-all-rows", "refused")
        assert all({name: each[name] for name in named if name in each} == effect for each in found)
        assert world.admin.send("DELETE", f"{POLICY}/{policy['id']}", params={"force": "true"}).status_code == 204


def test_a_dry_run_answers_as_affected_does_after_the_change_and_changes_nothing(world: World, ns: str) -> None:
    policy, table = make(world), wide(world, ns)
    path = f"{POLICY}/{policy['id']}"
    here = {"type": "namespace", "id": world.namespace_id(ns), "warehouse-id": world.warehouse}
    name = {"warehouse-id": world.warehouse, "namespace": [ns], "name": table.name}
    before = revision(world)
    changes: list[dict[str, Any]] = [{"add": [here]}, {"add": [target(world, table)]}, {"add-names": [name]}]
    for body in changes:
        tried = world.admin.post(f"{path}/bindings/dry-run", body)
        assert tried.status_code == 200, tried.text
        assert tried.json()["restricts-caller"], "the owner of the policy and of the table is no exception"
        assert (revision(world), loads(world.admin, table)) == (before, 200)
        assert world.admin.get(f"{path}/bindings").json() == {"bindings": []}
        assert change(world, policy, **body).status_code == 204
        assert world.admin.get(f"{path}/affected").json()["tables"] == tried.json()["tables"] != []
        back: dict[str, Any] = {key.replace("add", "remove"): value for key, value in body.items()}
        gone = world.admin.post(f"{path}/bindings/dry-run", back)
        assert gone.json()["tables"] == []
        assert loads(world.admin, table) == 403
        assert change(world, policy, **back).status_code == 204
        before = revision(world)
    world.grant("exempt", world.admin, "data-policy", policy["id"])
    assert "restricts-caller" not in world.admin.post(f"{path}/bindings/dry-run", {"add": [here]}).json()
    manager = world.stranger("manager")
    world.grant("ownership", manager, "data-policy", policy["id"])
    assert manager.post(f"{path}/bindings/dry-run", {"add": [here]}).status_code == 404, "it names tables of others"


def test_a_binding_that_restricts_the_caller_says_so_in_its_answer(world: World, ns: str) -> None:
    """The owner of the namespace read its tables before, and is no exception."""
    table, owner = wide(world, ns), world.stranger("owner")
    world.grant("ownership", owner, "namespace", world.namespace_id(ns))
    name = {"warehouse-id": world.warehouse, "namespace": [ns], "name": table.name}
    bindings: list[dict[str, Any]] = [{"add": [target(world, table)]}, {"add-names": [name]}]
    subjects: dict[str, Any] = {"applies-to": "subjects"}
    for policy, header, status in (
        (make(world), "caller", 403),
        (make(world, **subjects), None, 200),
    ):
        world.grant("ownership", owner, "data-policy", policy["id"])
        for body in bindings:
            assert loads(owner, table) == 200
            answer = change(world, policy, by=owner, **body)
            assert answer.status_code == 204, answer.text
            assert (answer.headers.get("x-lakegate-restricts"), loads(owner, table)) == (header, status)
            back = {key.replace("add", "remove"): value for key, value in body.items()}
            undone = change(world, policy, by=owner, **back)
            assert undone.status_code == 204
            assert "x-lakegate-restricts" not in undone.headers


def test_a_new_version_and_a_tag_that_restrict_the_caller_say_so(world: World, ns: str) -> None:
    """Both restrict as a binding does. A repeated request gets the same body."""
    tag, table = define(world), wide(world, ns)
    by_tag = {"kind": "mask", "action": "replace-with-null"}
    subjects: dict[str, Any] = {"applies-to": "subjects"}
    policy = make(world, by_tag, **subjects)
    path, tags = f"{POLICY}/{policy['id']}", tags_path(world, "table", table.uuid, "name")

    def update(applies_to: str, key: str | None = None) -> Any:
        body = {"name": policy["name"], "definition": by_tag, "applies-to": applies_to}
        headers = {} if key is None else {"Idempotency-Key": key}
        answer = send_until_decided(lambda: world.admin.send("PUT", path, json=body, headers=headers))
        assert answer.status_code == 200, answer.text
        return answer

    def states(answer: Any) -> str | None:
        header: str | None = answer.headers.get("x-lakegate-restricts")
        return header

    assert states(update("everyone")) is None, "the policy is bound to nothing"
    assert states(attach(world, tag, tags)) is None, "no policy is bound to the tag"
    assert detach(world, tag, tags).status_code == 204
    update("subjects")
    assert states(change(world, policy, add=[{"type": "tag", "id": tag["id"]}])) is None
    assert states(attach(world, tag, tags)) is None
    assert loads(world.admin, table) == 200
    key = str(uuid4())
    changed = update("everyone", key)
    assert (states(changed), loads(world.admin, table)) == ("caller", 403)
    assert update("everyone", key).json() == changed.json()
    assert detach(world, tag, tags).status_code == 204
    attached = attach(world, tag, tags)
    assert (attached.status_code, states(attached), loads(world.admin, table)) == (200, "caller", 403)
    world.admin.send("DELETE", path, params={"force": "true"})


def test_affected_lists_readers_without_exempt_principals(world: World, ns: str) -> None:
    policy, table = make(world), wide(world, ns)
    reader, auditor = world.stranger("reader"), world.stranger("auditor")
    for person in (reader, auditor):
        world.grant("select", person, "table", table.uuid)
    world.grant("exempt", auditor, "data-policy", policy["id"])
    grants = world.admin.get(f"{POLICY}/{policy['id']}/grants").json()["grants"]
    assert {(each["privilege"], each["principal"]["user"], each["resource"]["data-policy-id"]) for each in grants} == {
        ("ownership", world.admin.id, policy["id"]),
        ("exempt", auditor.id, policy["id"]),
    }
    space = {"type": "namespace", "id": world.namespace_id(ns), "warehouse-id": world.warehouse}
    assert change(world, policy, add=[space]).status_code == 204
    (found,) = world.admin.get(f"{POLICY}/{policy['id']}/affected").json()["tables"]
    assert (found["table-id"], found["namespace"]) == (table.uuid, [ns])
    listed = {each["id"] for each in found["principals"]}
    assert reader.id in listed
    assert world.admin.id in listed, "owners are restricted too"
    assert auditor.id not in listed
    assert world.admin.get(f"{POLICY}/{policy['id']}/alerts").json() == {"alerts": []}
    outside = send_until_decided(
        lambda: world.admin.post(f"{POLICY}/{policy['id']}/release", {"table-id": str(uuid4()), "field-id": 2})
    )
    assert outside.status_code == 400


def test_a_bound_policy_is_deleted_only_with_force_and_leaves_no_tuples(world: World, ns: str) -> None:
    policy, table = make(world), wide(world, ns)
    person = world.stranger()
    world.grant("exempt", person, "data-policy", policy["id"])
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    path = f"{POLICY}/{policy['id']}"
    assert error_triple(send_until_decided(lambda: world.admin.send("DELETE", path)))[:2] == (409, "DataPolicyBound")
    assert send_until_decided(lambda: world.admin.send("DELETE", path, params={"force": "true"})).status_code == 204
    assert world.admin.get(path).status_code == 404
    left = world.sql(
        f"select count(*) as n from grants where object_type = 'data_policy' and object_id = '{policy['id']}'"
    )
    assert left[0]["n"] == 0
    kept = world.sql(f"select count(*) as n from data_policy_versions where policy_id = '{policy['id']}'")
    assert kept[0]["n"] == 1, "the history outlives the policy"


def test_entries_of_a_mapping_table_are_replaced_and_removed(world: World) -> None:
    tables = "/management/v1/mapping-table"
    name = unique("regions")
    made = send_until_decided(lambda: world.admin.post(tables, {"name": name}))
    assert made.status_code == 201, made.text
    path = f"{tables}/{made.json()['id']}"
    assert world.admin.get(path).json() == made.json()
    twin = world.admin.post(tables, {"name": name.upper()})
    assert error_triple(twin)[:2] == (409, "MappingTableNameAlreadyExists")
    first, second = world.stranger(), world.stranger()

    def entries(**body: Any) -> int:
        return send_until_decided(lambda: world.admin.post(f"{path}/entries", body)).status_code

    both = [{"principal": {"user": each.id}, "values": ["us", "eu", "eu"]} for each in (first, second)]
    assert entries(set=both) == 204
    assert entries(set=[{"principal": {"user": first.id}, "values": ["asia"]}], remove=[{"user": second.id}]) == 204
    found = world.admin.get(f"{path}/entries").json()["entries"]
    assert found == [{"principal": {"user": first.id}, "values": ["asia"]}]
    assert entries(set=[{"principal": {"user": "oidc~nobody-of-this-id"}, "values": ["x"]}]) == 404
    assert entries(set=both, remove=[{"user": first.id}]) == 400, "a principal is named twice"
    assert world.stranger().get(path).status_code == 404
    assert send_until_decided(lambda: world.admin.send("DELETE", path)).status_code == 204
    assert world.admin.get(path).status_code == 404


def test_the_commands_write_bind_and_list_a_policy(world: World, ns: str, tmp_path: Path) -> None:
    table, file, name = wide(world, ns), tmp_path / "mask.json", unique("policy")
    file.write_text(json.dumps(MASK))

    def run(*arguments: str, warns: bool = False) -> str:
        token = ("--gateway", world.ready.catalog_uri, "--token", world.admin.token)
        done = world.lakegate("data-policy", *arguments, *token)
        assert done.returncode == 0, done.stderr
        assert ("warning: the policy restricts you too" in done.stderr) == warns
        return done.stdout

    assert name in run("create", name, str(file))
    assert f"\t1\tmask\t{name}" in run("list")
    on = f"table/{world.warehouse}/{table.uuid}"
    assert table.uuid in run("bind", name, "--on", on, "--dry-run", warns=True)
    assert table.uuid not in run("affected", name)
    run("bind", name, "--on", on, warns=True)
    run("exempt", name, "--user", world.carol.id, "--reason", "audit")
    assert table.uuid in run("affected", name)
    world.grant("select", world.carol, "table", table.uuid)
    reader = world.stranger("reader")
    world.grant("select", reader, "table", table.uuid)
    where = ("--warehouse", world.warehouse, "--table", table.uuid)
    masked = json.loads(run("test", *where, "--user", reader.id))
    assert masked["allowed"]
    assert [each["column"] for each in masked["restrictions"]["column-masks"]] == ["name"]
    free = json.loads(run("test", *where, "--user", world.carol.id))
    assert free["allowed"]
    assert "restrictions" not in free, "an exempt user is not restricted"
    file.write_text(json.dumps({**MASK, "action": "show-last-4"}))
    run("update", name, str(file), "--reason", "less", warns=True)
    assert [line.split("\t")[0] for line in run("history", name).splitlines()] == ["2", "1"]
    run("exempt", name, "--user", world.carol.id, "--remove")
    run("unbind", name, "--on", on)
    on = f"name/{world.warehouse}/{ns}/{table.name[:-1]}?"
    run("bind", name, "--on", on, warns=True)
    assert table.uuid in run("affected", name)
    run("unbind", name, "--on", on)
    assert table.uuid not in run("affected", name)
    run("delete", name)


def test_exemptions_and_subjects_apply_with_the_response(world: World, ns: str) -> None:
    """A cached exemption must not outlive its revocation, and a new subject must not read once more."""
    everyone, table = make(world), wide(world, ns)
    reader = world.stranger("reader")
    world.grant("select", reader, "table", table.uuid)
    assert change(world, everyone, add=[target(world, table)]).status_code == 204
    for _ in range(3):
        assert loads(reader, table) == 403
        world.grant("exempt", reader, "data-policy", everyone["id"])
        assert (loads(reader, table), loads(reader, table)) == (200, 200)
        world.revoke("exempt", reader, "data-policy", everyone["id"])
    assert change(world, everyone, remove=[target(world, table)]).status_code == 204
    subjects: dict[str, Any] = {"applies-to": "subjects"}
    some = make(world, **subjects)
    assert change(world, some, add=[target(world, table)]).status_code == 204
    for _ in range(3):
        assert (loads(reader, table), loads(reader, table)) == (200, 200)
        world.grant("subject", reader, "data-policy", some["id"])
        assert loads(reader, table) == 403
        world.revoke("subject", reader, "data-policy", some["id"])
    assert world.admin.send("DELETE", f"{POLICY}/{some['id']}", params={"force": "true"}).status_code == 204
    assert loads(reader, table) == 200


def test_a_bound_tag_restricts_each_table_that_gets_it(world: World, ns: str) -> None:
    tag, table = define(world), wide(world, ns)
    policy = make(world, {"kind": "mask", "action": "replace-with-null"})
    bound = {"type": "tag", "id": tag["id"]}
    manager = world.stranger("manager")
    world.grant("ownership", manager, "data-policy", policy["id"])
    assert change(world, policy, manager, add=[bound]).status_code == 404, "it needs the right to apply the tag"
    assert change(world, policy, add=[bound]).status_code == 204
    assert loads(world.admin, table) == 200
    path = tags_path(world, "table", table.uuid, "name")
    assert attach(world, tag, path).status_code < 300
    assert loads(world.admin, table) == 403
    other = wide(world, ns)
    assert attach(world, tag, tags_path(world, "table", other.uuid)).status_code < 300
    assert {each["table-id"] for each in world.admin.get(f"{POLICY}/{policy['id']}/affected").json()["tables"]} == {
        table.uuid,
        other.uuid,
    }
    assert detach(world, tag, path).status_code < 300
    assert loads(world.admin, table) == 200
    assert change(world, policy, remove=[bound]).status_code == 204
    assert loads(world.admin, other) == 200


def test_bindings_are_listed_in_pages_that_are_complete(world: World, ns: str) -> None:
    policy = make(world)
    bound = [target(world, world.table(ns)) for _ in range(3)] + [{"type": "warehouse", "id": world.warehouse}]
    assert change(world, policy, add=bound).status_code == 204
    path, found, token = f"{POLICY}/{policy['id']}/bindings", [], ""
    for _ in bound:
        answer = world.admin.get(path, params={"pageSize": 2, "pageToken": token}).json()
        assert len(answer["bindings"]) <= 2
        found += [each["id"] for each in answer["bindings"]]
        if not (token := answer.get("next-page-token", "")):
            break
    assert sorted(found) == sorted(each["id"] for each in bound)
    assert [each["id"] for each in world.admin.get(path).json()["bindings"]] == found
    assert world.admin.get(path, params={"pageToken": "x"}).status_code == 400
    world.admin.send("DELETE", f"{POLICY}/{policy['id']}", params={"force": "true"})


def test_creator_of_an_exempt_role_reads_in_the_answer_that_it_is_exempt(world: World) -> None:
    """The creator of a role is its member."""
    security, policy = world.stranger(), make(world)
    world.grant("security_admin", security, "project", world.project)
    made = security.post("/management/v1/role", {"name": unique("exempt")})
    assert made.status_code == 201, made.text
    role, auditor = {"role": made.json()["id"]}, {"user": world.stranger().id}
    path = f"{POLICY}/{policy['id']}/grants"
    for principal, header in ((auditor, None), (role, "caller")):
        body = {"writes": [{"privilege": "exempt", "principal": principal}]}
        answer = send_until_decided(lambda body=body: security.post(path, body))  # type: ignore[misc]  # a lambda of the loop
        assert answer.status_code == 204, answer.text
        assert answer.headers.get("x-lakegate-exempt") == header
