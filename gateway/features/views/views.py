# SPDX-License-Identifier: Apache-2.0
"""Use cases of views: list, create, load, drop. They also check that a user lends only its own rights through a view.

Commits are in `view_commits.py`, registration in `registrations.py`. Views and tables share their names and the
warehouse's store. A view's only files are its metadata files.

Engines store a view's owner in a property, and read the tables behind the view with the owner's rights, for every
reader of the view. So the property is a grant of that user's rights. Two rules restrict changes of the property and of
the view's SQL. Their checks are pure.

- **The definer** of a view must be the user in Trino's property (`trino.run-as-owner`), even if the settings trust no
  engine: an engine that is not integrated with the gateway uses the property too.
- **Owner properties that the settings name** are set by trusted engines only: the gateway itself makes decisions by
  them (`gateway/access/decisions/definer_views.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.actor import Actor
from gateway.access.decisions.definer_views import owners_in
from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.access.operations.registrations import AdoptView, RegisterView
from gateway.access.operations.views import CreateView, DropView, ListViews, LoadView, ViewExists
from gateway.access.tuples import Principal
from gateway.db.engine.database import Connection
from gateway.db.tables import tabular_writes
from gateway.db.tasks.tasks import Files
from gateway.features.approvals.change_approval import Approval, ChangeApproval
from gateway.features.contents.lists import Lists
from gateway.features.deletion.drops import drop_tabular
from gateway.features.kit import Kit, UseCases
from gateway.features.metadata.metadata_files import MetadataFiles
from gateway.features.tables.chosen_locations import ChosenLocations
from gateway.features.tables.loads import Labels
from gateway.features.tables.tables import now_ms
from gateway.features.tables.tabular_creation import (
    creation_transaction,
    location_of_new,
    name_taken_error,
    overlap_keys_above,
    record_ownership,
    refuse_taken_location,
    refuse_taken_name,
    release_claims,
)
from gateway.iceberg.creation import new_view_metadata
from gateway.iceberg.errors import (
    AlreadyExistsException,
    ForbiddenException,
    ViewActionForbidden,
)
from gateway.iceberg.identifiers import TableIdentifier, validate_new_name
from gateway.iceberg.kinds import RUNS_AS
from gateway.iceberg.locations import location_properties
from gateway.iceberg.views import ViewMetadata, encode_view_metadata
from gateway.iceberg.wire import ListTablesResponse, LoadViewResult
from gateway.scope.location import Location
from gateway.scope.location_bounds import require_inside


class ProtectedPropertyModification(ForbiddenException):
    """Only trusted engines set the owner of a view, and only the owner changes its definition."""


@dataclass(frozen=True, slots=True)
class ViewOwners:
    """Compares the names of users in engines with user ids. A name is the full id; if `sole_provider` is the only
    identity provider, it can also be the subject part. With several providers, the same subject may belong to different
    users.

    `protected` are the folded names of the properties in which trusted engines store the owner of a view.
    """

    sole_provider: str | None = None
    protected: frozenset[str] = frozenset()

    def require(self, caller: Actor, after: ViewMetadata, before: ViewMetadata | None = None) -> None:
        """Raise ProtectedPropertyModification or ViewActionForbidden if the view would be read with rights that the
        caller cannot lend. `before` is the current view, None for a new one.
        """
        if self.protected:
            redefined = before is None or before.current_version != after.current_version
            old_owners = {} if before is None else before.properties
            require_owner_kept(caller, self.protected, old_owners, after.properties, redefined=redefined)
        if not is_the_engine(caller):
            self.require_own(caller, after, before)

    def require_own(self, caller: Actor, after: ViewMetadata, before: ViewMetadata | None = None) -> None:
        """Raise ViewActionForbidden if the view runs as another user than the caller. It may if the view `before` had
        the same owner and definition.
        """
        runs_as = after.properties.get(RUNS_AS)
        if runs_as is None or runs_as in self._names_of(caller):
            return
        same = before is not None and before.properties.get(RUNS_AS) == runs_as
        if same and before is not None and before.current_version_id == after.current_version_id:
            return
        raise ViewActionForbidden(
            f"Property {RUNS_AS} names another user. Only that user can define a view that runs with their rights. "
            "Set the property to your own user name. Or leave it out; each user then reads with their own rights."
        )

    def _names_of(self, caller: Actor) -> set[str]:
        provider, _, subject = caller.id.partition("~")
        return {caller.id, subject} if provider == self.sole_provider else {caller.id}


def is_the_engine(actor: Actor) -> bool:
    """Return True for a trusted engine that acts for itself, as when it stores the owners of its users' views."""
    return bool(actor.owner_properties) and actor.engine is None


