# SPDX-License-Identifier: Apache-2.0
"""The present state as a plan sees it: each object and principal under the name that the file uses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
import yaml

from gateway.apply.client import Api
from gateway.apply.kinds import Executor, desired_state, read_all, read_state
from gateway.apply.nouns import Ambiguous
from gateway.apply.planner import Plan, plan
from gateway.apply.session import Located
from gateway.apply.state import State

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANALYSTS = "01990000-0000-7000-8000-00000000000a"
OTHER = "01990000-0000-7000-8000-00000000000b"


class Gateway:
    """Answers the requests of a reader for one project, and keeps the changes that it receives."""

    def __init__(self, roles: Mapping[str, str], grants: Mapping[str, list[Any]]) -> None:
        self.changes: list[Any] = []
        listed = [{"id": id, "name": name, "provider-id": "lakekeeper", "source-id": id} for id, name in roles.items()]
        self._answers: dict[str, Any] = {
            "/project-list": {"projects": [{"project-id": "shop", "project-name": "Shop"}]},
            "/role": {"roles": listed},
            "/whoami": {"id": "oidc~admin"},
            "/user/oidc~admin/roles/transitive": {"roles": []},
            **{f"/{name}/grants": {"grants": found} for name, found in grants.items()},
        }

    def api(self) -> Api:
        """Return a client of this gateway."""
        return Api("http://gateway", "token", transport=httpx2.MockTransport(self._answer))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "GET":
            self.changes.append((request.url.path, yaml.safe_load(request.content)))
            return httpx2.Response(204)
        return httpx2.Response(200, json=self._answers[request.url.path.removeprefix("/management/v1")])


def _grant(privilege: str, role: str) -> dict[str, Any]:
    return {"privilege": privilege, "principal": {"role": role}, "granted-by": "oidc~admin"}


def _file(server: str, project: str) -> State:
    content = {
        "server": {"grants": [{"privilege": "operator", "role": server}]},
        "projects": [{"id": "shop", "name": "Shop", "grants": [{"privilege": "describe", "role": project}]}],
    }
    return desired_state(read_all({"shop.yaml": yaml.safe_dump(content)}), now=NOW)


def _read(gateway: Gateway, desired: State) -> tuple[Plan, State, Located]:
    present, located = read_state(gateway.api(), desired)
    return plan(desired, present, prune=True), present, located


def test_a_role_by_name_and_by_id_in_one_file_is_one_role() -> None:
    """On the server only the id is possible. A plan created the grants by name again, and pruned them at its end."""
    grants = {"server": [_grant("operator", ANALYSTS)], "project": [_grant("describe", ANALYSTS)]}
    planned, *_ = _read(Gateway({ANALYSTS: "analysts"}, grants), _file(ANALYSTS, "analysts"))
    assert planned == Plan()


def test_the_id_of_a_role_in_another_form_is_the_same_role() -> None:
    """The grant in effect was pruned, because the file had the id in capitals."""
    grants = {"server": [_grant("operator", ANALYSTS)], "project": [_grant("describe", ANALYSTS)]}
    desired = _file(ANALYSTS.upper(), ANALYSTS.upper())
    assert _read(Gateway({ANALYSTS: "analysts"}, grants), desired)[0] == Plan()


def test_a_role_that_is_named_like_the_id_of_another_gets_none_of_its_grants() -> None:
    """Refuse it: a user that may create roles could receive the grants that a file gives to a role by its id."""
    gateway = Gateway(
        {OTHER: ANALYSTS, ANALYSTS: "analysts"}, {"server": [_grant("operator", ANALYSTS)], "project": []}
    )
    desired = _file(ANALYSTS, ANALYSTS)
    planned, present, located = _read(gateway, desired)
    assert len(planned.changes) == 1
    with gateway.api() as api:
        list(Executor(api, present, located, secrets=None, variables=lambda name: None).run(planned.changes))
    written = [{"privilege": "describe", "principal": {"role": ANALYSTS}}]
    assert gateway.changes == [("/management/v1/project/grants", {"writes": written})]


def test_a_grant_to_a_role_that_is_named_like_an_id_is_pruned_from_that_role() -> None:
    """By its name, the removal would revoke a grant of another role."""
    gateway = Gateway(
        {OTHER: ANALYSTS, ANALYSTS: "analysts"},
        {"server": [_grant("operator", ANALYSTS)], "project": [_grant("describe", ANALYSTS), _grant("create", OTHER)]},
    )
    planned, present, located = _read(gateway, _file(ANALYSTS, ANALYSTS))
    with gateway.api() as api:
        list(Executor(api, present, located, secrets=None, variables=lambda name: None).run(planned.changes))
    removed = [{"privilege": "create", "principal": {"role": OTHER}}]
    assert gateway.changes == [("/management/v1/project/grants", {"deletes": removed})]


def test_another_role_with_the_name_of_a_role_by_id_does_not_receive_its_grants() -> None:
    """The role with the name replaced the one with the id, and a plan granted to it without a word."""
    content = {"projects": [{"id": "shop", "name": "Shop", "roles": [{"id": ANALYSTS, "name": "analysts"}]}]}
    desired = desired_state(read_all({"shop.yaml": yaml.safe_dump(content)}), now=NOW)
    with pytest.raises(Ambiguous, match=f"has the id {ANALYSTS} in the file, but .* has the id {OTHER}"):
        _read(Gateway({ANALYSTS: "old name", OTHER: "analysts"}, {}), desired)


def test_one_project_under_two_names_is_refused() -> None:
    """Each of the two lists of roles removed the roles of the other."""
    files = {
        "a.yaml": yaml.safe_dump({"projects": [{"id": "shop", "name": "Shop", "roles": [{"name": "analysts"}]}]}),
        "b.yaml": yaml.safe_dump({"projects": [{"name": "Shop", "roles": [{"name": "leads"}]}]}),
    }
    gateway = Gateway({ANALYSTS: "analysts", OTHER: "leads"}, {})
    with pytest.raises(Ambiguous, match="are the same project"):
        _read(gateway, desired_state(read_all(files), now=NOW))
