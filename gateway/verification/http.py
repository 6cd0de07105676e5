# SPDX-License-Identifier: Apache-2.0
"""POST of JSON to one server, with limits on the answer: the transport of webhooks and of the rule in OPA."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

import aiohttp

from gateway.verification.wire import (
    MOST_ANSWER_BYTES,
    ErrorStatus,
    InvalidAnswer,
    QuestionRefused,
    QuestionTooLarge,
    RefusedByRule,
)

_CHUNK: Final = 16_384
_LARGE: Final = 1_048_576
"""Bytes of a question. Servers often limit bodies to this size, and some end the connection instead of a status 413."""


class JsonPost:
    """POST JSON documents to `url`, without redirects, cookies, proxies and retries.

    A redirect could send the change, or the token in `headers`, to another server. `connections` limits the open
    connections. The first call opens a session in its event loop, and `close` closes it. `timeout` in seconds limits
    one call; the panel has a limit of its own.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        connections: int,
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._url = url
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._connections = connections
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            # A compressed answer could be small on the wire and large in memory.
            "Accept-Encoding": "identity",
            **(headers or {}),
        }
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
        """Return the body of the 200 response with the type application/json.

        Raises:
        - QuestionTooLarge, QuestionRefused: a status 4xx, or a connection that ended after a large question.
        - RefusedByRule: an answer that is too long.
        - InvalidAnswer: any other response; ErrorStatus for a status.
        - TimeoutError, and the errors of the connection.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls or True, limit=self._connections),
                timeout=self._timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                trust_env=False,
                auto_decompress=False,
            )
        try:
            return await self._answered(self._session, body, headers)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            if len(body) < _LARGE:
                raise
            raise QuestionRefused(f"the connection ended after a question of {len(body)} bytes") from error

    async def _answered(self, session: aiohttp.ClientSession, body: bytes, headers: Mapping[str, str] | None) -> bytes:
        async with session.post(self._url, data=body, headers=headers, allow_redirects=False) as response:
            if response.status == 413:
                raise QuestionTooLarge(f"the change has {len(body)} bytes, more than this verifier accepts")
            if 400 <= response.status < 500:
                raise QuestionRefused(f"the answer has the status {response.status} instead of 200")
            if response.status != 200:
                raise ErrorStatus(response.status)
            if response.content_type != "application/json":
                raise InvalidAnswer("the answer has not the type application/json")
            answer = bytearray()
            async for chunk in response.content.iter_chunked(_CHUNK):
                answer += chunk
                if len(answer) > MOST_ANSWER_BYTES:
                    raise RefusedByRule(f"the answer has more than {MOST_ANSWER_BYTES} bytes")
            return bytes(answer)

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
