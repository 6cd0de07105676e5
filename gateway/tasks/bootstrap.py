# SPDX-License-Identifier: Apache-2.0
"""Reopen the bootstrap of a server without an administrator: `lakegate reopen-bootstrap`."""

from __future__ import annotations

from typing import Final

from uuid_utils.compat import uuid7

from gateway.access.door import Door
from gateway.access.operations.tasks import ReopenBootstrap
from gateway.db import last_admin_guard, servers
from gateway.db.engine import Database
from gateway.tasks.system_admission import admitted

TASK: Final = "reopen_bootstrap"


async def reopen(*, database: Database, door: Door, user_id: str | None) -> bool:
    """Allow one more bootstrap, by the user `user_id` (`<provider>~<subject>`) or, if None, by the first caller with a
    token.

    Returns True if the server still has an administrator. Existing grants do not change. Raises the error of a policy
    refusal and the errors of outages.
    """
    async with (
        admitted(door, TASK, str(uuid7()), ReopenBootstrap(user_id)) as permit,
        database.change(permit) as connection,
    ):
        managed = await last_admin_guard.has_administrator(connection)
        await servers.reopen_bootstrap(connection, user_id)
    return managed
