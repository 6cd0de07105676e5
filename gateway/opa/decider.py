# SPDX-License-Identifier: Apache-2.0
"""Puts the gateway's questions to OPA and takes nothing but whole, well-formed answers."""

from __future__ import annotations

import asyncio
import ssl
from typing import TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.policy import PolicyAnswer, PolicyAnswers, PolicyRequest
from gateway.opa.answers import Decided, Failed

# The only paths that are ever asked. They are constants, so that no name of a user can become a path or a piece of Rego
# (CVE-2025-46569). Without the parameter an error of a built-in function makes a rule undefined: it would deny nothing.
_DECISIONS = "/v1/data/gateway/decisions?strict-builtin-errors=true"
_REVISION = "/v1/data/system/revision/current"
_HEALTH = "/health"

_PAUSE_S = 0.3
"""Before the one repetition: a decision changes nothing, so it may be asked again, within the timeout of the call."""

Answer = TypeVar("Answer")


class _Asked(msgspec.Struct, frozen=True):
    input: PolicyRequest | None


class _Revision(msgspec.Struct, frozen=True):
    result: str | None = None


class OpaDecider:
    """Query `data.gateway.decisions` of the OPA at `endpoint` (`http://host:port` or `https://host:port`).

    `token` is the gateway's bearer token for OPA (`policies/system/authz.rego`); `timeout_s` bounds one whole call, its
    retry included. The connection is kept alive and opened in the event loop of the first call; close it with `aclose`.
    """

    def __init__(
        self, endpoint: str, token: str | None, *, timeout_s: float, tls: ssl.SSLContext | None = None
    ) -> None:
        self._tls = tls
        host, port, secure = _parts(endpoint)
        self._url = f"{'https' if secure else 'http'}://{host}:{port}"
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        """One answer per question of `request`, in order.

        Raises DecisionEngineUnavailable when OPA does not answer in time, or answers anything but exactly one whole
        answer per question: silence on one of several questions is no permission (LG-DEC-23).
        """
        return (await self.ask(request)).decisions

    async def ask(self, request: PolicyRequest) -> PolicyAnswers:
        """As `decide`, with the policies' promise of how long the answers hold, if they give one."""
        given = _decoded(await self._query(_DECISIONS, request), Decided).result
        if given is msgspec.UNSET:
            raise DecisionEngineUnavailable(
                "The policies gave no decision: data.gateway.decisions is undefined for this input."
            )
        try:
            answers = given.understood()
        except ValueError as odd:
            raise DecisionEngineUnavailable(f"OPA answered with an obligation that is not understood: {odd}") from odd
        if len(answers.decisions) != len(request.questions):
            raise DecisionEngineUnavailable(
                f"OPA was asked {len(request.questions)} questions and answered {len(answers.decisions)}."
            )
        return answers

    async def revision(self) -> str | None:
        """Return the revision of OPA's policies and policy data; None if it cannot be determined.

        Raises DecisionEngineUnavailable.
        """
        return _decoded(await self._query(_REVISION, None), _Revision).result or None

    async def ping(self) -> None:
        """Return if OPA answers and knows the gateway's token. Raises DecisionEngineUnavailable if not."""
        try:
            async with asyncio.timeout(self._timeout_s):
                status, _, _ = await self._send("GET", _HEALTH, None)
                healthy = status == 200
        except (TimeoutError, aiohttp.ClientError, OSError):
            healthy = False
        if not healthy:
            raise DecisionEngineUnavailable(
                "OPA does not answer its health check, or does not know the gateway's token."
            )

    async def aclose(self) -> None:
        """Close the connections. A later call opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _query(self, path: str, question: PolicyRequest | None) -> bytes:
        """The body of OPA's answer. Raises DecisionEngineUnavailable."""
        # The errors of the HTTP client hold the request with its bearer token. None of them is chained to what is
        # raised here, so that no log can print it.
        body = msgspec.json.encode(_Asked(question))
        try:
            async with asyncio.timeout(self._timeout_s):
                status, media_type, answer = await self._send_twice(path, body)
        except TimeoutError:
            reason = f"OPA did not answer within {self._timeout_s} s."
        except (aiohttp.ClientError, OSError) as error:
            reason = f"OPA cannot be reached ({type(error).__name__})."
        else:
            if status == 200 and media_type == "application/json":
                return answer
            place = _failed_at(status, answer)
            if place is None:
                reason = f"OPA answered with status {status} or with something that is not JSON."
            else:
                reason = f"A policy failed for this input: {place}."
        raise DecisionEngineUnavailable(reason)

    async def _send_twice(self, path: str, body: bytes) -> tuple[int, str, bytes]:
        """The second answer if the first is a failure of the server or of the connection."""
        try:
            first = await self._send("POST", path, body)
        except aiohttp.ClientConnectorError:
            await asyncio.sleep(_PAUSE_S)
        except (aiohttp.ClientConnectionError, ConnectionResetError):
            # A kept connection that the server has closed meanwhile: a new one answers at once.
            pass
        else:
            status, _, answer = first
            if status < 500 or _failed_at(status, answer) is not None:
                return first
            await asyncio.sleep(_PAUSE_S)
        return await self._send("POST", path, body)

    async def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, str, bytes]:
        """(status, media type, body)."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers, connector=aiohttp.TCPConnector(ssl=self._tls or True)
            )
        # A redirect would carry the token to wherever it points.
        async with self._session.request(method, self._url + path, data=body, allow_redirects=False) as response:
            return response.status, response.content_type, await response.read()


def _decoded(body: bytes, kind: type[Answer]) -> Answer:
    """The answer of OPA's data API in `body`. Raises DecisionEngineUnavailable for anything else."""
    try:
        return msgspec.json.decode(body, type=kind, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecisionEngineUnavailable(f"The policies gave something that is no decision: {error}.") from None


def _failed_at(status: int, body: bytes) -> str | None:
    """Return where the evaluation of a policy failed, None when the answer does not say that it failed there.

    A failure in a policy is the same for the same input, so it is not tried again. The message of the error is left
    out: it may quote the input.
    """
    if status != 500:
        return None
    try:
        failed = msgspec.json.decode(body, type=Failed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return ", ".join(f"{each.code} at {each.location.file}:{each.location.row}" for each in failed.errors) or None


def _parts(endpoint: str) -> tuple[str, int, bool]:
    """(host, port, TLS) of `endpoint`. Raises ValueError for anything but a scheme, a host and a port."""
    url = urlsplit(endpoint)
    more = url.username or url.password or url.query or url.fragment or url.path not in ("", "/")
    if url.scheme not in ("http", "https") or not url.hostname or more:
        raise ValueError("The address of OPA must be http://host:port or https://host:port, and nothing more.")
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    return host, url.port or (443 if url.scheme == "https" else 80), url.scheme == "https"
