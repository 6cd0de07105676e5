# SPDX-License-Identifier: Apache-2.0
"""A running gateway accepts a token that is bound to a client certificate only with the header of a trusted proxy."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import datetime

import httpx
import pytest

from tests.support.load.kills import Killable, soon
from tests.support.stack.world import World

pytestmark = pytest.mark.servers

_WHOAMI = "/management/v1/whoami"
_CERTIFICATE = b"\x30\x82 the certificate of the client"
_CNF = {"x5t#S256": base64.urlsafe_b64encode(hashlib.sha256(_CERTIFICATE).digest()).rstrip(b"=").decode()}
_COUNTED = "select convert_from(record, 'utf8') from audit_log where operation = 'authenticate' and at >= $1"


def _header(certificate: bytes) -> tuple[str, str]:
    return ("Client-Cert", f":{base64.b64encode(certificate).decode()}:")


def _statuses(world: World, token: str) -> list[int]:
    """Return the statuses of a request with the certificate, without, with another one, and with two headers."""
    sent = [[_header(_CERTIFICATE)], [], [_header(b"another")], [_header(b"another"), _header(_CERTIFICATE)]]
    with httpx.Client(base_url=world.base, trust_env=False, timeout=60) as client:
        authorization = ("Authorization", f"Bearer {token}")
        return [client.get(_WHOAMI, headers=[authorization, *some]).status_code for some in sent]


def _reasons(world: World, since: datetime) -> set[str]:
    return {json.loads(record)["detail"]["reason"] for (record,) in world.sql(_COUNTED, since)}


@pytest.mark.threat("LG-AUT-17")
def test_a_bound_token_needs_the_certificate_from_a_trusted_proxy(stopped_gateway: Killable) -> None:
    settings = {"BOUND_TOKENS__CERTIFICATE_HEADER": "Client-Cert", "AUDIT__REFUSED_LOGINS": "0.5"}
    trusted = {"BOUND_TOKENS__PROXY_NETWORKS": "127.0.0.0/8", "BOUND_TOKENS__REQUIRED_FOR": "oidc~bob"}
    with stopped_gateway.serving(**settings, **trusted) as world:
        [(began,)] = world.sql("select now()")
        bound = world.person_with("alice", cnf=_CNF).token
        assert _statuses(world, bound) == [200, 401, 401, 401]
        assert _statuses(world, world.people["alice"].token) == [200] * 4
        assert _statuses(world, world.people["bob"].token) == [401] * 4
        soon(lambda: _reasons(world, began) == {"binding"}, "the refusals are recorded")
    with stopped_gateway.serving(**settings, BOUND_TOKENS__PROXY_NETWORKS="192.0.2.0/24") as world:
        assert _statuses(world, bound) == [401] * 4
