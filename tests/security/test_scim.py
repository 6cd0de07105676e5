# SPDX-License-Identifier: Apache-2.0
"""Attacks on SCIM provisioning: by trusted directories, by holders of their tokens, and by removed users."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import httpx
import pytest

import gateway.features.all_routes  # noqa: F401 - importing it serves every operation
from gateway.access.operation import OPERATIONS
from tests.support.servers.toxic import GONE
from tests.support.stack.attacked_directories import UNUSED_UUID, Attacked, attacked, entra, okta
from tests.support.stack.directories import (
    CORE_GROUP,
    CORE_USER,
    GROUPS,
    PATCH_OP,
    USERS,
    Directory,
    issued,
    lakegate,
    scim_error,
)
from tests.support.stack.exchanging import send
from tests.support.stack.world import Person, Table, World, error_triple, unique

__all__ = ["attacked", "entra", "okta"]


def granted(world: World, person: Person, table: Table) -> None:
    """Grant the user `select` on the table."""
    entry = {"writes": [{"type": "select", "user": person.id}]}
    assert world.admin.post(world.grants_path("table", table.uuid), entry).status_code == 204


def put(directory: Directory, user: dict[str, Any], **changes: Any) -> httpx.Response:
    """Replace a whole user by PUT, as Okta does."""
    kept = {name: user[name] for name in ("userName", "externalId", "active") if name in user}
    return directory.scim.send("PUT", f"{USERS}/{user['id']}", json={"schemas": [CORE_USER], **kept, **changes})


# ---- tokens ---------------------------------------------------------------------------------------------------------


@pytest.mark.threat("LG-DEC-21")
@pytest.mark.generated
def test_provisioning_token_is_refused_on_every_other_route(entra: Directory) -> None:
    tried = 0
    for operation in OPERATIONS.values():
        if operation.is_provisioning() or operation.is_public() or operation.authenticates_itself:
            continue
        for path in operation.paths():
            for name in ("prefix", "warehouse_id", "namespace", "table"):
                path = path.replace(f"{{{name}}}", UNUSED_UUID)
            method = operation.endpoint.split(" ", 1)[0]
            answer = entra.scim.send(method, path.replace("{", "").replace("}", ""))
            assert answer.status_code == 401, (method, path, answer.status_code, answer.text)
            tried += 1
    assert tried > 150


@pytest.mark.threat("LG-DEC-21")
def test_provisioning_token_cannot_be_exchanged(world: World, entra: Directory) -> None:
    theirs = entra.scim.token
    for bearer, form in (
        (theirs, {"subject_token": world.alice.token}),
        (world.alice.token, {"subject_token": theirs}),
        (None, {"subject_token": world.alice.token, "actor_token": theirs, "actor_token_type": "urn:x"}),
    ):
        answer = send(world, bearer, base=entra.base, **form)
        assert answer.status_code in (400, 401), answer.text
        assert "access_token" not in answer.json() and theirs not in answer.text


def test_provisioning_token_outside_its_header_is_refused(entra: Directory) -> None:
    token = entra.scim.token
    bare = httpx.Client(base_url=entra.base, trust_env=False, timeout=60)
    with bare:
        for query in ({"access_token": token}, {"token": token}, {"Authorization": f"Bearer {token}"}):
            assert scim_error(bare.get(USERS, params=query))[0] == 401
        for headers in (
            [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")],
            [("Authorization", f"Basic {token}")],
            [("Authorization", f"Bearer  {token}x")],
            [("Authorization", token)],
            [("Cookie", f"Authorization=Bearer {token}")],
            [("X-Authorization", f"Bearer {token}")],
            [("X-Forwarded-Authorization", f"Bearer {token}")],
        ):
            answer = bare.get(USERS, headers=headers)
            assert scim_error(answer)[0] == 401, headers
            assert token not in answer.text


def test_provisioning_token_ends_with_its_expiry_project_or_record(world: World, entra: Directory) -> None:
    made = world.admin.post("/management/v1/project", {"project-name": unique("gone")})
    assert made.status_code == 201, made.text
    project = made.json()["project-id"]
    mine, other = (Person(name, entra.scim.id, issued(entra.gateway, "entra", project), entra.base) for name in "ab")
    assert mine.get(GROUPS).status_code == other.get(GROUPS).status_code == 200
    id, secret = mine.token.split("_", 2)[1:]
    forged = (
        mine.token[:-1],
        mine.token + "A",
        mine.token.upper(),
        f"lgscim_{id}_{'A' * 43}",
        f"lgscim_{other.token.split('_', 2)[1]}_{secret}",
        f"lgscim_{id.upper()}_{secret}",
        f"lgscim_{'0' * 32}_{secret}",
        f"lgscim_{id}_{secret}\u00e9",
        "lgscim_",
    )
    for token in forged:
        headers = {b"Authorization": f"Bearer {token}".encode()}
        assert scim_error(httpx.get(f"{entra.base}{USERS}", headers=headers, trust_env=False, timeout=60))[0] == 401, (
            token
        )
    world.sql("update scim_tokens set expires_at = clock_timestamp() where id = $1::uuid", id)
    assert scim_error(mine.get(USERS))[0] == 401, "an expired token must be refused"
    assert lakegate(entra.gateway, "secrets", "scim-token", "revoke", id).returncode == 1, (
        "revoking an expired token must fail"
    )
    assert world.admin.delete(f"/management/v1/project/{project}").status_code == 204
    assert scim_error(other.get(USERS))[0] == 401, "a token of a deleted project must be refused"


def test_engine_acting_for_a_provisioner_cannot_provision(world: World, entra: Directory) -> None:
    """An engine acts for users in a warehouse; the provisioning of users belongs to no warehouse."""
    engine, clerk = entra.sign_in(unique("engine")), entra.sign_in(unique("clerk"))
    for person in (engine, clerk):
        assert person.post("/management/v1/user", {}).status_code in (200, 201)
    world.grant("provisioner", clerk, "server", "")
    world.grant("delegate", engine, "warehouse", world.warehouse)
    try:
        assert clerk.get(USERS).status_code == 200
        answer = send(world, engine.token, base=entra.base, subject_token=clerk.token)
        assert answer.status_code == 200, answer.text
        acting = Person("acting", clerk.id, answer.json()["access_token"], entra.base)
        world.quiet()
        before = world.rows()
        for method, path in (("GET", USERS), ("POST", USERS), ("DELETE", f"{GROUPS}/{UNUSED_UUID}")):
            body = {"json": {"userName": "x", "externalId": "x"}} if method == "POST" else {}
            assert scim_error(acting.send(method, path, **body))[0] == 403, (method, path)
        assert world.rows() == before
    finally:
        world.revoke("provisioner", clerk, "server", "")
        world.revoke("delegate", engine, "warehouse", world.warehouse)


def test_scim_without_the_right_reveals_no_users(entra: Directory) -> None:
    user, group = entra.user(), entra.group()
    missing_user = entra.sign_in(unique("nobody"))
    for there, absent in (
        (f"{USERS}/{user['id']}", f"{USERS}/{UNUSED_UUID}"),
        (f"{GROUPS}/{group['id']}", f"{GROUPS}/{UNUSED_UUID}"),
        (f'{USERS}?filter=externalId eq "{user["externalId"]}"', f'{USERS}?filter=externalId eq "{unique("x")}"'),
    ):
        answers = [missing_user.get(path) for path in (there, absent)]
        known, unknown = (re.split(r" \(error id|\?denial=", each.json()["detail"])[0] for each in answers)
        assert [scim_error(each)[0] for each in answers] == [403, 403] and known == unknown
    for body in ({"userName": user["userName"], "externalId": unique("x")}, {"userName": unique("x")}):
        assert scim_error(missing_user.post(USERS, body)) == (403, "")


# ---- resources of other owners --------------------------------------------------------------------------------------


def test_directory_of_one_project_manages_no_group_of_another(world: World, entra: Directory) -> None:
    made = world.admin.post("/management/v1/project", {"project-name": unique("other")})
    project = made.json()["project-id"]
    there = Person("there", entra.scim.id, issued(entra.gateway, "entra", project), entra.base)
    user = entra.user()
    body = {"schemas": [CORE_GROUP], "displayName": unique("Theirs"), "members": [{"value": user["id"]}]}
    group = there.post(GROUPS, body).json()
    path = f"{GROUPS}/{group['id']}"
    world.quiet()
    before = world.rows()
    patch = {"schemas": [PATCH_OP], "Operations": [{"op": "remove", "path": "members"}]}
    for more in ({}, {"headers": {"x-project-id": project}}, {"params": {"projectId": project}}):
        for method, sent in (("GET", None), ("DELETE", None), ("PATCH", patch), ("PUT", body)):
            answer = entra.scim.send(method, path, json=sent, **more) if sent else entra.scim.send(method, path, **more)
            assert scim_error(answer)[0] == 404, (method, more)
        listed = entra.scim.get(GROUPS, **more)
        assert listed.status_code == 404 or group["id"] not in listed.text
    assert world.rows() == before
    assert there.delete(path).status_code == 204
    assert world.admin.delete(f"/management/v1/project/{project}").status_code == 204


def test_unmanaged_roles_are_neither_groups_nor_members(world: World, entra: Directory) -> None:
    """This includes a role with the directory's provider and source id, which stands for a group in tokens."""
    source = unique("src")
    manual = world.admin.post("/management/v1/role", {"name": unique("hand")}).json()
    by_source = world.admin.post(
        "/management/v1/role", {"name": unique("source"), "provider-id": "entra", "source-id": source}
    ).json()
    user, group, inner = entra.user(), entra.group(), entra.group()
    world.quiet()
    before = world.rows()
    patch = {"schemas": [PATCH_OP], "Operations": [{"op": "add", "path": "members", "value": [{"value": user["id"]}]}]}
    for role in (manual, by_source):
        path = f"{GROUPS}/{role['id']}"
        for method, sent in (("GET", None), ("PATCH", patch), ("PUT", {"displayName": "x"}), ("DELETE", None)):
            answer = entra.scim.send(method, path, json=sent) if sent else entra.scim.send(method, path)
            assert scim_error(answer)[0] == 404, (method, role)
        assert role["id"] not in entra.scim.get(f"{GROUPS}?count=200&excludedAttributes=members").text
    for taken in ({"externalId": source}, {"displayName": manual["name"]}, {"displayName": source}):
        requested = entra.scim.post(GROUPS, {"displayName": unique("n")} | taken)
        assert scim_error(requested) == (409, "uniqueness"), taken
    taking = entra.patch(group, {"op": "replace", "path": "externalId", "value": source}, expect=409)
    assert scim_error(taking) == (409, "uniqueness")
    for value in (
        *(manual["id"], inner["id"], group["id"], "*", "user:*", f"role:{manual['id']}#assignee", world.admin.id),
        *(user["externalId"], f"entra~{user['externalId']}", f"user:{user['id']}", ""),
    ):
        add = entra.patch(group, {"op": "add", "path": "members", "value": [{"value": value}]}, expect=400)
        assert scim_error(add) == (400, "invalidValue"), value
        choosing = f"members[value eq {json.dumps(value)}]"
        entra.patch(group, {"op": "remove", "path": choosing})
    nested = {"op": "add", "path": "members", "value": [{"value": inner["id"], "type": "group", "$ref": "x"}]}
    assert scim_error(entra.patch(group, nested, expect=400)) == (400, "invalidValue")
    after = world.rows()
    assert {name for name in after if after[name] != before[name]} <= {"scim_groups"}, (
        "only the group's version may change"
    )
    assert not [user for user, relation in world.tuples(f"role:{group['id']}") if relation != "project"]


