# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints that protect warehouses, namespaces, tables and views against a drop."""

from __future__ import annotations

from datetime import datetime

import msgspec

from gateway.protocol.base import StrictRequest


class SetProtectionRequest(StrictRequest, frozen=True):
    """Request of `POST …/protection`."""

    protected: bool


class ProtectionAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Response of `…/protection`. Its members are written with underscores, as in Lakekeeper's API."""

    protected: bool
    updated_at: datetime | None = None
