# SPDX-License-Identifier: Apache-2.0
"""`modify` on a table, view or generic table never leads to ownership, and a temporary right never becomes permanent.

The attacks (LG-DEC-28) are a move into the attacker's own namespace, and unregister or drop followed by registration
there. Each is also tried with an expiring grant, with an expiring role membership, and against managed access.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.support.stack.generic_tables import make as make_generic
from tests.support.stack.lifecycle import soft_world, undrop
from tests.support.stack.namespace_moves import move as move_namespace
from tests.support.stack.roles import make as make_role
from tests.support.stack.views import create as create_view
from tests.support.stack.world import Person, World, error_triple, send_until_decided, unique

KINDS = pytest.mark.parametrize("kind", ["table", "view", "generic-table"])

FORBIDDEN = {
    "table": "TableActionForbidden",
    "view": "ViewActionForbidden",
    "generic-table": "GenericTableActionForbidden",
}


@dataclass(frozen=True)
class Target:
    """The attacked object: it belongs to the administrator and is in a namespace of the administrator."""

    world: World
    kind: str
    namespace: str
    name: str
    id: str
    metadata_location: str

    @property
    def root(self) -> str:
        """Return the base path of the endpoints for this kind of object."""
        return f"/lakekeeper/v1/{self.world.warehouse}" if self.kind == "generic-table" else self.world.root

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Return the path of the object, or its path after a rename."""
        return f"{self.root}/namespaces/{namespace or self.namespace}/{self.kind}s/{name or self.name}"

    def rename(self, by: Person, namespace: str, name: str | None = None, **more: Any) -> httpx.Response:
        """Rename the object; another namespace makes this a move."""
        source = {"namespace": [self.namespace], "name": self.name}
        body = {"source": source, "destination": {"namespace": [namespace], "name": name or self.name}}
        return send_until_decided(lambda: by.post(f"{self.root}/{self.kind}s/rename", body, **more))

    def drop(self, by: Person) -> httpx.Response:
        """Drop the object and keep its files."""
        return by.delete(f"{self.path()}?purgeRequested=false")


def target(world: World, kind: str, namespace: str | None = None) -> Target:
    """Create an object of the administrator."""
    namespace = namespace or world.namespace()
    if kind == "table":
        table = world.table(namespace)
        name, file = table.name, table.answer["metadata-location"]
    elif kind == "view":
        view = create_view(world, namespace)
        name, file = view["name"], view["metadata-location"]
    else:
        name, file = make_generic(world, namespace)["name"], ""
    [row] = world.sql("select id::text from tables where name = $1", name)
    return Target(world, kind, namespace, name, row["id"], file)


def attacker(world: World) -> tuple[Person, str]:
    """Return (user with `create` on the warehouse, namespace that this user owns)."""
    person = world.stranger("attacker")
    world.grant("create", person, "warehouse", world.warehouse)
    return person, world.namespace(by=person)


def give(world: World, target: Target, privilege: str, principal: dict[str, str], ends: datetime | None = None) -> None:
    """Grant `privilege` on the target, with an expiry if `ends` is given."""
    path = f"/management/v1/warehouse/{world.warehouse}/{target.kind}/{target.id}/grants"
    grant: dict[str, Any] = {"privilege": privilege, "principal": principal}
    if ends is not None:
        grant["expires-at"] = ends.isoformat()
    done = send_until_decided(lambda: world.admin.post(path, {"writes": [grant]}))
    assert done.status_code == 204, done.text


def in_an_hour() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def stays(target: Target, own: str) -> None:
    """Assert that the object was not moved and that the attacker's namespace holds nothing."""
    world = target.world
    assert world.admin.head(target.path()).status_code == 204
    assert world.admin.head(target.path(own)).status_code == 404
    [row] = world.sql("select namespace_id::text as at from tables where id = $1::text::uuid", target.id)
    assert row["at"] == world.namespace_id(target.namespace)


def register(world: World, by: Person, own: str, target: Target) -> httpx.Response:
    """Try to create an object of the attacker from the target's files."""
    name = unique("taken")
    if target.kind == "generic-table":
        # A generic table has no metadata file to register: a new generic table at its location is the equivalent.
        [row] = world.sql("select location from retired_locations where table_id = $1::text::uuid", target.id)
        body = {"name": name, "format": "lance", "base-location": row["location"]}
        return by.post(f"{target.root}/namespaces/{own}/generic-tables", body)
    endpoint = "register" if target.kind == "table" else "register-view"
    return by.post(
        f"{world.root}/namespaces/{own}/{endpoint}", {"name": name, "metadata-location": target.metadata_location}
    )


