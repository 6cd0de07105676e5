# SPDX-License-Identifier: Apache-2.0
"""Convert stored events to messages (CloudEvents 1.0). Split batches so that the order of the events of each key is
kept.

The official SDK encodes the messages in structured mode and validates their attributes. It permits only lower-case
letters and digits in the names of extension attributes. So `tabular-id` of Lakekeeper is `tabularid` here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Final

import msgspec

from gateway.events.port import Event, EventRefused

if TYPE_CHECKING:
    from cloudevents.core.v1.event import CloudEvent

CONTENT_TYPE: Final = "application/cloudevents+json"
BATCH_CONTENT_TYPE: Final = "application/cloudevents-batch+json"
DATA_CONTENT_TYPE: Final = "application/json"
_MAX_RUN: Final = 256


def cloud_event(event: Event) -> CloudEvent:
    """Return the event as a CloudEvent of the official SDK.

    Raises:
        EventRefused: an attribute is not valid in CloudEvents, or the data is no JSON.
    """
    # The SDK is large. Only processes with a sink load it.
    from cloudevents.core.exceptions import BaseCloudEventException
    from cloudevents.core.v1.event import CloudEvent

    attributes = {
        **event.attributes,
        "specversion": "1.0",
        "id": str(event.id),
        "source": event.source,
        "type": event.type,
        "time": event.time,
        "datacontenttype": DATA_CONTENT_TYPE,
    }
    try:
        return CloudEvent(attributes, msgspec.json.decode(event.data))
    except BaseCloudEventException as error:
        raise EventRefused(event.id, f"its attributes are not valid in CloudEvents: {error}") from error
    except msgspec.DecodeError as error:
        raise EventRefused(event.id, f"its data is no JSON: {error}") from error


def structured(event: Event) -> bytes:
    """Return the event in the structured mode of CloudEvents: one JSON document of the type `CONTENT_TYPE`. Raises
    EventRefused.
    """
    from cloudevents.core.formats.json import JSONFormat

    return bytes(JSONFormat().write(cloud_event(event)))


def attributes(event: Event) -> dict[str, str]:
    """Return all attributes of the CloudEvent except the content type of its data."""
    moment = event.time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    required = {"specversion": "1.0", "id": str(event.id), "source": event.source, "type": event.type, "time": moment}
    return {**event.attributes, **required}


def runs_of_distinct_keys(events: Sequence[Event], limit: int = _MAX_RUN) -> Iterator[Sequence[Event]]:
    """Split a batch into consecutive runs of at most `limit` events. No run has two events with the same key.

    The events of a run can be sent together. If one of them fails, no later event of its key was stored before it.
    """
    start, keys = 0, set[str]()
    for position, event in enumerate(events):
        if event.key in keys or position - start == limit:
            yield events[start:position]
            start, keys = position, set()
        keys.add(event.key)
    if start < len(events):
        yield events[start:]
