# SPDX-License-Identifier: Apache-2.0
"""Many users in a few roles: their requests form a mixed load.

The development provider has few users. The other users get tokens signed with its key, from the data directory of the
measured stack.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
from joserfc import jwt
from joserfc.jwk import RSAKey
from joserfc.jws import extract_compact

from gateway.embedded.ready import Ready
from tests.bench.load import Request
from tests.bench.seeding import SCHEMA

_ROLES = 5


class Company:
    """`users` users, each in one of five roles, and the requests that they send.

    The first role may select in the whole warehouse, the second in `folder`, the third describes `folder`; the fourth
    may select single tables of it, and the fifth modify one. `folder` gets `tables` tables.
    """

    def __init__(self, stack: Ready, data: Path, client: httpx.Client, namespaces: str, *, users: int = 50) -> None:
        self._stack = stack
        self._client = client
        self._namespaces = namespaces
        self._tokens = [_token(stack, data, f"employee{number}") for number in range(users)]

    def requests(self, folder: str, tables: int) -> list[Request]:
        """Create everything through the gateway. Return the requests of all users in sending order; all of them
        succeed.
        """
        self._client.post(self._namespaces, json={"namespace": [folder]}).raise_for_status()
        base = f"{self._namespaces}/{folder}/tables"
        for number in range(tables):
            self._client.post(base, json={"name": f"t{number:03}", "schema": SCHEMA}).raise_for_status()
        listed = self._client.get(base, params={"returnUuids": "true"}).raise_for_status().json()["table-uuids"]
        roles = [self._role(f"bench role {number}") for number in range(_ROLES)]
        for number, token in enumerate(self._tokens):
            self._join(token, roles[number % _ROLES])
        warehouse = self._namespaces.rsplit("/", 2)[-2]
        folder_id = self._client.get(f"{self._namespaces}?returnUuids=true").raise_for_status().json()
        place = folder_id["namespace-uuids"][folder_id["namespaces"].index([folder])]
        self._grant(f"warehouse/{warehouse}", "select", roles[0])
        self._grant(f"namespace/{place}", "select", roles[1])
        self._grant(f"namespace/{place}", "describe", roles[2])
        for id in listed[:3]:
            self._grant(f"warehouse/{warehouse}/table/{id}", "select", roles[3])
        self._grant(f"warehouse/{warehouse}/table/{listed[0]}", "modify", roles[4])
        paths = [
            f"{self._stack.catalog_uri}/v1/config?warehouse={self._stack.warehouse}",
            self._namespaces,
            base,
            f"{base}/t000",
        ]
        plain = {"X-Iceberg-Access-Delegation": "client-managed"}
        requested = [("GET", path) for path in paths] + [("HEAD", f"{base}/t000")]
        return [
            Request(method=method, url=url, headers={"Authorization": f"Bearer {token}", **plain})
            for method, url in requested
            for token in self._tokens
        ]

    def _role(self, name: str) -> str:
        made = self._client.post(f"{self._stack.management_uri}/v1/role", json={"name": name})
        return str(made.raise_for_status().json()["id"])

    def _join(self, token: str, role: str) -> None:
        bearer = {"Authorization": f"Bearer {token}"}
        registered = httpx.post(
            f"{self._stack.management_uri}/v1/user", json={"name": "Employee"}, headers=bearer, trust_env=False
        )
        member = {"type": "user", "id": registered.raise_for_status().json()["id"]}
        url = f"{self._stack.management_uri}/v1/role/{role}/members"
        self._client.post(url, json={"members": [member]}).raise_for_status()

    def _grant(self, on: str, privilege: str, role: str) -> None:
        url = f"{self._stack.management_uri}/v1/permissions/{on}/assignments"
        self._client.post(url, json={"writes": [{"type": privilege, "role": role}]}).raise_for_status()


def _token(stack: Ready, data: Path, name: str) -> str:
    """Return a token of another user, in the form of the administrator's."""
    keys = data / "identity-provider" / "keys"
    token = stack.users["admin"].token
    claims = json.loads(extract_compact(token.encode()).payload)
    was, now = claims["sub"], int(time.time())
    claims = {key: name if value == was else value for key, value in claims.items()}
    claims |= {"iat": now, "nbf": now, "exp": now + 3600, "jti": name}
    header = {"alg": "RS256", "kid": (keys / "kid.txt").read_text().strip()}
    protected = extract_compact(token.encode()).headers()
    return jwt.encode({**protected, **header}, claims, RSAKey.import_key((keys / "rsa_private.pem").read_bytes()))


def interleaved(requests: Sequence[Request]) -> list[Request]:
    """Return the requests in an order that mixes users and kinds."""
    return [requests[(7 * number) % len(requests)] for number in range(len(requests))]
