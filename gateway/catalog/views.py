# SPDX-License-Identifier: Apache-2.0
"""Use cases of views: list, create, load, commit, drop. Registration is in `registrations.py`.

Views and tables share their names and the warehouse's store. A view's only files are its metadata files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import CommitUnknown
from gateway.access.operations.registrations import AdoptView, RegisterView
from gateway.access.operations.views import CommitView, CreateView, DropView, ListViews, LoadView, ViewExists
from gateway.access.permit import Permit
from gateway.access.refs import ObjectType
from gateway.access.resolved import ResolvedNamespace, ResolvedView
from gateway.access.tuples import Principal
from gateway.catalog.approved_commits import ApprovedStateChanged, actions_of, commit_approved
from gateway.catalog.change_approval import UNCONDITIONAL, Approval, ChangeApproval
from gateway.catalog.change_proposals import of_object
from gateway.catalog.chosen_locations import ChosenLocations
from gateway.catalog.commit_retry import CommitConflict, CommitQueue, determine_outcome, retry_conflicts
from gateway.catalog.drops import Files, drop_tabular
from gateway.catalog.labels import Labels
from gateway.catalog.lists import Lists
from gateway.catalog.metadata_files import MetadataFiles, own_files
from gateway.catalog.offloading import extent, offload
from gateway.catalog.tables import now_ms
from gateway.catalog.tabular_creation import (
    claim_location,
    creation_transaction,
    location_of_new,
    name_taken_error,
    overlap_keys_above,
    record_ownership,
    refuse_taken_location,
    refuse_taken_name,
    release_claims,
)
from gateway.catalog.view_owners import ViewOwners
from gateway.db import pending_files, retired_locations, tables, tabular_writes, views
from gateway.db.advisory_locks import AdvisoryLocks
from gateway.db.delivery import TupleDelivery
from gateway.db.documents import Document, Documents
from gateway.db.engine import Connection, Database
from gateway.db.resolver import reread_view
from gateway.iceberg.commit import ViewCommitOutcome, commit_view
from gateway.iceberg.creation import new_view_metadata
from gateway.iceberg.errors import (
    AlreadyExistsException,
    LocationAlreadyTaken,
    NoSuchViewException,
    TableIdentifierMismatch,
)
from gateway.iceberg.identifiers import TableIdentifier, validate_new_name
from gateway.iceberg.locations import location_properties
from gateway.iceberg.views import decode_stored_view_metadata, encode_view_metadata
from gateway.iceberg.wire import CommitViewRequest, ListTablesResponse, LoadViewResult
from gateway.scope.location import Location
from gateway.scope.location_bounds import require_inside
from gateway.storage.registry import parse_location, stored_profile
from gateway.verification.port import ChangeKind


class Views:
    """Views of a warehouse."""

    def __init__(
        self,
        *,
        database: Database,
        delivery: TupleDelivery,
        files: MetadataFiles,
        locks: AdvisoryLocks,
        lists: Lists,
        owners: ViewOwners,
        documents: Documents,
        chosen: ChosenLocations,
        approval: ChangeApproval,
        labels: Labels,
    ) -> None:
        self._labels = labels
        self.approval = approval
        self._chosen = chosen
        self._documents = documents
        self.owners = owners
        self._lists = lists
        self._queue = CommitQueue(locks)
        self._database = database
        self._delivery = delivery
        self._files = files

    async def list(self, permit: Permit[ListViews]) -> ListTablesResponse:
        """Return the views that the caller can see, with the spelling of their creators."""
        return await self._lists.answer(permit, ObjectType.VIEW)

    async def create(self, permit: Permit[CreateView]) -> LoadViewResult:
        """Create the view. The creator owns it.

        Raises errors of status 400 for names, locations, schemas and representations, AlreadyExistsException,
        LocationAlreadyTaken, and ViewActionForbidden for a view that runs as another user.
        """
        request = permit.operation.request
        namespace = permit.namespace(permit.operation.namespace)
        validate_new_name(request.name, noun="view")
        identifier = TableIdentifier(namespace.namespace, request.name)
        await refuse_taken_name(permit, self._database, namespace, identifier, view_name_taken_error)
        profile = stored_profile(namespace.warehouse.profile)
        id = uuid7()
        location = location_of_new(profile, namespace, identifier.name, id, request.location)
        metadata = new_view_metadata(
            request, view_uuid=id, location=location.text, now_ms=now_ms(permit), limits=self._files.limits
        )
        self.owners.require(permit.actor, metadata)
        require_inside(profile, location, location_properties(metadata.properties))
        if request.location is not None:
            await self._chosen.require_allowed(permit, profile.base_location(), namespace, location)
            await self._refuse_taken_location_and_empty(namespace, location)
        permit.pending_audit.add_details(view_id=str(id), location=location.text)
        approval = await self.approval.of_creation(
            permit,
            ObjectType.VIEW,
            namespace,
            identifier.name,
            lambda: encode_view_metadata(metadata),
            location=None if request.location is None else location.text,
        )
        async with self._files.write_one(namespace.warehouse, metadata, None) as written:
            explicit = request.location is not None
            await self.insert(
                permit, namespace, identifier, id, metadata.uuid, location, written, approval, explicit=explicit
            )
        return answer(*written)

    async def load(self, permit: Permit[LoadView]) -> LoadViewResult:
        """Return the current metadata as stored. No credentials: see `gateway.access.operations.views`."""
        document = await self._documents.read(permit.view(permit.operation.view))
        if document is None:
            raise permit.operation.hidden(permit.operation.view)
        body = answer(document.metadata_location, document.text)
        labels = await self._labels.of_view(permit)
        return msgspec.structs.replace(body, labels=msgspec.Raw(labels)) if labels else body

    async def exists(self, permit: Permit[ViewExists]) -> None:
        """Do nothing: the permit proves that the view exists and is visible to the caller."""

    async def commit(self, permit: Permit[CommitView]) -> LoadViewResult:
        """Apply the updates to the view's current state. After a lost race the new version gets the next free number.

        Raises:
        - CommitFailedException (409): a requirement does not hold, or too many races were lost.
        - Errors of status 400: an update is invalid.
        - LocationAlreadyTaken.
        - ViewActionForbidden: the view would run as another user.
        - CommitStateUnknownException: the database connection failed during COMMIT.
        """
        operation = permit.operation
        _require_same_identifier(operation.request, operation.view.identifier)
        first = permit.view(operation.view)
        permit.pending_audit.add_details(view_id=str(first.id))

        async def committed(view: ResolvedView, approval: Approval | None) -> LoadViewResult:
            async def attempt(must_reread: bool) -> LoadViewResult:
                now = await self._reread(permit, view) if must_reread else view
                if approval is not None and now.metadata_location != view.metadata_location:
                    raise ApprovedStateChanged
                return await self._attempt(permit, now, approval)

            return await retry_conflicts(self._queue, [view.id], attempt)

        if not self.approval.concerns(
            ChangeKind.COMMIT, ObjectType.VIEW, updates=actions_of(operation.request.updates)
        ):
            return await committed(first, None)
        return await commit_approved(
            first, reread=partial(self._reread, permit), approve=partial(self._approve, permit), commit=committed
        )

    async def drop(self, permit: Permit[DropView]) -> str:
        """Drop the view (`drops.drop_tabular`). Its name is free at once, its location after its files are deleted.

        Return `Dropped.note`.

        Without `purgeRequested`, the last metadata file is only recorded for cleanup, as after a commit, and a
        registration within the cleanup window reuses it. Iceberg's REST compatibility kit registers a view again after
        its drop.
        """
        operation = permit.operation
        view = permit.view(operation.view)
        files = Files.LAST if operation.purge is None else Files.PURGE if operation.purge else Files.KEEP
        approval = await self.approval.of_drop(permit, view, self._documents)
        async with self._database.change(permit) as connection:
            dropped = await drop_tabular(
                connection,
                permit,
                view,
                operation.view.identifier,
                files=files,
                stated=operation.purge is not None,
                force=operation.force,
                approval=approval,
            )
        await self._delivery.deliver_or_defer(dropped.pending)
        return dropped.note

    async def insert(
        self,
        permit: Permit[CreateView | RegisterView | AdoptView],
        namespace: ResolvedNamespace,
        identifier: TableIdentifier,
        id: UUID,
        uuid: UUID,
        location: Location,
        written: tuple[str, bytes],
        approval: Approval,
        take: Callable[[Connection], Awaitable[Principal]] | None = None,
        *,
        explicit: bool = True,
    ) -> None:
        """Insert the view's row, ownership and parent in the transaction of the audit record.

        `take` reserves the location of existing files and returns the owner. Without it the caller owns the view, and
        `explicit` is True for a chosen location.
        """
        async with creation_transaction(
            permit, self._database, namespace, identifier, location, view_name_taken_error, explicit=explicit
        ) as connection:
            await approval.use(connection)
            owner = None if take is None else await take(connection)
            await tabular_writes.create(
                connection,
                id=id,
                warehouse_id=namespace.warehouse.id,
                namespace_id=namespace.id,
                kind="view",
                name=identifier.name,
                table_uuid=uuid,
                location=location.text,
                location_key=location.overlap_key,
                metadata_location=written[0],
                metadata=written[1],
                staged_by=None,
                above=overlap_keys_above(location) if take is None else None,
                noted=take is None,
            )
            if take is None and explicit:
                await release_claims(connection, location)
            pending = await record_ownership(connection, permit.actor, ObjectType.VIEW, id, namespace, owner=owner)
        await self._delivery.deliver_or_defer(pending)

    async def _approve(self, permit: Permit[CommitView], view: ResolvedView) -> Approval:
        document, outcome = await self._outcome(permit, view)
        if not outcome.changed:
            return UNCONDITIONAL
        proposal = of_object(
            permit,
            ChangeKind.COMMIT,
            view,
            updates=permit.operation.request.updates,
            before=document.text,
            after=encode_view_metadata(outcome.metadata),
        )
        return await self.approval.require(permit, [proposal])

    async def _outcome(self, permit: Permit[CommitView], view: ResolvedView) -> tuple[Document, ViewCommitOutcome]:
        """Return (current document, outcome of the commit). Raises CommitConflict for a newer document."""
        request = permit.operation.request
        document = await self._documents.read(view)
        if document is None:
            raise NoSuchViewException.of(permit.operation.view.identifier)
        if document.metadata_location != view.metadata_location:
            raise CommitConflict

        def applied() -> ViewCommitOutcome:
            before = decode_stored_view_metadata(document.text)
            outcome = commit_view(
                before, request.requirements, request.updates, now_ms=now_ms(permit), limits=self._files.limits
            )
            self.owners.require(permit.actor, outcome.metadata, before)
            return outcome

        return document, await offload(applied, size=len(document.text) + extent(request.updates))

    async def _attempt(
        self, permit: Permit[CommitView], view: ResolvedView, approval: Approval | None
    ) -> LoadViewResult:
        document, outcome = await self._outcome(permit, view)
        if not outcome.changed:
            async with self._database.change(permit):
                pass
            return answer(document.metadata_location, document.text)
        location = await self._new_location(permit, view, outcome)
        async with self._files.write_one(view.warehouse, outcome.metadata, view.metadata_location) as written:
            try:
                await self._swap(permit, view, location, written, approval)
            except tables.Clash as clash:
                raise LocationAlreadyTaken(
                    f"Location is taken by another table or view, or by files of one: {location.text}. Choose "
                    "another location."
                ) from clash
            except CommitUnknown as unknown:
                await determine_outcome(
                    self._database, permit, view.id, from_version=view.version, written=written[0], unknown=unknown
                )
        return answer(*written)

    async def _swap(
        self,
        permit: Permit[CommitView],
        view: ResolvedView,
        location: Location,
        written: tuple[str, bytes],
        approval: Approval | None,
    ) -> None:
        async with self._database.change(permit) as connection:
            if approval is not None:
                await approval.use(connection)
            await pending_files.hold(connection, [written[0]])
            if location.text != view.location:
                permit.pending_audit.add_details(location=location.text)
                await claim_location(connection, location)
            if not await views.swap(
                connection,
                view.id,
                from_version=view.version,
                location=location.text,
                location_key=location.overlap_key,
                metadata_location=written[0],
                metadata=written[1],
            ):
                raise CommitConflict
            await _record_for_cleanup(connection, view)
            if location.text != view.location:
                await retired_locations.retired_by(connection, view.id, permit.actor.id)

    async def _new_location(
        self, permit: Permit[CommitView], view: ResolvedView, outcome: ViewCommitOutcome
    ) -> Location:
        """Return the location of the view after the commit. Raises an error unless a new location is below the base,
        free and empty, and path properties lie inside the location.
        """
        profile = stored_profile(view.warehouse.profile)
        location = parse_location(view.location)
        if outcome.metadata.location != view.location:
            location = profile.parse_location(outcome.metadata.location)
            if location.text != view.location:
                await self._chosen.require_allowed(permit, profile.base_location(), view.namespace, location)
                await self._refuse_taken_location_and_empty(view.namespace, location)
        require_inside(profile, location, location_properties(outcome.metadata.properties))
        return location

    async def _refuse_taken_location_and_empty(self, namespace: ResolvedNamespace, location: Location) -> None:
        async with self._database.read() as connection:
            await refuse_taken_location(connection, location)
        await self._files.require_empty(namespace.warehouse, location)

    async def _reread(self, permit: Permit[CommitView], view: ResolvedView) -> ResolvedView:
        async with self._database.read() as connection:
            now = await reread_view(connection, view.id)
        if now is None or now.namespace.id != view.namespace.id or now.identifier.key != view.identifier.key:
            raise NoSuchViewException.of(permit.operation.view.identifier)
        return now


async def _record_for_cleanup(connection: Connection, view: ResolvedView) -> None:
    """Record the view's previous metadata file for cleanup: a view has no metadata log, so nothing names this file any
    more. The file of a registered view may lie outside of its location; then it is kept.
    """
    last = own_files(parse_location(view.location), [view.metadata_location])
    if last:
        await pending_files.add(connection, view.warehouse.id, last)


def view_name_taken_error(kind: str, identifier: TableIdentifier) -> AlreadyExistsException:
    """Return the error for a taken view name, with the text of Iceberg's REST compatibility kit."""
    if kind == "view":
        return AlreadyExistsException.view(identifier)
    if kind == "table":
        return AlreadyExistsException.table_instead_of_view(identifier)
    return name_taken_error(kind, identifier)


def answer(metadata_location: str, metadata: bytes) -> LoadViewResult:
    """Build the answer of a load. The metadata is included as stored, without decoding."""
    return LoadViewResult(metadata_location=metadata_location, metadata=msgspec.Raw(metadata))


def _require_same_identifier(request: CommitViewRequest, identifier: TableIdentifier) -> None:
    """Refuse a body whose identifier, if present, differs from the path: the decision was made on the path. Raises
    TableIdentifierMismatch.
    """
    named = None if request.identifier is None else request.identifier.identifier
    if named is not None and named.key != identifier.key:
        raise TableIdentifierMismatch(
            f"The body names {named.dotted} and the path names {identifier.dotted}. They must name the same view."
        )
