# SPDX-License-Identifier: Apache-2.0
"""Settings of the tickets of changes that wait for approval (``LAKEGATE__CHANGE_TICKETS__…``)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.settings.env import SECONDS


class ChangeTickets(msgspec.Struct, frozen=True, kw_only=True):
    """Tickets of changes that a verifier of this catalog wants to have approved."""

    lifetime: Annotated[float, Meta(ge=1, le=31536000, extra=SECONDS)] = 604_800.0
    """Time in seconds for which a ticket waits for a decision. An approval or a rejection holds for the same time.
    After it, the statement gets a new ticket.
    """
