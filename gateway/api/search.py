# SPDX-License-Identifier: Apache-2.0
"""Searching for tables and views."""

from __future__ import annotations

from gateway.access.operations.search import SearchTabular
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.protocol.search import FoundTabulars, SearchRequest


@serves(SearchTabular)
async def search_tabular(ctx: Ctx) -> FoundTabulars:
    """Tables and views by a part of their name, their path or their id."""
    on, request = targets.warehouse(ctx), await ctx.body(SearchRequest)
    return await ctx.parts.search.tabulars(await ctx.admit(SearchTabular(on, request.search)))
