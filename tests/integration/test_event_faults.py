# SPDX-License-Identifier: Apache-2.0
"""Changes through two gateways that deliver to NATS and Kafka, while each part is killed or cut off once.

`make test-events-faults` is the long form.
"""

from __future__ import annotations

import pytest

from tests.event_faults import KINDS, run, show

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]


def test_each_change_has_its_event_at_both_brokers_although_each_part_failed() -> None:
    """An event that is written after its change, or a delivery without a lock, would fail here."""
    outcome = run(300, seed=17, pause=1.0, longest_cut=2.0, writers=3)
    assert set(outcome.faults) == set(KINDS)
    assert outcome.right, show(outcome)
