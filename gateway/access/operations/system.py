# SPDX-License-Identifier: Apache-2.0
"""Operations on the running system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.operation import Audience, PublicAudience, ReadOperation


@dataclass(frozen=True)
class GetHealth(ReadOperation):
    """Return the state of each dependency. It contains no data and no users, so load balancers need no token."""

    endpoint: ClassVar[str] = "GET /health"
    open_to: ClassVar[PublicAudience] = PublicAudience(Audience.ALL)
