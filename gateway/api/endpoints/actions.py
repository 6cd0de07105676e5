# SPDX-License-Identifier: Apache-2.0
"""Endpoints that return the catalog actions a principal may take on an object."""

from __future__ import annotations

from gateway.access.operations.actions import QUERY_ACTIONS, GetUserActions
from gateway.api.serves import serve
from gateway.governance.rights import Rights

for operation in QUERY_ACTIONS:
    serve(operation, Rights.catalog_actions)
serve(GetUserActions, Rights.user_actions)
