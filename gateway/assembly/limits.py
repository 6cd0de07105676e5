# SPDX-License-Identifier: Apache-2.0
"""Create the limits of requests and documents from the settings."""

from __future__ import annotations

from gateway.access.shares.shares import ShareLimits, Shares
from gateway.iceberg.limits import Limits
from gateway.settings import Settings
from gateway.telemetry.metrics import Metrics


def open_shares(settings: Settings, metrics: Metrics) -> Shares:
    """Return the limits on the resources that one principal may use at a time."""
    given = settings.shares
    limits = ShareLimits(
        requests=given.requests,
        waiting=given.waiting,
        wait=given.wait,
        total_requests=given.total_requests,
        least_requests=given.least_requests,
        decision_target=given.decision_target,
        overload_wait=given.overload_wait,
        engine_requests=given.engine_requests,
        questions_per_second=given.questions_per_second,
        question_burst=given.question_burst,
        bytes=given.bytes,
    )
    return Shares(limits, metrics)


def metadata_limits(settings: Settings) -> Limits:
    """Return the limits of metadata documents and of requests that change them."""
    given = settings.limits
    return Limits(
        request_values=given.request_values,
        file_bytes=given.metadata_file_size,
        document_bytes=given.metadata_size,
        document_values=given.metadata_values,
        snapshots=given.snapshots,
    )
