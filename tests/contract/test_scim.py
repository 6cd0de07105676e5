# SPDX-License-Identifier: Apache-2.0
"""SCIM 2.0 with the messages of Entra ID and Okta: users, groups, memberships and deactivation."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest

from tests.support.rows.relations import soon
from tests.support.servers.toxic import second_gateway
from tests.support.stack.directories import (
    CORE_GROUP,
    CORE_USER,
    GROUPS,
    PATCH_OP,
    USERS,
    Directory,
    issued,
    lakegate,
    provisioning,
    scim_error,
    settings_of,
)
from tests.support.stack.providers import AUDIENCE, stub_provider
from tests.support.stack.world import Person, Table, World, error_triple, unique

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def directories(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Directory]]:
    """Run a gateway with two providers that provision users by SCIM; yield their directories."""
    with stub_provider() as provider:
        log = tmp_path_factory.mktemp("scim") / "gateway.log"
        with second_gateway(world.ready, log, **settings_of(provider)) as (base, process):
            with provisioning(world, base, process, provider, entra=AUDIENCE, okta="okta") as found:
                yield found
            text = log.read_text()
            assert not any(each.scim.token in text or each.scim.token[40:] in text for each in found.values())


@pytest.fixture
def entra(directories: dict[str, Directory]) -> Directory:
    return directories["entra"]


@pytest.fixture
def okta(directories: dict[str, Directory]) -> Directory:
    return directories["okta"]


def reads(person: Person, table: Table) -> int:
    """Return the status of a load of the table."""
    return person.get(table.path).status_code


# ---- life cycle of a user and a group, as Entra ID sends it ---------------------------------------------------------


def test_entra_user_lifecycle(world: World, entra: Directory, table: Table) -> None:
    oid = unique("oid")
    requested = entra.scim.get(f'{USERS}?filter=externalId eq "{oid}"')
    assert (requested.status_code, requested.json()["totalResults"]) == (200, 0)
    assert requested.headers["content-type"].startswith("application/scim+json")
    body = {
        "schemas": [CORE_USER, "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
        "externalId": oid,
        "userName": f"{oid}@Example.com",
        "active": True,
        "displayName": "Ann Other",
        "emails": [{"primary": True, "type": "work", "value": f"{oid}@example.com"}],
        "meta": {"resourceType": "User"},
        "name": {"formatted": "Ann Other", "familyName": "Other", "givenName": "Ann"},
        "roles": [],
        "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "Lake"},
    }
    made = entra.scim.post(USERS, body)
    assert made.status_code == 201, made.text
    user = made.json()
    assert made.headers["location"].endswith(user["id"]) and made.headers["etag"] == user["meta"]["version"]
    record = world.admin.get(f"/management/v1/user/entra~{oid}").json()
    assert (record["name"], record["email"]) == ("Ann Other", f"{oid}@example.com")
    found = entra.scim.get(f'{USERS}?filter=userName eq "{oid.upper()}@example.COM"').json()
    assert [each["id"] for each in found["Resources"]] == [user["id"]], "the userName filter must ignore letter case"
    entra.patch(
        user,
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "new@example.com"},
        {"op": "Add", "path": "name.familyName", "value": "Else"},
        {
            "op": "Replace",
            "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department",
            "value": "x",
        },
    )
    changed = entra.scim.get(f"{USERS}/{user['id']}").json()
    assert changed["emails"][0]["value"] == "new@example.com" and changed["name"]["familyName"] == "Else"


def test_entra_group_lifecycle(world: World, entra: Directory, table: Table) -> None:
    oid = unique("oid")
    user = entra.user(oid)
    group = entra.scim.post(GROUPS, {"schemas": [CORE_GROUP], "displayName": unique("Eng"), "externalId": unique("g")})
    assert group.status_code == 201, group.text
    made_group = group.json()
    entra.give("select", made_group, "table", table.uuid)
    ann = entra.sign_in(oid)
    assert reads(ann, table) == 404
    add = {"op": "Add", "path": "members", "value": [{"$ref": None, "value": user["id"]}]}
    entra.patch(made_group, add)
    assert reads(ann, table) == 200
    member = entra.scim.get(f'{GROUPS}?filter=id eq "{made_group["id"]}" and members[value eq "{user["id"]}"]').json()
    assert member["totalResults"] == 1
    brief = entra.scim.get(f"{GROUPS}/{made_group['id']}?excludedAttributes=members").json()
    assert "members" not in brief and brief["displayName"] == made_group["displayName"]
    whole = entra.scim.get(f"{GROUPS}/{made_group['id']}").json()
    assert [each["value"] for each in whole["members"]] == [user["id"]]
    roles = world.admin.get(f"/management/v1/user/entra~{oid}/roles").json()["roles"]
    assert [each["id"] for each in roles] == [made_group["id"]]
    transitive = world.admin.get(f"/management/v1/user/entra~{oid}/roles/transitive").json()["roles"]
    assert [each["id"] for each in transitive] == [made_group["id"]]

    entra.patch(made_group, {"op": "Remove", "path": "members", "value": [{"$ref": None, "value": user["id"]}]})
    assert reads(ann, table) == 404, "a former group member must be refused by the next request"
    entra.patch(made_group, add)
    assert reads(ann, table) == 200
    off = entra.patch(user, {"op": "Replace", "path": "active", "value": "False"})
    assert off.json()["active"] is False
    assert error_triple(ann.get(table.path))[:2] == (403, "UserDeactivated")
    entra.patch(user, {"op": "Replace", "path": "active", "value": "True"})
    assert reads(ann, table) == 200, "a reactivated user must have its rights again"

    assert entra.scim.delete(f"{USERS}/{user['id']}").status_code == 204
    assert scim_error(entra.scim.get(f"{USERS}/{user['id']}"))[0] == 404
    assert reads(ann, table) == 404
    assert world.sql("select 1 from grants where principal_id = $1", f"entra~{oid}") == []
    assert entra.scim.delete(f"{GROUPS}/{made_group['id']}").status_code == 204
    assert world.tuples(f"role:{made_group['id']}") == set()


def test_okta_user_and_group_lifecycle(world: World, okta: Directory, table: Table) -> None:
    login = f"{unique('ben')}@example.com"
    assert okta.scim.get(f'{USERS}?filter=userName eq "{login}"&startIndex=1&count=100').json()["totalResults"] == 0
    body = {
        "schemas": [CORE_USER],
        "userName": login,
        "name": {"givenName": "Ben", "familyName": "Case"},
        "emails": [{"primary": True, "value": login, "type": "work"}],
        "displayName": "Ben Case",
        "locale": "en-US",
        "externalId": unique("00u"),
        "groups": [],
        "password": "not-kept",
        "active": True,
    }
    user = okta.scim.post(USERS, body).json()
    assert "password" not in user and user["userName"] == login
    ben = okta.sign_in(login)
    pushed = okta.scim.post(
        GROUPS,
        {"schemas": [CORE_GROUP], "displayName": unique("Push"), "members": [{"value": user["id"], "display": login}]},
    )
    assert pushed.status_code == 201, pushed.text
    group = pushed.json()
    role = world.admin.get(f"/management/v1/role/{group['id']}").json()
    assert (role["provider-id"], role["source-id"]) == ("okta", group["displayName"])
    okta.give("select", group, "table", table.uuid)
    assert reads(ben, table) == 200
    name = unique("Renamed")
    okta.patch(group, {"op": "replace", "value": {"id": group["id"], "displayName": name}})
    role = world.admin.get(f"/management/v1/role/{group['id']}").json()
    assert (role["name"], role["source-id"]) == (name, name), "the source id must follow the displayName"
    okta.patch(group, {"op": "remove", "path": f'members[value eq "{user["id"]}"]'})
    assert reads(ben, table) == 404
    okta.patch(group, {"op": "replace", "path": "members", "value": [{"value": user["id"], "display": login}]})
    assert reads(ben, table) == 200
    put = okta.scim.send("PUT", f"{USERS}/{user['id']}", json=body | {"active": False, "displayName": "Ben"})
    assert (put.status_code, put.json()["active"], put.json()["displayName"]) == (200, False, "Ben")
    assert error_triple(ben.get(table.path))[:2] == (403, "UserDeactivated")
    okta.patch(user, {"op": "replace", "value": {"active": True}})
    assert reads(ben, table) == 200
    okta.patch(user, {"op": "replace", "value": {"active": False}})
    assert reads(ben, table) == 403
    assert (
        okta.scim.send("PUT", f"{GROUPS}/{group['id']}", json={"displayName": name, "members": []}).status_code == 200
    )
    assert "members" not in okta.scim.get(f"{GROUPS}/{group['id']}").json()


# ---- inactive users -------------------------------------------------------------------------------------------------


def test_inactive_user_has_no_rights_in_any_check(world: World, entra: Directory, table: Table) -> None:
    oid = unique("oid")
    user = entra.user(oid)
    person = entra.sign_in(oid)
    given = {"writes": [{"type": "select", "user": person.id}]}
    assert world.admin.post(world.grants_path("table", table.uuid), given).status_code == 204
    about = {"table": {"warehouse-id": world.warehouse, "table-id": table.uuid, "action": "read_data"}}
    check = {"checks": [{"operation": about, "identity": {"user": person.id}}]}

    def allowed() -> bool:
        answer = world.admin.post("/management/v1/action/batch-check", check)
        assert answer.status_code == 200, answer.text
        return bool(answer.json()["results"][0]["allowed"])

    assert allowed() and reads(person, table) == 200
    assert (f"user:{person.id}", "select") in world.tuples(f"table:{table.uuid}")
    entra.patch(user, {"op": "replace", "path": "active", "value": False})
    assert not allowed(), "checks by an engine must deny an inactive user"
    assert (f"user:{person.id}", "select") not in world.tuples(f"table:{table.uuid}")
    for path in (
        table.path,
        "/management/v1/whoami",
        f"/catalog/v1/config?warehouse={world.ready.warehouse}",
        "/management/v1/project-list",
    ):
        assert error_triple(person.get(path))[:2] == (403, "UserDeactivated"), path
    held = world.sql("select 1 from grants where principal_id = $1", person.id)
    assert len(held) == 1, "the grant of an inactive user must be kept without effect"
    records = "select convert_from(record, 'UTF8') as text from audit_log where convert_from(record, 'UTF8') like $1"
    # The audit records of refusals are written within 200 ms of the response.
    soon(lambda: any("UserDeactivated" in row["text"] for row in world.sql(records, f"%{person.id}%")))
    late = {"writes": [{"type": "describe", "user": person.id}]}
    assert (
        world.admin.post(world.grants_path("namespace", world.namespace_id(table.namespace)), late).status_code == 204
    )
    assert not allowed()
    entra.patch(user, {"op": "replace", "path": "active", "value": True})
    assert allowed() and reads(person, table) == 200


def test_token_groups_give_no_access_to_an_inactive_user(world: World, entra: Directory, table: Table) -> None:
    group = entra.group()
    entra.give("select", group, "table", table.uuid)
    oid = unique("oid")
    user = entra.user(oid)
    person = entra.sign_in(oid, groups=[group["externalId"]])
    assert reads(person, table) == 200, "a token group and a directory group of one name are one role"
    entra.patch(user, {"op": "replace", "path": "active", "value": False})
    assert reads(person, table) == 403


def test_directory_user_record_cannot_be_deleted_manually(world: World, entra: Directory, table: Table) -> None:
    """The deletion would lose the directory's data, and later messages of the directory would find no user."""
    oid = unique("oid")
    user = entra.user(oid)
    group = entra.group()
    entra.give("select", group, "table", table.uuid)
    person = entra.sign_in(oid, groups=[group["externalId"]])
    record = f"/management/v1/user/{person.id}"
    assert error_triple(person.delete(record))[:2] == (409, "UserSynchronized")
    entra.patch(user, {"op": "replace", "path": "active", "value": False})
    assert error_triple(world.admin.delete(record))[:2] == (409, "UserSynchronized")
    assert error_triple(person.delete(record))[:2] == (403, "UserDeactivated")
    assert reads(person, table) == 403
    assert entra.scim.delete(f"{USERS}/{user['id']}").status_code == 204, "the directory can delete the user it manages"
    assert world.admin.get(record).status_code == 404


