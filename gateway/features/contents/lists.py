# SPDX-License-Identifier: Apache-2.0
"""Lists of the contents of a namespace or a warehouse that the caller can see.

A caller that sees everything gets every row without further checks. Otherwise the rows with a grant for the caller are
read, and OpenFGA checks each of them. If the model also makes rows visible without a grant, all rows are read and
checked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias
from uuid import UUID

from gateway.access.door.list_visibility import all_by_grants, holders_of, reach_of
from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import NamespaceRef, ObjectKey, ObjectType, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.access.operation import Operation
from gateway.access.operations.deletion import ListDeletedTabulars
from gateway.access.operations.generic_tables import ListGenericTables
from gateway.access.operations.namespaces import ListNamespaces
from gateway.access.operations.tables import ListTables
from gateway.access.operations.views import ListViews
from gateway.db.engine import list_candidates, list_pages
from gateway.db.engine.list_candidates import NamespaceCandidate, TabularCandidate
from gateway.db.engine.list_pages import ListedNamespace, ListedTabular
from gateway.db.tables import deleted
from gateway.db.tables.deleted import DroppedRow
from gateway.features.kit import UseCases
from gateway.features.paging import named, place_of, visible_page
from gateway.iceberg.wire import ListTablesResponse, TableIdentifierBody

_MOST_NAMES = 10_000
"""Maximum number of names in one value. More are read as rows, in blocks."""

_Tabular: TypeAlias = ListedTabular | TabularCandidate
_Namespace: TypeAlias = ListedNamespace | NamespaceCandidate


class Lists(UseCases):
    """Reads the pages that list tables, views and namespaces."""

    async def tabulars(
        self,
        permit: Permit[ListTables] | Permit[ListViews] | Permit[ListGenericTables],
        type: ObjectType,
        namespace: ResolvedNamespace,
    ) -> tuple[list[_Tabular], str | None]:
        """Return (tables or views in the namespace, token of the next page or None).

        Raises the error of an outage of the decision engine.
        """
        operation = permit.operation
        sees_all = permit.holds(Can.LIST_EVERYTHING, operation.namespace)
        reach = None if sees_all else await reach_of(self._reaches, type)

        async def fetch(after: tuple[str, UUID] | None, limit: int) -> Sequence[_Tabular]:
            if reach is None:
                return await self._database.read_all(
                    *list_pages.in_namespace(namespace_id=namespace.id, kind=type.value, after=after, limit=limit)
                )
            async with self._database.read() as connection:
                return await list_candidates.tabulars(
                    connection,
                    holders_of(permit.actor, permit.resolution),
                    reach,
                    namespace_id=namespace.id,
                    kind=type.value,
                    after=after,
                    limit=limit,
                )

        return await visible_page(
            fetch,
            _keep_all if sees_all else self._visibility_filter(permit, type),
            lambda row: (row.name_key, row.id),
            after=place_of(operation.page_token, named),
            page_size=operation.page_size,
        )

    async def answer(self, permit: Permit[ListTables] | Permit[ListViews], type: ObjectType) -> ListTablesResponse:
        """Return the page that `tabulars` reads, in the REST format of lists of tables and views."""
        operation = permit.operation
        namespace = permit.namespace(operation.namespace)
        if (names := await self._all_names(permit, type, namespace)) is not None:
            levels = namespace.namespace.levels
            return ListTablesResponse(tuple(TableIdentifierBody(levels, name) for name in names), None)
        rows, token = await self.tabulars(permit, type, namespace)
        return ListTablesResponse(
            identifiers=tuple(TableIdentifierBody(namespace.namespace.levels, row.name) for row in rows),
            next_page_token=token,
            table_uuids=tuple(str(row.id) for row in rows) if operation.return_uuids else None,
            protection_status=tuple(row.protected for row in rows) if operation.return_protection_status else None,
        )

    async def _all_names(
        self, permit: Permit[ListTables] | Permit[ListViews], type: ObjectType, namespace: ResolvedNamespace
    ) -> Sequence[str] | None:
        """Return all names if the caller sees everything and requests only names. Return None if the rows are
        needed.
        """
        operation = permit.operation
        paged = operation.page_size is not None or operation.page_token
        if paged or operation.return_uuids or operation.return_protection_status:
            return None
        if not permit.holds(Can.LIST_EVERYTHING, operation.namespace):
            return None
        [row] = await self._database.read_all(
            *list_pages.names_in_namespace(namespace_id=namespace.id, kind=type.value, limit=_MOST_NAMES + 1)
        )
        return None if len(row.names) > _MOST_NAMES else row.names

    async def namespaces(
        self,
        permit: Permit[ListNamespaces],
        parent: NamespaceRef | WarehouseRef,
        within: ResolvedNamespace | None,
    ) -> tuple[list[_Namespace], str | None]:
        """Return (namespaces directly in the warehouse or in the namespace `within`, token of the next page or None).

        Raises the error of an outage of the decision engine.
        """
        operation = permit.operation
        sees_all = permit.holds(Can.LIST_EVERYTHING, parent)
        reach = None if sees_all else await reach_of(self._reaches, ObjectType.NAMESPACE)

        async def fetch(after: tuple[str, UUID] | None, limit: int) -> Sequence[_Namespace]:
            if reach is None:
                return await self._database.read_all(
                    *list_pages.children(
                        warehouse_id=parent.warehouse_id,
                        parent_id=None if within is None else within.id,
                        after=after,
                        limit=limit,
                    )
                )
            async with self._database.read() as connection:
                return await list_candidates.children(
                    connection,
                    holders_of(permit.actor, permit.resolution),
                    reach,
                    warehouse_id=parent.warehouse_id,
                    parent=None if within is None else (within.id, len(within.ancestors) + 1),
                    after=after,
                    limit=limit,
                )

        return await visible_page(
            fetch,
            _keep_all if sees_all else self._visibility_filter(permit, ObjectType.NAMESPACE),
            lambda row: (row.path_key, row.id),
            after=place_of(operation.page_token, named),
            page_size=operation.page_size,
        )

    async def dropped(self, permit: Permit[ListDeletedTabulars]) -> tuple[list[DroppedRow], str | None]:
        """Return (dropped tables and views, token of the next page or None). Raises the error of an outage of the
        decision engine.
        """
        operation = permit.operation
        sees_all = permit.holds(Can.LIST_EVERYTHING, operation.warehouse)
        by_grants = not sees_all and await all_by_grants(self._reaches)
        holders = holders_of(permit.actor, permit.resolution) if by_grants else None

        async def fetch(after: tuple[str, UUID] | None, limit: int) -> Sequence[DroppedRow]:
            async with self._database.read() as connection:
                return await deleted.dropped(
                    connection,
                    warehouse_id=operation.warehouse.warehouse_id,
                    namespace_id=operation.namespace_id,
                    holders=holders,
                    after=after,
                    limit=limit,
                )

        async def is_visible(rows: Sequence[DroppedRow]) -> Sequence[bool]:
            keys = [ObjectKey(ObjectType(row.kind), str(row.id)) for row in rows]
            return await self._door.visible(permit, Can.INCLUDE_IN_LIST, keys)

        return await visible_page(
            fetch,
            _keep_all if sees_all else is_visible,
            lambda row: (row.name_key, row.id),
            after=place_of(operation.page_token, named),
            page_size=operation.page_size,
        )

    def _visibility_filter(
        self, permit: Permit[Operation], type: ObjectType
    ) -> Callable[[Sequence[_Tabular | _Namespace]], Awaitable[Sequence[bool]]]:
        async def is_visible(rows: Sequence[_Tabular | _Namespace]) -> Sequence[bool]:
            keys = [ObjectKey(type, str(row.id)) for row in rows]
            by = [row.by for row in rows if isinstance(row, TabularCandidate | NamespaceCandidate)]
            return await self._door.visible(permit, Can.INCLUDE_IN_LIST, keys, by)

        return is_visible


async def _keep_all(rows: Sequence[object]) -> Sequence[bool]:
    return [True] * len(rows)
