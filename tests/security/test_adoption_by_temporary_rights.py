# SPDX-License-Identifier: Apache-2.0
"""A temporary right on a warehouse's storage permits no adoption: ownership of adopted objects has no expiry
(LG-LOC-23).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.support.stack.adoption import brought, lake_location, register, register_view, write
from tests.support.stack.assumed_roles import acting, give
from tests.support.stack.generic_tables import at
from tests.support.stack.registrations import ADOPT
from tests.support.stack.roles import make
from tests.support.stack.views import create as create_view
from tests.support.stack.world import Person, World, error_triple, unique

REFUSED = (403, "WarehouseActionForbidden")
KINDS = pytest.mark.parametrize("kind", ["table", "view", "generic-table"])


def in_an_hour() -> str:
    """Return the expiry of a temporary right: one hour from now."""
    return (datetime.now(UTC) + timedelta(hours=1)).isoformat()


def storage(world: World, to: dict[str, str], **more: Any) -> None:
    """Grant manage_storage on the warehouse."""
    grant = {"privilege": "manage_storage", "principal": to, **more}
    answer = world.admin.post(f"/management/v1/warehouse/{world.warehouse}/grants", {"writes": [grant]})
    assert answer.status_code == 204, answer.text


def adopt(world: World, by: Person, ns: str, kind: str, headers: dict[str, str] | None = None) -> httpx.Response:
    """Adopt a location whose files the catalog has no record of."""
    headers = {**ADOPT, **(headers or {})}
    if kind == "table":
        return register(by, world, ns, brought(world)[1], headers=headers)
    location = lake_location(world)
    if kind == "view":
        metadata = {**create_view(world, world.namespace())["metadata"], "location": location}
        file = write(world, f"{location}/metadata/00000-a.metadata.json", metadata)
        return register_view(by, world, ns, file, headers=headers)
    write(world, f"{location}/part.json", {})
    body = {"name": unique("g"), "format": "csv", "base-location": location}
    return by.post(at(world, ns), body, headers=headers)


@KINDS
@pytest.mark.threat("LG-LOC-23")
def test_temporary_manage_storage_does_not_adopt(world: World, kind: str) -> None:
    person, ns = world.stranger("lent"), world.namespace()
    world.grant("create", person, "namespace", world.namespace_id(ns))
    storage(world, {"user": person.id}, **{"expires-at": in_an_hour()})
    refused = error_triple(adopt(world, person, ns, kind))
    assert refused[:2] == REFUSED
    assert "can_adopt_files expires at" in refused[2]
    assert world.sql("select 1 from tables where namespace_id = $1::text::uuid", world.namespace_id(ns)) == []
    storage(world, {"user": person.id})
    assert adopt(world, person, ns, kind).status_code == 200


@pytest.mark.threat("LG-LOC-23")
@pytest.mark.parametrize("acts", [False, True], ids=["as a member", "acting as the role"])
def test_temporary_membership_does_not_adopt(world: World, acts: bool) -> None:
    person, ns, role = world.stranger("lent"), world.namespace(), make(world)
    give(world, role, "create", "namespace", world.namespace_id(ns))
    storage(world, {"role": role["id"]})
    members = f"/management/v1/role/{role['id']}/grants"
    member: dict[str, Any] = {"privilege": "assignee", "principal": {"user": person.id}}
    lent = {**member, "expires-at": in_an_hour()}
    assert world.admin.post(members, {"writes": [lent]}).status_code == 204
    headers = acting(role) if acts else {}
    assert error_triple(adopt(world, person, ns, "table", headers))[:2] == REFUSED
    assert world.admin.post(members, {"writes": [member]}).status_code == 204
    assert adopt(world, person, ns, "table", headers).status_code == 200
