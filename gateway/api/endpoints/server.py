# SPDX-License-Identifier: Apache-2.0
"""Server endpoints of the management API."""

from __future__ import annotations

from gateway.access.operations.server import Bootstrap, GetServerInfo
from gateway.api.serves import serve
from gateway.governance.servers import Servers

serve(GetServerInfo, Servers.info)
serve(Bootstrap, Servers.bootstrap)