def test_active_user_cannot_be_renamed_to_another_user(
    world: World, entra: Directory, okta: Directory, table: Table
) -> None:
    victim = entra.sign_in(unique("victim"))
    assert victim.post("/management/v1/user", {}).status_code in (200, 201)
    granted(world, victim, table)
    subject = victim.id.partition("~")[2]
    for directory, attribute in ((entra, "externalId"), (okta, "userName")):
        user = directory.user(unique("mallory"))
        requested = directory.patch(user, {"op": "replace", "path": attribute, "value": subject}, expect=400)
        assert scim_error(requested) == (400, "mutability")
        assert (
            f"{attribute} identifies the user on this server and must remain '{user[attribute]}'"
            in requested.json()["detail"]
        )
        assert scim_error(put(directory, user, **{attribute: subject})) == (400, "mutability")
        assert directory.scim.get(f"{USERS}/{user['id']}").json()[attribute] == user[attribute]
    mallory = entra.user()
    entra.patch(mallory, {"op": "replace", "value": {"active": False, "externalId": subject}})
    assert victim.get(table.path).status_code == 200, "the user that has the name must keep its rights"
    for back in (
        {"op": "replace", "path": "active", "value": True},
        {"op": "replace", "value": {"active": "True", "externalId": subject}},
    ):
        assert scim_error(entra.patch(mallory, back, expect=400)) == (400, "mutability")
    assert scim_error(put(entra, mallory, externalId=subject, active=True)) == (400, "mutability")
    current = entra.scim.get(f"{USERS}/{mallory['id']}").json()
    assert (current["active"], current["externalId"]) == (False, subject)
    there = entra.user()
    onto = entra.patch(
        mallory, {"op": "replace", "value": {"active": False, "externalId": there["externalId"]}}, expect=409
    )
    assert scim_error(onto) == (409, "uniqueness")


