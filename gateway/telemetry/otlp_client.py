# SPDX-License-Identifier: Apache-2.0
"""Send spans, metrics or logs to a collector by OTLP over HTTP."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final, Self

import aiohttp

JSON: Final = "application/json"
PROTOBUF: Final = "application/x-protobuf"
_MOST_BYTES: Final = 65_536
_RETRYABLE: Final = frozenset({429, 502, 503, 504})
"""The statuses that the specification of OTLP/HTTP lists as retryable."""
_LONGEST_RETRY_AFTER: Final = 300.0


class CollectorUnavailable(Exception):
    """The collector did not accept a request now. `retry_after` is its own proposal in seconds, None if absent."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class CollectorRefused(Exception):
    """The collector refuses the request permanently: for example because its address, its token or its size is
    wrong.
    """


class OtlpClient:
    """A client that uses no redirects, no cookies, and no proxy from the environment.

    Use it inside the running event loop: `async with OtlpClient(…) as send`. `url` is the whole address, `encoding` the
    type of the bodies (`JSON` or `PROTOBUF`), and `timeout` the limit in seconds of a request with its response.
    """

    def __init__(
        self, url: str, *, encoding: str, headers: Mapping[str, str], timeout: float, tls: ssl.SSLContext | None
    ) -> None:
        self._url = url
        # A compressed response is not requested: a small one could fill the memory when it is decompressed.
        self._headers = {**headers, "Content-Type": encoding, "Accept-Encoding": "identity"}
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls or True),
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            headers=self._headers,
        )
        return self

    async def __aexit__(self, *_exc: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __call__(self, body: bytes) -> bytes:
        """Send a request and return the response. Raises CollectorUnavailable and CollectorRefused.

        A response is cut off after 64 KiB. A redirect is refused: its target would receive the headers and the data.
        """
        if self._session is None:
            raise CollectorUnavailable("the client is not open")
        try:
            async with self._session.post(self._url, data=body, allow_redirects=False) as answer:
                if answer.status in _RETRYABLE:
                    after = _seconds(answer.headers.get("Retry-After"))
                    raise CollectorUnavailable(f"the collector answered with status {answer.status}", after)
                if answer.status // 100 != 2:
                    raise CollectorRefused(f"the collector answered with status {answer.status}")
                return await _bounded(answer)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise CollectorUnavailable(f"the collector does not answer: {type(error).__name__}") from error


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body, or its first 64 KiB. The connection of a longer body is closed."""
    body = bytearray()
    while len(body) < _MOST_BYTES and (chunk := await answer.content.read(_MOST_BYTES - len(body))):
        body += chunk
    return bytes(body)


def _seconds(header: str | None) -> float | None:
    """Return the seconds in `Retry-After`, limited; None for a date or an invalid value."""
    if header is None or not header.isascii() or not header.isdigit() or len(header) > 9:
        return None
    return min(float(header), _LONGEST_RETRY_AFTER)
