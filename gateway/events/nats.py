# SPDX-License-Identifier: Apache-2.0
"""Event sink for NATS JetStream. The event id is the message id, so the server drops duplicates within its window."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gateway.events.cloud_events import CONTENT_TYPE, runs_of_distinct_keys, structured
from gateway.events.port import Event, EventRefused, SinkUnavailable

if TYPE_CHECKING:
    from nats.aio.client import Client

_MESSAGE_EXCEEDS_MAXIMUM = 10054  # JSStreamMessageExceedsMaximumErr: the stream's own limit of one message
_HEADERS_BYTES = 512  # at least the size of the headers, which count towards the limit of the server
_CLOSE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsTarget:
    """Address, subject and credentials of one sink. `timeout` in seconds limits each run of messages and each login."""

    url: str
    subject: str
    timeout: float = 5.0
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    credentials_file: str | None = None
    tls: ssl.SSLContext | None = field(default=None, repr=False)


class NatsSink:
    """Publishes events to a stream of JetStream, each as one structured CloudEvent."""

    def __init__(self, name: str, target: NatsTarget) -> None:
        self._name = name
        self._target = target
        self._client: Client | None = None
        self._lock = asyncio.Lock()

    @property
    def name(self) -> str:
        """Return the unique name of the sink."""
        return self._name

    async def send(self, events: Sequence[Event]) -> None:
        """Publish the events and wait for the acknowledgement of each.

        Raises:
            SinkUnavailable: no connection, no stream for the subject, a full stream, or no acknowledgement in time.
            EventRefused: a message is larger than the server or the stream allows.
        """
        async with self._lock:
            try:
                client = await self._connected()
                for run in runs_of_distinct_keys(events):
                    await self._send_run(client, run)
            except SinkUnavailable:
                await self._drop()
                raise
            except asyncio.CancelledError:
                await self._drop()  # an acknowledgement may arrive later, so this connection is not used again
                raise

    async def check(self) -> None:
        """Raise SinkUnavailable if no stream of the server stores the subject."""
        async with self._lock:
            try:
                client = await self._connected()
                await self._find_stream(client)
            except SinkUnavailable:
                await self._drop()
                raise

    async def close(self) -> None:
        """Close the connection."""
        async with self._lock:
            await self._drop()

    async def _find_stream(self, client: Client) -> None:
        try:
            async with asyncio.timeout(self._target.timeout):
                await client.jetstream(timeout=self._target.timeout).find_stream_name_by_subject(self._target.subject)
        except Exception as error:  # the library raises many types: errors of the protocol, of sockets and timeouts
            raise self._unavailable(error) from error

    async def _send_run(self, client: Client, run: Sequence[Event]) -> None:
        """Publish events with distinct keys concurrently. Raise the error of the first event that failed."""
        publications = [self._publish(client, event) for event in run]
        outcomes = await asyncio.gather(*publications, return_exceptions=True)
        failures = [outcome for outcome in outcomes if outcome is not None]
        for failure in failures:
            if not isinstance(failure, EventRefused):
                raise failure
        if failures:
            raise failures[0]

    async def _publish(self, client: Client, event: Event) -> None:
        from nats.js.errors import APIError

        payload = structured(event)
        if len(payload) + _HEADERS_BYTES > client.max_payload:
            raise EventRefused(event.id, f"its {len(payload)} bytes exceed the limit max_payload of the NATS server")
        stream = client.jetstream(timeout=self._target.timeout)
        headers: dict[str, Any] = {"Nats-Msg-Id": str(event.id), "Content-Type": CONTENT_TYPE}
        try:
            async with asyncio.timeout(self._target.timeout):
                await stream.publish(self._target.subject, payload, headers=headers)
        except APIError as error:
            if error.err_code == _MESSAGE_EXCEEDS_MAXIMUM:
                raise EventRefused(
                    event.id, f"its {len(payload)} bytes exceed the limit max_msg_size of the NATS stream"
                ) from error
            raise self._unavailable(error) from error
        except Exception as error:  # the library raises many types: errors of the protocol, of sockets and timeouts
            raise self._unavailable(error) from error

    async def _connected(self) -> Client:
        """Return the open connection, or open a new one. A connection does not reconnect itself, because that would
        send old messages again.
        """
        if self._client is not None and self._client.is_connected:
            return self._client
        await self._drop()
        from nats.aio.client import Client

        target, client = self._target, Client()
        options: dict[str, Any] = {
            "user": target.user,
            "password": target.password,
            "token": target.token,
            "user_credentials": target.credentials_file,
        }
        if target.tls is not None:
            options["tls"] = target.tls
        try:
            async with asyncio.timeout(target.timeout):
                await client.connect(
                    target.url, allow_reconnect=False, error_cb=_ignore, connect_timeout=max(1, int(target.timeout)),
                    **{key: value for key, value in options.items() if value is not None},
                )  # fmt: skip
        except Exception as error:
            with suppress(Exception):
                await client.close()
            raise self._unavailable(error) from error
        self._client = client
        return client

    async def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await client.close()

    def _unavailable(self, error: Exception) -> SinkUnavailable:
        reason = str(error) or type(error).__name__
        return SinkUnavailable(
            f"the event sink {self._name} (NATS, subject {self._target.subject}) did not store the events: {reason}; "
            "check the server, its stream for the subject, and the stream's limits"
        )


async def _ignore(error: Exception) -> None:
    """Ignore an error that the library reports outside of a call. The call fails too, and reports the error."""