def no_key_is_valid(world: World, target: Target) -> None:
    """Expire all credentials for the target's location; until then the location is refused to all users."""
    world.sql("update retired_locations set keys_until = clock_timestamp() where table_id = $1::text::uuid", target.id)


# ---- moves -----------------------------------------------------------------------------------------------------------


@pytest.mark.threat("LG-DEC-28")
@KINDS
def test_modify_does_not_move_an_object_into_the_callers_namespace(world: World, kind: str) -> None:
    thing, (person, own) = target(world, kind), attacker(world)
    world.grant("modify", person, kind, thing.id)
    refused = thing.rename(person, own)
    assert error_triple(refused)[:2] == (403, FORBIDDEN[kind])
    stays(thing, own)
    other = world.stranger()
    gives = person.post(world.grants_path(kind, thing.id), {"writes": [{"type": "select", "user": other.id}]})
    assert gives.status_code == 403
    # `modify` still permits renames in the namespace, also when the request spells the namespace otherwise.
    name = unique("within")
    assert thing.rename(person, thing.namespace.upper(), name).status_code == 204
    assert person.head(thing.path(name=name)).status_code == 204


@KINDS
def test_namespace_modify_or_grant_right_alone_does_not_move(world: World, kind: str) -> None:
    thing, (person, own) = target(world, kind), attacker(world)
    world.grant("modify", person, "namespace", world.namespace_id(thing.namespace))
    assert error_triple(thing.rename(person, own))[:2] == (403, FORBIDDEN[kind])
    manager, theirs = attacker(world)
    world.grant("describe", manager, kind, thing.id)
    world.grant("manage_grants", manager, kind, thing.id)
    assert error_triple(thing.rename(manager, theirs))[:2] == (403, FORBIDDEN[kind])
    stays(thing, own)
    world.grant("modify", manager, kind, thing.id)
    assert thing.rename(manager, theirs).status_code == 204


@KINDS
def test_owner_moves_an_object_and_keeps_ownership(world: World, kind: str) -> None:
    thing, (person, own) = target(world, kind), attacker(world)
    world.grant("ownership", person, kind, thing.id)
    assert thing.rename(person, own).status_code == 204
    assert person.head(thing.path(own)).status_code == 204


@pytest.mark.threat("LG-DEC-28")
@KINDS
def test_temporary_ownership_does_not_move(world: World, kind: str) -> None:
    thing, (person, own) = target(world, kind), attacker(world)
    give(world, thing, "ownership", {"user": person.id}, in_an_hour())
    refused = thing.rename(person, own)
    assert error_triple(refused)[:2] == (403, FORBIDDEN[kind])
    assert "can_move expires at" in error_triple(refused)[2]
    stays(thing, own)
    # A rename makes no right permanent.
    name = unique("within")
    assert thing.rename(person, thing.namespace, name).status_code == 204
    back = Target(world, kind, thing.namespace, name, thing.id, thing.metadata_location)
    assert back.rename(person, own).status_code == 403
    give(world, thing, "ownership", {"user": person.id})
    assert back.rename(person, own).status_code == 204


def test_partly_temporary_right_does_not_move(world: World) -> None:
    thing, (person, own) = target(world, "table"), attacker(world)
    world.grant("manage_grants", person, "table", thing.id)
    give(world, thing, "modify", {"user": person.id}, in_an_hour())
    assert error_triple(thing.rename(person, own))[:2] == (403, "TableActionForbidden")
    stays(thing, own)


def test_temporary_create_right_suffices_at_the_destination(world: World) -> None:
    """The owner passes on no right of other users, as when the owner creates a table there."""
    person = world.stranger()
    thing, to = target(world, "table"), world.namespace()
    world.grant("ownership", person, "table", thing.id)
    path = f"/management/v1/warehouse/{world.warehouse}/namespace/{world.namespace_id(to)}/grants"
    grant = {"privilege": "create", "principal": {"user": person.id}, "expires-at": in_an_hour().isoformat()}
    assert world.admin.post(path, {"writes": [grant]}).status_code == 204
    assert thing.rename(person, to).status_code == 204


