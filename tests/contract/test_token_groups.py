# SPDX-License-Identifier: Apache-2.0
"""Groups in tokens stand for the provider's roles of the project, for one request; they are never stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.stack import warehouses
from tests.support.stack.providers import StubProvider
from tests.support.stack.role_policies import contractors, outcome
from tests.support.stack.roles import ROLE, add, make
from tests.support.stack.token_groups import give, of_group, partner, take
from tests.support.stack.world import Person, Table, World, error_triple, unique

__all__ = ["partner"]


pytestmark = pytest.mark.servers

#: Creates a user of the partner with these groups in the token.
TokenUser = Callable[..., Person]


@pytest.fixture
def token_user(partner: tuple[str, StubProvider]) -> Iterator[TokenUser]:
    base, provider = partner
    people = []

    def person(*groups: Any, subject: str | None = None, **claims: Any) -> Person:
        subject = subject or unique("gil")
        token = provider.token(subject, **{"groups": list(groups), **claims})
        people.append(Person(subject, f"partner~{subject}", token, base))
        return people[-1]

    yield person
    for each in people:
        each.http.close()


def reads(person: Person, table: Table) -> bool:
    """Return True if the user may read the table; a denial must be 404."""
    answer = person.get(table.path)
    assert answer.status_code in (200, 404), answer.text
    return answer.status_code == 200


def test_token_group_gives_exactly_its_roles_rights(world: World, token_user: TokenUser, table: Table) -> None:
    group = unique("Readers of /lake: ä")
    role = of_group(world, group)
    give(world, "select", role, "table", table.uuid)
    inside, outside = token_user(group), token_user(group.lower(), "else")
    assert reads(inside, table) and not reads(outside, table), "group names must be compared with letter case"
    commit = world.commit(inside, table.path, {"action": "set-properties", "updates": {"a": "b"}})
    assert error_triple(commit)[0] == 403
    keys = inside.get(f"{table.path}/credentials").json()["storage-credentials"]
    assert len(keys) == 1
    listed = inside.get(f"{world.root}/namespaces/{table.namespace}/tables").json()["identifiers"]
    assert [each["name"] for each in listed] == [table.name], "lists must include tables granted to token groups"
    assert error_triple(outside.get(f"{world.root}/namespaces/{table.namespace}/tables"))[0] == 404
    assert world.tuples(f"role:{role['id']}") >= {(f"project:{world.project}", "project")}
    assert not any("partner" in user for user, _ in world.tuples(f"role:{role['id']}")), (
        "memberships by token group must not be stored"
    )


def test_group_rights_end_with_the_next_token_without_the_group(
    world: World, token_user: TokenUser, table: Table
) -> None:
    group = unique("g")
    give(world, "select", of_group(world, group), "table", table.uuid)
    subject = unique("gil")
    before, after = token_user(group, subject=subject), token_user(subject=subject)
    for _ in range(3):
        assert reads(before, table)
        assert not reads(after, table), "a new token must not use the cached groups of the former one"


def test_revocation_from_a_role_affects_token_groups_at_once(world: World, token_user: TokenUser, table: Table) -> None:
    group = unique("g")
    role = of_group(world, group)
    give(world, "select", role, "table", table.uuid)
    person = token_user(group)
    assert reads(person, table)
    take(world, "select", role, "table", table.uuid)
    assert not reads(person, table)
    give(world, "select", role, "table", table.uuid)
    assert reads(person, table)
    before = world.sql("select revision from server")[0]
    another = {"provider-id": "partner", "source-id": unique("g")}
    assert world.admin.send("PUT", f"{ROLE}/{role['id']}/source-system", json=another).status_code == 200
    assert not reads(person, table), "a relinked role must not apply to the former group"
    assert world.sql("select revision from server")[0] != before, "relinking must change the server revision"
    assert reads(token_user(another["source-id"]), table)
    assert world.admin.delete(f"{ROLE}/{role['id']}").status_code == 204
    assert not reads(token_user(another["source-id"]), table)


def test_token_groups_match_only_roles_of_their_provider(
    world: World, token_user: TokenUser, partner: tuple[str, StubProvider], table: Table
) -> None:
    group = unique("g")
    own = make(world)
    give(world, "select", own, "table", table.uuid)
    give(world, "select", of_group(world, group, provider="oidc"), "table", table.uuid)
    for named in (group, own["id"], own["name"], own["ident"], f"oidc~{group}", f"role:{own['id']}#assignee"):
        assert not reads(token_user(named), table), named
    give(world, "select", of_group(world, group, provider="else"), "table", table.uuid)
    assert not reads(token_user(group), table)
    base, provider = partner
    other = Person("x", "", provider.token("x", aud="else", groups=[group]), base)
    assert reads(other, table), "a group of the same name of another provider is another group"
    other.http.close()


@pytest.mark.parametrize("group", ["*", "user:*", "#assignee", "%", "_", "role:*", "a'b", '{"a"}', "a,b", "{}", "\\"])
def test_names_resembling_ids_or_syntax_are_plain_names(
    world: World, token_user: TokenUser, table: Table, group: str
) -> None:
    name = unique("g") + group
    role = of_group(world, name)
    give(world, "select", role, "table", table.uuid)
    assert reads(token_user(name), table)
    assert not reads(token_user(group), table)
    assert world.admin.delete(f"{ROLE}/{role['id']}").status_code == 204


def test_token_groups_apply_to_nested_and_assumed_roles(world: World, token_user: TokenUser, table: Table) -> None:
    group = unique("g")
    inner, outer = of_group(world, group), make(world)
    assert add(world, outer, "role", inner["id"]).status_code == 204
    give(world, "select", outer, "table", table.uuid)
    person = token_user(group)
    assert reads(person, table)
    for role, status in ((inner, 200), (outer, 200), (make(world), 400)):
        answer = person.get(table.path, headers={"x-assume-role": role["id"]})
        assert answer.status_code == status, answer.text
    keys = person.get(f"{table.path}/credentials", headers={"x-assume-role": outer["id"]})
    assert len(keys.json()["storage-credentials"]) == 1
    answer = token_user().get(table.path, headers={"x-assume-role": inner["id"]})
    assert error_triple(answer)[:2] == (400, "InvalidAssumeRoleId")


@pytest.mark.threat("LG-DEC-24")
def test_role_policy_applies_to_members_by_token_group(world: World, token_user: TokenUser, table: Table) -> None:
    """A policy that denies by group would otherwise silently not apply (LG-DEC-24)."""
    group = unique("g")
    inner, outer = of_group(world, group), make(world)
    assert add(world, outer, "role", inner["id"]).status_code == 204
    give(world, "select", inner, "table", table.uuid)
    person = token_user(group)
    for role in (inner, outer):
        assert outcome(person, table.path) == (200, False)
        with contractors(world, role["id"]):
            assert outcome(person, table.path) == (403, True)


def test_own_role_list_includes_roles_by_token_group(world: World, token_user: TokenUser) -> None:
    group = unique("g")
    inner, outer = of_group(world, group), make(world)
    assert add(world, outer, "role", inner["id"]).status_code == 204
    person = token_user(group)
    assert person.post("/management/v1/user", {}).status_code == 201
    path = f"/management/v1/user/{person.id}/roles"
    assert [each["id"] for each in person.get(path).json()["roles"]] == [inner["id"]]
    both = {each["id"] for each in person.get(f"{path}/transitive").json()["roles"]}
    assert both == {inner["id"], outer["id"]}
    assert world.admin.get(path).json() == {"roles": []}, "other users' roles by token group must not be listed"


@pytest.mark.threat("LG-DEC-15")
def test_token_group_applies_in_its_roles_project_only(world: World, token_user: TokenUser, table: Table) -> None:
    elsewhere = warehouses.project(world)
    group = unique("g")
    headers = {"x-project-id": elsewhere}
    foreign = world.admin.post(
        ROLE, {"name": unique("r"), "provider-id": "partner", "source-id": group}, headers=headers
    ).json()
    give(world, "select", foreign, "table", table.uuid)
    assert not reads(token_user(group), table)
    give(world, "describe", foreign, "project", elsewhere)
    assert token_user(group).get("/management/v1/project", headers=headers).status_code == 200
    listed = token_user(group).get("/management/v1/project-list").json()["projects"]
    assert elsewhere in [each["project-id"] for each in listed]


@pytest.mark.threat("LG-AUT-10")
def test_token_with_more_than_100_groups_is_refused(world: World, token_user: TokenUser, table: Table) -> None:
    project = warehouses.project(world)
    headers = {"x-project-id": project}
    made = warehouses.make(world, headers=headers)
    stem = unique("g")
    roles = [
        world.admin.post(
            ROLE, {"name": f"{stem}-{n}", "provider-id": "partner", "source-id": f"{stem}-{n}"}, headers=headers
        ).json()
        for n in range(101)
    ]
    give(world, "describe", roles[99], "project", project)
    groups = [f"{stem}-{n}" for n in range(101)]
    path = f"/management/v1/warehouse/{made.id}"
    assert token_user(*groups[:100]).get(path).status_code == 200
    person = token_user(*groups)
    refused = person.get(path)
    assert error_triple(refused)[:2] == (403, "TooManyGroups") and "100" in refused.json()["error"]["message"]
    assert error_triple(person.get(table.path))[0] == 404, "a token group must have no effect in another project"
    nowhere = person.get("/management/v1/warehouse/00000000-0000-0000-0000-000000000009")
    assert error_triple(nowhere)[0] == 404
    assert person.get("/management/v1/project-list").status_code == 403, "more than 100 matching roles must be refused"


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"groups": ..., "_claim_names": {"groups": "src1"}}, "more groups than"),
        ({"groups": ..., "hasgroups": True}, "more groups than"),
        ({"groups": 7}, "text or a list"),
        ({"groups": [["nested"]]}, "text or a list"),
        ({"groups": {"a": "b"}}, "text or a list"),
        ({"groups": ["line\nbreak"]}, "invisible"),
        ({"groups": ["rec\u001eord"]}, "invisible"),
        ({"groups": [f"group-{number}" for number in range(5_000)]}, "longer"),
    ],
)
def test_malformed_groups_claim_is_refused(token_user: TokenUser, claims: dict[str, Any], message: str) -> None:
    """Otherwise a policy that denies by group would silently not apply."""
    refused = token_user(**claims).get("/management/v1/whoami")
    assert refused.status_code == 401 and message in refused.json()["error"]["message"], refused.text


def test_groups_without_roles_cost_nothing_and_one_may_be_text(
    world: World, token_user: TokenUser, table: Table
) -> None:
    group = unique("g")
    give(world, "select", of_group(world, group), "table", table.uuid)
    assert reads(token_user(*(f"g{number}" for number in range(600)), group), table)
    assert reads(token_user(groups=group), table)


def test_server_admin_role_cannot_be_linked_to_another_group(world: World, token_user: TokenUser) -> None:
    """A manager of a project's roles may not appoint administrators; a linked group has the effect of a membership."""
    project = warehouses.project(world)
    headers = {"x-project-id": project}
    role = world.admin.post(ROLE, {"name": unique("r")}, headers=headers).json()
    give(world, "project_admin", role, "project", project)
    world.grant("security_admin", world.bob, "project", project)
    source = {"provider-id": "partner", "source-id": unique("g")}
    path = f"{ROLE}/{role['id']}/source-system"
    assert error_triple(world.bob.send("PUT", path, json=source))[:2] == (403, "RoleActionForbidden")
    assert world.admin.send("PUT", path, json=source).status_code == 200
    renamed = token_user(source["source-id"]).post(
        "/management/v1/project/rename", {"new-name": unique("p")}, headers=headers
    )
    assert renamed.status_code == 200, renamed.text
    world.revoke("security_admin", world.bob, "project", project)
