# SPDX-License-Identifier: Apache-2.0
"""Convert stored events to CloudEvents 1.0 with the official SDK, which validates their attributes.

The SDK permits only lower-case letters and digits in the names of extension attributes. So `tabular-id` of Lakekeeper
is `tabularid` here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gateway.events.port import Event, EventRefused

if TYPE_CHECKING:
    from cloudevents.core.v1.event import CloudEvent

CONTENT_TYPE: Final = "application/cloudevents+json"
DATA_CONTENT_TYPE: Final = "application/json"


def cloud_event(event: Event) -> CloudEvent:
    """Return the event as the type of the official SDK.

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
    """Return the event in structured mode: one JSON document of the type `CONTENT_TYPE`. Raises EventRefused."""
    from cloudevents.core.formats.json import JSONFormat

    return bytes(JSONFormat().write(cloud_event(event)))
