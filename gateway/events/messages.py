# SPDX-License-Identifier: Apache-2.0
"""Events as messages: CloudEvents attributes for headers, and batches that keep the order of each key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC

from gateway.events.port import Event

CONTENT_TYPE = "application/json"
_MAX_RUN = 256


def attributes(event: Event) -> dict[str, str]:
    """Return all attributes of the CloudEvent except its data and their content type."""
    moment = event.time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    required = {"specversion": "1.0", "id": str(event.id), "source": event.source, "type": event.type, "time": moment}
    return {**event.attributes, **required}


def runs_of_distinct_keys(events: Sequence[Event], limit: int = _MAX_RUN) -> Iterator[Sequence[Event]]:
    """Split a batch into consecutive runs of at most `limit` events, so that no run has two events of one key.

    The events of a run can be sent at once. If one of them fails, no later event of its key was stored before it.
    """
    start, keys = 0, set[str]()
    for position, event in enumerate(events):
        if event.key in keys or position - start == limit:
            yield events[start:position]
            start, keys = position, set()
        keys.add(event.key)
    if start < len(events):
        yield events[start:]
