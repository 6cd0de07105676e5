# SPDX-License-Identifier: Apache-2.0
"""Commits to views: requirements and updates, their approval by verifiers, and the swap of the metadata file.

A view's only files are its metadata files, and it has no metadata log: each commit records the previous file for
cleanup.
"""

from __future__ import annotations

from functools import partial

from gateway.access.dependency_errors import CommitUnknown
from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.resolved import ResolvedView
from gateway.access.operations.views import CommitView
from gateway.db.engine.database import Connection
from gateway.db.resolver.resolver import reread_view
from gateway.db.tables import pending_files, retired_locations, tables, views
from gateway.db.tables.documents import Document
from gateway.features.approvals.change_approval import UNCONDITIONAL, Approval, ChangeApproval
from gateway.features.approvals.change_proposals import of_object
from gateway.features.kit import Kit, UseCases
from gateway.features.metadata.metadata_files import MetadataFiles, own_files
from gateway.features.tables.approved_commits import ApprovedStateChanged, actions_of, commit_approved
from gateway.features.tables.chosen_locations import ChosenLocations
from gateway.features.tables.commit_retry import CommitConflict, CommitQueue, determine_outcome, retry_conflicts
from gateway.features.tables.tables import now_ms
from gateway.features.tables.tabular_creation import claim_location, refuse_taken_location
from gateway.features.views.views import ViewOwners, answer
from gateway.iceberg.commit import ViewCommitOutcome, commit_view
from gateway.iceberg.errors import LocationAlreadyTaken, NoSuchViewException, TableIdentifierMismatch
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.locations import location_properties
from gateway.iceberg.views import decode_stored_view_metadata, encode_view_metadata
from gateway.iceberg.wire import CommitViewRequest, LoadViewResult
from gateway.offloading import extent, offload
from gateway.scope.location import Location
from gateway.scope.location_bounds import require_inside
from gateway.storage.registry import parse_location
from gateway.verification.port import ChangeKind


class ViewCommits(UseCases):
    """Commits to the views of a warehouse."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._files = MetadataFiles(kit)
        self._queue = CommitQueue(kit.locks)
        self._owners = ViewOwners(sole_provider=kit.sole_provider, protected=kit.protected_view_properties)
        self._documents = kit.documents
        self._chosen = ChosenLocations(kit)
        self._approval = ChangeApproval(kit)

    async def commit(self, permit: Permit[CommitView]) -> LoadViewResult:
        """Apply the updates to the view's current state. If another commit was faster, the new version gets the next
        free number.

        Raises:
        - CommitFailedException (409): a requirement does not hold, or other commits were faster too often.
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

        if not self._approval.concerns(
            ChangeKind.COMMIT, ObjectType.VIEW, updates=actions_of(operation.request.updates)
        ):
            return await committed(first, None)
        return await commit_approved(
            first, reread=partial(self._reread, permit), approve=partial(self._approve, permit), commit=committed
        )

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
        return await self._approval.require(permit, [proposal])

    async def _outcome(self, permit: Permit[CommitView], view: ResolvedView) -> tuple[Document, ViewCommitOutcome]:
        """Return (current document, outcome of the commit). Raises CommitConflict if the document is newer than the
        row.
        """
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
            self._owners.require(permit.actor, outcome.metadata, before)
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
        """Return the location of the view after the commit. Raises an error unless a new location is below the base
        location, free and empty. Raises one if path properties lie outside of the location.
        """
        profile = view.warehouse.storage_profile
        location = parse_location(view.location)
        if outcome.metadata.location != view.location:
            location = profile.parse_location(outcome.metadata.location)
            if location.text != view.location:
                await self._chosen.require_allowed(permit, profile.base_location(), view.namespace, location)
                async with self._database.read() as connection:
                    await refuse_taken_location(connection, location)
                await self._files.require_empty(view.warehouse, location)
        require_inside(profile, location, location_properties(outcome.metadata.properties))
        return location

    async def _reread(self, permit: Permit[CommitView], view: ResolvedView) -> ResolvedView:
        async with self._database.read() as connection:
            now = await reread_view(connection, view.id)
        if now is None or now.namespace.id != view.namespace.id or now.identifier.key != view.identifier.key:
            raise NoSuchViewException.of(permit.operation.view.identifier)
        return now


async def _record_for_cleanup(connection: Connection, view: ResolvedView) -> None:
    """Record the view's previous metadata file for cleanup: a view has no metadata log, so nothing refers to this file
    any more. If the file of a registered view lies outside of its location, it is kept.
    """
    last = own_files(parse_location(view.location), [view.metadata_location])
    if last:
        await pending_files.add(connection, view.warehouse.id, last)


def _require_same_identifier(request: CommitViewRequest, identifier: TableIdentifier) -> None:
    """Raise TableIdentifierMismatch if the body has an identifier that differs from the path, because the decision was
    about the path.
    """
    named = None if request.identifier is None else request.identifier.identifier
    if named is not None and named.key != identifier.key:
        raise TableIdentifierMismatch(
            f"The body names {named.dotted} and the path names {identifier.dotted}. They must name the same view."
        )
