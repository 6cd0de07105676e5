# SPDX-License-Identifier: Apache-2.0
"""Send the description of a change to webhooks and OPA, and decode their verdicts strictly."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import aiohttp
import msgspec
from msgspec import Meta, Raw

from gateway.verification.panel import UnfitChange, VerifierFailed
from gateway.verification.port import Approved, Pending, ProposedChange, Rejected, Verdict

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
            # A compressed response could be small on the wire and large in memory.
            "Accept-Encoding": "identity",
            **(headers or {}),
        }
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
        """Send the body, and return the body of a 200 response with the type application/json.

        Raises:
        - QuestionTooLarge, QuestionRefused: a status 4xx, or a connection that ended after a large question.
        - RefusedByRule: a response that is too long.
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


MOST_ANSWER_BYTES: Final = 65_536
MOST_QUESTION_BYTES: Final = 33_554_432
_MOST_REASONS: Final = 100
_LONGEST_REASON: Final = 2000


class InvalidAnswer(VerifierFailed):
    """The response does not have exactly the documented form. It counts as a failure of the verifier, never as an
    approval.
    """


class RefusedByRule(InvalidAnswer):
    """The response is invalid because of the change: the rule fails for it, or has too many reasons."""


class ErrorStatus(InvalidAnswer):
    """The response has the status 3xx or 5xx."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the answer has the status {status} instead of 200")
        self.status = status


class QuestionTooLarge(UnfitChange):
    """The documents of the change are larger than a verifier outside of the process may receive."""


class QuestionRefused(VerifierFailed):
    """The server refuses the query itself: a status 4xx, or no response to a large query."""


class Question(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A proposed change as JSON. `before` and `after` are metadata documents; null if the verifier does not receive
    them.
    """

    kind: str
    object_type: str
    object_id: str | None
    warehouse_id: str
    warehouse_name: str
    namespace: tuple[str, ...]
    name: str | None
    principal: str
    request_id: str
    updates: tuple[Mapping[str, Any], ...]
    before: Raw | None
    after: Raw | None
    properties: Mapping[str, str]
    destination: tuple[str, ...] | None


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The response of a webhook or of OPA."""

    verdict: Literal["approve", "reject", "pending"]
    reasons: tuple[Annotated[str, Meta(min_length=1)], ...] = ()


def question_of(change: ProposedChange, *, documents: bool = True) -> Question:
    """Return the query about a change, with or without its metadata documents."""
    return Question(
        kind=change.kind.value,
        object_type=change.object_type,
        object_id=change.object_id,
        warehouse_id=change.warehouse_id,
        warehouse_name=change.warehouse_name,
        namespace=change.namespace,
        name=change.name,
        principal=change.principal,
        request_id=change.request_id,
        updates=change.updates if documents else (),
        before=change.before if documents else None,
        after=change.after if documents else None,
        properties=change.properties,
        destination=change.destination,
    )


def encoded(question: object) -> bytes:
    """Encode a query as JSON. Raises QuestionTooLarge."""
    body = msgspec.json.encode(question)
    if len(body) > MOST_QUESTION_BYTES:
        raise QuestionTooLarge(f"the change has {len(body)} bytes, more than {MOST_QUESTION_BYTES}")
    return body


def understood(answer: Answer) -> Verdict:
    """Return the verdict in a decoded response. Raises RefusedByRule if it has too many or too long reasons."""
    if len(answer.reasons) > _MOST_REASONS or any(len(reason) > _LONGEST_REASON for reason in answer.reasons):
        raise RefusedByRule(
            f"the answer has more than {_MOST_REASONS} reasons, or one of over {_LONGEST_REASON} characters"
        )
    match answer.verdict:
        case "approve":
            return Approved()
        case "reject":
            return Rejected(answer.reasons)
        case "pending":
            return Pending(answer.reasons)


def decode_answer(body: bytes) -> Verdict:
    """Decode the body of a response, and return its verdict. Raises InvalidAnswer."""
    refuse_repeated_members(body)
    try:
        return understood(msgspec.json.decode(body, type=Answer, strict=True))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Without the decoder's text: it may quote the response.
        raise InvalidAnswer("the answer has not the form of a verdict") from None


def refuse_repeated_members(body: bytes) -> None:
    """Raise InvalidAnswer if an object has the same field twice, because parsers differ in which of the two they
    use.
    """

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise InvalidAnswer("the answer has the same member twice")
        return found

    try:
        json.loads(body, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise InvalidAnswer("the answer is no JSON document") from None
