# SPDX-License-Identifier: Apache-2.0
"""Page tokens of the search of the audit log that the gateway did not issue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from gateway.access.operations.audit import AuditFilters
from gateway.features.audit.audit_search import selection_of
from gateway.features.paging import packed
from gateway.iceberg.errors import InvalidPaginationToken

NOW = datetime(2026, 3, 4, tzinfo=UTC)
DAY = timedelta(days=1)
ID = UUID(int=1)


@pytest.mark.parametrize(
    "place",
    [
        ("2026-03-03T00:00:00", "2026-03-04T00:00:00", NOW, ID),
        ("2026-03-03T00:00:00", NOW, NOW, ID),
        (NOW - DAY, NOW, "2026-03-03T00:00:00", ID),
        (NOW - DAY, NOW, datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=14))).isoformat(), ID),
        (NOW - DAY, NOW, datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))).isoformat(), ID),
        (NOW - DAY, NOW),
    ],
)
def test_an_invented_page_token_is_invalid(place: tuple[object, ...]) -> None:
    with pytest.raises(InvalidPaginationToken):
        selection_of(AuditFilters(), packed(place))


def test_an_issued_page_token_keeps_the_time_range() -> None:
    found = selection_of(AuditFilters(), packed((NOW - DAY, NOW, NOW, ID)))
    assert (found.since, found.until) == (NOW - DAY, NOW)