# ---- refusals change nothing -----------------------------------------------------------------------------------------


def test_a_patch_that_is_half_wrong_changes_nothing(world: World, entra: Directory) -> None:
    inside, outside = entra.user(), entra.user()
    group = entra.group(inside)
    world.quiet()
    before = world.rows()
    add = {"op": "add", "path": "members", "value": [{"value": outside["id"]}]}
    stranger = {"op": "add", "path": "members", "value": [{"value": "0199d0c4-0000-7000-8000-00000000dead"}]}
    refused: tuple[tuple[dict[str, Any], tuple[int, str]], ...] = (
        (stranger, (400, "invalidValue")),
        ({"op": "remove"}, (400, "noTarget")),
        ({"op": "move", "path": "members"}, (400, "invalidSyntax")),
        ({"op": "add", "path": "members[", "value": []}, (400, "invalidPath")),
        ({"op": "replace", "path": "displayName", "value": ""}, (400, "invalidValue")),
        ({"op": "add", "path": "members", "value": [{"value": inside["id"], "type": "Group"}]}, (400, "invalidValue")),
    )
    for wrong, expected in refused:
        assert scim_error(entra.patch(group, add, wrong, expect=expected[0])) == expected
    answer = entra.patch(inside, {"op": "replace", "path": "active", "value": "maybe"}, expect=400)
    assert scim_error(answer) == (400, "invalidValue")
    assert world.rows() == before


