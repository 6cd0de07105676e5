# SPDX-License-Identifier: Apache-2.0
"""What can be asked about the running system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.operation import Audience, OpenTo, ReadOperation


@dataclass(frozen=True)
class GetHealth(ReadOperation):
    """The state of each dependency; it tells nothing about data or people, so load balancers may ask without a
    token.
    """

    endpoint: ClassVar[str] = "GET /health"
    open_to: ClassVar[OpenTo] = OpenTo(Audience.EVERYBODY)
