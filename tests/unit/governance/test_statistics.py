# SPDX-License-Identifier: Apache-2.0
"""Invalid time windows and status codes of statistics requests."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from gateway.access.operations.statistics import EndpointStatisticsRequest, Window
from gateway.features.statistics.statistics import hours_of
from gateway.iceberg.errors import BadRequestException


@pytest.mark.parametrize("end", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1970-01-01T00:00:00+14:00"])
def test_an_end_time_outside_the_range_of_utc_is_refused(end: str) -> None:
    window = msgspec.convert({"type": "window", "end": end, "interval": "P1D"}, type=Window)
    assert window.interval == timedelta(days=1)
    with pytest.raises(BadRequestException, match="1970 to 9000"):
        hours_of(window)


@pytest.mark.parametrize("code", [3_000_000_000, 99, 600, -1])
def test_an_invalid_http_status_is_refused(code: int) -> None:
    body = {"warehouse": {"type": "all"}, "status-codes": [code]}
    with pytest.raises(msgspec.ValidationError, match=r"status-codes"):
        msgspec.convert(body, type=EndpointStatisticsRequest)
    body["status-codes"] = [404]
    assert msgspec.convert(body, type=EndpointStatisticsRequest).status_codes == (404,)
