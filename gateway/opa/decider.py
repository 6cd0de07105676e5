# SPDX-License-Identifier: Apache-2.0
"""Query OPA for decisions, and reject incomplete or malformed responses.

In the structs of the responses, every field that limits an allow is required and must not be null. A field that is
missing, unknown or of another type invalidates the whole response. Otherwise a lost obligation (restriction) would look
like a decision without obligations.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from datetime import datetime
from typing import Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec
import structlog

from gateway.access.decisions.policy import PolicyActor, PolicyAnswer, PolicyAnswers, PolicyRequest, Reason
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.obligations.guardrails import StatedObligations, understood
from gateway.opa import explanation
from gateway.opa.rule_hits import PolicyTrace, read_trace

_log = structlog.get_logger("opa.answers")

#: The code of denials if the output of a guardrail does not match the schema. `policies/gateway/main.rego` uses the
#: same code.
_INVALID: Final = "guardrail_invalid"
#: Maximum length, in characters, of the problem text in a reason.
_MESSAGE: Final = 300


class WireAnswer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result to one question."""

    allow: bool
    reasons: tuple[Reason, ...]
    obligations: StatedObligations

    def understood(self) -> PolicyAnswer:
        """Convert it to a result of the door. An invalid obligation denies, as in `policies/gateway/main.rego`."""
        try:
            obligations = understood(self.obligations)
        except ValueError as invalid:
            _log.warning("guardrail.output_rejected", problem=str(invalid))
            message = f"a guardrail states an invalid obligation: {str(invalid)[:_MESSAGE]}"
            return PolicyAnswer(allow=False, reasons=(*self.reasons, Reason(code=_INVALID, message=message)))
        return PolicyAnswer(allow=self.allow, reasons=self.reasons, obligations=obligations)


class WireAnswers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value of `data.gateway.decisions`."""

    decisions: tuple[WireAnswer, ...]
    valid_until: datetime | msgspec.UnsetType = msgspec.UNSET
    revision: str | msgspec.UnsetType = msgspec.UNSET

    def understood(self) -> PolicyAnswers:
        """Convert them to the results of the door."""
        return PolicyAnswers(
            decisions=tuple(answer.understood() for answer in self.decisions),
            valid_until=None if self.valid_until is msgspec.UNSET else self.valid_until,
            revision=None if self.revision is msgspec.UNSET else self.revision,
        )


class Decided(msgspec.Struct, frozen=True):
    """The body of a 200 response. `result` is absent if `data.gateway.decisions` is undefined for the input."""

    result: WireAnswers | msgspec.UnsetType = msgspec.UNSET


class Traced(Decided, frozen=True):
    """The body of a 200 response with a trace: its lines."""

    explanation: tuple[str, ...] = ()


class FailureLocation(msgspec.Struct, frozen=True):
    """The position of an error: a file and a line of a policy."""

    file: str
    row: int


class EvaluationError(msgspec.Struct, frozen=True):
    """One error in the evaluation of the policies."""

    code: str
    location: FailureLocation


class Failed(msgspec.Struct, frozen=True):
    """The body of OPA's response to a failed evaluation."""

    errors: tuple[EvaluationError, ...]


# The only paths of requests. They are constants, so that no input of a user can become a path or a part of Rego
# (CVE-2025-46569). Without `strict-builtin-errors`, an error of a built-in function makes a rule undefined, and an
# undefined denial denies nothing.
_DECISIONS = "/v1/data/gateway/decisions?strict-builtin-errors=true"
_TRACED = f"{_DECISIONS}&explain=full&pretty=true"
_REVISION = "/v1/data/system/revision/current"
_HEALTH = "/health"

_PAUSE_S = 0.3
"""The pause before the only retry. A query changes nothing, so it is retried within the timeout of the call."""

Answer = TypeVar("Answer")


class _OpaInput(msgspec.Struct, frozen=True):
    input: PolicyRequest | None


_NO_INPUT = msgspec.json.encode(_OpaInput(None))


