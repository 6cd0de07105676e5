# SPDX-License-Identifier: Apache-2.0
"""Endpoints of the register of live credentials."""

from __future__ import annotations

from gateway.access.operations.live_credentials import (
    LIST_TABULAR_LIVE_CREDENTIALS,
    ListPrincipalLiveCredentials,
    ListWarehouseLiveCredentials,
)
from gateway.api.serves import serve
from gateway.governance.live_credentials import LiveCredentials

serve(ListPrincipalLiveCredentials, LiveCredentials.of_principal)
serve(ListWarehouseLiveCredentials, LiveCredentials.in_warehouse)
for listing in LIST_TABULAR_LIVE_CREDENTIALS:
    serve(listing, LiveCredentials.of_tabular)
