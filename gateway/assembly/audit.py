# SPDX-License-Identifier: Apache-2.0
"""Create the parts of the audit log that the settings turn on."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from gateway.audit.refused_logins import RefusedLogins
from gateway.audit.sink import BufferedAudit
from gateway.settings import Settings


def count_refused_logins(settings: Settings, audit: BufferedAudit, stack: AsyncExitStack) -> RefusedLogins | None:
    """Start to count refused logins; return None if they are not recorded.

    `stack` must close the sink afterwards: the last counts are written when the process ends.
    """
    if not settings.audit.refused_logins:
        return None
    counting = RefusedLogins(audit.buffer, window=settings.audit.refused_logins)
    stack.callback(counting.flush)
    stack.callback(asyncio.create_task(counting.run(), name="refused logins").cancel)
    return counting
