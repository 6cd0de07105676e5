# SPDX-License-Identifier: Apache-2.0
"""CloudEvents, and the webhook that receives them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import httpx2
import msgspec
import pytest

from gateway.events.cloud_events import structured
from gateway.events.port import Event, EventRefused, SinkUnavailable
from gateway.events.webhook import WebhookSink, signature

EVENT = Event(
    id=UUID("01940000-0000-7000-8000-000000000001"),
    type="dropTable",
    source="uri:iceberg-catalog-service:host",
    key="t",
    time=datetime(2026, 1, 2, tzinfo=UTC),
    attributes={"tabularid": "t"},
    data=b'{"a":null}',
)


def test_event_in_structured_mode_has_all_attributes_and_its_data_as_json() -> None:
    assert msgspec.json.decode(structured(EVENT)) == {
        "specversion": "1.0",
        "id": str(EVENT.id),
        "source": EVENT.source,
        "type": "dropTable",
        "time": "2026-01-02T00:00:00Z",
        "datacontenttype": "application/json",
        "tabularid": "t",
        "data": {"a": None},
    }


@pytest.mark.parametrize("broken", [{"attributes": {"tabular-id": "t"}}, {"data": b"{"}])
def test_event_that_is_not_valid_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(EventRefused):
        structured(msgspec.structs.replace(EVENT, **broken))


def test_signature_equals_that_of_openssl() -> None:
    """Compare with `printf '<id>.5.{}' | openssl dgst -sha256 -hmac key -binary | base64`."""
    assert signature(b"key", EVENT.id, 5, b"{}") == "v1,9X72bqJpuGYvg6/6klAjJfKiqwbO7ltlFtdSD2GmFtM="


@pytest.mark.parametrize(("status", "error"), [(503, SinkUnavailable), (302, SinkUnavailable), (413, EventRefused)])
async def test_answer_without_success_is_an_error(status: int, error: type[Exception]) -> None:
    sink = WebhookSink(
        "hook", "http://h/", secret=b"key", timeout=5, transport=httpx2.MockTransport(lambda _: httpx2.Response(status))
    )
    with pytest.raises(error):
        await sink.send([EVENT])
    await sink.close()


async def test_only_the_start_of_an_endless_answer_is_read() -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while read < 100_000_000:
            read += 65_536
            yield bytes(65_536)

    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=endless()))
    sink = WebhookSink("hook", "http://h/", secret=b"key", timeout=5, transport=transport)
    await sink.send([EVENT])
    await sink.close()
    assert read <= 200_000


async def test_answer_that_never_ends_counts_by_its_status_after_the_timeout() -> None:
    """The timeout of the HTTP client limits each read only, so this answer would hold the sink for hours."""

    async def slow() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.001)
            yield b"x"

    statuses = iter([204, 503])
    transport = httpx2.MockTransport(lambda _: httpx2.Response(next(statuses), content=slow()))
    sink = WebhookSink("hook", "http://h/", secret=b"key", timeout=0.05, transport=transport)
    async with asyncio.timeout(30):
        await sink.send([EVENT])
        with pytest.raises(SinkUnavailable, match="503"):
            await sink.send([EVENT])
    await sink.close()


async def test_request_has_the_id_and_a_signature_of_the_body() -> None:
    received: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        received.append(request)
        return httpx2.Response(204)

    sink = WebhookSink(
        "hook", "http://h/", secret=b"key", timeout=5, clock=lambda: 7.9, transport=httpx2.MockTransport(answer)
    )
    await sink.send([EVENT])
    await sink.close()
    (request,) = received
    assert request.headers["webhook-id"] == str(EVENT.id)
    assert request.headers["webhook-timestamp"] == "7"
    assert request.headers["webhook-signature"] == signature(b"key", EVENT.id, 7, request.content)


class Batches:
    """A web server that records the ids of each request's events. It refuses requests with the event `refused`."""

    def __init__(self, refused: UUID | None = None, *, fails_after: int = 1_000_000) -> None:
        self.refused = refused
        self.fails_after = fails_after
        self.accepted: list[list[str]] = []
        self.ids: list[str] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        assert request.headers["content-type"] == "application/cloudevents-batch+json"
        found = [event["id"] for event in msgspec.json.decode(request.content)]
        self.ids.append(request.headers["webhook-id"])
        signed = signature(b"key", UUID(self.ids[-1]), int(request.headers["webhook-timestamp"]), request.content)
        assert request.headers["webhook-signature"] == signed
        if str(self.refused) in found:
            return httpx2.Response(413)
        if len(self.accepted) >= self.fails_after:
            return httpx2.Response(503)
        self.accepted.append(found)
        return httpx2.Response(204)

    def sink(self) -> WebhookSink:
        transport = httpx2.MockTransport(self)
        return WebhookSink("hook", "http://h/", secret=b"key", timeout=5, batched=True, transport=transport)


MANY = [msgspec.structs.replace(EVENT, id=UUID(int=number)) for number in range(10)]


async def test_batched_events_are_sent_in_one_signed_request() -> None:
    server = Batches()
    await server.sink().send(MANY)
    await server.sink().send(MANY)
    await server.sink().send(MANY[:9])
    assert server.accepted == [[str(each.id) for each in MANY]] * 2 + [[str(each.id) for each in MANY[:9]]]
    # A retry has the same id; a batch with other events, although it begins alike, has another.
    assert server.ids[0] == server.ids[1] != server.ids[2]


@pytest.mark.parametrize("place", range(10))
@pytest.mark.parametrize("invalid", [False, True])
async def test_a_refused_event_of_a_batch_is_found_and_all_before_it_are_stored(place: int, invalid: bool) -> None:
    server = Batches(None if invalid else MANY[place].id)
    events = list(MANY)
    if invalid:
        events[place] = msgspec.structs.replace(events[place], data=b"{")
    with pytest.raises(EventRefused) as refused:
        await server.sink().send(events)
    assert refused.value.event_id == MANY[place].id
    assert [id for batch in server.accepted for id in batch] == [str(each.id) for each in MANY[:place]]


async def test_large_events_are_split_and_an_outage_states_how_many_are_stored() -> None:
    """A body of 100 MB would be refused by most servers, and an outage must not repeat what they stored."""
    large = [msgspec.structs.replace(each, data=b'"' + b"a" * 300_000 + b'"') for each in MANY[:4]]
    server = Batches(fails_after=2)
    with pytest.raises(SinkUnavailable) as outage:
        await server.sink().send(large)
    assert [len(batch) for batch in server.accepted] == [1, 1]
    assert outage.value.stored == 2


@pytest.mark.threat("LG-DEC-35")
async def test_redirect_is_not_followed_and_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver could send the events, or the request, to a server that only the gateway reaches."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(307, headers={"location": "http://169.254.169.254/latest"})

    sink = WebhookSink("hook", "http://h/", secret=b"key", timeout=5, transport=httpx2.MockTransport(answer))
    with pytest.raises(SinkUnavailable, match="307"):
        await sink.send([EVENT])
    await sink.check()
    await sink.close()
    assert asked == ["http://h/", "http://h/"]