def test_user_names_are_unique_in_any_letter_case_and_subjects_are_fixed(
    world: World, entra: Directory, okta: Directory
) -> None:
    user = entra.user()
    for body in (
        {"userName": user["userName"].upper(), "externalId": unique("x")},
        {"userName": unique("y"), "externalId": user["externalId"]},
    ):
        assert scim_error(entra.scim.post(USERS, body)) == (409, "uniqueness")
    moved = entra.patch(user, {"op": "replace", "path": "externalId", "value": unique("z")}, expect=400)
    assert scim_error(moved) == (400, "mutability")
    renamed = entra.patch(user, {"op": "replace", "path": "userName", "value": unique("new")})
    assert renamed.status_code == 200, "userName may change if externalId identifies the user"
    theirs = okta.scim.post(USERS, {"userName": user["userName"]})
    assert theirs.status_code == 201, "user names are unique per provider only"
    assert theirs.json()["active"] is True, "a user without the member active must be active"
    group = entra.group()
    assert scim_error(entra.scim.post(GROUPS, {"displayName": group["displayName"].upper()})) == (409, "uniqueness")
    manual = world.admin.post("/management/v1/role", {"name": unique("by hand")}).json()
    clash = entra.patch(group, {"op": "replace", "value": {"displayName": manual["name"]}}, expect=409)
    assert scim_error(clash) == (409, "uniqueness")


