# SPDX-License-Identifier: Apache-2.0
"""Endpoints for data policies (row filters and masks) and for mapping tables.

Mapping tables give users and roles the values that row filters compare with columns.
"""

from __future__ import annotations

from uuid import UUID

from litestar import Response

from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.data_policy import DataPolicyRef
from gateway.access.operations.data_policies import (
    BindDataPolicy,
    CreateDataPolicy,
    DeleteDataPolicy,
    GetDataPolicy,
    ListDataPolicies,
    ListDataPolicyAffected,
    ListDataPolicyAlerts,
    ListDataPolicyBindings,
    ListDataPolicyVersions,
    ListTableDataPolicies,
    PreviewDataPolicies,
    ReleaseDataPolicyColumn,
    TryDataPolicyBindings,
    UpdateDataPolicy,
)
from gateway.access.operations.data_policy_bodies import DataPolicyAnswer
from gateway.access.operations.mapping_tables import (
    ChangeMappingEntries,
    CreateMappingTable,
    DeleteMappingTable,
    GetMappingTable,
    ListMappingEntries,
    ListMappingTables,
    MappingTableAnswer,
)
from gateway.api.answers import changed_bindings, stating_restriction
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.features.policies.data_policies import DataPolicies
from gateway.features.policies.data_policy_bindings import DataPolicyBindings
from gateway.features.policies.mapping_tables import MappingTables
from gateway.features.policies.table_policies import DataPolicyPreviews, TablePolicies


async def replay_policy_creation(ctx: Ctx, recorded_success: RecordedSuccess) -> DataPolicyAnswer:
    """Return the current data policy."""
    created = DataPolicyRef(UUID(recorded_success.detail["data_policy_id"]))
    return await ctx.use(DataPolicies).get(await ctx.admit(GetDataPolicy(created)))


async def replay_update(ctx: Ctx, recorded_success: RecordedSuccess) -> Response[DataPolicyAnswer]:
    """Return the current data policy."""
    return Response(await ctx.use(DataPolicies).get(await ctx.admit(await ctx.read(GetDataPolicy))))


@serves(UpdateDataPolicy, replay=replay_update)
async def update(ctx: Ctx) -> Response[DataPolicyAnswer]:
    """Write the next version of a data policy, which applies from the response on.

    The header `X-Lakegate-Restricts: caller` of the response means that the policy restricts the caller.
    """
    return stating_restriction(await ctx.use(DataPolicies).update(await ctx.admit(await ctx.read(UpdateDataPolicy))))


@serves(BindDataPolicy)
async def bind(ctx: Ctx) -> Response[None]:
    """Bind a data policy to objects and names, and unbind it from others.

    The header `X-Lakegate-Restricts: caller` of the response states that the policy restricts the caller there.
    """
    return changed_bindings(await ctx.use(DataPolicyBindings).change(await ctx.admit(await ctx.read(BindDataPolicy))))


serve(CreateDataPolicy, DataPolicies.create, replay=replay_policy_creation)
serve(ListDataPolicies, DataPolicies.list)
serve(GetDataPolicy, DataPolicies.get)
serve(DeleteDataPolicy, DataPolicies.delete)
serve(ListDataPolicyVersions, DataPolicies.versions)
serve(ListDataPolicyBindings, DataPolicyBindings.list)
serve(TryDataPolicyBindings, DataPolicyBindings.dry_run)
serve(ReleaseDataPolicyColumn, DataPolicyBindings.release)
serve(ListDataPolicyAffected, DataPolicyBindings.affected)
serve(ListDataPolicyAlerts, DataPolicyBindings.alerts)
serve(ListTableDataPolicies, TablePolicies.list)
serve(PreviewDataPolicies, DataPolicyPreviews.preview)


async def replay_mapping_table_creation(ctx: Ctx, recorded_success: RecordedSuccess) -> MappingTableAnswer:
    """Return the current mapping table."""
    unbound = await ctx.read(CreateMappingTable)
    created = GetMappingTable(unbound.project, UUID(recorded_success.detail["mapping_table_id"]))
    return await ctx.use(MappingTables).get(await ctx.admit(created))


serve(CreateMappingTable, MappingTables.create, replay=replay_mapping_table_creation)
serve(ListMappingTables, MappingTables.list)
serve(GetMappingTable, MappingTables.get)
serve(DeleteMappingTable, MappingTables.delete)
serve(ListMappingEntries, MappingTables.entries)
serve(ChangeMappingEntries, MappingTables.change)
