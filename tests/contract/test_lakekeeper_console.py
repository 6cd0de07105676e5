# SPDX-License-Identifier: Apache-2.0
"""Requests that Lakekeeper's console sends to the management API, in the form in which it sends them."""

from __future__ import annotations

from typing import Any

from tests.support.stack.checks import BATCH
from tests.support.stack.role_policies import make_role
from tests.support.stack.signing_in import PUBLIC_CLIENT, claims_of, signed_in
from tests.support.stack.world import Person, World, error_of, unique

MANAGEMENT = "/management/v1"


def test_task_lists_accept_the_warehouse_of_an_entity(world: World, ns: str) -> None:
    table = world.table(ns)
    entity = {"type": "table", "table-id": table.uuid, "warehouse-id": world.warehouse}
    answer = world.admin.post(f"{MANAGEMENT}/warehouse/{world.warehouse}/task/list", {"entities": [entity]})
    assert (answer.status_code, answer.json()["tasks"]) == (200, []), answer.text


def test_checks_carry_notes_of_the_console_and_actions_that_do_not_exist(world: World) -> None:
    actions = ["use", "update_storage_credential", "get_metadata", "drop"]
    checks: list[dict[str, Any]] = [
        {
            "id": f"check-{number}",
            "identity": {"user": world.admin.id},
            "operation": {"warehouse": {"action": action, "warehouse-id": world.warehouse}},
            "_metadata": {"identityType": "user", "action": action},
        }
        for number, action in enumerate(actions)
    ]
    answer = world.admin.post(BATCH, {"checks": checks, "error-on-not-found": False})
    assert answer.status_code == 200, answer.text
    assert [(each["id"], each["allowed"]) for each in answer.json()["results"]] == [
        ("check-0", True),
        ("check-1", False),
        ("check-2", True),
        ("check-3", False),
    ]


def test_a_mistyped_expiry_of_a_grant_is_refused_and_nothing_is_granted(world: World) -> None:
    bob = world.stranger()
    path = f"{MANAGEMENT}/warehouse/{world.warehouse}/grants"
    write = {"privilege": "select", "principal": {"user": bob.id}, "expire-at": "2030-01-01T00:00:00Z"}
    refused = world.admin.post(path, {"writes": [write]})
    assert refused.status_code == 400, refused.text
    assert "expire-at" in error_of(refused)["message"]
    assert bob.get(f"/catalog/v1/{world.warehouse}/namespaces").status_code == 404


def test_an_unknown_parameter_of_a_list_is_refused(world: World) -> None:
    path = f"{MANAGEMENT}/warehouse/{world.warehouse}/grants"
    assert world.admin.get(path, params={"pageSize": "10"}).status_code == 200
    refused = world.admin.get(path, params={"grantedBy": "oidc~bob"})
    assert refused.status_code == 400, refused.text
    assert "'grantedBy'" in error_of(refused)["message"]


def test_sign_in_keeps_the_name_and_the_type_of_a_known_user(world: World) -> None:
    for person in (signed_in(world, "carol"), world.carol):
        assert claims_of(person.token)["name"] == "carol"
        answer = person.post(f"{MANAGEMENT}/user", {"update-if-exists": True})
        assert answer.status_code == 200, answer.text
        assert (answer.json()["name"], answer.json()["user-type"]) == ("carol", "human")


