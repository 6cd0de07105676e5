# SPDX-License-Identifier: Apache-2.0
"""Many users in a few roles: their requests form a mixed load, which is measured in three states of the caches.

The development provider has few users. The other users get tokens signed with its key, from the data directory of the
measured stack.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from joserfc import jwt
from joserfc.jwk import RSAKey
from joserfc.jws import extract_compact

from lakegate.local.ready import Ready
from tests.bench.generator import Sent
from tests.bench.load import Request
from tests.bench.seeding import SCHEMA

FIRST = "mix, first touch"
"""Before each slice the revision moves, which ends every cached allow. A slice is one request of each user and kind."""
NEW = "mix, new tables"
"""The users have sent `WARM_PASSES` passes of requests. Each further pass over the users asks for another table."""
STEADY = "mix, steady"
"""The same requests were sent in `WARM_PASSES` passes. Allows that end by their age are checked again."""
WARM_PASSES = 4
"""Each worker process has its own cache, and gets only its share of the requests of a pass."""
NAMES = (FIRST, NEW, STEADY)

_ROLES = 5
_USERS = 50
_TABLES = 100
_GRANTED_TABLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixes:
    """The mixed loads by name, the number of requests of one pass, and a function that ends every cached allow."""

    sent: dict[str, Sent]
    one_pass: int
    forget: Callable[[], None]


class Company:
    """Users, each in one of five roles, and the requests that they send. `name`: of the namespace and in other names.

    The first role may select in the whole warehouse, the second in a namespace, the third describes that namespace; the
    fourth may select single tables of it, and the fifth modify one. The namespace has a hundred tables. With
    `described`, every role also describes the warehouse, so that all users see all tables.
    """

    def __init__(
        self, stack: Ready, data: Path, client: httpx.Client, namespaces: str, *, name: str = "office"
    ) -> None:
        self._stack = stack
        self._client = client
        self._namespaces = namespaces
        self._name = name
        self._base = f"{namespaces}/{name}/tables"
        issuer = Issuer(stack, data)
        self._tokens = [issuer.token(f"{name}-employee{number}") for number in range(_USERS)]

    def mixes(self, *, described: bool = True) -> Mixes:
        """Create everything through the gateway. Return the requests of all users; all of them succeed."""
        self._client.post(self._namespaces, json={"namespace": [self._name]}).raise_for_status()
        for number in range(_TABLES):
            self._client.post(self._base, json={"name": f"t{number:03}", "schema": SCHEMA}).raise_for_status()
        roles = [self._role(f"bench {self._name} {number}") for number in range(_ROLES)]
        for number, token in enumerate(self._tokens):
            self._join(token, roles[number % _ROLES])
        self._grant_all(roles, described)
        # Without `describe` above, two of the roles can load only the first table.
        anything = self._requests("t{k}" if described else "t000" for _ in self._tokens)
        same = self._requests((f"t{2 * number:03}" if described else "t000") for number in range(_USERS))
        return Mixes(
            sent={
                FIRST: _mixed(anything, vary=_TABLES),
                NEW: _mixed(anything, vary=_TABLES),
                STEADY: _mixed(same, vary=1),
            },
            one_pass=len(anything),
            forget=lambda: self._forget(roles[0]),
        )

    def _requests(self, tables: Iterable[str]) -> list[Request]:
        """Return the requests of all users in sending order; element n of `tables` is the table of user n."""
        config = f"{self._stack.catalog_uri}/v1/config?warehouse={self._stack.warehouse}"
        plain = {"X-Iceberg-Access-Delegation": "client-managed"}
        by_user = [
            [
                Request(method=method, url=url, headers={"Authorization": f"Bearer {token}", **plain})
                for method, url in (
                    ("GET", config),
                    ("GET", self._namespaces),
                    ("GET", self._base),
                    ("GET", f"{self._base}/{table}"),
                    ("HEAD", f"{self._base}/{table}"),
                )
            ]
            for token, table in zip(self._tokens, tables, strict=True)
        ]
        return interleaved([request for kind in zip(*by_user, strict=True) for request in kind])

    def _grant_all(self, roles: list[str], described: bool) -> None:
        listed = self._client.get(self._base, params={"returnUuids": "true"}).raise_for_status().json()["table-uuids"]
        warehouse = self._namespaces.rsplit("/", 2)[-2]
        folders = self._client.get(f"{self._namespaces}?returnUuids=true").raise_for_status().json()
        place = folders["namespace-uuids"][folders["namespaces"].index([self._name])]
        self._grant(f"warehouse/{warehouse}", "select", roles[0])
        self._grant(f"namespace/{place}", "select", roles[1])
        self._grant(f"namespace/{place}", "describe", roles[2])
        for id in listed[:_GRANTED_TABLES]:
            self._grant(f"warehouse/{warehouse}/table/{id}", "select", roles[3])
        self._grant(f"warehouse/{warehouse}/table/{listed[0]}", "modify", roles[4])
        for role in roles if described else ():
            self._grant(f"warehouse/{warehouse}", "describe", role)

    def _forget(self, role: str) -> None:
        """Remove a member of a role, which moves the revision under which all allows are cached."""
        member = self._stack.users["carol"].id
        url = f"{self._stack.management_uri}/v1/role/{role}/members"
        self._client.post(url, json={"members": [{"type": "user", "id": member}]}).raise_for_status()
        self._client.delete(f"{url}/user/{member}").raise_for_status()

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


class Issuer:
    """Signs tokens with the key of the development provider, which is in the data directory of a stack."""

    def __init__(self, stack: Ready, data: Path) -> None:
        keys = data / "identity-provider" / "keys"
        admin = extract_compact(stack.users["admin"].token.encode())
        self._header = {**admin.headers(), "alg": "RS256", "kid": (keys / "kid.txt").read_text().strip()}
        self._claims = json.loads(admin.payload)
        # Read once: the library checks the key, which takes longer than a signature.
        self._key = RSAKey.import_key((keys / "rsa_private.pem").read_bytes())

    def token(self, name: str) -> str:
        """Return a token of another user, in the form of the administrator's."""
        was, now = self._claims["sub"], int(time.time())
        claims = {key: name if value == was else value for key, value in self._claims.items()}
        claims |= {"iat": now, "nbf": now, "exp": now + 3600, "jti": name}
        return jwt.encode(self._header, claims, self._key)


def _mixed(requests: list[Request], *, vary: int) -> Sent:
    return Sent(method="GET", url="", headers={}, mix=requests, vary=vary)


def interleaved(requests: Sequence[Request]) -> list[Request]:
    """Return the requests in an order that mixes users and kinds."""
    return [requests[(7 * number) % len(requests)] for number in range(len(requests))]