def test_directory_manages_its_own_users_and_groups_only(world: World, entra: Directory, okta: Directory) -> None:
    user, group = okta.user(), okta.group()
    assert scim_error(entra.scim.get(f"{USERS}/{user['id']}"))[0] == 404
    assert scim_error(entra.scim.delete(f"{USERS}/{user['id']}"))[0] == 404
    assert scim_error(entra.scim.delete(f"{GROUPS}/{group['id']}"))[0] == 404
    mine = entra.group()
    join = {"op": "add", "path": "members", "value": [{"value": user["id"]}]}
    assert scim_error(entra.patch(mine, join, expect=400)) == (400, "invalidValue")
    manual = world.admin.post("/management/v1/role", {"name": unique("by hand")}).json()
    assert scim_error(entra.scim.get(f"{GROUPS}/{manual['id']}"))[0] == 404
    assert scim_error(entra.scim.delete(f"{GROUPS}/{manual['id']}"))[0] == 404
    listed = {each["id"] for each in entra.scim.get(f"{USERS}?count=200").json()["Resources"]}
    assert user["id"] not in listed


def test_a_directory_cannot_make_itself_or_its_users_administrators(world: World, entra: Directory) -> None:
    user, group = entra.user(), entra.group()
    entra.give("admin", group, "server", "")
    try:
        join = {"op": "add", "path": "members", "value": [{"value": user["id"]}]}
        assert scim_error(entra.patch(group, join, expect=403))[0] == 403
    finally:
        gone = {"deletes": [{"type": "admin", "role": group["id"]}]}
        assert world.admin.post(world.grants_path("server", ""), gone).status_code == 204
    entra.patch(group, join)
    self_made = {"writes": [{"type": "admin", "user": entra.scim.id}]}
    assert entra.scim.post(world.grants_path("server", ""), self_made).status_code == 401


