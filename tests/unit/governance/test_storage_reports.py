# SPDX-License-Identifier: Apache-2.0
"""Validation of a store that does not respond."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from gateway.features.credentials.storage_reports import StorageValidator
from gateway.features.credentials.storage_validation import CheckStatus
from gateway.scope.profile import STRICTEST
from gateway.storage.registry import decode_profile
from gateway.storage.s3.credential import S3AccessKey
from tests.support.clock import quickest
from tests.support.kits import kit_of
from tests.support.servers.storage_routes import clients


class _Silent:
    async def _never(self, *_: Any, **__: Any) -> Any:
        await asyncio.sleep(5)

    put = get = delete = _never

    async def list(self, *_: Any) -> list[str]:
        return []


async def test_the_report_on_a_silent_store_returns_before_the_request_timeout() -> None:
    profile = decode_profile(json.dumps({"type": "s3", "bucket": "warehouse", "region": "eu-west-1"}).encode())
    trials = StorageValidator(
        kit_of(clients=clients(files=_Silent()), rules=STRICTEST, skip_storage_validation=False, request_seconds=1.0)
    )

    async def try_it() -> None:
        report = await trials.tried(profile, S3AccessKey(access_key_id="id", secret_access_key="hidden"))
        assert not report.valid
        failed = [check.name for check in report.checks if check.status is CheckStatus.FAILED]
        assert "lakekeeper-read-write" in failed

    assert await quickest(try_it) < 1.0
