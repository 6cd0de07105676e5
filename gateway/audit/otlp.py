# SPDX-License-Identifier: Apache-2.0
"""The client of a collector that receives OTLP logs over HTTP."""

from __future__ import annotations

import ssl
from typing import Final, Self

import aiohttp

_MOST_BYTES: Final = 65_536
_RETRYABLE: Final = frozenset({429, 502, 503, 504})
"""The statuses that the specification of OTLP/HTTP lists as retryable."""
_LONGEST_RETRY_AFTER: Final = 300.0


class CollectorUnavailable(Exception):
    """The collector did not accept a request now. `retry_after` is its own proposal in seconds, None without one."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class CollectorRefused(Exception):
    """The collector refuses the request as it is: for example its address, its token or its size is wrong."""


class OtlpCollector:
    """A client without redirects, cookies, or a proxy from the environment.

    Use it inside the running event loop: `async with OtlpCollector(…) as send`. `endpoint` is the address without
    `/v1/logs`, `token` a bearer token, and `timeout` the limit of one request in seconds.
    """

    def __init__(self, endpoint: str, *, token: str | None, timeout: float, tls: ssl.SSLContext | None) -> None:
        self._url = endpoint.rstrip("/") + "/v1/logs"
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls or True),
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            headers=self._headers,
        )
        return self

    async def __aexit__(self, *_exc: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __call__(self, body: bytes) -> bytes:
        """Send a request and return the start of the response. Raises CollectorUnavailable and CollectorRefused."""
        if self._session is None:
            raise CollectorUnavailable("the client is not open")
        try:
            async with self._session.post(self._url, data=body, allow_redirects=False) as answer:
                if answer.status in _RETRYABLE:
                    after = _seconds(answer.headers.get("Retry-After"))
                    raise CollectorUnavailable(f"the collector answered with status {answer.status}", after)
                if answer.status // 100 != 2:
                    raise CollectorRefused(f"the collector answered with status {answer.status}")
                return await answer.content.read(_MOST_BYTES)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise CollectorUnavailable(f"the collector does not answer: {type(error).__name__}") from error


def _seconds(header: str | None) -> float | None:
    """Return the seconds in `Retry-After`, limited; None for a date or an invalid value."""
    if header is None or not header.isascii() or not header.isdigit() or len(header) > 9:
        return None
    return min(float(header), _LONGEST_RETRY_AFTER)