def test_deactivation_with_a_changed_name_is_applied(world: World, okta: Directory, table: Table) -> None:
    """Entra ID sends both for a deleted user: if the gateway refused the new name, the user would stay active."""
    for way in ("PATCH", "PUT"):
        user = okta.user()
        person = okta.sign_in(user["userName"])
        granted(world, person, table)
        assert person.get(table.path).status_code == 200
        name = f"0f0f{user['userName']}"
        if way == "PUT":
            answer = put(okta, user, userName=name, active=False)
        else:
            change = {"op": "Replace", "path": "userName", "value": name}
            answer = okta.patch(user, change, {"op": "Replace", "path": "active", "value": "False"})
        assert (answer.status_code, answer.json()["active"], answer.json()["userName"]) == (200, False, name)
        assert error_triple(person.get(table.path))[:2] == (403, "UserDeactivated")
        stranger = okta.sign_in(name)
        assert error_triple(stranger.get(table.path))[0] == 404, "the new name must not have the rights of the old one"
        taken = okta.scim.post(USERS, {"userName": user["userName"]})
        assert scim_error(taken) == (409, "uniqueness"), "the old name must stay reserved while its grants exist"
        silent = okta.scim.send("PUT", f"{USERS}/{user['id']}", json={"userName": user["userName"]})
        assert (silent.status_code, silent.json()["active"]) == (200, False), (
            "a change without the member active must not reactivate the user"
        )
        assert person.get(table.path).status_code == 403
        assert put(okta, user, active=True).json()["active"] is True
        assert person.get(table.path).status_code == 200


