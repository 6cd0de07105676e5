# SPDX-License-Identifier: Apache-2.0
"""The transaction endpoint of the catalog protocol."""

from __future__ import annotations

from gateway.access.operations.transactions import CommitTransaction
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.wire import CommitTransactionRequest


@serves(CommitTransaction)
async def commit_transaction(ctx: Ctx, prefix: str) -> None:
    """Commit to several tables, all or nothing."""
    request = await ctx.body(CommitTransactionRequest)
    operation = CommitTransaction(ctx.warehouse(prefix).warehouse_id, request)
    await ctx.parts.commits.transaction(await ctx.admit(operation))
