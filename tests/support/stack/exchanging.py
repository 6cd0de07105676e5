# SPDX-License-Identifier: Apache-2.0
"""Token exchange on behalf of users, as engines do it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.support.stack.world import Person, World

TOKENS = "/catalog/v1/oauth/tokens"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
JWT = "urn:ietf:params:oauth:token-type:jwt"


def b64(value: bytes) -> str:
    """Return data in base64url without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def unsigned(subject: object, **claims: Any) -> str:
    """Return the JWT by which Trino names a user: `alg` none and no signature."""
    header = b64(json.dumps({"alg": "none"}).encode())
    return f"{header}.{b64(json.dumps({'sub': subject, 'iss': '476', **claims}).encode())}."


def send(world: World, bearer: str | None, *, base: str | None = None, **form: str) -> httpx.Response:
    """Send a token exchange request to the world's gateway, or to the one at `base`.

    The helper fills in only `grant_type` and the type of the subject token.
    """
    fields = {"grant_type": EXCHANGE, "subject_token_type": JWT} | form
    headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
    return httpx.post(
        f"{base or world.base}{TOKENS}",
        data={name: value for name, value in fields.items() if value},
        headers=headers,
        trust_env=False,
        timeout=60,
    )


def acting(world: World, engine: Person, user: Person, *, proven: bool = True) -> Person:
    """Return the user with a token that the engine exchanged on the user's behalf."""
    token = user.token if proven else unsigned(user.id.partition("~")[2])
    answer = send(world, engine.token, subject_token=token, scope="catalog")
    assert answer.status_code == 200, answer.text
    return Person(f"{engine.name} for {user.name}", user.id, answer.json()["access_token"], world.base)


@contextmanager
def delegating(world: World, engine: Person, kind: str, id: str) -> Iterator[None]:
    """Grant the engine `delegate` on the object during the block."""
    world.grant("delegate", engine, kind, id)
    try:
        yield
    finally:
        world.revoke("delegate", engine, kind, id)


def last_record(world: World, operation: str) -> str:
    """Return the newest audit record of an operation."""
    rows = world.sql(
        "select convert_from(record, 'UTF8') as record from audit_log where operation = $1 order by at desc limit 1",
        operation,
    )
    return str(rows[0]["record"])
