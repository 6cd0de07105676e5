# SPDX-License-Identifier: Apache-2.0
"""Commits: validate, write the new metadata files, swap the pointers, and retry if another commit was faster.

Clients do not name the version on which a commit is based. A commit succeeds on any current state of the table on which
its requirements hold. A failed requirement is not retried. The files of a failed attempt are deleted. A transaction
over several tables uses the same code with several changes, in one database transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import CommitUnknown
from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.access.operations.tables import CommitTable, CommitTableCreation, CommitTransaction
from gateway.db.tables import tables, tabular_writes
from gateway.db.tables.documents import Document
from gateway.db.tuples.outbox import Pending
from gateway.features.approvals.change_approval import Approval, ChangeApproval
from gateway.features.credentials.credentials import require_vendable
from gateway.features.kit import Kit, UseCases
from gateway.features.metadata.metadata_files import MetadataFiles, Written
from gateway.features.tables.approved_commits import (
    actions_of,
    commit_approved,
    kind_of,
    proposals_of,
    require_same_state,
)
from gateway.features.tables.changes import Change, NewTable, TableChange
from gateway.features.tables.chosen_locations import ChosenLocations
from gateway.features.tables.commit_retry import CommitConflict, CommitQueue, determine_outcome, retry_conflicts
from gateway.features.tables.tables import now_ms
from gateway.features.tables.tabular_creation import location_of_new, name_taken_error, refuse_taken_location
from gateway.iceberg.commit import CommitOutcome
from gateway.iceberg.errors import (
    CatalogError,
    CommitFailedException,
    LocationAlreadyTaken,
    NoSuchTableException,
    TableIdentifierMismatch,
)
from gateway.iceberg.identifiers import TableIdentifier, validate_new_name
from gateway.iceberg.updates import SetLocation
from gateway.iceberg.wire import CommitTableRequest, CommitTableResponse
from gateway.offloading import offload

AnyCommit = Permit[CommitTable] | Permit[CommitTableCreation] | Permit[CommitTransaction]
ChangedTable = tuple[Change, CommitOutcome, Written]


class Commits(UseCases):
    """Use cases: commits to one table, commits that create a staged table, and transactions over several tables."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._approval = ChangeApproval(kit)
        self._chosen = ChosenLocations(kit)
        self._documents = kit.documents
        self._queue = CommitQueue(kit.locks)
        self._files = MetadataFiles(kit)

    async def commit(self, permit: Permit[CommitTable]) -> CommitTableResponse:
        """Apply the updates to the table's current state.

        Raises:
        - CommitFailedException (409): a requirement does not hold, or other commits were faster too often.
        - Errors of status 400: an update is invalid.
        - CommitStateUnknownException: the database connection failed during COMMIT.
        """
        operation = permit.operation
        identifier = operation.table.identifier
        _require_same_identifier(operation.request, identifier)
        change = TableChange(table=permit.table(operation.table), identifier=identifier, request=operation.request)
        permit.pending_audit.add_details(table_id=str(change.table.id))
        [done] = await self._commit(permit, [change])
        return done

    async def create(self, permit: Permit[CommitTableCreation]) -> CommitTableResponse:
        """Create a table by a commit with the requirement `assert-create`, which ends a create transaction.

        If the request sets a location, it must be the one that the same caller staged, or be free and empty. Otherwise
        the default location is used.
        """
        operation = permit.operation
        identifier = TableIdentifier(operation.namespace.namespace, operation.table)
        _require_same_identifier(operation.request, identifier)
        namespace = permit.namespace(operation.namespace)
        [done] = await self._commit(permit, [await self._new_table(permit, namespace, identifier, operation.request)])
        return done

    async def transaction(self, permit: Permit[CommitTransaction]) -> None:
        """Commit to several tables, all or none. Raises the errors of `commit` and `create`."""
        changes: list[Change] = []
        for part in permit.operation.parts():
            if isinstance(part, CommitTable):
                identifier = part.table.identifier
                changes.append(TableChange(table=permit.table(part.table), identifier=identifier, request=part.request))
            else:
                identifier = TableIdentifier(part.namespace.namespace, part.table)
                namespace = permit.namespace(part.namespace)
                changes.append(await self._new_table(permit, namespace, identifier, part.request))
        await self._commit(permit, changes)

    async def _commit(self, permit: AnyCommit, changes: Sequence[Change]) -> list[CommitTableResponse]:
        requests = [change.request.updates if isinstance(change, TableChange) else change.updates for change in changes]
        actions = [actions_of(updates) for updates in requests]
        permit.pending_audit.add_details(updates=",".join(sorted(frozenset().union(*actions))))

        ids = [change.table.id for change in changes if isinstance(change, TableChange)]

        async def committed(current: Sequence[Change], approval: Approval | None) -> list[CommitTableResponse]:
            async def attempt(must_reread: bool) -> list[CommitTableResponse]:
                now = await self._reread(current) if must_reread else current
                if approval is not None:
                    require_same_state(current, now)
                return await self._attempt(permit, now, approval)

            return await retry_conflicts(self._queue, ids, attempt)

        async def approve(current: Sequence[Change]) -> Approval:
            before = await self._current_documents(current)
            outcomes = await self._outcomes(current, now_ms(permit), before)
            return await self._approval.require(permit, await proposals_of(permit, current, outcomes, before))

        judged = any(
            self._approval.concerns(kind_of(change), ObjectType.TABLE, updates=updates)
            for change, updates in zip(changes, actions, strict=True)
        )
        if not judged:
            return await committed(changes, None)
        return await commit_approved(changes, reread=self._reread, approve=approve, commit=committed)

    async def _reread(self, changes: Sequence[Change]) -> Sequence[Change]:
        async with self._database.read() as connection:
            return [await change.reread(connection) for change in changes]

    async def _outcomes(
        self, changes: Sequence[Change], now: int, before: Mapping[UUID, Document]
    ) -> list[CommitOutcome]:
        return await offload(
            lambda: [self._outcome(change, now, before) for change in changes],
            size=sum(change.extent for change in changes) + sum(len(each.text) for each in before.values()),
        )

    async def _attempt(
        self, permit: AnyCommit, changes: Sequence[Change], approval: Approval | None
    ) -> list[CommitTableResponse]:
        before = await self._current_documents(changes)
        outcomes = await self._outcomes(changes, now_ms(permit), before)
        changing = [(change, outcome) for change, outcome in zip(changes, outcomes, strict=True) if outcome.changed]
        unchanged = [
            change
            for change, outcome in zip(changes, outcomes, strict=True)
            if isinstance(change, TableChange) and not outcome.changed
        ]
        warehouse = changes[0].warehouse
        documents = [(outcome.metadata, change.previous) for change, outcome in changing]
        async with self._files.write_all(warehouse, documents) as written:
            changed = [(*each, file) for each, file in zip(changing, written, strict=True)]
            try:
                # If no table changes, no lock is needed. Otherwise, the requirements on unchanged tables are conditions
                # of the transaction.
                await self._apply(permit, changed, unchanged if changed else (), approval)
            except (tables.Clash, tabular_writes.LocationTaken) as clash:
                raise await self._clash_error(changed) from clash
            except CommitUnknown as unknown:
                await self._determine_outcome(permit, changed, unknown)
        for change, _, file in changed:
            if isinstance(change, TableChange):
                self._documents.keep(change.table.id, *file)
        await self._files.delete_unnamed(warehouse, _expired_files(changed))
        files = {id(change): file for change, _, file in changed}
        return [_answer(change, files.get(id(change)), before) for change in changes]

    async def _current_documents(self, changes: Sequence[Change]) -> dict[UUID, Document]:
        """Return {table id: current document} of the changed tables. Raises NoSuchTableException if a table was
        dropped, CommitConflict if another commit has changed it, and PayloadTooLarge if the documents have too many
        bytes for one transaction.
        """
        tables_changed = {each.table.id: each for each in changes if isinstance(each, TableChange)}
        found = await self._documents.read_all([each.table for each in tables_changed.values()])
        for id, change in tables_changed.items():
            document = found.get(id)
            if document is None:
                raise NoSuchTableException.of(change.identifier)
            if document.metadata_location != change.table.metadata_location:
                raise CommitConflict
        return found

    def _outcome(self, change: Change, now: int, before: Mapping[UUID, Document]) -> CommitOutcome:
        if isinstance(change, TableChange):
            return change.outcome(now, self._files.limits, before[change.table.id].text)
        return change.outcome(now, self._files.limits)

    async def _apply(
        self,
        permit: AnyCommit,
        changed: Sequence[ChangedTable],
        unchanged: Sequence[TableChange],
        approval: Approval | None,
    ) -> None:
        """Apply all changes in one transaction. All commits lock in the same order, which prevents deadlocks."""
        created: list[tuple[NewTable, str]] = []
        pending: list[Pending] = []
        async with self._database.change(permit) as connection:
            steps: list[ChangedTable | TableChange] = [*changed, *unchanged]
            for step in sorted(steps, key=_lock_sort_key):
                if isinstance(step, TableChange):
                    await step.hold(connection)
                    continue
                change, outcome, written = step
                applied = await change.apply(connection, permit.actor, outcome, written, alone=len(steps) == 1)
                pending.extend(applied.pending)
                if isinstance(change, NewTable):
                    created.append((change, str(applied.id)))
            if created:
                # The audit record lists the tables in the order of the request. The events of a transaction find the
                # ids by this order.
                places = {id(change): place for place, (change, _, _) in enumerate(changed)}
                created.sort(key=lambda each: places[id(each[0])])
                permit.pending_audit.add_details(
                    table_id=",".join(id for _, id in created),
                    location=",".join(change.location.text for change, _ in created),
                )
            if approval is not None:
                await approval.use(connection)
        await self._delivery.deliver_or_defer(pending)

    async def _determine_outcome(
        self, permit: AnyCommit, changed: Sequence[ChangedTable], unknown: CommitUnknown
    ) -> None:
        """Determine whether a COMMIT without a response succeeded. One existing table suffices: the others have the
        same outcome.
        """
        for change, _, written in changed:
            if isinstance(change, TableChange):
                await determine_outcome(
                    self._database,
                    permit,
                    change.table.id,
                    from_version=change.table.version,
                    written=written[0],
                    unknown=unknown,
                )
                return
        raise unknown

    async def _clash_error(self, changed: Sequence[ChangedTable]) -> CatalogError:
        """Return the error for an insert that violated a unique index: of a taken name, or else of a location."""
        new = [change for change, _, _ in changed if isinstance(change, NewTable)]
        async with self._database.read() as connection:
            for change in new:
                kind = await tables.name_taken(connection, change.namespace.id, change.identifier.name)
                if kind is not None:
                    return _assert_create_error(kind, change.identifier)
        return LocationAlreadyTaken(
            "Location is taken by another table or view, or by files of one: "
            f"{', '.join(change.location.text for change in new)}. Choose another location."
        )

    async def _new_table(
        self,
        permit: Permit[CommitTableCreation] | Permit[CommitTransaction],
        namespace: ResolvedNamespace,
        identifier: TableIdentifier,
        request: CommitTableRequest,
    ) -> NewTable:
        """Return the change that creates the table, with its location. Raises errors of status 409 if the name or
        location is taken, and of status 400 if the location contains files.
        """
        validate_new_name(identifier.name)
        profile = namespace.warehouse.storage_profile
        requested = [update.location for update in request.updates if isinstance(update, SetLocation)]
        location = location_of_new(profile, namespace, identifier.name, uuid7(), requested[-1] if requested else None)
        require_vendable(profile, location)
        other_updates = [update for update in request.updates if not isinstance(update, SetLocation)]
        async with self._database.read() as connection:
            kind = await tables.name_taken(connection, namespace.id, identifier.name)
            if kind is not None:
                raise _assert_create_error(kind, identifier)
            staged = await tables.staged(
                connection,
                namespace_id=namespace.id,
                name=identifier.name,
                location=location.text,
                staged_by=permit.actor.id,
            )
        default = staged and location_of_new(profile, namespace, identifier.name, staged.id, None).text
        if staged is None:
            if requested:
                await self._chosen.require_allowed(permit, profile.base_location(), namespace, location)
            async with self._database.read() as connection:
                await refuse_taken_location(connection, location)
            await self._files.require_empty(namespace.warehouse, location)
        return NewTable(
            namespace=namespace,
            identifier=identifier,
            location=location,
            chosen=bool(requested) and location.text != default,
            requirements=request.requirements,
            updates=[*other_updates, SetLocation(location=location.text)],
        )