class _Revision(msgspec.Struct, frozen=True):
    result: str | None = None


class OpaDecider:
    """A client for `data.gateway.decisions` of the OPA at `endpoint` (`http://host:port` or `https://host:port`).

    `token` is the gateway's bearer token for OPA (`policies/system/authz.rego`). `timeout_s` limits one call, including
    its retry. The first call opens a connection in its event loop and keeps it alive; `aclose` closes it.
    """

    def __init__(
        self,
        endpoint: str,
        token: str | None,
        *,
        timeout_s: float,
        tls: ssl.SSLContext | None = None,
        hooks: Sequence[aiohttp.TraceConfig] = (),
    ) -> None:
        self._tls = tls
        self._hooks = list(hooks)
        host, port, secure = _parts(endpoint)
        self._url = f"{'https' if secure else 'http'}://{host}:{port}"
        # OPA runs beside the gateway: to compress a long response costs more than to send it.
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        """Return one result for each question of `request`, in order.

        Raises DecisionEngineUnavailable if OPA does not respond in time, or if its response does not have exactly one
        complete result for each question: a missing result must not allow (LG-DEC-23 in `docs/threats.md`).
        """
        return (await self.evaluate(request)).decisions

    async def evaluate(self, request: PolicyRequest) -> PolicyAnswers:
        """Return the results, their revision, and the time until which they are valid if the policies give one.

        Raises DecisionEngineUnavailable as `decide` does.
        """
        body = await self._query(_DECISIONS, msgspec.json.encode(_OpaInput(request)))
        return _understood(_decoded(body, Decided), request)

    async def trace(self, request: PolicyRequest) -> tuple[PolicyAnswers, PolicyTrace]:
        """Return the results of `evaluate` and the rules behind them. `request` has one question.

        Raises DecisionEngineUnavailable as `decide` does, and for a trace with more than 4 MiB.
        """
        body = await self._query(_TRACED, msgspec.json.encode(_OpaInput(request)))
        if len(body) > explanation.MAX_BYTES:
            raise DecisionEngineUnavailable(f"OPA's trace of one decision has more than {explanation.MAX_BYTES} bytes.")
        traced = _decoded(body, Traced)
        return _understood(traced, request), read_trace(traced.explanation)

    async def revision(self) -> str | None:
        """Return the revision of OPA's policies and policy data; None if it cannot be determined.

        Raises DecisionEngineUnavailable.
        """
        return _decoded(await self._query(_REVISION, _NO_INPUT), _Revision).result or None

    async def silence(self, actor: PolicyActor) -> explanation.Proof | None:
        """Return the proof that no guardrail can restrict this caller; None if there is none.

        Raises DecisionEngineUnavailable.
        """
        body = await self._query(explanation.PATH, explanation.compile_request(actor))
        if len(body) > explanation.MAX_BYTES:
            raise DecisionEngineUnavailable(f"OPA's partial evaluation has more than {explanation.MAX_BYTES} bytes.")
        return explanation.proof_in(body)

    async def ping(self) -> None:
        """Check that OPA responds and accepts the gateway's token. Raises DecisionEngineUnavailable if not."""
        reason: str | None
        try:
            async with asyncio.timeout(self._timeout_s):
                status, _, _ = await self._send("GET", _HEALTH, None)
                reason = None if status == 200 else _refused(status) or f"OPA failed its health check ({status})."
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            reason = self._unreachable(error)
        if reason is not None:
            raise DecisionEngineUnavailable(reason)

    async def aclose(self) -> None:
        """Close the connections. A later call opens new connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _query(self, path: str, body: bytes) -> bytes:
        """Send a query and return the body of OPA's response. Raises DecisionEngineUnavailable."""
        # The errors of the HTTP client contain the request with its bearer token. The error that is raised here is
        # chained to none of them, so that no log can print the token.
        try:
            async with asyncio.timeout(self._timeout_s):
                status, media_type, answer = await self._send_twice(path, body)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            reason = self._unreachable(error)
        else:
            if status == 200 and media_type == "application/json":
                return answer
            location = _failed_at(status, answer)
            if location is not None:
                reason = f"A policy failed for this input: {location}."
            else:
                reason = _refused(status) or f"OPA answered with status {status}, or with a body that is not JSON."
        raise DecisionEngineUnavailable(reason)

    def _unreachable(self, error: Exception) -> str:
        if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
            return f"OPA at {self._url} did not answer within {self._timeout_s} s."
        return (
            f"OPA at {self._url} cannot be reached ({type(error).__name__}). Start it, or correct LAKEGATE__OPA__URL."
        )

    async def _send_twice(self, path: str, body: bytes) -> tuple[int, str, bytes]:
        """Send a request and return (status, media type, body). Retry once after a failure of the server or of the
        connection.

        A failed policy is not retried. Raises the errors of the HTTP client.
        """
        try:
            first = await self._send("POST", path, body)
        except aiohttp.ClientConnectorError:
            await asyncio.sleep(_PAUSE_S)
        except (aiohttp.ClientConnectionError, ConnectionResetError):
            # The server has closed an idle connection. The retry uses a new connection, so it needs no pause.
            pass
        else:
            status, _, answer = first
            if status < 500 or _failed_at(status, answer) is not None:
                return first
            await asyncio.sleep(_PAUSE_S)
        return await self._send("POST", path, body)

    async def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, str, bytes]:
        """Send one request and return (status, media type, body)."""
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=self._tls or True)
            self._session = aiohttp.ClientSession(headers=self._headers, connector=connector, trace_configs=self._hooks)
        # Following a redirect would send the token to another server.
        async with self._session.request(method, self._url + path, data=body, allow_redirects=False) as response:
            return response.status, response.content_type, await response.read()


