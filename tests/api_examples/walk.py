# SPDX-License-Identifier: Apache-2.0
"""Send the requests whose answers no contract test reads from a client: lists and settings of objects of each type.

`make api-examples` runs it as a test, because it needs the stack of the contract tests.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.contract.conftest import ns, people, stack, table, world
from tests.support.stack import data_policies, generic_tables, tags, views
from tests.support.stack.world import Table, World, unique

__all__ = ["ns", "people", "stack", "table", "world"]

_MANAGEMENT = "/management/v1"

#: Lists of every object, below its path in the management API and below that of its permissions.
_LISTS = ("actions", "grants", "grants/history", "grants/grantable-privileges")
_PERMISSIONS = ("access", "assignments", "authorizer-actions")


def _objects(world: World, ns: str, table: Table) -> Mapping[str, tuple[str, str]]:
    """Return (path, path of its permissions) of an object of each type."""
    inside = f"{_MANAGEMENT}/warehouse/{world.warehouse}"
    permissions = f"{_MANAGEMENT}/permissions"
    namespace = world.namespace_id(ns)
    view = views.create(world, ns)["metadata"]["view-uuid"]
    images = generic_tables.make(world, ns)["id"]
    role = world.admin.post(f"{_MANAGEMENT}/role", {"name": unique("analysts")}).json()["id"]
    tag = tags.define(world)["id"]
    policy = data_policies.make(world)["id"]
    return {
        "server": (f"{_MANAGEMENT}/server", f"{permissions}/server"),
        "project": (f"{_MANAGEMENT}/project", f"{permissions}/project"),
        "warehouse": (inside, f"{permissions}/warehouse/{world.warehouse}"),
        "namespace": (f"{inside}/namespace/{namespace}", f"{permissions}/namespace/{namespace}"),
        "table": (f"{inside}/table/{table.uuid}", f"{permissions}/warehouse/{world.warehouse}/table/{table.uuid}"),
        "view": (f"{inside}/view/{view}", f"{permissions}/warehouse/{world.warehouse}/view/{view}"),
        "generic-table": (
            f"{inside}/generic-table/{images}",
            f"{permissions}/warehouse/{world.warehouse}/generic-table/{images}",
        ),
        "role": (f"{_MANAGEMENT}/role/{role}", f"{permissions}/role/{role}"),
        "tag": (f"{_MANAGEMENT}/tag-definition/{tag}", f"{permissions}/tag/{tag}"),
        "data-policy": (f"{_MANAGEMENT}/data-policy/{policy}", f"{permissions}/data-policy/{policy}"),
    }


@pytest.mark.usefixtures("people")
def test_lists_of_objects_of_each_type(world: World, ns: str, table: Table) -> None:
    privileges = {"role": "assignee", "tag": "apply", "data-policy": "subject", "server": "auditor"}
    definition = tags.define(world)
    for kind, (path, permissions) in _objects(world, ns, table).items():
        grant = {"privilege": privileges.get(kind, "describe"), "principal": {"user": world.carol.id}}
        for change in ({"writes": [grant]}, {"deletes": [grant]}, {"writes": [grant]}):
            world.admin.post(f"{path}/grants", change)
        for name in _LISTS:
            world.admin.get(f"{path}/{name}")
        for name in _PERMISSIONS:
            world.admin.get(f"{permissions}/{name}")
        if kind in tags.EVERYWHERE:
            tags.attach(world, definition, f"{path}/tags")
        for name in ("tags", "protection", "live-credentials", "statistics"):
            world.admin.get(f"{path}/{name}")
        world.admin.post(f"{path}/protection", {"protected": True})
        world.admin.post(f"{path}/protection", {"protected": False})
        world.admin.post(f"{path}/grants", {"deletes": [grant]})


@pytest.mark.usefixtures("people")
def test_lists_of_a_project(world: World, table: Table) -> None:
    data_policies.make(world)
    world.admin.post(f"{_MANAGEMENT}/mapping-table", {"name": unique("regions")})
    for name in ("data-policy", "mapping-table", "grants/grantable-privileges", "project-list", "tag-definition"):
        world.admin.get(f"{_MANAGEMENT}/{name}")
    inside = f"{_MANAGEMENT}/warehouse/{world.warehouse}"
    for name in ("tag-suggestions", "data-policies/preview"):
        world.admin.get(f"{inside}/table/{table.uuid}/{name}")
    world.admin.get(f"{inside}/change-tickets")
    project = world.admin.get(f"{_MANAGEMENT}/project").json()["project-id"]
    for name in _PERMISSIONS:
        world.admin.get(f"{_MANAGEMENT}/permissions/project/{project}/{name}")
    world.admin.post(
        f"{_MANAGEMENT}/permissions/project/assignments", {"writes": [{"type": "describe", "user": world.carol.id}]}
    )
    world.admin.post(
        f"{_MANAGEMENT}/permissions/project/assignments", {"deletes": [{"type": "describe", "user": world.carol.id}]}
    )
    world.admin.post(f"{_MANAGEMENT}/events/replay", {"from-sequence": 1})
