# SPDX-License-Identifier: Apache-2.0
"""The precondition of a SCIM change is part of its decision and of its execution: it is neither lost nor replaced."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.support.stack.attacked_directories import attacked, entra
from tests.support.stack.directories import GROUPS, PATCH_OP, USERS, Directory, scim_error
from tests.support.stack.world import World, unique

__all__ = ["attacked", "entra"]


def _changes(entra: Directory) -> list[tuple[str, str, dict[str, Any], str]]:
    """Return (method, path, request parts, current version) of each conditional change, on new resources."""
    made: list[tuple[str, str, dict[str, Any], str]] = []
    name = {"schemas": [PATCH_OP], "Operations": [{"op": "replace", "path": "displayName", "value": unique("new")}]}
    for method in ("PATCH", "PUT", "DELETE"):
        user, group = entra.user(), entra.group()
        whole = {"userName": user["userName"], "externalId": user["externalId"]}
        bodies = {"PATCH": (name, name), "PUT": (whole, {"displayName": unique("group")}), "DELETE": (None, None)}
        for path, resource, body in zip((USERS, GROUPS), (user, group), bodies[method], strict=True):
            more = {} if body is None else {"json": body}
            made.append((method, f"{path}/{resource['id']}", more, resource["meta"]["version"]))
    return made


@pytest.mark.generated
def test_every_conditional_change_checks_its_version(world: World, entra: Directory) -> None:
    changes = _changes(entra)
    world.quiet()
    before = world.rows()
    for method, path, more, _ in changes:
        answer = entra.scim.send(method, path, headers={"If-Match": 'W/"99"'}, **more)
        assert scim_error(answer)[0] == 412, (method, path)
    assert world.rows() == before
    for method, path, more, version in changes:
        answer = entra.scim.send(method, path, headers={"If-Match": version}, **more)
        assert answer.status_code in (200, 204), (method, path, answer.text)


@pytest.mark.parametrize("first", [None, "own"])
def test_idempotency_key_is_bound_to_its_precondition(entra: Directory, first: str | None) -> None:
    """The first request has no precondition or the current version; with another one, the retry is a new request."""
    for method, path, more, version in _changes(entra):
        key = {"Idempotency-Key": str(uuid.uuid4())}
        sent = key if first is None else {**key, "If-Match": version}
        done = entra.scim.send(method, path, headers=sent, **more)
        assert done.status_code in (200, 204), (method, path, done.text)
        again = entra.scim.send(method, path, headers=sent, **more)
        assert again.status_code == done.status_code, "the repeated request must get the recorded status"
        other = entra.scim.send(method, path, headers={**key, "If-Match": 'W/"99"'}, **more)
        assert other.status_code == 422, (method, path, other.text)
