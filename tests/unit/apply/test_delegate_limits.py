# SPDX-License-Identifier: Apache-2.0
"""Limits of `delegate` in a file: apply never widens a grant whose limits the file does not state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from gateway.apply.client import Api
from gateway.apply.export import document_of
from gateway.apply.grants import GRANTS
from gateway.apply.kinds import Executor, desired_state, read_all
from gateway.apply.planner import plan
from gateway.apply.session import Located, Reading
from gateway.apply.source import InvalidSource
from gateway.apply.state import Address, Kind, Resource, State

PROJECT = Address(Kind.PROJECT, "shop")
CARL = {"users": ["oidc~carl"], "administrators": False}
FILE = "projects: [{name: shop, grants: [{privilege: %s, user: oidc~trino, reason: new%s}]}]"


def entry(limits: Mapping[str, Any], by: str = "oidc~me") -> dict[str, Any]:
    """Return an entry of the list of grants."""
    principal = {"user": "oidc~trino"}
    return {"privilege": "delegate", "principal": principal, "granted-by": by, "reason": "old", "acts-for": limits}


def apply(entries: list[dict[str, Any]], limits: str = "") -> tuple[list[dict[str, Any]], State]:
    """Apply a file with another reason and these limits; return (the bodies of changes, the state before it)."""
    sent: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            sent.append(json.loads(request.content))
            return httpx2.Response(204)
        body = {"id": "oidc~me", "roles": []} if "/grants" not in request.url.path else {"grants": entries}
        return httpx2.Response(200, json=body)

    api, located = Api("http://gateway/", "token", transport=httpx2.MockTransport(answer)), Located()
    located.add(PROJECT, "shop")
    desired = desired_state(read_all({"file.yaml": FILE % ("delegate", limits)}), now=datetime(2026, 1, 1, tzinfo=UTC))
    found = [Resource(PROJECT, {"name": "shop"}), *GRANTS.on(Reading(api, located, wanted=desired), PROJECT)]
    present = State({each.address: each for each in found}, frozenset({(Kind.GRANT, PROJECT)}))
    executor = Executor(api, present, located, secrets=None, variables=lambda name: None)
    for change in plan(desired, present).changes:
        list(executor.run([change]))
    return sent, present


def test_unstated_limits_are_kept_when_another_field_changes() -> None:
    """A grant without limits would let the engine act for every user."""
    [sent], _ = apply([entry(CARL)])
    assert sent["writes"][0]["acts-for"] == CARL
    [sent], _ = apply([entry(CARL, by="oidc~other")])
    assert sent["writes"][0]["acts-for"] == CARL


def test_stated_limits_replace_those_of_every_grantor() -> None:
    """Grants are a union: the entry of another grantor would still include its users."""
    revoked, given = apply([entry(CARL), entry({"administrators": True}, by="oidc~other")], ", acts-for: {}")[0]
    assert "deletes" in revoked and given["writes"][0]["acts-for"] == {}


def test_export_states_the_limits() -> None:
    for limits in (CARL, {"administrators": True}):
        _, present = apply([entry(limits)])
        [grant] = document_of(present)["projects"][0]["grants"]
        assert {"administrators": False, **grant["acts-for"]} == limits


def test_limits_of_another_privilege_are_refused() -> None:
    with pytest.raises(InvalidSource, match="limits only the privilege delegate"):
        desired_state(read_all({"f.yaml": FILE % ("describe", ", acts-for: {}")}), now=datetime(2026, 1, 1, tzinfo=UTC))
