# SPDX-License-Identifier: Apache-2.0
"""Data policies as a plan sees them: roles and bound objects by the names that the file uses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
import yaml

from gateway.apply.client import Api
from gateway.apply.data_policies import MixedRole
from gateway.apply.kinds import Executor, desired_state, read_all, read_state
from gateway.apply.planner import Plan, plan
from gateway.apply.state import Action

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEADS = "01990000-0000-7000-8000-00000000000a"
POLICY = "01990000-0000-7000-8000-0000000000b1"
HIDDEN = "01990000-0000-7000-8000-0000000000c1"
TAG = "01990000-0000-7000-8000-0000000000d1"


class Gateway:
    """Answers the requests about the data policies of one project, and keeps the changes that it receives."""

    def __init__(self, policy: Mapping[str, Any] | None, bindings: list[Any], attachments: int = 0) -> None:
        self.changes: list[Any] = []
        base = {"id": POLICY, "project-id": "shop", "name": "Rows", "version": 7}
        role = {"id": LEADS, "name": "leads", "provider-id": "lakekeeper", "source-id": LEADS}
        tag = {"id": TAG, "name": "pii", "scope": ["table"], "value-kind": "marker"}
        self._answers: dict[str, Any] = {
            "/project-list": {"projects": [{"project-id": "shop", "project-name": "Shop"}]},
            "/role": {"roles": [role]},
            "/whoami": {"id": "oidc~admin"},
            "/warehouse": {"warehouses": []},
            "/tag-definition": {"tag-definitions": [tag]},
            f"/tag-definition/{TAG}/attachments": {"attachments": [{}] * attachments},
            "/data-policy": {"data-policies": [] if policy is None else [{**base, **policy}]},
            f"/data-policy/{POLICY}/bindings": {"bindings": bindings},
            f"/data-policy/{POLICY}/affected": {"tables": []},
        }

    def plan(self, members: Mapping[str, Any], *, run: bool = False) -> Plan:
        """Return the pruning plan of a file with these members of the project."""
        content = yaml.safe_dump({"projects": [{"id": "shop", "name": "Shop", **members}]})
        desired = desired_state(read_all({"shop.yaml": content}), now=NOW)
        with Api("http://gateway", "token", transport=httpx2.MockTransport(self._answer)) as api:
            present, located = read_state(api, desired)
            found = plan(desired, present, prune=True)
            if run:
                executor = Executor(api, present, located, secrets=None, variables=lambda name: None)
                executor.prepare(found.changes)
                list(executor.run(found.changes))
        return found

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "GET":
            self.changes.append((request.method, request.url.path, yaml.safe_load(request.content or b"{}")))
            return httpx2.Response(204)
        return httpx2.Response(200, json=self._answers[request.url.path.removeprefix("/management/v1")])


def _rows(*roles: str) -> dict[str, Any]:
    tests = [{"type": "has-role", "role": role} for role in roles]
    return {"kind": "row-filter", "test": {"type": "or", "operands": tests}}


PRESENT = {"definition": _rows(LEADS), "applies-to": "everyone", "allow-append": True, "description": "why"}


@pytest.mark.parametrize("role", ["leads", LEADS, LEADS.upper()])
def test_a_role_of_a_definition_by_name_or_id_is_the_same_role(role: str) -> None:
    """Each plan would write a new version of the policy."""
    policy = {"name": "rows", "definition": _rows(role)}
    [change] = Gateway(PRESENT, []).plan({"data-policies": [policy]}).changes
    assert [each.name for each in change.fields] == ["name"]


def test_a_new_version_has_the_ids_of_roles_the_unstated_fields_and_the_version_that_was_compared() -> None:
    gateway = Gateway({**PRESENT, "definition": _rows(LEADS, LEADS)}, [])
    gateway.plan({"data-policies": [{"name": "Rows", "definition": _rows("leads")}]}, run=True)
    body = {"name": "Rows", "description": "why", "applies-to": "everyone", "allow-append": True, "if-version": 7}
    assert gateway.changes == [("PUT", f"/management/v1/data-policy/{POLICY}", {**body, "definition": _rows(LEADS)})]


def test_one_role_by_its_name_and_its_id_in_a_definition_is_refused() -> None:
    with pytest.raises(MixedRole, match="data-policy shop/rows: the role 'leads'"):
        Gateway(PRESENT, []).plan({"data-policies": [{"name": "rows", "definition": _rows("leads", LEADS)}]})


def test_a_binding_to_an_object_that_the_caller_does_not_see_stays_with_its_policy() -> None:
    """Pruning would lift a restriction of a table that the file cannot name."""
    hidden = {"type": "table", "id": HIDDEN, "warehouse-id": HIDDEN}
    planned = Gateway(PRESENT, [hidden, {"type": "tag", "id": TAG}]).plan({"data-policies": []})
    assert [str(each.address) for each in planned.changes] == ["binding of data-policy shop/rows to tag shop/pii"]
    assert {each.reason for each in planned.kept} == {"you do not see the object", "it contains objects that stay"}


def test_a_pruned_policy_is_unbound_before_it_is_deleted_without_force() -> None:
    """With force, a binding that another user made meanwhile would be lost without a word."""
    gateway = Gateway(PRESENT, [{"type": "tag", "id": TAG}])
    gateway.plan({"data-policies": []}, run=True)
    path = f"/management/v1/data-policy/{POLICY}"
    assert gateway.changes == [
        ("POST", f"{path}/bindings", {"remove": [{"type": "tag", "id": TAG}]}),
        ("DELETE", path, {}),
    ]


def test_a_tag_that_objects_outside_of_the_file_carry_stays() -> None:
    """The gateway refuses to delete it, so that each run would fail."""
    assert [each.reason for each in Gateway(None, [], attachments=1).plan({"tag-definitions": []}).kept] == [
        "objects carry it"
    ]
    [change] = Gateway(None, []).plan({"tag-definitions": []}).changes
    assert (change.action, str(change.address)) == (Action.REMOVE, "tag shop/pii")
