# SPDX-License-Identifier: Apache-2.0
"""Mapping table endpoints of the management API."""

from __future__ import annotations

from uuid import UUID

from gateway.access.idempotency import RecordedSuccess
from gateway.access.operations.mapping_tables import (
    ChangeMappingEntries,
    CreateMappingTable,
    DeleteMappingTable,
    GetMappingTable,
    ListMappingEntries,
    ListMappingTables,
)
from gateway.api.context import Ctx
from gateway.api.serves import serve
from gateway.governance.mapping_tables import MappingTables
from gateway.protocol.mapping_tables import MappingTableAnswer


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> MappingTableAnswer:
    """Return the current mapping table."""
    unbound = await ctx.read(CreateMappingTable)
    created = GetMappingTable(unbound.project, UUID(recorded_success.detail["mapping_table_id"]))
    return await ctx.services.mapping_tables.get(await ctx.admit(created))


serve(CreateMappingTable, MappingTables.create, replay=replay_create)
serve(ListMappingTables, MappingTables.list)
serve(GetMappingTable, MappingTables.get)
serve(DeleteMappingTable, MappingTables.delete)
serve(ListMappingEntries, MappingTables.entries)
serve(ChangeMappingEntries, MappingTables.change)