def test_no_fallback_replaces_a_name_or_type_and_a_name_replaces_the_fallback(world: World) -> None:
    subject = unique("zoe")
    nameless = world.person_with(subject, name=None)
    named = world.person_with(subject, name="Zoe", client_id=PUBLIC_CLIENT)
    update = {"update-if-exists": True}
    created = nameless.post(f"{MANAGEMENT}/user", update).json()
    assert (created["name"], created["user-type"]) == (f"Nameless App with ID {subject}", "application")
    for person in (named, nameless):
        user = person.post(f"{MANAGEMENT}/user", update).json()
        assert (user["name"], user["user-type"]) == ("Zoe", "human"), person
    for request in ({"id": nameless.id, "name": "Other", "user-type": "application"}, {"id": nameless.id}):
        unchanged = world.admin.post(f"{MANAGEMENT}/user", request).json()
        assert (unchanged["name"], unchanged["user-type"]) == ("Zoe", "human"), "only `update-if-exists` changes a user"
    kept = world.admin.post(f"{MANAGEMENT}/user", {"id": nameless.id, **update}).json()
    assert (kept["name"], kept["user-type"]) == ("Zoe", "human")
    stated = world.admin.post(f"{MANAGEMENT}/user", {"id": nameless.id, "user-type": "application", **update}).json()
    assert (stated["name"], stated["user-type"]) == ("Zoe", "application")
    assert named.post(f"{MANAGEMENT}/user", update).json()["user-type"] == "application", (
        "a guess changes no stated type"
    )
    own = named.post(f"{MANAGEMENT}/user", {"name": "Zoe of the team", **update}).json()
    assert own["name"] == "Zoe of the team", "a stated name precedes that of the token"


def test_actions_on_roles_have_the_names_of_the_console(world: World) -> None:
    role = make_role(world)
    for path in ("authorizer-actions", "access"):
        answer = world.admin.get(f"{MANAGEMENT}/permissions/role/{role}/{path}").json()
        names = set(answer["allowed-actions"])
        assert {"can_grant_assignee", "can_change_ownership", "read_assignments"} <= names
        assert not names & {"grant_assignee", "change_ownership"}


def test_vocabulary_of_privileges_has_every_object_type(world: World) -> None:
    answer = world.carol.get(f"{MANAGEMENT}/grants/grantable-privileges")
    assert answer.status_code == 200, answer.text
    privileges = answer.json()["privileges"]
    types = {"server", "project", "warehouse", "namespace", "table", "view", "generic-table", "tag-definition"}
    assert types <= set(privileges)
    for type, listed in privileges.items():
        assert listed, type
        for each in listed:
            assert set(each) == {"name", "display-name", "description", "category", "resource-type"}
            assert each["resource-type"] == type
    assert world.unauthenticated.get(f"{MANAGEMENT}/grants/grantable-privileges").status_code == 401


def test_grantable_privileges_of_an_object_are_those_of_the_principal_in_question(world: World, ns: str) -> None:
    path = f"{MANAGEMENT}/warehouse/{world.warehouse}/namespace/{world.namespace_id(ns)}/grants/grantable-privileges"
    world.grant("select", world.analyst, "namespace", world.namespace_id(ns))
    world.grant("pass_grants", world.analyst, "namespace", world.namespace_id(ns))

    def allowed(person: Person, **query: str) -> set[str]:
        answer = person.get(path, params=query)
        assert (answer.status_code, set(answer.json())) == (200, {"privileges"}), answer.text
        listed = answer.json()["privileges"]
        assert all(set(each) == {"privilege", "allowed"} for each in listed)
        return {each["privilege"]["name"] for each in listed if each["allowed"]}

    assert allowed(world.analyst) == {"select", "describe"}
    assert allowed(world.bob, principalUser=world.bob.id) == allowed(world.bob), "one's own needs no right"
    assert allowed(world.admin, principalUser=world.analyst.id) == {"select", "describe"}
    assert allowed(world.admin) > {"select", "describe", "manage_grants"}
    assert world.carol.get(path, params={"principalUser": world.analyst.id}).status_code == 404


