# SPDX-License-Identifier: Apache-2.0
"""Endpoints of the delivery of change events."""

from __future__ import annotations

from gateway.access.operations.events import ListEventDeadLetters, ListEventSinks, ReplayEvents, RetryEventDeadLetters
from gateway.api.serves import serve
from gateway.features.events.events import EventDeliveries

serve(ListEventSinks, EventDeliveries.sinks)
serve(ListEventDeadLetters, EventDeliveries.dead_letters)
serve(ReplayEvents, EventDeliveries.replay)
serve(RetryEventDeadLetters, EventDeliveries.retry)
