# SPDX-License-Identifier: Apache-2.0
"""The heartbeat timeout of tasks, compared with the duration of storage calls."""

from __future__ import annotations

import msgspec
import pytest

from gateway.access.operations.task_bodies import SetQueueConfigRequest
from gateway.db.tasks.task_runs import STALE_SECONDS
from gateway.storage.provider import TOTAL_SECONDS


def _decode(seconds: float) -> SetQueueConfigRequest:
    body = {"queue-config": {}, "max-seconds-since-last-heartbeat": seconds}
    return msgspec.json.decode(msgspec.json.encode(body), type=SetQueueConfigRequest)


def test_the_task_takeover_timeout_exceeds_two_storage_calls() -> None:
    assert STALE_SECONDS > 2 * TOTAL_SECONDS
    with pytest.raises(msgspec.ValidationError, match=r"max-seconds-since-last-heartbeat"):
        _decode(int(2 * TOTAL_SECONDS))
    assert _decode(90).max_seconds_since_last_heartbeat == 90
    with pytest.raises(msgspec.ValidationError, match=r">= 90 - at `\$.max-seconds-since-last-heartbeat`"):
        _decode(89)
