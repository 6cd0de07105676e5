# SPDX-License-Identifier: Apache-2.0
"""A purge deletes listed files only while it still owns its task."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest

from gateway.db.tasks.task_runs import TaskLost
from gateway.features.deletion import purge as purges
from gateway.features.deletion.purge import Purge
from gateway.scope.location import Location
from gateway.storage.s3.profile import SCHEME, S3Profile

PLACE = Location(SCHEME, "bucket", ("base", "place"))
PROFILE = S3Profile(bucket="bucket", region="local-01", sts_enabled=False, key_prefix="base")


async def test_a_purge_that_lost_its_task_during_listing_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # The listed files may belong to the next table at this location.
    files = SimpleNamespace(list_keys=AsyncMock(return_value=["base/place/new.parquet"]), delete_below=AsyncMock())
    monkeypatch.setattr(purges, "report", AsyncMock(side_effect=TaskLost("another worker has it")))
    purge = Purge(
        database=cast(Any, None),
        door=cast(Any, None),
        files=cast(Any, files),
        storage=cast(Any, SimpleNamespace(of=AsyncMock())),
        vendor=cast(Any, SimpleNamespace(narrowed=AsyncMock())),
    )
    warehouse = SimpleNamespace(id=uuid4(), profile_version=1, storage_profile=PROFILE)
    permit = SimpleNamespace(warehouse=lambda _: warehouse, operation=SimpleNamespace(warehouse=None))
    with pytest.raises(TaskLost):
        await purge._delete(cast(Any, permit), PLACE, cast(Any, None))
    files.delete_below.assert_not_awaited()