def test_group_removal_waits_for_a_concurrent_server_admin_change(world: World, entra: Directory) -> None:
    """A concurrent grant of server_admin to the group could make the removed member the last administrator."""
    user = entra.user()
    group = entra.group(user)
    leave = {"op": "Remove", "path": "members", "value": [{"value": user["id"]}]}
    lock = "hashtextextended('server offices', 7)"
    with ThreadPoolExecutor(1) as aside:
        world.sql(f"select pg_advisory_lock({lock})")
        try:
            leaving = aside.submit(entra.patch, group, leave)
            assert not wait([leaving], timeout=1).done
        finally:
            world.sql(f"select pg_advisory_unlock({lock})")
        assert leaving.result(20).status_code == 204
    assert entra.scim.get(f"{GROUPS}/{group['id']}").json().get("members", []) == []


def test_directory_roles_cannot_be_changed_manually(world: World, entra: Directory) -> None:
    user, group = entra.user(), entra.group()
    role = f"/management/v1/role/{group['id']}"
    assert error_triple(world.admin.post(role, {"name": unique("other")}))[:2] == (409, "RoleSynchronized")
    source = {"provider-id": "lakekeeper", "source-id": "x"}
    assert error_triple(world.admin.send("PUT", f"{role}/source-system", json=source))[:2] == (409, "RoleSynchronized")
    members = {"members": [{"type": "user", "id": f"entra~{user['externalId']}"}]}
    assert error_triple(world.admin.post(f"{role}/members", members))[:2] == (400, "RoleNotManuallyAssignable")
    described = world.admin.post(role, {"name": group["displayName"], "description": "who builds"})
    assert described.status_code == 200, "the description of a directory's role can be changed"
    assert world.admin.delete(role).status_code == 204
    assert scim_error(entra.scim.get(f"{GROUPS}/{group['id']}"))[0] == 404


def test_names_resembling_ids_or_syntax_are_plain_names(world: World, entra: Directory, table: Table) -> None:
    for subject in ("*", "role:x#assignee", "user:*", f"%2A{unique('')}"):
        entra.user(subject, userName=unique("odd"))
        assert reads(entra.sign_in(subject), table) == 404
        group = entra.group(displayName=f"{subject} {unique('')}", externalId=f"{subject}{unique('')}")
        assert entra.scim.delete(f"{GROUPS}/{group['id']}").status_code == 204
    for body in (
        {"userName": "a\u0000b", "externalId": unique("x")},
        {"userName": "a\u200bb", "externalId": unique("x")},
        {"userName": " blank", "externalId": unique("x")},
        {"userName": unique("u"), "externalId": "x" * 128},
        {"userName": unique("u"), "externalId": "ä" * 120},
        {"userName": unique("u")},
        {"userName": ""},
    ):
        assert scim_error(entra.scim.post(USERS, body)) == (400, "invalidValue"), body


# ---- authorization --------------------------------------------------------------------------------------------------


def test_scim_without_the_privilege_is_refused(world: World, entra: Directory, directories: Any) -> None:
    plain = Directory("plain", world, entra.base, entra.gateway, entra.provider, "plain", entra.scim)
    absent = entra.sign_in(unique("oid"))
    world.quiet()
    before = world.rows()
    for person in (absent, Person("none", "", "", entra.base)):
        expected = 401 if person.id == "" else 403
        for method, path in (
            ("GET", "/scim/v2/ServiceProviderConfig"),
            ("GET", USERS),
            ("POST", USERS),
            ("GET", GROUPS),
            ("DELETE", f"{GROUPS}/0199d0c4-0000-7000-8000-00000000dead"),
        ):
            more = {"json": {"userName": "x", "externalId": "x"}} if method == "POST" else {}
            assert scim_error(person.send(method, path, **more))[0] == expected, (method, path)
    assert world.rows() == before
    other_user = plain.sign_in(unique("sub"))
    assert other_user.post("/management/v1/user", {}).status_code in (200, 201)
    world.grant("provisioner", other_user, "server", "")
    assert scim_error(other_user.get(USERS))[0] == 403, "a caller of a provider without SCIM must be refused"
    world.revoke("provisioner", other_user, "server", "")
    assert world.admin.get("/scim/v2/Users").status_code == 403, (
        "an administrator without the privilege must be refused"
    )


