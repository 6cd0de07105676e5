# SPDX-License-Identifier: Apache-2.0
"""Batches of event sinks: runs of distinct keys, and secrets of a target."""

from __future__ import annotations

import msgspec
import pytest

from gateway.events.cloud_events import runs_of_distinct_keys, structured
from gateway.events.kafka import KafkaTarget
from gateway.events.nats import NatsTarget
from gateway.events.port import EventRefused
from tests.support.rows.event_sink_kit import event


def test_a_run_has_no_key_twice_and_the_runs_are_the_batch() -> None:
    events = [event(key) for key in "abacbbd"]
    runs = [list(run) for run in runs_of_distinct_keys(events, limit=2)]
    assert ["".join(sent.key for sent in run) for run in runs] == ["ab", "ac", "b", "bd"]
    assert [sent for run in runs for sent in run] == events
    assert list(runs_of_distinct_keys([])) == []


def test_representation_of_a_target_has_no_secret() -> None:
    nats = NatsTarget(url="nats://n", subject="s", password="hidden-1", token="hidden-2")
    kafka = KafkaTarget(bootstrap="k", topic="t", options={"sasl.password": "hidden-3"})
    assert "hidden" not in f"{nats!r} {kafka!r}"


def test_data_that_is_no_json_is_refused() -> None:
    broken = msgspec.structs.replace(event("a"), data=b"{")
    with pytest.raises(EventRefused, match="no JSON"):
        structured(broken)
    decoded = msgspec.json.decode(structured(event("a", size=1)))
    assert decoded["data"] == {"a": "x"} and decoded["name"] == "größe"