@pytest.mark.parametrize("assumed", [False, True], ids=["as a member", "acting as the role"])
def test_temporary_member_does_not_move_objects_of_the_role(world: World, assumed: bool) -> None:
    thing, (person, own) = target(world, "table"), attacker(world)
    role = make_role(world)["id"]
    give(world, thing, "ownership", {"role": role})
    space = f"/management/v1/warehouse/{world.warehouse}/namespace/{world.namespace_id(own)}/grants"
    create = {"privilege": "create", "principal": {"role": role}}
    assert world.admin.post(space, {"writes": [create]}).status_code == 204
    members = f"/management/v1/role/{role}/grants"
    member: dict[str, Any] = {"privilege": "assignee", "principal": {"user": person.id}}
    lent = {**member, "expires-at": in_an_hour().isoformat()}
    assert world.admin.post(members, {"writes": [lent]}).status_code == 204
    headers = {"x-assume-role": role} if assumed else {}
    refused = thing.rename(person, own, headers=headers)
    assert error_triple(refused)[:2] == (403, "TableActionForbidden")
    stays(thing, own)
    assert world.admin.post(members, {"writes": [member]}).status_code == 204
    assert thing.rename(person, own, headers=headers).status_code == 204


@pytest.mark.threat("LG-DEC-28")
@KINDS
def test_an_owner_does_not_move_an_object_out_of_managed_access(world: World, kind: str) -> None:
    thing, (person, own) = target(world, kind), attacker(world)
    world.grant("ownership", person, kind, thing.id)
    flag = f"/management/v1/permissions/namespace/{world.namespace_id(thing.namespace)}/managed-access"
    assert world.admin.post(flag, {"managed-access": True}).status_code == 200
    assert error_triple(thing.rename(person, own))[:2] == (403, FORBIDDEN[kind])
    stays(thing, own)
    assert thing.rename(person, thing.namespace, unique("within")).status_code == 204


def test_namespaces_move_by_the_same_rules(world: World) -> None:
    person, own = attacker(world)
    outer = world.namespace()
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": [outer, "inner"]})
    inner = made.json()["properties"]["namespace_id"]
    world.grant("modify", person, "namespace", inner)
    assert error_triple(move_namespace(person, world, inner, [own, "inner"]))[:2] == (403, "NamespaceActionForbidden")
    lent: dict[str, Any] = {
        "privilege": "ownership",
        "principal": {"user": person.id},
        "expires-at": in_an_hour().isoformat(),
    }
    grants = f"/management/v1/warehouse/{world.warehouse}/namespace/{inner}/grants"
    assert world.admin.post(grants, {"writes": [lent]}).status_code == 204
    refused = move_namespace(person, world, inner, [own, "inner"])
    assert error_triple(refused)[:2] == (403, "NamespaceActionForbidden")
    assert "can_move expires at" in error_triple(refused)[2]
    lent.pop("expires-at")
    assert world.admin.post(grants, {"writes": [lent]}).status_code == 204
    flag = f"/management/v1/permissions/namespace/{world.namespace_id(outer)}/managed-access"
    assert world.admin.post(flag, {"managed-access": True}).status_code == 200
    assert error_triple(move_namespace(person, world, inner, [own, "inner"]))[:2] == (403, "NamespaceActionForbidden")
    assert world.admin.post(flag, {"managed-access": False}).status_code == 200
    assert move_namespace(person, world, inner, [own, "inner"]).status_code == 200


# ---- unregister, drop, and register again ----------------------------------------------------------------------------


@pytest.mark.threat("LG-DEC-28")
def test_modify_does_not_unregister(world: World) -> None:
    thing, (person, own) = target(world, "table"), attacker(world)
    world.grant("modify", person, "table", thing.id)
    assert error_triple(person.post(f"{thing.path()}/unregister"))[:2] == (403, "TableActionForbidden")
    give(world, thing, "ownership", {"user": person.id}, in_an_hour())
    refused = person.post(f"{thing.path()}/unregister")
    assert error_triple(refused)[:2] == (403, "TableActionForbidden")
    assert "can_unregister expires at" in error_triple(refused)[2]
    stays(thing, own)
    give(world, thing, "ownership", {"user": person.id})
    assert person.post(f"{thing.path()}/unregister").status_code == 200
    assert register(world, person, own, thing).status_code == 200, (
        "an owner with a permanent right may register the table again"
    )