def test_provider_tokens_can_authenticate_scim(world: World, entra: Directory) -> None:
    application = entra.sign_in(unique("app"))
    assert application.post("/management/v1/user", {}).status_code in (200, 201)
    world.grant("provisioner", application, "server", "")
    body = {"userName": unique("u"), "externalId": unique("x")}
    made = application.post(USERS, body)
    assert made.status_code == 201, made.text
    assert entra.scim.get(f"{USERS}/{made.json()['id']}").status_code == 200, (
        "both kinds of credentials must manage the same directory"
    )
    for path in ("/management/v1/role", "/management/v1/user", "/management/v1/permissions/server/assignments"):
        assert application.get(path).status_code in (403, 404), (
            "the provisioning privilege must permit nothing outside of SCIM"
        )
    world.revoke("provisioner", application, "server", "")
    assert scim_error(application.get(USERS))[0] == 403


def test_provisioning_token_opens_only_scim_until_revoked(world: World, entra: Directory) -> None:
    for path in ("/catalog/v1/config", "/management/v1/whoami", f"{world.root}/namespaces"):
        assert error_triple(entra.scim.get(path))[0] == 401, path
    text = issued(entra.gateway, "entra", world.project)
    other = Person("other", entra.scim.id, text, entra.base)
    assert other.get(USERS).status_code == 200, "two provisioning tokens must be valid concurrently, for rotation"
    forged = Person("forged", "", text[:-4] + "AAAA", entra.base)
    assert scim_error(forged.get(USERS))[0] == 401
    assert scim_error(other.get(GROUPS, headers={"x-project-id": "elsewhere"}))[0] == 404
    id = text.split("_")[1]
    assert world.sql("select 1 from scim_tokens where encode(digest, 'escape') like $1", f"%{text[45:60]}%") == []
    listed = lakegate(entra.gateway, "secrets", "scim-token", "list")
    assert id[:8] in listed.stdout and text not in listed.stdout
    assert lakegate(entra.gateway, "secrets", "scim-token", "revoke", id).returncode == 0
    assert scim_error(other.get(USERS))[0] == 401
    assert entra.scim.get(USERS).status_code == 200
    unknown = lakegate(entra.gateway, "secrets", "scim-token", "issue", "--provider", "plain", "--project", "x")
    assert unknown.returncode == 1 and "SCIM_SUBJECT" in unknown.stderr
    recorded = world.sql(
        "select convert_from(record, 'UTF8') as text from audit_log "
        "where convert_from(record, 'UTF8') like '%issue_scim_token%'"
    )
    assert recorded and not any(text in row["text"] for row in recorded)


# ---- lists, versions, retries, limits -------------------------------------------------------------------------------


def test_scim_lists_are_paged_and_invalid_filters_refused(world: World, okta: Directory) -> None:
    made = [okta.user()["id"] for _ in range(3)]
    total = okta.scim.get(USERS + "?count=0").json()
    assert total["totalResults"] >= 3 and total["Resources"] == []
    seen: list[str] = []
    for start in range(1, total["totalResults"] + 1, 2):
        page = okta.scim.get(f"{USERS}?startIndex={start}&count=2").json()
        assert page["startIndex"] == start and page["itemsPerPage"] == len(page["Resources"])
        seen += [each["id"] for each in page["Resources"]]
    assert set(made) <= set(seen) and len(seen) == len(set(seen)) == total["totalResults"]
    for text in ('userName co "a"', "userName", 'userName eq "a" or id eq "b"', 'title eq "x"', "(", "x" * 3000):
        assert scim_error(okta.scim.get(USERS, params={"filter": text})) == (400, "invalidFilter"), text
    assert scim_error(okta.scim.get(USERS + "?startIndex=one")) == (400, "invalidValue")
    only = okta.scim.get(f"{USERS}/{made[0]}?attributes=userName").json()
    assert set(only) == {"schemas", "id", "userName"}


