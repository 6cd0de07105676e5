# SPDX-License-Identifier: Apache-2.0
"""Callers: one person or program each, who speak to the public HTTP API with a token of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx2

from gateway.embedded.errors import StackError
from gateway.embedded.ready import Ready

CALL_SECONDS = 30.0
DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}


class SetupRefused(StackError):
    """A step the demonstration rests on was refused; the message has the answer."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. ``body`` is None where there was none, or none that is JSON."""

    status: int
    body: Any

    @property
    def error(self) -> str:
        """The error's type, or an empty text."""
        return str(self._error().get("type", ""))

    @property
    def message(self) -> str:
        """The error's message, or an empty text."""
        return str(self._error().get("message", ""))

    def _error(self) -> dict[str, Any]:
        error = self.body.get("error") if isinstance(self.body, dict) else None
        return error if isinstance(error, dict) else {}

    def __str__(self) -> str:
        return f"{self.status} {self.error}".strip()


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a token (or without one). Paths start with ``catalog/`` or ``management/``."""

    name: str
    id: str
    token: str | None = field(repr=False)
    http: httpx2.AsyncClient = field(repr=False)
    base: str

    async def call(
        self, method: str, path: str, body: Any = None, *, params: dict[str, str] | None = None, vend: bool = False
    ) -> Reply:
        """One request; every status is an answer. ``vend``: ask for credentials to the storage."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token is not None else {}
        if vend:
            headers |= DELEGATION
        answer = await self.http.request(method, f"{self.base}/{path}", json=body, params=params, headers=headers)
        try:
            return Reply(answer.status_code, answer.json())
        except ValueError:
            return Reply(answer.status_code, None)

    async def must(self, method: str, path: str, body: Any = None, *, params: dict[str, str] | None = None) -> Any:
        """One request that has to succeed.

        Raises:
            SetupRefused: it did not.
        """
        reply = await self.call(method, path, body, params=params)
        if not 200 <= reply.status < 300:
            raise SetupRefused(f"{self.name}: {method} {path} was answered {reply}: {reply.message}")
        return reply.body


def callers(ready: Ready, http: httpx2.AsyncClient) -> dict[str, Caller]:
    """Everybody the stack knows, by name, and ``nobody``, who has no token."""
    base = ready.catalog_uri.removesuffix("/catalog")
    known = {name: Caller(name, user.id, user.token, http, base) for name, user in ready.users.items()}
    return known | {"nobody": Caller("nobody", "", None, http, base)}


@dataclass(frozen=True, slots=True)
class Lake:
    """The paths of one warehouse."""

    warehouse: str
    prefix: str

    def namespace(self, name: str) -> str:
        """A namespace (one level)."""
        return f"catalog/v1/{self.prefix}/namespaces/{quote(name, safe='')}"

    def table(self, ident: str) -> str:
        """A table, named ``namespace.table``."""
        namespace, _, name = ident.partition(".")
        return f"{self.namespace(namespace)}/tables/{quote(name, safe='')}"

    def assignments(self, kind: str, identity: str) -> str:
        """The assignments of the warehouse, of a namespace or of a table, by its id."""
        match kind:
            case "warehouse":
                return f"management/v1/permissions/warehouse/{self.prefix}/assignments"
            case "namespace":
                return f"management/v1/permissions/namespace/{identity}/assignments"
            case _:
                return f"management/v1/permissions/warehouse/{self.prefix}/table/{identity}/assignments"

    async def table_id(self, caller: Caller, ident: str) -> str:
        """The catalog's own id of a table, as ``caller`` may see it.

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
        """The catalog's own id of a namespace."""
        body = await caller.must("GET", self.namespace(name))
        return str(body["properties"]["namespace_id"])

    async def assign(self, caller: Caller, kind: str, identity: str, relation: str, user: Caller) -> Reply:
        """Let ``caller`` give ``user`` a relation."""
        return await caller.call(
            "POST", self.assignments(kind, identity), {"writes": [{"type": relation, "user": user.id}], "deletes": []}
        )

    async def withdraw(self, caller: Caller, kind: str, identity: str, relation: str, user: Caller) -> Reply:
        """Let ``caller`` take a relation from ``user``."""
        return await caller.call(
            "POST", self.assignments(kind, identity), {"writes": [], "deletes": [{"type": relation, "user": user.id}]}
        )


async def register(caller: Caller, warehouse: str) -> Reply:
    """The first call every client makes, by which a user becomes known."""
    return await caller.call("GET", "catalog/v1/config", params={"warehouse": warehouse})
