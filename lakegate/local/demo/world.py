# SPDX-License-Identifier: Apache-2.0
"""State and requests that the trials of the demonstration share: callers, names of tables, and the Spark engine.

A caller is a user or program that calls the public HTTP API with its own token.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx2

from lakegate.local.demo.board import Observation
from lakegate.local.demo.keys import VendedKey, vended
from lakegate.local.demo.spark import Worker
from lakegate.local.errors import StackError
from lakegate.local.ready import Ready

CALL_SECONDS = 30.0
DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}


class SetupRefused(StackError):
    """A request that prepares the demonstration was refused. The message contains the response."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response. ``body`` is the decoded JSON, or None if the response is not JSON."""

    status: int
    body: Any

    @property
    def error(self) -> str:
        """Return the type of the error, or an empty text if there is none."""
        return str(self._error().get("type", ""))

    @property
    def message(self) -> str:
        """Return the message of the error, or an empty text if there is none."""
        return str(self._error().get("message", ""))

    def _error(self) -> dict[str, Any]:
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return error if isinstance(error, dict) else {}

    def __str__(self) -> str:
        return f"{self.status} {self.error}".strip()


@dataclass(frozen=True, slots=True)
class Caller:
    """A user or a program, with a token or without one. Paths start with ``catalog/`` or ``management/``."""

    name: str
    id: str
    token: str | None = field(repr=False)
    http: httpx2.AsyncClient = field(repr=False)
    base: str

    async def call(
        self, method: str, path: str, body: Any = None, *, params: dict[str, str] | None = None, vend: bool = False
    ) -> Reply:
        """Send one request, and return its response whatever its status is. ``vend``: request storage credentials."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token is not None else {}
        if vend:
            headers |= DELEGATION
        answer = await self.http.request(method, f"{self.base}/{path}", json=body, params=params, headers=headers)
        try:
            return Reply(answer.status_code, answer.json())
        except ValueError:
            return Reply(answer.status_code, None)

    async def must(self, method: str, path: str, body: Any = None, *, params: dict[str, str] | None = None) -> Any:
        """Send one request that must succeed, and return the body of the response.

        Raises:
            SetupRefused: the status is not 2xx.
        """
        reply = await self.call(method, path, body, params=params)
        if not 200 <= reply.status < 300:
            raise SetupRefused(f"{self.name}: {method} {path} was answered {reply}: {reply.message}")
        return reply.body


def callers(ready: Ready, http: httpx2.AsyncClient) -> dict[str, Caller]:
    """Return {name: caller} for each user of the stack, and for ``nobody``, which has no token."""
    base = ready.catalog_uri.removesuffix("/catalog")
    known = {name: Caller(name, user.id, user.token, http, base) for name, user in ready.users.items()}
    return known | {"nobody": Caller("nobody", "", None, http, base)}


@dataclass(frozen=True, slots=True)
class Lake:
    """The paths of one warehouse in the HTTP API."""

    warehouse: str
    prefix: str

    def namespace(self, name: str) -> str:
        """Return the path of a namespace with one level."""
        return f"catalog/v1/{self.prefix}/namespaces/{quote(name, safe='')}"

    def table(self, ident: str) -> str:
        """Return the path of a table. ``ident`` is ``namespace.table``."""
        namespace, _, name = ident.partition(".")
        return f"{self.namespace(namespace)}/tables/{quote(name, safe='')}"

    def assignments(self, kind: str, identity: str) -> str:
        """Return the path of the assignments on the warehouse, or on a namespace or table whose id is ``identity``."""
        match kind:
            case "warehouse":
                return f"management/v1/permissions/warehouse/{self.prefix}/assignments"
            case "namespace":
                return f"management/v1/permissions/namespace/{identity}/assignments"
            case _:
                return f"management/v1/permissions/warehouse/{self.prefix}/table/{identity}/assignments"

    async def table_id(self, caller: Caller, ident: str) -> str:
        """Return the id of a table, which ``caller`` finds in its list of tables.

        Raises:
            SetupRefused: the caller cannot see the table.
        """
        namespace, _, name = ident.partition(".")
        body = await caller.must("GET", f"{self.namespace(namespace)}/tables", params={"returnUuids": "true"})
        found = {
            identifier["name"]: str(uuid)
            for identifier, uuid in zip(body["identifiers"], body["table-uuids"], strict=True)
        }
        if name not in found:
            raise SetupRefused(f"{caller.name} does not see {ident}")
        return found[name]

    async def namespace_id(self, caller: Caller, name: str) -> str:
        """Return the id of a namespace.

        Raises:
            SetupRefused: the caller cannot see the namespace.
        """
        body = await caller.must("GET", self.namespace(name))
        return str(body["properties"]["namespace_id"])

    async def assign(self, caller: Caller, kind: str, identity: str, relation: str, user: Caller) -> Reply:
        """Grant ``user`` a relation, as ``caller``."""
        return await caller.call(
            "POST", self.assignments(kind, identity), {"writes": [{"type": relation, "user": user.id}], "deletes": []}
        )

    async def revoke(self, caller: Caller, kind: str, identity: str, relation: str, user: Caller) -> Reply:
        """Revoke a relation of ``user``, as ``caller``."""
        return await caller.call(
            "POST", self.assignments(kind, identity), {"writes": [], "deletes": [{"type": relation, "user": user.id}]}
        )


async def register(caller: Caller, warehouse: str) -> Reply:
    """Request the configuration of the catalog, which is the first request of every client. It registers the user."""
    return await caller.call("GET", "catalog/v1/config", params={"warehouse": warehouse})


GOLD = "gold.route_punctuality"
OTHER_GOLD = "gold.aircraft_utilisation"
CONTRACT_GOLD = "gold.carrier_delays_by_weather"
SILVER = "silver.flights"
SHARED_SILVER = "silver.weather"


@dataclass(slots=True)
class World:
    """A running stack after the pipeline. ``vended_keys`` contains the storage keys that trials received, by table."""

    ready: Ready
    people: dict[str, Caller]
    lake: Lake
    spark: Worker
    vended_keys: dict[str, VendedKey] = field(default_factory=dict)

    async def load(self, caller: str, ident: str, *, vend: bool = False) -> Reply:
        """Load a table as ``caller``. ``vend``: request storage credentials."""
        return await self.people[caller].call("GET", self.lake.table(ident), vend=vend)

    async def metadata_location(self, caller: str, ident: str) -> str:
        """Return the location of the table's current metadata file."""
        body = await self.people[caller].must("GET", self.lake.table(ident))
        return str(body["metadata-location"])

    async def key_for(self, caller: str, ident: str) -> VendedKey:
        """Return a new storage key for the table, and record it in ``vended_keys``.

        Raises:
            SetupRefused: the catalog vended none.
        """
        reply = await self.load(caller, ident, vend=True)
        key = vended(reply.body) if reply.status == 200 else None
        if key is None:
            raise SetupRefused(f"{caller} was given no key for {ident}: {reply}")
        self.vended_keys[ident] = key
        return key

    async def count(self, caller: str, ident: str) -> str | None:
        """Return the number of rows that Spark counts in a new session of ``caller``; None if the statement failed."""
        answer = await self.spark.query(self._token(caller), f"SELECT count(*) FROM {ident}")  # noqa: S608 - a constant
        return None if answer.error else str(answer.rows[0][0])

    async def statement_refused(self, caller: str, statement: str, signs: tuple[str, ...]) -> Observation:
        """Run a statement that must fail with an error that contains one of the ``signs``."""
        answer = await self.spark.query(self._token(caller), statement)
        if answer.error is None:
            return Observation(False, f"it worked: {answer.rows[:1]}")
        text = f"{answer.error} {answer.message or ''}"
        return Observation(any(sign in text for sign in signs), answer.refusal())

    def _token(self, caller: str) -> str:
        token = self.people[caller].token
        if token is None:
            raise SetupRefused(f"{caller} has no token")
        return token


def same_status(reply: Reply, status: int, error: str | None = None) -> Observation:
    """Return the observation of a response. It is expected if it has this status and, if ``error`` is given, this type
    of error.
    """
    return Observation(reply.status == status and error in (None, reply.error), str(reply))


def clock(milliseconds: int) -> str:
    """Format a time, in milliseconds since 1970, as HH:MM:SSZ in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%H:%M:%SZ")


def minutes_left(milliseconds: int) -> float:
    """Return the minutes from now until a time in milliseconds since 1970."""
    return (milliseconds / 1000 - datetime.now(UTC).timestamp()) / 60


def names(identifiers: list[dict[str, Any]]) -> list[str]:
    """Return the sorted names of table identifiers."""
    return sorted(str(identifier["name"]) for identifier in identifiers)