def require_owner_kept(
    actor: Actor,
    protected: frozenset[str],
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    redefined: bool,
) -> None:
    """Raise ProtectedPropertyModification unless `actor` may change a view's properties from `before` to `after`.

    `protected` are the folded names of all owner properties. `redefined` is True if the view's definition changes. A
    trusted engine may make any change. A user through one may become the owner, or remove the owner. The owner may
    change the definition. No other caller may do either.
    """
    old_owners, new_owners = owners_in(before, protected), owners_in(after, protected)
    own_name = actor.id.partition("~")[2]
    for name in old_owners.keys() | new_owners.keys():
        through_engine = name.casefold() in actor.owner_properties
        if through_engine and is_the_engine(actor):
            continue
        unchanged = old_owners.get(name) == new_owners.get(name)
        if unchanged and (not redefined or new_owners[name] == own_name):
            continue
        if through_engine and not unchanged and new_owners.get(name, own_name) == own_name:
            continue
        raise ProtectedPropertyModification(
            f"Property {name} determines the user with whose rights the view is read. Only a trusted engine may set "
            "it, and only to the user that it acts for. Only that user may change the view's definition."
        )


class Views(UseCases):
    """Use cases of the views of a warehouse."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._labels = Labels(kit)
        self.approval = ChangeApproval(kit)
        self._chosen = ChosenLocations(kit)
        self._documents = kit.documents
        self.owners = ViewOwners(sole_provider=kit.sole_provider, protected=kit.protected_view_properties)
        self._lists = Lists(kit)
        self._files = MetadataFiles(kit)

    async def list(self, permit: Permit[ListViews]) -> ListTablesResponse:
        """Return the views that the caller can see, with names as their creators spelled them."""
        return await self._lists.answer(permit, ObjectType.VIEW)

    async def create(self, permit: Permit[CreateView]) -> LoadViewResult:
        """Create the view. The caller becomes its owner.

        Raises errors of status 400 for names, locations, schemas and representations, AlreadyExistsException,
        LocationAlreadyTaken, and ViewActionForbidden for a view that runs as another user.
        """
        request = permit.operation.request
        namespace = permit.namespace(permit.operation.namespace)
        validate_new_name(request.name, noun="view")
        identifier = TableIdentifier(namespace.namespace, request.name)
        await refuse_taken_name(permit, self._database, namespace, identifier, view_name_taken_error)
        profile = namespace.warehouse.storage_profile
        id = uuid7()
        location = location_of_new(profile, namespace, identifier.name, id, request.location)
        metadata = new_view_metadata(
            request, view_uuid=id, location=location.text, now_ms=now_ms(permit), limits=self._files.limits
        )
        self.owners.require(permit.actor, metadata)
        require_inside(profile, location, location_properties(metadata.properties))
        if request.location is not None:
            await self._chosen.require_allowed(permit, profile.base_location(), namespace, location)
            async with self._database.read() as connection:
                await refuse_taken_location(connection, location)
            await self._files.require_empty(namespace.warehouse, location)
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
        """Return the current metadata as stored. A view has no credentials: see `gateway.access.operations.views`."""
        document = await self._documents.read(permit.view(permit.operation.view))
        if document is None:
            raise permit.operation.hidden(permit.operation.view)
        body = answer(document.metadata_location, document.text)
        labels = await self._labels.of_view(permit)
        return msgspec.structs.replace(body, labels=msgspec.Raw(labels)) if labels else body

    async def exists(self, permit: Permit[ViewExists]) -> None:
        """Do nothing: the permit proves that the view exists and is visible to the caller."""

    async def drop(self, permit: Permit[DropView]) -> str:
        """Drop the view (`drops.drop_tabular`). Its name is free immediately, its location after its files are deleted.

        Return `Dropped.note`.

        Without `purgeRequested`, the last metadata file is only recorded for cleanup, as after a commit. A registration
        within the cleanup window can use it. Iceberg's REST compatibility kit registers a view again after its drop.
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

        `take` reserves the location of existing files and returns the owner. Without `take` the caller owns the view,
        and `explicit` is True if the client chose the location.
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


def view_name_taken_error(kind: str, identifier: TableIdentifier) -> AlreadyExistsException:
    """Return the error for a taken view name, with the text of Iceberg's REST compatibility kit."""
    if kind == "view":
        return AlreadyExistsException.view(identifier)
    if kind == "table":
        return AlreadyExistsException.table_instead_of_view(identifier)
    return name_taken_error(kind, identifier)


def answer(metadata_location: str, metadata: bytes) -> LoadViewResult:
    """Build the response to a load. The metadata is included as stored, without decoding."""
    return LoadViewResult(metadata_location=metadata_location, metadata=msgspec.Raw(metadata))
