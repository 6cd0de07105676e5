# SPDX-License-Identifier: Apache-2.0
"""Send events to a web server, signed as Standard Webhooks describes: https://www.standardwebhooks.com."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import NAMESPACE_OID, UUID, uuid5

import httpx2

from gateway.events.cloud_events import BATCH_CONTENT_TYPE, CONTENT_TYPE, structured
from gateway.events.port import Event, EventRefused, SinkUnavailable

_MOST_BYTES: Final = 65_536
"""Limit of the bytes of a response that are read, so that its connection can be used again. The rest is not wanted."""

#: HTTP statuses by which the receiver reports that it will never accept this event: the body is too large or not
#: understood.
_REFUSED: Final = frozenset({400, 413, 415, 422})


#: Maximum size of the events in one request. Many web servers refuse bodies of more than 1 MiB.
_BATCH_BYTES: Final = 512 * 1024


def signature(secret: bytes, id: UUID, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature`. `timestamp` is in seconds since 1970, as in `webhook-timestamp`."""
    signed = b".".join((str(id).encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()


class WebhookSink:
    """A web server that receives each event as one POST request, or, if `batched`, several events in one request.

    `secret` is the shared key of the signatures. `timeout` (seconds) limits each request. The requests are sent one
    after another, so the server receives the events in order.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        secret: bytes,
        timeout: float,
        batched: bool = False,
        tls: ssl.SSLContext | bool = True,
        clock: Callable[[], float] = time.time,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._name = name
        self._url = url
        self._secret = secret
        self._batched = batched
        self._timeout = timeout
        self._clock = clock
        self._client = httpx2.AsyncClient(verify=tls, timeout=timeout, trust_env=False, transport=transport)

    @property
    def name(self) -> str:
        """Return the unique name of the sink."""
        return self._name

    async def send(self, events: Sequence[Event]) -> None:
        """Send the events in order. Raises SinkUnavailable and EventRefused as `EventSink.send` describes."""
        sent = 0
        while sent < len(events):
            try:
                if self._batched:
                    sent += await self._send_batch(_first_batch(events[sent:]))
                else:
                    sent += await self._send_one(events[sent])
            except SinkUnavailable as error:
                # The events that were stored are reported, so that a retry starts after them: a server that limits its
                # rate may never accept all events at once.
                error.stored = sent
                raise

    async def _send_one(self, event: Event) -> int:
        """Send one event and return 1."""
        status = await self._post(event.id, structured(event), CONTENT_TYPE)
        if status in _REFUSED:
            raise EventRefused(event.id, f"the webhook answered {status}")
        return 1

    async def _send_batch(self, events: Sequence[Event]) -> int:
        """Send the first events in one request. Return the number of sent events.

        A refused batch is split in halves, until the refused event is alone and all events before it are stored.
        """
        bodies: list[bytes] = []
        for event in events:
            try:
                bodies.append(structured(event))
            except EventRefused:
                if not bodies:
                    raise
                break
        ids = " ".join(str(event.id) for event in events[: len(bodies)])
        # The id is derived from the events. A retry with other events is another message, and not a duplicate for the
        # receiver.
        status = await self._post(uuid5(NAMESPACE_OID, ids), b"[" + b",".join(bodies) + b"]", BATCH_CONTENT_TYPE)
        if status not in _REFUSED:
            return len(bodies)
        if len(bodies) == 1:
            raise EventRefused(events[0].id, f"the webhook answered {status}")
        return await self._send_batch(events[: len(bodies) // 2])

    async def _post(self, id: UUID, body: bytes, content_type: str) -> int:
        """Send a signed message. Return a status that means success or refusal. Raises SinkUnavailable for any other
        status.
        """
        # A retry has a new timestamp, because receivers reject old timestamps. It has the same id, so receivers find
        # duplicates.
        timestamp = int(self._clock())
        headers = {
            "content-type": content_type,
            "webhook-id": str(id),
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(self._secret, id, timestamp, body),
        }
        status = await self._status(body, headers)
        if status not in _REFUSED and not httpx2.codes.is_success(status):
            raise SinkUnavailable(f"the webhook answered {status}; it must answer 2xx")
        return status

    async def _status(self, body: bytes, headers: Mapping[str, str]) -> int:
        """Send the request and return the status. The status is received before the body, so an incomplete body is not
        an error.
        """
        status: int | None = None
        try:
            # The timeout of the client limits each read, so it alone does not end a server that sends byte by byte.
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream("POST", self._url, content=body, headers=headers) as answer,
            ):
                status = answer.status_code
                await _read_start(answer)
        except (TimeoutError, httpx2.HTTPError) as error:
            if status is None:
                raise SinkUnavailable(f"the webhook did not answer: {type(error).__name__}") from error
        return status

    async def check(self) -> None:
        """Raise SinkUnavailable if no HTTP server responds at the URL."""
        try:
            await self._client.head(self._url)
        except httpx2.HTTPError as error:
            raise SinkUnavailable(f"the webhook did not answer: {type(error).__name__}") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _first_batch(events: Sequence[Event]) -> Sequence[Event]:
    """Return the first events whose data fit into one request, but at least one event."""
    size = 0
    for number, event in enumerate(events):
        size += len(event.data)
        if size > _BATCH_BYTES and number:
            return events[:number]
    return events


async def _read_start(answer: httpx2.Response) -> None:
    """Read a short response to its end. Do not read a longer one: its connection is closed."""
    if answer.is_stream_consumed:
        return
    read = 0
    async for part in answer.aiter_raw():
        read += len(part)
        if read > _MOST_BYTES:
            return
