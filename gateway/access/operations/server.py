# SPDX-License-Identifier: Apache-2.0
"""Operations on the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.change_event import EventDeclaration, EventPerFurtherChange
from gateway.access.operation import Audience, ChangeOperation, PublicAudience, ReadOperation
from gateway.access.request import InBody
from gateway.protocol.server import BootstrapRequest


@dataclass(frozen=True)
class GetServerInfo(ReadOperation):
    """Return the version, the server id, and whether the server was bootstrapped."""

    endpoint: ClassVar[str] = "GET /management/v1/info"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED, "every client needs the response before its first operation"
    )


@dataclass(frozen=True)
class Bootstrap(ChangeOperation):
    """Make the caller the first administrator. This is possible once."""

    endpoint: ClassVar[str] = "POST /management/v1/bootstrap"
    event: ClassVar[EventDeclaration] = EventPerFurtherChange()
    returns: ClassVar[int] = 204
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED, "no principal can hold a right before the first administrator exists"
    )
    request: InBody[BootstrapRequest]
