# SPDX-License-Identifier: Apache-2.0
"""Revoke the keys that sign the gateway's own tokens: `lakegate secrets withdraw-signing-keys`."""

from __future__ import annotations

from typing import Final

from uuid_utils.compat import uuid7

from gateway.access.door import Door
from gateway.access.operations.tasks import WithdrawSigningKeys
from gateway.db import signing_keys
from gateway.db.engine import Database
from gateway.tasks.system_admission import admitted

TASK: Final = "withdraw_signing_keys"


async def revoke(*, database: Database, door: Door) -> int:
    """Revoke all valid signing keys. Return their number.

    All processes apply it within a second, and the next token exchange creates a new key. Raises the error of a policy
    refusal and the errors of outages.
    """
    async with (
        admitted(door, TASK, str(uuid7()), WithdrawSigningKeys()) as permit,
        database.change(permit) as connection,
    ):
        ended = await signing_keys.revoke(connection)
        permit.pending_audit.add_details(keys=str(ended))
    return ended
