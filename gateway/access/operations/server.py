# SPDX-License-Identifier: Apache-2.0
"""What can be asked of the server as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.operation import Durability, Operation
from gateway.access.request import InBody
from gateway.protocol.server import BootstrapRequest


@dataclass(frozen=True)
class GetServerInfo(Operation):
    """Version, server id and whether the server was bootstrapped."""

    endpoint: ClassVar[str] = "GET /management/v1/info"
    open_to_authenticated: ClassVar[str] = "it tells what every client must know before it can do anything"


@dataclass(frozen=True)
class Bootstrap(Operation):
    """Make the caller the first administrator; possible once."""

    endpoint: ClassVar[str] = "POST /management/v1/bootstrap"
    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    open_to_authenticated: ClassVar[str] = "nobody can hold a right before the first administrator exists"
    request: InBody[BootstrapRequest]
