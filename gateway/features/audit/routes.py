# SPDX-License-Identifier: Apache-2.0
"""Endpoints for auditors that read the audit log."""

from __future__ import annotations

from gateway.access.operations.audit import AuditPage, SearchAudit, SearchAuditRequest
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.features.audit.audit_search import AuditSearches, place_of, selection_of


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
