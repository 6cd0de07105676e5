# SPDX-License-Identifier: Apache-2.0
"""Commits to tables and to views share the limit of the connections that locks occupy."""

from __future__ import annotations

from typing import Any, cast

from gateway.db.engine.advisory_locks import AdvisoryLocks
from gateway.features.tables.commits import Commits
from gateway.features.views.view_commits import ViewCommits
from tests.support.kits import kit_of


def test_commits_to_tables_and_views_share_one_limit_of_lock_connections() -> None:
    locks = AdvisoryLocks(cast(Any, None))
    kit = kit_of(locks=locks)
    assert Commits(kit)._queue._shared is locks
    assert ViewCommits(kit)._queue._shared is locks