def _understood(given: Decided, request: PolicyRequest) -> PolicyAnswers:
    """Convert the body of a response to results. Raises DecisionEngineUnavailable unless each question has one."""
    if given.result is msgspec.UNSET:
        raise DecisionEngineUnavailable(
            "The policies returned no decision: data.gateway.decisions is undefined for this input."
        )
    answers = given.result.understood()
    if len(answers.decisions) != len(request.questions):
        raise DecisionEngineUnavailable(
            f"OPA received {len(request.questions)} questions, but returned {len(answers.decisions)} answers."
        )
    return answers


def _refused(status: int) -> str | None:
    """Return the reason with the remedy if the status means that OPA rejects the gateway's token, else None."""
    if status not in (401, 403):
        return None
    return f"OPA rejected the gateway's token with status {status}. Correct LAKEGATE__OPA__TOKEN."


def _decoded(body: bytes, kind: type[Answer]) -> Answer:
    """Decode a response of OPA's data API. Raises DecisionEngineUnavailable if it is not a `kind`."""
    try:
        return msgspec.json.decode(body, type=kind, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecisionEngineUnavailable(f"The policies returned an invalid decision: {error}.") from None


def _failed_at(status: int, body: bytes) -> str | None:
    """Return the error codes and positions if the response reports a failed evaluation, else None.

    The message of the error is left out, because it may quote the input.
    """
    if status != 500:
        return None
    try:
        failed = msgspec.json.decode(body, type=Failed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return ", ".join(f"{each.code} at {each.location.file}:{each.location.row}" for each in failed.errors) or None


def _parts(endpoint: str) -> tuple[str, int, bool]:
    """Return (host, port, True for TLS) of `endpoint`. Raises ValueError if it has more than scheme, host and port."""
    url = urlsplit(endpoint)
    more = url.username or url.password or url.query or url.fragment or url.path not in ("", "/")
    if url.scheme not in ("http", "https") or not url.hostname or more:
        raise ValueError("The address of OPA must have the form http://host:port or https://host:port, without a path.")
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    return host, url.port or (443 if url.scheme == "https" else 80), url.scheme == "https"
