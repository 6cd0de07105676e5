# SPDX-License-Identifier: Apache-2.0
"""Puts the gateway's questions to OPA and takes nothing but whole, well-formed answers."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
from opa_client.opa_async import AsyncOpaClient

from gateway.access.outage import DecisionEngineUnavailable
from gateway.access.policy import PolicyAnswer, PolicyAnswers, PolicyRequest

# The only paths that are ever asked. They are constants, so that no name of a user can become a path or a piece of Rego
# (CVE-2025-46569).
_DECISIONS = ("gateway", "decisions")
_REVISION = ("system/revision", "current")

#: A decision changes nothing, so it may be asked again; the whole call stays within its timeout.
_RETRIES = 1


class OpaDecider:
    """Asks `data.gateway.decisions` of the OPA at `endpoint` (`http://host:port` or `https://host:port`).

    `token` is the gateway's bearer for OPA (`policies/system/authz.rego`); `timeout_s` bounds one whole call, its
    repetition included. The connection is kept alive and opened in the event loop of the first call; close it with
    `aclose`.
    """

    def __init__(self, endpoint: str, token: str | None, *, timeout_s: float) -> None:
        self._host, self._port, self._tls = _parts(endpoint)
        self._token = token
        self._timeout_s = timeout_s
        self._client: AsyncOpaClient | None = None
        self._opening = asyncio.Lock()

    async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        """One answer per question of `request`, in order.

        Raises DecisionEngineUnavailable when OPA does not answer in time, or answers anything but exactly one whole
        answer per question: silence on one of several questions is no permission (threats, D30).
        """
        return (await self.ask(request)).decisions

    async def ask(self, request: PolicyRequest) -> PolicyAnswers:
        """As `decide`, with the policies' promise of how long the answers hold, if they give one."""
        answers = _understood(await self._query(_DECISIONS, msgspec.to_builtins(request)))
        if len(answers.decisions) != len(request.questions):
            raise DecisionEngineUnavailable(
                f"OPA was asked {len(request.questions)} questions and answered {len(answers.decisions)}."
            )
        return answers

    async def revision(self) -> str | None:
        """Which policies and policy data OPA judges by, as one word; None when that cannot be told.

        Raises DecisionEngineUnavailable.
        """
        body = await self._query(_REVISION, {})
        found = body.get("result") if isinstance(body, dict) else None
        return found if isinstance(found, str) and found else None

    async def ping(self) -> None:
        """Return if OPA answers and knows the gateway's token. Raises DecisionEngineUnavailable if not."""
        try:
            async with asyncio.timeout(self._timeout_s):
                healthy = await (await self._connected()).check_health()
        except TimeoutError:
            healthy = False
        if not healthy:
            raise DecisionEngineUnavailable(
                "OPA does not answer its health check, or does not know the gateway's token."
            )

    async def aclose(self) -> None:
        """Close the connections. A later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close_connection()

    async def _query(self, path: tuple[str, str], question: Any) -> Any:
        # The errors of the HTTP client hold the request with its bearer token. None of them is chained to what is
        # raised here, so that no log can print it.
        try:
            async with asyncio.timeout(self._timeout_s):
                client = await self._connected()
                package, rule = path
                return await client.query_rule(input_data=question, package_path=package, rule_name=rule)
        except TimeoutError:
            reason = f"OPA did not answer within {self._timeout_s} s."
        except aiohttp.ClientResponseError as error:
            reason = f"OPA answered with status {error.status} or with something that is not JSON."
        except (aiohttp.ClientError, OSError) as error:
            reason = f"OPA cannot be reached ({type(error).__name__})."
        except (ValueError, RecursionError):
            reason = "OPA answered with something that is not JSON."
        raise DecisionEngineUnavailable(reason)

    async def _connected(self) -> AsyncOpaClient:
        async with self._opening:
            if self._client is None:
                client = AsyncOpaClient(
                    host=self._host,
                    port=self._port,
                    ssl=self._tls,
                    token=self._token,
                    retries=_RETRIES,
                    timeout=self._timeout_s,
                )
                self._client = await client.__aenter__()
            return self._client


def _understood(body: Any) -> PolicyAnswers:
    """The answers in a body of OPA's data API. Raises DecisionEngineUnavailable for anything else, `{}` included."""
    if not isinstance(body, dict) or "result" not in body:
        raise DecisionEngineUnavailable(
            "The policies gave no decision: data.gateway.decisions is undefined for this input."
        )
    try:
        return msgspec.convert(body["result"], PolicyAnswers, strict=True)
    except msgspec.ValidationError as error:
        raise DecisionEngineUnavailable(f"The policies gave something that is no decision: {error}.") from None


def _parts(endpoint: str) -> tuple[str, int, bool]:
    """(host, port, TLS) of `endpoint`. Raises ValueError for anything but a scheme, a host and a port."""
    url = urlsplit(endpoint)
    more = url.username or url.password or url.query or url.fragment or url.path not in ("", "/")
    if url.scheme not in ("http", "https") or not url.hostname or more:
        raise ValueError("The address of OPA must be http://host:port or https://host:port, and nothing more.")
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    return host, url.port or (443 if url.scheme == "https" else 80), url.scheme == "https"