def test_grant_right_unregisters_only_readable_objects(world: World) -> None:
    """The response contains the metadata."""
    thing = target(world, "table")
    person = world.stranger()
    world.grant("manage_grants", person, "table", thing.id)
    assert person.post(f"{thing.path()}/unregister").status_code == 404
    world.grant("describe", person, "table", thing.id)
    assert person.post(f"{thing.path()}/unregister").status_code == 200


@KINDS
@pytest.mark.parametrize("held", ["modify", "modify that ends", "ownership that ends", "modify on the namespace"])
def test_object_dropped_with_modify_is_not_registered_by_the_dropper(world: World, kind: str, held: str) -> None:
    thing, (person, own) = target(world, kind), attacker(world)
    if held == "modify on the namespace":
        world.grant("modify", person, "namespace", world.namespace_id(thing.namespace))
    else:
        give(world, thing, held.split()[0], {"user": person.id}, in_an_hour() if "ends" in held else None)
    if kind == "generic-table":
        [row] = world.sql("select location from tables where id = $1::text::uuid", thing.id)
        key = row["location"].removeprefix(f"s3://{world.bucket}/").rstrip("/")
        world.s3.put_object(Bucket=world.bucket, Key=f"{key}/data/secret", Body=b"x")
    assert thing.drop(person).status_code == 204, "modify must suffice for a drop"
    no_key_is_valid(world, thing)
    refused = register(world, person, own, thing)
    assert refused.status_code in (400, 403, 409), sorted(refused.json())
    assert world.admin.get(f"{thing.root}/namespaces/{own}/{kind}s").json()["identifiers"] == []


@pytest.mark.parametrize("how", ["drop", "unregister"])
def test_owner_cannot_leave_managed_access_by_reregistration(world: World, how: str) -> None:
    thing, (person, own) = target(world, "table"), attacker(world)
    world.grant("ownership", person, "table", thing.id)
    flag = f"/management/v1/permissions/namespace/{world.namespace_id(thing.namespace)}/managed-access"
    assert world.admin.post(flag, {"managed-access": True}).status_code == 200
    gone = thing.drop(person) if how == "drop" else person.post(f"{thing.path()}/unregister")
    assert gone.status_code in (200, 204), gone.text
    no_key_is_valid(world, thing)
    refused = register(world, person, own, thing)
    assert refused.status_code == 403, sorted(refused.json())


def test_temporary_member_cannot_register_objects_of_the_role(world: World) -> None:
    thing, (person, own) = target(world, "table"), attacker(world)
    role = make_role(world)["id"]
    give(world, thing, "ownership", {"role": role})
    members = f"/management/v1/role/{role}/grants"
    member: dict[str, Any] = {"privilege": "assignee", "principal": {"user": person.id}}
    lent = {**member, "expires-at": in_an_hour().isoformat()}
    assert world.admin.post(members, {"writes": [lent]}).status_code == 204
    assert thing.drop(person).status_code == 204
    no_key_is_valid(world, thing)
    refused = register(world, person, own, thing)
    assert error_triple(refused)[:2] == (403, "NamespaceActionForbidden")
    assert "can_assume expires at" in error_triple(refused)[2]
    assert world.admin.post(members, {"writes": [member]}).status_code == 204
    assert register(world, person, own, thing).status_code == 200


@KINDS
def test_undropped_object_keeps_its_owner(world: World, kind: str) -> None:
    soft = soft_world(world)
    try:
        thing, (person, own) = target(soft, kind), attacker(soft)
        soft.grant("modify", person, kind, thing.id)
        assert thing.drop(person).status_code == 204
        body = {"name": unique("taken"), "metadata-location": thing.metadata_location}
        if kind != "generic-table":
            endpoint = "register" if kind == "table" else "register-view"
            assert person.post(f"{soft.root}/namespaces/{own}/{endpoint}", body).status_code == 403
        done = undrop(person, soft, (kind, thing.id))
        assert done.status_code == 204, done.text
        stays(thing, own)
        gives = person.post(soft.grants_path(kind, thing.id), {"writes": [{"type": "select", "user": person.id}]})
        assert gives.status_code == 403
    finally:
        soft.close()