def test_grants_of_one_principal_are_listed_alone_for_the_caller_too(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    path = f"{MANAGEMENT}/warehouse/{world.warehouse}/namespace/{id}/grants"
    world.grant("select", world.analyst, "namespace", id)
    world.grant("describe", world.steward, "namespace", id)

    def holders(suffix: str = "", **query: str) -> set[tuple[str, str]]:
        answer = world.admin.get(path + suffix, params=query)
        assert answer.status_code == 200, answer.text
        return {(each["privilege"], each["principal"]["user"]) for each in answer.json()["grants"]}

    own = ("ownership", world.admin.id)
    assert holders() == {("select", world.analyst.id), ("describe", world.steward.id), own}
    assert holders(principalUser=world.analyst.id) == {("select", world.analyst.id)}
    assert holders(principalUser=world.admin.id) == {own}
    assert holders(principalRole=make_role(world)) == set()
    world.revoke("select", world.analyst, "namespace", id)
    world.revoke("describe", world.steward, "namespace", id)
    assert holders("/history", principalUser=world.steward.id) == {("describe", world.steward.id)}
    both = world.admin.get(path, params={"principalUser": world.bob.id, "principalRole": make_role(world)})
    assert both.status_code == 400


def test_grants_on_a_tag_and_its_actions_have_the_names_of_the_console(world: World) -> None:
    definition = {"name": unique("pii"), "scope": ["table"], "value-kind": "marker"}
    tag = world.admin.post(f"{MANAGEMENT}/tag-definition", definition).json()["id"]
    path = f"{MANAGEMENT}/tag-definition/{tag}"
    [grant] = world.admin.get(f"{path}/grants").json()["grants"]
    assert grant["resource"]["type"] == "tag-definition"
    assert grant["resource"]["tag-definition-id"] == grant["resource"]["tag-id"] == tag
    actions = {each["action"] for each in world.admin.get(f"{path}/actions").json()["allowed-actions"]}
    assert actions == {"read", "update", "delete", "apply", "remove", "read_attachments", "read_grants"}
    assert world.carol.get(f"{path}/actions").status_code == 404
    write = {"privilege": "apply", "principal": {"user": world.carol.id}}
    assert world.admin.post(f"{path}/grants", {"writes": [write]}).status_code == 204
    own = {each["action"] for each in world.carol.get(f"{path}/actions").json()["allowed-actions"]}
    assert own == {"read", "apply"}, "who may apply a tag sees its own actions without the right to read grants"
    granting = world.admin.get(f"{MANAGEMENT}/permissions/tag/{tag}/authorizer-actions").json()["allowed-actions"]
    assert granting == ["change_ownership", "grant_apply", "grant_remove", "grant_requester", "read_assignments"]
    assert world.admin.delete(path).status_code == 204


def test_tags_state_when_they_were_attached_and_changed(world: World, ns: str) -> None:
    definition = {"name": unique("level"), "scope": ["table"], "value-kind": "free-text"}
    tag = world.admin.post(f"{MANAGEMENT}/tag-definition", definition).json()
    table = world.table(ns)
    path = f"{MANAGEMENT}/warehouse/{world.warehouse}/table/{table.uuid}/tags"
    attachments = f"{MANAGEMENT}/tag-definition/{tag['id']}/attachments"

    def seen() -> dict[str, str]:
        [listed] = world.admin.get(path).json()["tags"]
        [attached] = world.admin.get(attachments).json()["attachments"]
        times = {name: listed[name] for name in ("created-at", "updated-at") if name in listed}
        assert times == {name: attached[name] for name in ("created-at", "updated-at") if name in attached}
        return times

    assert world.admin.send("PUT", f"{path}/{tag['name']}", json={"value": "low"}).status_code == 200
    first = seen()
    assert set(first) == {"created-at"}
    assert world.admin.send("PUT", f"{path}/{tag['name']}", json={"value": "high"}).status_code == 200
    changed = seen()
    assert changed["created-at"] == first["created-at"] < changed["updated-at"]


def test_namespaces_state_inherited_managed_access(world: World, ns: str) -> None:
    answer = world.admin.get(f"{MANAGEMENT}/permissions/namespace/{world.namespace_id(ns)}")
    assert answer.json() == {"managed-access": False, "managed-access-inherited": False}
