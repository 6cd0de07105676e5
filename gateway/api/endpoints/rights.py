# SPDX-License-Identifier: Apache-2.0
"""Endpoints that return the actions a principal may take on an object."""

from __future__ import annotations

from gateway.access.operations.rights import QUERY_RIGHTS
from gateway.api.serves import serve
from gateway.governance.rights import Rights

for operation in QUERY_RIGHTS:
    serve(operation, Rights.allowed_actions)