def test_resource_versions_prevent_lost_updates(entra: Directory) -> None:
    user = entra.user()
    path, patch = f"{USERS}/{user['id']}", {"Operations": [{"op": "replace", "path": "displayName", "value": "A"}]}
    first = entra.scim.send("PATCH", path, json=patch, headers={"If-Match": user["meta"]["version"]})
    assert first.status_code == 200
    second = entra.scim.send("PATCH", path, json=patch, headers={"If-Match": user["meta"]["version"]})
    assert second.status_code == 412
    again = entra.scim.send("PATCH", path, json=patch, headers={"If-Match": first.headers["etag"]})
    assert again.status_code == 200


def test_repeated_scim_request_has_one_effect(world: World, entra: Directory) -> None:
    key = {"Idempotency-Key": "8f0a9d0e-0000-4000-8000-0000000000c1"}
    body = {"userName": unique("twice"), "externalId": unique("twice")}
    first, second = entra.scim.post(USERS, body, headers=key), entra.scim.post(USERS, body, headers=key)
    assert (first.status_code, second.status_code) == (201, 201), second.text
    assert first.json()["id"] == second.json()["id"]


def test_oversized_scim_request_is_refused_before_processing(entra: Directory) -> None:
    group = entra.group()
    many = [{"value": "0199d0c4-0000-7000-8000-00000000dead"} for _ in range(5_001)]
    ids = [{"value": f"0199d0c4-0000-7000-8000-{number:012d}"} for number in range(5_001)]
    for members in (ids,):
        answer = entra.patch(group, {"op": "add", "path": "members", "value": members}, expect=413)
        assert scim_error(answer) == (413, "tooMany")
    assert scim_error(entra.scim.post(GROUPS, {"displayName": "x", "members": many})) == (413, "tooMany")
    operations = [{"op": "add", "path": "displayName", "value": "x"}] * 1_001
    assert scim_error(entra.patch(group, *operations, expect=413)) == (413, "tooMany")
    for raw in (b"[" * 100_000, b'{"a":' * 5_000, b"{" + b'"a":1,' * 70_000 + b'"b":2}', b"\xff", b"", b"null", b"[]"):
        answer = entra.scim.send("POST", USERS, content=raw)
        assert answer.status_code in (400, 413), answer.text
        scim_error(answer)


