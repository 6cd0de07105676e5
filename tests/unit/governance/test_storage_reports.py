# SPDX-License-Identifier: Apache-2.0
"""Trials of a store that does not answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

from gateway.governance.storage_reports import StorageTrials
from gateway.governance.storage_validation import CheckStatus
from gateway.scope.credential import S3AccessKey
from gateway.scope.endpoint import DEFAULT_RULES
from gateway.scope.profile import decode_profile
from gateway.storage.files import Files
from gateway.vending.sts import Sts
from tests.clock import quickest


class _Silent:
    async def _never(self, *_: Any, **__: Any) -> Any:
        await asyncio.sleep(5)

    write = read = delete = delete_below = is_empty = _never

    async def list_keys(self, *_: Any) -> list[str]:
        return []


async def test_the_report_on_a_silent_store_is_there_before_the_request_is_cut_off() -> None:
    profile = decode_profile(json.dumps({"type": "s3", "bucket": "warehouse", "region": "eu-west-1"}).encode())
    trials = StorageTrials(
        files=cast(Files, _Silent()),
        sts=cast(Sts, None),
        endpoints=DEFAULT_RULES,
        skip=False,
        request_seconds=1.0,
    )

    async def try_it() -> None:
        report = await trials.tried(profile, S3AccessKey(access_key_id="id", secret_access_key="hidden"))
        assert not report.valid
        failed = [check.name for check in report.checks if check.status is CheckStatus.FAILED]
        assert "lakekeeper-read-write" in failed

    assert await quickest(try_it) < 1.0