def _expired_files(changed: Sequence[ChangedTable]) -> list[str]:
    """Return the metadata files that these changes remove from the tables' metadata logs."""
    return [
        file
        for change, outcome, _ in changed
        if isinstance(change, TableChange)
        for file in change.expired_files(outcome)
    ]


def _lock_sort_key(step: ChangedTable | TableChange) -> tuple[int, str]:
    return step.lock_sort_key if isinstance(step, TableChange) else step[0].lock_sort_key


def _answer(change: Change, written: Written | None, before: Mapping[UUID, Document]) -> CommitTableResponse:
    """Return the committed state of the table: the new metadata file, or the current one if nothing changed."""
    if written is not None:
        return CommitTableResponse(metadata_location=written[0], metadata=msgspec.Raw(written[1]))
    if isinstance(change, NewTable):
        raise AssertionError("the commit that created the table wrote no metadata file")
    document = before[change.table.id]
    return CommitTableResponse(metadata_location=document.metadata_location, metadata=msgspec.Raw(document.text))


def _assert_create_error(kind: str, identifier: TableIdentifier) -> CatalogError:
    """Return the error if `assert-create` fails because the name is taken, with the text of Iceberg's REST
    compatibility kit.
    """
    if kind == "table":
        return CommitFailedException("Requirement failed: table already exists")
    return name_taken_error(kind, identifier)


def _require_same_identifier(request: CommitTableRequest, identifier: TableIdentifier) -> None:
    """Raise TableIdentifierMismatch if the body has an identifier that differs from the path, because the decision was
    about the path.
    """
    named = None if request.identifier is None else request.identifier.identifier
    if named is not None and named.key != identifier.key:
        raise TableIdentifierMismatch(
            f"The body names {named.dotted} and the path names {identifier.dotted}. They must name the same table."
        )
