# SPDX-License-Identifier: Apache-2.0
"""The route to object stores on loopback, which only an operator's setting opens."""

from __future__ import annotations

from typing import Final

from gateway.scope.endpoint import ANY_NETWORK, RouteTo
from gateway.storage.connector import Connector

LOCAL: Final[RouteTo] = Connector(ANY_NETWORK).route
