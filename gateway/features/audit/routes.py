# SPDX-License-Identifier: Apache-2.0
"""Endpoints for auditors that read the audit log."""

from __future__ import annotations

from gateway.access.operations.audit import (
    AuditPage,
    AuditStatistics,
    AuditStatisticsRequest,
    CountAudit,
    GetAuditIntegrity,
    SearchAudit,
    SearchAuditRequest,
)
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.features.audit.audit_search import AuditSearches, place_of, selection_of
from gateway.features.audit.audit_statistics import LONGEST, AuditStatisticsReads


@serves(SearchAudit, reads=(Body(SearchAuditRequest),))
async def search_audit(ctx: Ctx) -> AuditPage:
    """Search the audit log."""
    request = await ctx.body(SearchAuditRequest)
    operation = SearchAudit(
        place_of(request),
        selection_of(request, request.page_token),
        page_token=request.page_token,
        page_size=request.page_size,
    )
    return await ctx.use(AuditSearches).search(await ctx.admit(operation))


@serves(CountAudit, reads=(Body(AuditStatisticsRequest),))
async def count_audit(ctx: Ctx) -> AuditStatistics:
    """Count the records of the audit log over time."""
    request = await ctx.body(AuditStatisticsRequest)
    selection = selection_of(request, longest=LONGEST[request.interval])
    operation = CountAudit(place_of(request), selection, request.interval)
    return await ctx.use(AuditStatisticsReads).count(await ctx.admit(operation))


serve(GetAuditIntegrity, AuditStatisticsReads.integrity)
