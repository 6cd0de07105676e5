# SPDX-License-Identifier: Apache-2.0
"""The canary on a real store (SeaweedFS)."""

from __future__ import annotations

import pytest

from gateway.storage.s3.sts import Sts
from gateway.vending.canary import run_canary
from gateway.vending.scope_verdict import Verdict
from tests.integration.test_object_store_scope import Store, store, sts  # noqa: F401
from tests.storage_routes import clients, object_files, s3_trials


async def test_proven(store: Store, sts: Sts) -> None:
    made = clients(sts, object_files(own_role=sts.assume_own_role, total_seconds=60), s3_trials())
    report = await run_canary(store.profile(), store.credential, made)
    print(report.attempts, report.reason)
    for f in report.findings: print("FINDING", f)
    for f in report.unclear: print("UNCLEAR", f)
    assert report.verdict is Verdict.PROVEN
