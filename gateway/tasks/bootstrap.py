# SPDX-License-Identifier: Apache-2.0
"""The way back into a server that nobody can manage any more: `lakegate reopen-bootstrap`."""

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
    """Let the server be bootstrapped once more, by this user (`<provider>~<subject>`) or else by the first caller with
    a token; whether somebody could manage it even now. Nothing that anybody holds is touched. Raises the refusal of
    policies and the outages of the door.
    """
    async with (
        admitted(door, TASK, str(uuid7()), ReopenBootstrap(user_id)) as permit,
        database.change(permit) as connection,
    ):
        managed = await last_admin_guard.anybody(connection)
        await servers.reopen_bootstrap(connection, user_id)
    return managed
