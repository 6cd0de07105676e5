# SPDX-License-Identifier: Apache-2.0
"""Endpoints for managed access of warehouses and namespaces."""

from __future__ import annotations

from gateway.access.operations.managed_access import GET_PERMISSIONS, SET_MANAGED_ACCESS
from gateway.api.serves import serve
from gateway.governance.managed_access import ManagedAccess

for reading in GET_PERMISSIONS:
    serve(reading, ManagedAccess.get)
for setting in SET_MANAGED_ACCESS:
    serve(setting, ManagedAccess.set)
