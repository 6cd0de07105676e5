# SPDX-License-Identifier: Apache-2.0
"""The health endpoint."""

from __future__ import annotations

from litestar import Response

from gateway.access.operations.system import GetHealth
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.telemetry.health import HealthReport


@serves(GetHealth)
async def get_health(ctx: Ctx) -> Response[HealthReport]:
    """Return the health report, with status 200 if all dependencies are healthy, else 503."""
    report = ctx.services.health.report()
    return Response(report, status_code=200 if report.healthy else 503, headers={"Cache-Control": "no-store"})