def test_user_name_with_special_syntax_gives_no_rights(
    world: World, entra: Directory, okta: Directory, table: Table
) -> None:
    names = ["user:*", "role:x#assignee", "oidc~a#b", world.admin.id, "lakegate~scim-okta", "system", "*", "%2A"]
    before = {
        kind: world.tuples(f"{kind}:{id}") for kind, id in (("table", table.uuid), ("warehouse", world.warehouse))
    }
    for directory, attribute in ((entra, "externalId"), (okta, "userName")):
        for name in names:
            # Another test on the shared stack may have left one.
            for left in directory.scim.get(USERS, params={"filter": f'{attribute} eq "{name}"'}).json()["Resources"]:
                assert directory.scim.delete(f"{USERS}/{left['id']}").status_code == 204
            body = {"userName": unique("u"), "externalId": unique("e")} | {attribute: name}
            made = directory.scim.post(USERS, body)
            assert made.status_code == 201, made.text
            person = directory.sign_in(name)
            assert error_triple(person.get(table.path))[0] == 404, name
            assert person.get("/management/v1/permissions/server/assignments").status_code == 403
            [row] = world.sql("select user_id from scim_users where id = $1::uuid", made.json()["id"])
            assert row["user_id"] == f"{directory.id}~{name}"
            assert directory.scim.delete(f"{USERS}/{made.json()['id']}").status_code == 204
    assert world.admin.get("/management/v1/whoami").status_code == 200
    after = {kind: world.tuples(f"{kind}:{id}") for kind, id in (("table", table.uuid), ("warehouse", world.warehouse))}
    assert after == before


def test_last_administrator_cannot_be_removed_by_a_directory(world: World, attacked: Attacked) -> None:
    own, subject = attacked.own, world.admin.id.partition("~")[2]
    body = {"userName": unique("admin"), "externalId": subject}
    assert own.scim.post(USERS, body | {"active": False}).status_code == 409
    made = own.scim.post(USERS, body)
    assert made.status_code == 201, made.text
    user = made.json()
    try:
        off = {"op": "replace", "path": "active", "value": False}
        away = {"op": "replace", "value": {"active": False, "externalId": unique("away")}}
        for answer in (
            own.patch(user, off, expect=409),
            own.patch(user, away, expect=409),
            put(own, user, active=False),
            own.scim.delete(f"{USERS}/{user['id']}"),
        ):
            assert answer.status_code == 409 and "`admin` or `operator`" in answer.json()["detail"], answer.text
        assert own.scim.get(f"{USERS}/{user['id']}").json()["active"] is True
        assert world.admin.get("/management/v1/permissions/server/assignments").status_code == 200
    finally:
        world.sql("delete from scim_users where user_id = $1", world.admin.id)


# ---- deactivated and deleted users ----------------------------------------------------------------------------------


