# SPDX-License-Identifier: Apache-2.0
"""Use cases of data policies: create, list, change and delete them, and list their versions.

A data policy is a row filter or a mask. If it names columns, the field ids of these columns are recorded in its
bindings to tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.door.permit import Permit
from gateway.access.management_errors import (
    DataPolicyBound,
    DataPolicyInvalid,
    DataPolicyNameAlreadyExists,
    DataPolicyVersionConflict,
    pending_during_outage,
)
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.data_policy import DataPolicyRef
from gateway.access.nouns.project import ProjectRef, ResolvedProject
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.data_policies import (
    CreateDataPolicy,
    DeleteDataPolicy,
    GetDataPolicy,
    ListDataPolicies,
    ListDataPolicyVersions,
    UpdateDataPolicy,
)
from gateway.access.operations.data_policy_bodies import (
    CreateDataPolicyRequest,
    DataPolicyAnswer,
    DataPolicyDocument,
    DataPolicyList,
    DataPolicyVersionAnswer,
    DataPolicyVersionList,
    UpdateDataPolicyRequest,
)
from gateway.access.results import Stated
from gateway.db.engine.database import Connection
from gateway.db.policies import data_policies, data_policy_bindings, tags
from gateway.db.tables.excerpts import excerpts_of
from gateway.db.tuples.ownership import record_deleted, record_new_in_project
from gateway.features.kit import UseCases
from gateway.features.paging import number
from gateway.features.policies.table_policies import restricts_caller
from gateway.iceberg.errors import CatalogError
from gateway.iceberg.identifiers import fold
from gateway.obligations.binding_columns import recorded_ids
from gateway.obligations.data_policies import (
    AppliesTo,
    Definition,
    column_names,
    tags_of,
    with_tags,
)
from gateway.obligations.projections import RestrictionNotExpressible, columns_of
from gateway.obligations.validation import problems_of


async def recorded_fields(
    connection: Connection, tables: Sequence[UUID], definition: Definition
) -> dict[UUID, tuple[int, ...]]:
    """Return {table id: field ids of the columns that the definition refers to by name, in the table's current schema}.

    A table whose schemas cannot be read has no field ids: the decision then resolves the names itself.
    """
    if not column_names(definition):
        return {}
    found: dict[UUID, tuple[int, ...]] = {}
    for id, excerpt in (await excerpts_of(connection, tables)).items():
        try:
            columns = columns_of(excerpt.text)
        except RestrictionNotExpressible:
            continue
        found[id] = recorded_ids(definition, columns)
    return found


async def record_columns(connection: Connection, policy_id: UUID, definition: Definition) -> None:
    """Record the field ids of a policy's new definition in all bindings of the policy to tables."""
    rows = await data_policy_bindings.of_policy(connection, policy_id)
    tables = [row.object_id for row in rows if row.object_type == "table"]
    found = await recorded_fields(connection, tables, definition)
    await data_policy_bindings.record_fields(connection, policy_id, {id: found.get(id, ()) for id in tables})


#: Maximum number of problems of a definition in one error message.
MOST_PROBLEMS: Final = 10


class DataPolicies(UseCases):
    """Create, list, change and delete the data policies of projects."""

    async def create(self, permit: Permit[CreateDataPolicy]) -> DataPolicyAnswer:
        """Create a data policy. The caller becomes its owner. Raises DataPolicyNameAlreadyExists or
        DataPolicyInvalid.
        """
        request = permit.operation.request
        _require_valid(request.definition)
        project = permit.row(permit.operation.project, ResolvedProject)
        id = uuid7()
        policy = ObjectKey(ObjectType.DATA_POLICY, str(id))
        permit.pending_audit.add_details(data_policy_id=str(id))
        try:
            async with self._database.change(permit) as connection:
                row = await data_policies.create(
                    connection,
                    id=id,
                    project_id=project.id,
                    document=_document(request),
                    tag_ids=await tags.ids_of_names(connection, project.id, tags_of(request.definition)),
                    by=permit.actor.id,
                )
                pending = await record_new_in_project(connection, permit.actor, policy, project.key)
        except data_policies.DataPolicyClash as clash:
            raise _clash_error(clash, permit.operation.project) from clash
        await self._delivery.deliver_or_defer(pending)
        return _wire(row, {})

    async def list(self, permit: Permit[ListDataPolicies]) -> DataPolicyList:
        """Return the data policies of the project in order of creation."""
        operation = permit.operation
        page = self._page_of(operation, UUID)
        async with self._database.read() as connection:
            rows = await data_policies.page(
                connection, operation.project.project_id, after=page.after, limit=page.limit
            )
            names = await _tag_names(connection, rows)
        return DataPolicyList(
            data_policies=[_wire(row, names) for row in page.rows(rows)],
            next_page_token=page.next_token(rows, lambda row: row.id),
        )

    async def get(self, permit: Permit[GetDataPolicy]) -> DataPolicyAnswer:
        """Return one data policy."""
        ref = permit.operation.policy
        async with self._database.read() as connection:
            row = await data_policies.get(connection, ref.policy_id)
            if row is None:
                raise not_found(ref)
            return _wire(row, await _tag_names(connection, [row]))

    async def versions(self, permit: Permit[ListDataPolicyVersions]) -> DataPolicyVersionList:
        """Return the versions of a data policy, newest first."""
        operation = permit.operation
        page = self._page_of(operation, number(9))
        async with self._database.read() as connection:
            rows = await data_policies.versions(
                connection, operation.policy.policy_id, before=page.after, limit=page.limit
            )
        return DataPolicyVersionList(
            versions=[_version_answer(row) for row in page.rows(rows)],
            next_page_token=page.next_token(rows, lambda row: row.version),
        )

    async def update(self, permit: Permit[UpdateDataPolicy]) -> Stated[DataPolicyAnswer]:
        """Write the next version of a data policy, which applies from the response on.

        The result states whether the policy restricts the caller. It does not if the policy is bound to nothing. Raises
        DataPolicyNameAlreadyExists, DataPolicyVersionConflict or DataPolicyInvalid.
        """
        operation = permit.operation
        request, ref = operation.request, operation.policy
        _require_valid(request.definition)
        try:
            async with self._database.change(permit) as connection:
                before = await data_policies.lock(connection, ref.policy_id)
                if before is None:
                    raise not_found(ref)
                if request.if_version not in (None, before.version):
                    raise DataPolicyVersionConflict(
                        f"The data policy has version {before.version}, and the request expects {request.if_version}. "
                        "Read the policy again, and repeat the change with its version."
                    )
                row = await data_policies.update(
                    connection,
                    ref.policy_id,
                    document=_document(request),
                    tag_ids=await tags.ids_of_names(connection, before.project_id, tags_of(request.definition)),
                    by=permit.actor.id,
                    reason=request.reason,
                )
                permit.pending_audit.add_details(version=str(row.version))
                if column_names(_definition(before)) != column_names(request.definition):
                    await record_columns(connection, ref.policy_id, request.definition)
                await data_policy_bindings.touch_warehouses(connection, ref.policy_id)
                bound = await data_policy_bindings.of_policy(connection, ref.policy_id, after=None, limit=1)
        except data_policies.DataPolicyClash as clash:
            raise _clash_error(clash, ref) from clash
        restricts = await restricts_caller(permit, {str(row.id): AppliesTo(row.applies_to)} if bound else {})
        return Stated(_wire(row, {}), restricts)

    async def delete(self, permit: Permit[DeleteDataPolicy]) -> None:
        """Delete a data policy with its bindings and the grants on it.

        Raises DataPolicyBound for a bound policy without `force`. Raises RevocationPending if the deletion is recorded
        but OpenFGA has not confirmed it yet.
        """
        operation = permit.operation
        id = operation.policy.policy_id
        async with self._database.change(permit) as connection:
            row = await data_policies.lock(connection, id)
            if row is None:
                raise not_found(operation.policy)
            warehouses = await data_policy_bindings.warehouses_of(connection, id)
            if warehouses and not operation.force:
                raise DataPolicyBound(
                    "The data policy is bound to objects and restricts reading of them. Unbind it first, or delete it "
                    "with force=true."
                )
            await data_policies.delete(connection, id)
            await data_policy_bindings.touch_each(connection, row.project_id, warehouses)
            gone, parent = ObjectKey(ObjectType.DATA_POLICY, str(id)), ObjectKey(ObjectType.PROJECT, row.project_id)
            pending = await record_deleted(connection, gone, parent, above=(), warehouse_id=None, by=permit.actor.id)
        with pending_during_outage(
            "The data policy is deleted, but the revocation of the grants on it is not yet complete. The gateway "
            "retries it; no further request is needed."
        ):
            await self._delivery.deliver(pending)


def _require_valid(definition: Definition) -> None:
    """Raise DataPolicyInvalid if the definition is invalid, with the JSON pointers of its first MOST_PROBLEMS
    problems.
    """
    found = problems_of(definition, None)
    if found:
        places = "; ".join(f"/definition{each.pointer}: {each.problem}" for each in found[:MOST_PROBLEMS])
        raise DataPolicyInvalid(f"The definition of the data policy is invalid. {places}")


def _document(request: CreateDataPolicyRequest | UpdateDataPolicyRequest) -> Mapping[str, Any]:
    """Return the columns that a new version sets in its row of `data_policies`."""
    return {
        "name": request.name,
        "description": request.description,
        "definition": msgspec.to_builtins(request.definition),
        "applies_to": request.applies_to.value,
        "allow_append": request.allow_append,
    }


def _definition(row: data_policies.DataPolicyRow) -> Definition:
    definition: Definition = msgspec.convert(row.definition, Definition)
    return definition


async def _tag_names(connection: Connection, rows: Sequence[data_policies.DataPolicyRow]) -> Mapping[str, str]:
    """Return {id: current name} of the tags that the definitions refer to."""
    return await tags.names_of(connection, {id for row in rows for id in row.tag_ids.values()})


def _wire(row: data_policies.DataPolicyRow, names: Mapping[str, str]) -> DataPolicyAnswer:
    """Return a row in wire form. `names` are the current names of its tags, with which the definition is shown."""

    def present(name: str) -> str:
        found = names.get(row.tag_ids.get(fold(name), ""), name)
        return name if fold(found) == fold(name) else found

    return DataPolicyAnswer(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        version=row.version,
        definition=with_tags(_definition(row), present),
        applies_to=AppliesTo(row.applies_to),
        allow_append=row.allow_append,
        created_at=row.created_at,
        description=row.description,
        updated_at=row.updated_at,
    )


def _version_answer(row: data_policies.VersionRow) -> DataPolicyVersionAnswer:
    document = {key.replace("_", "-"): value for key, value in row.document.items()}
    return DataPolicyVersionAnswer(
        version=row.version,
        document=msgspec.convert(document, DataPolicyDocument),
        changed_by=row.changed_by,
        changed_at=row.changed_at,
        reason=row.reason,
    )


def _clash_error(clash: data_policies.DataPolicyClash, about: DataPolicyRef | ProjectRef) -> CatalogError:
    match clash:
        case data_policies.NameTaken():
            return DataPolicyNameAlreadyExists(
                "A data policy with this name already exists in the project. Choose another name."
            )
        case _:
            return not_found(about)
