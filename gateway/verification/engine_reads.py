# SPDX-License-Identifier: Apache-2.0
"""Read the canary table of a probe through an engine, at the address that the operator of the gateway has configured.

A probe tests whether the engine hides values that it must hide. The gateway itself sends the query and receives the
response. If a principal posted the output of an engine instead, it could have computed the expected output from the
values.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from uuid import UUID

import aiohttp

from gateway.access.operations.engine_probes import MAX_OUTPUT

_PAGE_BYTES: Final = 4 * MAX_OUTPUT
_ALL: Final = "select * from {}"
STATEMENTS: Final = (
    "select shown, masked, kept from {}",
    _ALL,
    "select shown, masked from {} where not kept",
    "select min(masked), max(masked), min(shown), max(shown) from {}",
    "select cast(masked as integer) from {}",
    "select hidden from {}",
    "select cast(hidden as integer) from {}",
    "select min(hidden), max(hidden) from {}",
    "show stats for {}",
)
"""Statements about a table. The first one must show every permitted value. The others try to show hidden ones."""


class EngineNotReached(Exception):
    """The engine did not respond at its address, so the probe has no result."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A user of an engine: its id, and the bearer token for the engine."""

    id: str
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """The address at which the gateway reads through an engine. `engine` is the engine's own user id at the gateway.

    `warehouse_id` is None for all warehouses. `catalog` is Trino's name for the warehouse. `user` is restricted on
    canary tables, and `control` may read them completely.
    """

    engine: str
    url: str
    kind: Literal["trino", "http"]
    user: Reader
    control: Reader
    catalog: str
    warehouse_id: UUID | None = None


class EngineReads:
    """Reads canary tables through the engines whose addresses the operator has configured."""

    def __init__(self, addresses: Sequence[EngineAddress], tls: ssl.SSLContext | None = None) -> None:
        self._addresses = tuple(addresses)
        self._tls = tls

    def address_of(self, engine: str, warehouse_id: UUID) -> EngineAddress | None:
        """Return the address of an engine for a warehouse; None if the operator configures none."""
        for each in self._addresses:
            if each.engine == engine and each.warehouse_id in (None, warehouse_id):
                return each
        return None

    async def read(self, address: EngineAddress, namespace: str, table: str, *, control: bool) -> str:
        """Return everything that the engine returns about the canary table to its test user, or to the control user.

        If the output exceeds the limit, return an empty text. The caller limits the time. Raises EngineNotReached.
        """
        reader = address.control if control else address.user
        try:
            async with self._session(reader) as session:
                if address.kind == "http":
                    query = {"namespace": namespace, "table": table, "user": reader.id}
                    output = (await _body(await session.get(address.url, params=query, allow_redirects=False))).decode()
                else:
                    output = await _trino(session, address, reader, f'"{namespace}"."{table}"', control=control)
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise EngineNotReached(f"the engine at {address.url} did not answer: {type(error).__name__}") from None
        return output if len(output) <= MAX_OUTPUT else ""

    @asynccontextmanager
    async def _session(self, reader: Reader) -> AsyncIterator[aiohttp.ClientSession]:
        headers = {} if reader.token is None else {"Authorization": f"Bearer {reader.token}"}
        tls = True if self._tls is None else self._tls
        async with aiohttp.ClientSession(
            headers=headers, connector=aiohttp.TCPConnector(ssl=tls), cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            yield session


async def _trino(
    session: aiohttp.ClientSession, address: EngineAddress, reader: Reader, table: str, *, control: bool
) -> str:
    headers = {"X-Trino-User": reader.id.partition("~")[2] or reader.id, "X-Trino-Source": "lakegate-engine-probe"}
    if reader.token is not None:
        headers["X-Trino-Extra-Credential"] = f"urn:ietf:params:oauth:token-type:access_token={reader.token}"
    base, on = address.url.rstrip("/"), f'"{address.catalog}".{table}'
    statements = [each.format(on) for each in ((_ALL,) if control else STATEMENTS)]
    # All statements run at the same time: each takes a second or more, and the probe has to end before the request
    # does.
    found = await asyncio.gather(*(_shown(session, base, each, headers) for each in statements))
    return "\n".join(line for lines in found for line in lines)


async def _shown(
    session: aiohttp.ClientSession, base: str, statement: str, headers: Mapping[str, str]
) -> Sequence[str]:
    """Return the rows and the error message of a statement."""
    found: list[str] = []
    answer = await session.post(f"{base}/v1/statement", data=statement, headers=headers)
    while True:
        page: Mapping[str, Any] = json.loads(await _body(answer))
        found += [" ".join(map(str, row)) for row in page.get("data", ())]
        if "error" in page:
            found.append(str(page["error"].get("message")))
        url = page.get("nextUri")
        if url is None:
            return found
        # A page at another address could come from another server than the engine.
        if not url.startswith(f"{base}/"):
            raise ValueError("the engine's next page is at another address")
        answer = await session.get(url, headers=headers, allow_redirects=False)


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body of a response with status 200. Raises ValueError for another status, and for a body above the
    limit.
    """
    async with answer:
        if answer.status != 200:
            raise ValueError(f"status {answer.status}")
        body = await answer.content.read(_PAGE_BYTES)
        if not answer.content.at_eof():
            chunks = [body]
            while not answer.content.at_eof():
                chunks.append(await answer.content.read(_PAGE_BYTES))
                if sum(map(len, chunks)) > _PAGE_BYTES:
                    raise ValueError("the engine's answer is too long")
            body = b"".join(chunks)
        return body