def test_deactivated_user_is_refused_with_every_token_kind(world: World, entra: Directory, table: Table) -> None:
    oid = unique("oid")
    user, group = entra.user(oid), entra.group()
    entra.give("select", group, "table", table.uuid)
    other = entra.group(user)
    entra.give("select", other, "table", table.uuid)
    engine = entra.sign_in(unique("engine"))
    assert engine.post("/management/v1/user", {}).status_code in (200, 201)
    world.grant("delegate", engine, "warehouse", world.warehouse)
    plain, grouped = entra.sign_in(oid), entra.sign_in(oid, groups=[group["externalId"]])
    granted(world, plain, table)

    def exchanged(person: Person) -> Person:
        answer = send(world, engine.token, base=entra.base, subject_token=person.token)
        assert answer.status_code == 200, answer.text
        return Person("exchanged", person.id, answer.json()["access_token"], entra.base)

    through = exchanged(plain)
    acting = {"headers": {"x-assume-role": other["id"]}}
    try:
        for person, more in ((plain, {}), (grouped, {}), (through, {}), (plain, acting), (grouped, acting)):
            assert person.get(table.path, **more).status_code == 200, (person, more)
        entra.patch(user, {"op": "replace", "path": "active", "value": False})
        for person, more in (
            (plain, {}),
            (grouped, {}),
            (entra.sign_in(oid, jti=unique("new")), {}),
            (through, {}),
            (plain, acting),
            (grouped, acting),
            (through, acting),
        ):
            for path in (table.path, f"{table.path}/credentials", "/management/v1/project-list"):
                assert person.get(path, **more).status_code in (403, 404), (person, path, more)
            assert person.post("/management/v1/user", {}).status_code == 403
        late = send(world, engine.token, base=entra.base, subject_token=plain.token)
        if late.status_code == 200:
            token = late.json()["access_token"]
            assert Person("late", plain.id, token, entra.base).get(table.path).status_code == 403
        entra.patch(user, {"op": "replace", "path": "active", "value": True})
        assert plain.get(table.path).status_code == through.get(table.path).status_code == 200
        record = entra.user(engine.id.partition("~")[2])
        entra.patch(record, {"op": "replace", "path": "active", "value": False})
        assert through.get(table.path).status_code == 403, "a deactivated engine must not act for a user"
        assert engine.get(table.path).status_code == 403
        assert plain.get(table.path).status_code == 200
        entra.patch(record, {"op": "replace", "path": "active", "value": True})
    finally:
        world.revoke("delegate", engine, "warehouse", world.warehouse)


def test_deactivated_provisioner_loses_all_rights(world: World, entra: Directory) -> None:
    oid = unique("app")
    user, application = entra.user(oid), entra.sign_in(oid)
    world.grant("provisioner", application, "server", "")
    assert application.get(USERS).status_code == 200
    back = {"schemas": [PATCH_OP], "Operations": [{"op": "replace", "path": "active", "value": True}]}
    entra.patch(user, {"op": "replace", "path": "active", "value": False})
    assert scim_error(application.send("PATCH", f"{USERS}/{user['id']}", json=back))[0] == 403
    assert scim_error(application.get(USERS))[0] == 403
    assert entra.scim.delete(f"{USERS}/{user['id']}").status_code == 204
    assert world.sql("select 1 from grants where principal_id = $1", application.id) == []


def test_retried_deletion_waits_for_the_unconfirmed_first(world: World, attacked: Attacked, table: Table) -> None:
    """404 would confirm the deletion, but OpenFGA still has tuples of the deleted user or group."""
    entra, openfga = attacked.entra, attacked.shaky.parts["openfga"]
    user = entra.user()
    person = entra.sign_in(user["externalId"])
    granted(world, person, table)
    group = entra.group(entra.user())
    entra.give("select", group, "table", table.uuid)
    for path, holder in (
        (f"{USERS}/{user['id']}", f"user:{person.id}"),
        (f"{GROUPS}/{group['id']}", f"role:{group['id']}#assignee"),
    ):
        assert (holder, "select") in world.tuples(f"table:{table.uuid}")
        assert entra.scim.get(path).status_code == 200
        openfga.become(GONE)
        try:
            first = entra.scim.delete(path)
            # Keep the other gateway of this stack, which reaches OpenFGA, from completing the deletion.
            world.sql("update outbox set not_before = clock_timestamp() + interval '1 hour'")
            assert scim_error(first)[0] == 503, first.text
            assert (holder, "select") in world.tuples(f"table:{table.uuid}")
            assert scim_error(entra.scim.delete(path))[0] == 503, "the deletion must not be reported as done"
        finally:
            attacked.shaky.well()
        deadline = time.monotonic() + 60
        while (again := entra.scim.delete(path)).status_code == 503:
            assert time.monotonic() < deadline, again.text
            time.sleep(0.3)
        assert scim_error(again)[0] == 404
        assert (holder, "select") not in world.tuples(f"table:{table.uuid}"), (
            "the repeated request must complete the deletion"
        )
        world.sql("update outbox set not_before = clock_timestamp()")
