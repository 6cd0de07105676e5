# SPDX-License-Identifier: Apache-2.0
"""Programs authenticate at the token endpoint of the stack by HTTP Basic or with a secret in the body."""

from __future__ import annotations

import json
from typing import Any

import httpx
import joserfc.jws
import pytest

from tests.support.stack.world import World

GRANT = {"grant_type": "client_credentials"}


def request(world: World, form: dict[str, Any], **more: Any) -> httpx.Response:
    """Send a request to the token endpoint."""
    return httpx.post(world.ready.token_endpoint, data={**GRANT, **form}, trust_env=False, timeout=30, **more)


def in_body(world: World, name: str, secret_of: str | None = None) -> dict[str, str]:
    """Return the form fields by which a client authenticates; with `secret_of`, with the secret of another client."""
    users = world.ready.users
    return {"client_id": users[name].client_id, "client_secret": users[secret_of or name].client_secret}


# Spark, Trino and PyIceberg request the scope `catalog` unless they are configured otherwise.
@pytest.mark.parametrize("form", [{}, {"scope": "catalog"}, {"scope": "openid"}])
def test_both_methods_give_a_token_of_the_client(world: World, form: dict[str, str]) -> None:
    alice = world.ready.users["alice"]
    posted = request(world, form | in_body(world, "alice"))
    basic = request(world, form, auth=(alice.client_id, alice.client_secret))
    for answer in (posted, basic):
        assert answer.status_code == 200, answer.text
        token = answer.json()["access_token"]
        assert json.loads(joserfc.jws.extract_compact(token.encode()).payload)["sub"] == "alice"
        whoami = httpx.get(
            f"{world.base}/management/v1/whoami", headers={"Authorization": f"Bearer {token}"}, trust_env=False
        )
        assert whoami.json()["id"] == world.alice.id


def test_wrong_and_foreign_secrets_are_refused(world: World) -> None:
    for form in (
        in_body(world, "alice", secret_of="bob"),
        in_body(world, "alice") | {"client_secret": "wrong"},
        in_body(world, "alice") | {"client_secret": ""},
        in_body(world, "alice") | {"client_id": "nobody"},
    ):
        answer = request(world, form)
        assert answer.status_code in (400, 401), answer.text
        assert answer.json()["error"] == "invalid_client"


def test_two_methods_in_one_request_are_refused(world: World) -> None:
    alice = world.ready.users["alice"]
    answer = request(world, in_body(world, "alice"), auth=(alice.client_id, alice.client_secret))
    assert answer.status_code == 401
    assert answer.json()["error"] == "invalid_client"


def test_unknown_scope_is_refused(world: World) -> None:
    answer = request(world, {"scope": "everything"} | in_body(world, "alice"))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_scope")
