# SPDX-License-Identifier: Apache-2.0
"""Use cases of namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.door.permit import Permit
from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.refs import TABULARS, NamespaceRef, ObjectKey, ObjectType
from gateway.access.operations.namespaces import (
    CreateNamespace,
    DropNamespace,
    ListNamespaces,
    LoadNamespace,
    NamespaceExists,
    UpdateNamespaceProperties,
)
from gateway.db.engine.database import retry_serialization
from gateway.db.tables import namespaces
from gateway.db.tuples.desired_tuples import path_above
from gateway.db.tuples.outbox import Pending
from gateway.db.tuples.ownership import record_new
from gateway.features.approvals.change_approval import UNCONDITIONAL, Approval, ChangeApproval, ChangeRejected
from gateway.features.contents.lists import Lists
from gateway.features.kit import Kit, UseCases
from gateway.features.namespaces.namespace_drops import drop_empty, drop_tree
from gateway.features.tables.approved_commits import ApprovedStateChanged, commit_approved
from gateway.iceberg.errors import (
    AlreadyExistsException,
    BadRequestException,
    LocationCannotBeRemoved,
    LocationCannotBeUpdated,
    NamespaceNotEmptyException,
    NoSuchNamespaceException,
    UnprocessableEntityException,
)
from gateway.iceberg.identifiers import validate_new_namespace
from gateway.iceberg.limits import MAX_NAMESPACE_PROPERTY_BYTES, property_bytes
from gateway.iceberg.wire import ListNamespacesResponse, NamespaceResponse, UpdateNamespacePropertiesResponse
from gateway.verification.port import ChangeKind

#: The number of tuples that a drop deletes in OpenFGA before the response. A background task deletes the others. The
#: tuples on the containers above the tree are always deleted before the response.
_DELIVERED_AT_ONCE = 500

#: Properties that the server computes. Clients may send them; they are never stored.
_SYNTHETIC = frozenset({"namespace_id", "managed_access"})


class Namespaces(UseCases):
    """Use cases of the namespaces of a warehouse."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._max_properties = kit.limits.properties
        self._approval = ChangeApproval(kit)
        self._lists = Lists(kit)
        self._reserved = kit.reserved

    async def list(self, permit: Permit[ListNamespaces]) -> ListNamespacesResponse:
        """Return the direct children that the caller can see, with names as their creators spelled them."""
        operation = permit.operation
        parent = operation.parent
        within = permit.namespace(parent) if isinstance(parent, NamespaceRef) else None

        rows, token = await self._lists.namespaces(permit, parent, within)
        return ListNamespacesResponse(
            namespaces=tuple(tuple(row.levels) for row in rows),
            next_page_token=token,
            namespace_uuids=tuple(str(row.id) for row in rows) if operation.return_uuids else None,
            protection_status=tuple(row.protected for row in rows) if operation.return_protection_status else None,
        )

    async def create(self, permit: Permit[CreateNamespace]) -> NamespaceResponse:
        """Create the namespace below its parent. The caller becomes its owner.

        Raises AlreadyExistsException, errors of status 400 for the name and the properties, and the 404 of a parent or
        warehouse that was dropped meanwhile.
        """
        operation = permit.operation
        namespace = operation.namespace
        validate_new_namespace(namespace, reserved=self._reserved)
        parent = permit.namespace(operation.parent) if isinstance(operation.parent, NamespaceRef) else None
        if parent is not None:
            namespace = parent.namespace.child(namespace.levels[-1])
        warehouse = parent.warehouse if parent is not None else permit.warehouse(operation.warehouse)
        requested = operation.request.properties or {}
        properties = {key: value for key, value in requested.items() if key not in _SYNTHETIC}
        self._refuse_large(properties, {})
        profile = warehouse.storage_profile
        if "location" in properties:
            properties["location"] = profile.parse_location(properties["location"]).prefix_text
        else:
            properties["location"] = profile.base_location().prefix_text
        id = uuid7()
        ancestors = () if parent is None else (*parent.ancestors, parent.id)
        above = path_above(warehouse.project_id, str(warehouse.id), [str(a) for a in ancestors])
        permit.pending_audit.add_details(namespace_id=str(id))
        approval = await self._approval.of_new_namespace(permit, parent or warehouse, namespace, properties)
        async with self._database.change(permit) as connection:
            await approval.use(connection)
            try:
                created = await namespaces.create(
                    connection,
                    id=id,
                    warehouse_id=warehouse.id,
                    parent=parent,
                    namespace=namespace,
                    properties=properties,
                )
            except namespaces.NamespaceGone as gone:
                raise NoSuchNamespaceException(f"Namespace does not exist: {namespace.dotted}") from gone
            except namespaces.WarehouseGone as gone:
                raise not_found(operation.warehouse) from gone
            if not created:
                raise AlreadyExistsException(f"Namespace already exists: {namespace.dotted}")
            pending = await record_new(
                connection,
                permit.actor,
                ObjectKey(ObjectType.NAMESPACE, str(id)),
                warehouse.key if parent is None else parent.key,
                above=above,
                warehouse_id=warehouse.id,
            )
        await self._delivery.deliver_or_defer(pending)
        return NamespaceResponse(namespace=namespace.levels, properties={**properties, "namespace_id": str(id)})

    async def load(self, permit: Permit[LoadNamespace]) -> NamespaceResponse:
        """Return the properties of the namespace, with its name as the creators spelled it."""
        row = permit.namespace(permit.operation.namespace)
        properties = await namespaces.read_properties(self._database, row.id)
        if properties is None:
            raise NoSuchNamespaceException(f"Namespace does not exist: {row.namespace.dotted}")
        return NamespaceResponse(
            namespace=row.namespace.levels,
            properties={**properties, "namespace_id": str(row.id)},
        )

    async def exists(self, permit: Permit[NamespaceExists]) -> None:
        """Do nothing: the permit proves that the namespace exists and is visible to the caller."""

    async def drop(self, permit: Permit[DropNamespace]) -> None:
        """Drop a namespace with its grants, and its contents if the request is recursive (`namespace_drops`)."""

        row = permit.namespace(permit.operation.namespace)
        approval = await self._approval.of_namespace(permit, ChangeKind.DROP, row)
        # The verifiers check a drop of the namespace but not of its contents. So if they must be queried about the
        # contents, tabulars and namespaces must be dropped one by one.
        only_empty = self._approval.concerns(ChangeKind.DROP, *TABULARS, ObjectType.NAMESPACE)

        async def attempt() -> Sequence[Pending]:
            async with self._database.change(permit) as connection:
                await approval.use(connection)
                if permit.operation.recursive and not only_empty:
                    return await drop_tree(connection, permit)
                return await drop_empty(connection, permit)

        try:
            pending = await retry_serialization(attempt)
        except NamespaceNotEmptyException as not_empty:
            if not (permit.operation.recursive and only_empty):
                raise
            raise ChangeRejected(
                f"Namespace {row.namespace.dotted} is not empty, and verifiers of this catalog judge drops of "
                "tables, views or namespaces. Drop its contents one by one, then the namespace."
            ) from not_empty
        await self._delivery.deliver_or_defer(_deliver_first(pending))

    async def update_properties(self, permit: Permit[UpdateNamespaceProperties]) -> UpdateNamespacePropertiesResponse:
        """Set and remove properties. A key in both lists is an error of status 422 (REST specification). The location
        is immutable.
        """
        operation = permit.operation
        row = permit.namespace(operation.namespace)
        updates = {key: value for key, value in (operation.request.updates or {}).items() if key not in _SYNTHETIC}
        removals = dict.fromkeys(operation.request.removals or ())
        _refuse_contradictions(updates, removals)

        async def committed(
            verified: Mapping[str, str] | None, approval: Approval
        ) -> UpdateNamespacePropertiesResponse:
            return await self._update(permit, updates, removals, verified, approval)

        async def current() -> Mapping[str, str]:
            found = await namespaces.read_properties(self._database, row.id)
            if found is None:
                raise NoSuchNamespaceException(f"Namespace does not exist: {row.namespace.dotted}")
            return found

        async def approve(properties: Mapping[str, str]) -> Approval:
            after = _changed(properties, updates, removals)
            return await self._approval.of_namespace(permit, ChangeKind.NAMESPACE_PROPERTIES, row, properties=after)

        if not self._approval.concerns(ChangeKind.NAMESPACE_PROPERTIES, ObjectType.NAMESPACE):
            return await committed(None, UNCONDITIONAL)
        return await commit_approved(await current(), reread=lambda _: current(), approve=approve, commit=committed)

    async def _update(
        self,
        permit: Permit[UpdateNamespaceProperties],
        updates: Mapping[str, str],
        removals: Mapping[str, None],
        verified: Mapping[str, str] | None,
        approval: Approval,
    ) -> UpdateNamespacePropertiesResponse:
        """Change the properties. Raises ApprovedStateChanged unless they still equal `verified`, the properties that
        the verifiers evaluated.
        """
        row = permit.namespace(permit.operation.namespace)
        async with self._database.change(permit) as connection:
            await approval.use(connection)
            current = await namespaces.locked_properties(connection, row.id)
            if current is None:
                raise NoSuchNamespaceException(f"Namespace does not exist: {row.namespace.dotted}")
            if verified is not None and current != verified:
                raise ApprovedStateChanged
            if updates.get("location", current["location"]) != current["location"]:
                raise LocationCannotBeUpdated(
                    "Namespace property `location` cannot be updated. Leave it out of the updates."
                )
            removed = [key for key in removals if key in current]
            permit.pending_audit.add_details(removed=msgspec.json.encode(removed).decode())
            properties = _changed(current, updates, removals)
            self._refuse_large(properties, current)
            await namespaces.set_properties(connection, row.id, properties)
        return _updated(updates, removals, removed)

    async def repeat_update(
        self, permit: Permit[UpdateNamespaceProperties], recorded_success: RecordedSuccess
    ) -> UpdateNamespacePropertiesResponse:
        """Return the response of an earlier update with the same idempotency key, from the request and the record of
        the key.
        """
        request = permit.operation.request
        updates = {key: value for key, value in (request.updates or {}).items() if key not in _SYNTHETIC}
        removed = msgspec.json.decode(recorded_success.detail["removed"], type=list[str])
        permit.pending_audit.add_details(repeated="true")
        await permit.pending_audit.commit()
        return _updated(updates, dict.fromkeys(request.removals or ()), removed)

    def _refuse_large(self, properties: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Raise BadRequestException if the number or the size of the properties exceeds the limit.

        A namespace that an earlier version of the gateway let exceed a limit may keep its size or shrink.
        """
        if len(properties) > max(self._max_properties, len(before)):
            raise BadRequestException(
                f"The namespace would have {len(properties)} properties; at most {self._max_properties} are allowed."
            )
        size = property_bytes(properties)
        if size > MAX_NAMESPACE_PROPERTY_BYTES and size > property_bytes(before):
            raise BadRequestException(
                f"The properties of the namespace would take {size} bytes; at most {MAX_NAMESPACE_PROPERTY_BYTES} "
                "are allowed. Set shorter values, or remove properties."
            )


def _changed(current: Mapping[str, str], updates: Mapping[str, str], removals: Mapping[str, None]) -> dict[str, str]:
    return {**{key: value for key, value in current.items() if key not in removals}, **updates}


def _updated(
    updates: Mapping[str, str], removals: Mapping[str, None], removed: Sequence[str]
) -> UpdateNamespacePropertiesResponse:
    present = set(removed)
    return UpdateNamespacePropertiesResponse(
        updated=tuple(updates),
        removed=tuple(removed),
        missing=tuple(key for key in removals if key not in present),
    )


def _deliver_first(pending: Sequence[Pending]) -> Sequence[Pending]:
    """Return the tuple keys that must be delivered before the response to a drop.

    They include all keys on the containers above the tree, which `namespace_drop.remove` returns first. Tuples on the
    dropped objects can wait: no lookup finds these objects any more.
    """
    gone = {each.key.object for each in pending if each.key.relation == "parent"}
    above = sum(each.key.object not in gone for each in pending)
    return pending[: max(above, _DELIVERED_AT_ONCE)]


def _refuse_contradictions(updates: Mapping[str, str], removals: Mapping[str, None]) -> None:
    both = sorted(set(updates) & set(removals))
    if both:
        raise UnprocessableEntityException(f"These properties are both set and removed: {', '.join(both)}")
    if "location" in removals:
        raise LocationCannotBeRemoved("Namespace property `location` cannot be removed. Leave it out of the removals.")