@pytest.mark.parametrize("size", [600, pytest.param(5000, marks=pytest.mark.long)])
def test_large_group_change_is_atomic(world: World, entra: Directory, table: Table, size: int) -> None:
    """The users are inserted as rows, because the test is about the group."""
    stem = unique("mass")
    world.sql(
        "insert into users (id, name, user_type, last_updated_with) "
        "select 'entra~' || $1 || n, 'x', 'human', 'scim' from generate_series(1, $2::int) n",
        stem,
        size,
    )
    world.sql(
        "insert into scim_users (id, user_id, provider_id, user_name, user_name_key, external_id, active, document) "
        "select gen_random_uuid(), 'entra~' || $1 || n, 'entra', $1 || n, lower($1 || n), $1 || n, true, '{}' "
        "from generate_series(1, $2::int) n",
        stem,
        size,
    )
    rows = world.sql("select id::text, external_id from scim_users where external_id like $1 || '%'", stem)
    try:
        group = entra.group(*[{"id": row["id"]} for row in rows])
        entra.give("select", group, "table", table.uuid)
        whole = entra.scim.get(f"{GROUPS}/{group['id']}").json()
        assert len(whole["members"]) == size
        last = entra.sign_in(rows[-1]["external_id"])
        half = [{"value": row["id"]} for row in rows[size // 2 :]]
        entra.patch(group, {"op": "Remove", "path": "members", "value": half})
        assert reads(last, table) == 404
        assert len(entra.scim.get(f"{GROUPS}/{group['id']}").json()["members"]) == size // 2
        assert entra.scim.delete(f"{GROUPS}/{group['id']}").status_code == 204
    finally:
        world.sql("delete from grants where principal_id like 'entra~' || $1 || '%'", stem)
        world.sql("delete from users where id like 'entra~' || $1 || '%'", stem)


def test_scim_service_configuration_lists_supported_features(entra: Directory) -> None:
    config = entra.scim.get("/scim/v2/ServiceProviderConfig").json()
    assert config["patch"]["supported"] and config["filter"]["maxResults"] == 200 and not config["bulk"]["supported"]
    types = entra.scim.get("/scim/v2/ResourceTypes").json()["Resources"]
    assert [each["endpoint"] for each in types] == ["/Users", "/Groups"]
    schemas = entra.scim.get("/scim/v2/Schemas").json()["Resources"]
    assert [each["id"] for each in schemas] == [CORE_USER, CORE_GROUP]
    assert scim_error(entra.scim.get("/scim/v2/Nothing"))[0] == 404
    assert scim_error(entra.scim.get(f"{USERS}/not-an-id"))[0] == 404
    assert PATCH_OP


def test_scim_discovery_resources_are_complete_at_their_locations(entra: Directory) -> None:
    for listed in ("Schemas", "ResourceTypes"):
        for each in entra.scim.get(f"/scim/v2/{listed}").json()["Resources"]:
            assert entra.scim.get(each["meta"]["location"]).json() == each
    for path in ("ServiceProviderConfig", "Schemas", "ResourceTypes", f"Schemas/{CORE_USER}", "ResourceTypes/Group"):
        assert scim_error(entra.scim.get(f"/scim/v2/{path}", params={"filter": 'id eq "User"'})) == (403, "")
    for path in ("Schemas/urn:nothing", "ResourceTypes/Users"):
        assert scim_error(entra.scim.get(f"/scim/v2/{path}"))[0] == 404


def test_scim_responses_contain_the_requested_attributes(entra: Directory) -> None:
    user = entra.user(name={"givenName": "A", "familyName": "B"})
    group = entra.group(user)
    path, key = f"{GROUPS}/{group['id']}", {"Idempotency-Key": "8f0a9d0e-0000-4000-8000-0000000000c2"}
    whole = entra.scim.get(path)
    assert whole.headers["content-location"] == whole.json()["meta"]["location"] == path
    silent = entra.patch(group, {"op": "replace", "path": "displayName", "value": unique("n")})
    assert (silent.status_code, silent.content) == (204, b"")
    name = unique("n")
    body = {"schemas": [PATCH_OP], "Operations": [{"op": "replace", "path": "displayName", "value": name}]}
    for _ in range(2):
        requested = f"{path}?attributes=members.value,{CORE_GROUP}:displayName"
        recorded = entra.scim.send("PATCH", requested, json=body, headers=key)
        assert recorded.status_code == 200, recorded.text
        assert recorded.json() == {
            "schemas": [CORE_GROUP],
            "id": group["id"],
            "displayName": name,
            "members": [{"value": user["id"]}],
        }
    assert entra.scim.get(path).json()["meta"]["version"] == 'W/"3"', "a repeated request must not change the version"
    listed = entra.scim.get(USERS, params={"filter": f'id eq "{user["id"]}"', "attributes": "name.familyName"}).json()
    assert listed["Resources"] == [{"schemas": [CORE_USER], "id": user["id"], "name": {"familyName": "B"}}]


def test_directory_email_is_searchable_and_overrides_the_users_own(world: World, entra: Directory) -> None:
    subject, address = unique("ann"), f"{unique('ann')}@corp.example"
    entra.user(subject, emails=[{"value": address, "primary": True}])
    person = entra.sign_in(subject, email="self@corp.example", email_verified=True)
    sent = {"name": "Ann", "email": "self@corp.example", "user-type": "human"}
    assert person.send("PUT", f"/management/v1/user/{person.id}", json=sent).json()["email"] == address
    found = world.admin.post("/management/v1/search/user", {"search": address}).json()["users"]
    assert found[0] == {"id": person.id, "name": "Ann", "user-type": "human", "email": address}
