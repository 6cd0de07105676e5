# SPDX-License-Identifier: Apache-2.0
"""Use cases of the tags of objects: attach, detach, list, and list the objects with a tag."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from uuid import UUID

from gateway.access.door.permit import Permit
from gateway.access.management_errors import ColumnNotFound, TagSuggestionsDisabled
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.refs import ObjectKey, ObjectType, Ref, TableRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import (
    Resolution,
    ResolvedGenericTable,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
    warehouse_of,
)
from gateway.access.nouns.tag import ResolvedTag, TagActionForbidden
from gateway.access.operations.tag_attachments import (
    AttachColumnTag,
    AttachTag,
    DetachColumnTag,
    DetachTag,
    ListColumnTags,
    ListObjectTags,
    ListTagAttachments,
    ListTagsOfColumn,
    ListTagSuggestions,
)
from gateway.access.operations.tags import (
    AppliedTag,
    AttachmentTarget,
    ColumnTagList,
    TagAttachment,
    TagAttachmentList,
    TaggedColumn,
    TagList,
    TagSource,
    TagSuggestion,
    TagSuggestionList,
    TargetTag,
)
from gateway.access.results import Stated
from gateway.db.engine.database import Connection
from gateway.db.grants import grants
from gateway.db.policies import tag_attachments, tags
from gateway.db.policies.data_policy_revisions import touch
from gateway.db.policies.tag_attachments import Attachment, Filter, NamedAttachment, Target
from gateway.db.tables.excerpts import excerpts_of
from gateway.features.grants.columns import field_named, known_columns
from gateway.features.kit import Kit, UseCases
from gateway.features.policies.table_policies import restricts_caller
from gateway.features.tags.tag_suggestions import suggestions_for
from gateway.features.tags.tags import require_in_scope, require_value
from gateway.iceberg.identifiers import fold
from gateway.obligations.projections import Columns

Attaching = AttachTag | AttachColumnTag
Detaching = DetachTag | DetachColumnTag


class TagAttachments(UseCases):
    """Attach tags to objects and columns, detach them, and list them."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._suggests = kit.tag_suggestions

    async def attach(self, permit: Permit[Attaching]) -> Stated[AppliedTag]:
        """Attach a tag to an object, or change its value. An equal value changes nothing. A new value replaces the
        former one, which the caller must be allowed to remove.

        The result contains whether a data policy that is bound to the tag restricts the caller.
        Raises TagScopeNotAllowed, InvalidTagValue, ColumnNotFound or TagActionForbidden.
        """
        operation = permit.operation
        admitted = permit.row(operation.tag, ResolvedTag)
        async with self._database.change(permit) as connection:
            target = await self._target(connection, permit)
            tag = await tags.held(connection, admitted.id, shared=True)
            if tag is None:
                raise not_found(operation.tag)
            require_in_scope(tag.name, tag.scope, CARDS[ObjectType(target.type)].in_bodies)
            require_value(tag.name, tag.value_kind, tag.allowed_values, operation.value)
            row = present = await tag_attachments.held(connection, tag.id, target)
            if present is not None and present.value != operation.value:
                await self._require_removable(connection, permit)
            if row is None or row.value != operation.value:
                row = await tag_attachments.attach(
                    connection, tag.id, target, present, value=operation.value, by=permit.actor.id
                )
                await touch(connection, project_id=tag.project_id, warehouse_id=target.warehouse_id)
            policies = await tags.policies_bound_to(connection, tag.id)
        applied = AppliedTag(tag_definition_id=tag.id, name=tag.name, applied_at=row.attached_at, value=row.value)
        return Stated(applied, await restricts_caller(permit, policies))

    async def detach(self, permit: Permit[Detaching]) -> None:
        """Detach a tag. Idempotent. Raises ColumnNotFound or TagActionForbidden."""
        admitted = permit.row(permit.operation.tag, ResolvedTag)
        async with self._database.change(permit) as connection:
            target = await self._target(connection, permit)
            if await tag_attachments.held(connection, admitted.id, target) is None:
                return
            await self._require_removable(connection, permit)
            await tag_attachments.detach(connection, admitted.id, target)
            await touch(connection, project_id=admitted.project_id, warehouse_id=target.warehouse_id)

    async def _require_removable(self, connection: Connection, permit: Permit[Attaching | Detaching]) -> None:
        """Raise TagActionForbidden unless the caller may remove the tag, and may bind every data policy that depends on
        it.

        Otherwise a restricted principal could end a data policy's effect on the object without a right on the policy.
        """
        ref = permit.operation.tag
        tag = permit.row(ref, ResolvedTag)
        if not permit.holds(Can.REMOVE, ref):
            raise TagActionForbidden(
                "The object carries the tag with another value. Changing the value needs `remove` on the tag. The "
                "owner of the tag or a security administrator of the project can grant it."
            )
        found = await tags.dependent_policies(connection, tag.id, tag.project_id, tag.name)
        policies = [ObjectKey(ObjectType.DATA_POLICY, str(each)) for each in found]
        if not all(await self._door.visible(permit, Can.BIND, policies)):
            raise TagActionForbidden(
                "A data policy is bound to the tag or names it. Detaching the tag, or changing its value, needs the "
                "right to bind each such policy. Ask the owner of the policies or a security administrator of the "
                "project."
            )

    async def list(self, permit: Permit[ListObjectTags]) -> TagList:
        """Return the tags of an object, ordered by name. If inherited tags are requested too, return the nearest
        attachment of each tag.
        """
        operation = permit.operation
        row = _row(permit.resolution, operation.on)
        nearest_first = [row.key.id, *(_containers(row) if operation.effective else ())]
        async with self._database.read() as connection:
            found = await tag_attachments.of_objects(connection, [UUID(id) for id in nearest_first])
        rank = {UUID(id): number for number, id in enumerate(nearest_first)}
        nearest: dict[UUID, NamedAttachment] = {}
        for each in found:
            known = nearest.get(each.tag_id)
            if known is None or rank[each.object_id] < rank[known.object_id]:
                nearest[each.tag_id] = each
        return TagList(tags=[_target_tag(each, inherited=rank[each.object_id] > 0) for each in nearest.values()])

    async def of_column(self, permit: Permit[ListTagsOfColumn]) -> TagList:
        """Return the tags of one column. Raises ColumnNotFound."""
        operation = permit.operation
        table = permit.table(operation.on)
        async with self._database.read() as connection:
            columns = await _columns(connection, table.id)
            field_id = field_named(columns, operation.column, dropped=True)
            found = await tag_attachments.of_columns(connection, table.id, field_id)
        return TagList(tags=[_target_tag(each) for each in found])

    async def of_columns(self, permit: Permit[ListColumnTags]) -> ColumnTagList:
        """Return the columns that have tags, ordered by field id. Dropped columns are included."""
        table = permit.table(permit.operation.on)
        async with self._database.read() as connection:
            found = await tag_attachments.of_columns(connection, table.id)
            columns = await _columns(connection, table.id) if found else None
        listed = []
        for field_id, rows in groupby(found, key=lambda each: each.field_id):
            name, current = (None, False) if columns is None else columns.name_of(field_id)
            made = [_target_tag(each) for each in rows]
            listed.append(TaggedColumn(field_id=field_id, tags=made, name=name, dropped=not current))
        return ColumnTagList(columns=listed)

    async def of_tag(self, permit: Permit[ListTagAttachments]) -> TagAttachmentList:
        """Return the objects that have a tag. Dropped tables are left out."""
        operation = permit.operation
        page = self._page_of(operation, _place)
        chosen = Filter(
            value=operation.value,
            type=None if operation.target is None else operation.target.replace("-", "_"),
            warehouse_id=operation.within,
            since=operation.since,
            until=operation.until,
        )
        async with self._database.read() as connection:
            found = await tag_attachments.of_tag(
                connection, operation.tag.tag_id, chosen, after=page.after, limit=page.limit
            )
        return TagAttachmentList(
            attachments=[_attachment(row) for row in page.rows(found)],
            next_page_token=page.next_token(found, _token),
        )

    async def suggest(self, permit: Permit[ListTagSuggestions]) -> TagSuggestionList:
        """Return tags that fit the names and types of columns and are not attached to them yet.

        Raises TagSuggestionsDisabled, or ColumnNotFound if the schemas of the table cannot be read.
        """
        if not self._suggests:
            raise TagSuggestionsDisabled(
                "This gateway suggests no tags. The operator can enable it with LAKEGATE__TAG_SUGGESTIONS=true."
            )
        table = permit.table(permit.operation.on)
        async with self._database.read() as connection:
            columns = await _columns(connection, table.id)
            carried = {(row.field_id, fold(row.name)) for row in await tag_attachments.of_columns(connection, table.id)}
        found = suggestions_for(columns.current)
        return TagSuggestionList(
            suggestions=[
                TagSuggestion(
                    field_id=each.field_id,
                    column=each.column,
                    tag=each.tag,
                    because=each.because,
                    whole_name=each.whole_name,
                )
                for each in found
                if (each.field_id, each.tag) not in carried
            ]
        )

    async def _target(self, connection: Connection, permit: Permit[Attaching | Detaching]) -> Target:
        """Return the object of a change and lock it against deletion.

        Detaching accepts a dropped column too. Raises ColumnNotFound, or 404 if the object was dropped meanwhile.
        """
        operation = permit.operation
        row = _row(permit.resolution, operation.on)
        warehouse = warehouse_of(row)
        if warehouse is None or not await grants.lock_object_shared(connection, row.key):
            raise not_found(operation.on)
        if not isinstance(operation, AttachColumnTag | DetachColumnTag):
            return Target(row.key.type.value, UUID(row.key.id), warehouse.id)
        columns = await _columns(connection, UUID(row.key.id))
        field_id = field_named(columns, operation.column, dropped=isinstance(operation, DetachColumnTag))
        return Target(ObjectType.COLUMN.value, UUID(row.key.id), warehouse.id, field_id, columns.name_of(field_id)[0])


def _row(resolution: Resolution, on: Ref | TableRef) -> Resolved:
    row = resolution.get(on)
    if row is None:
        raise LookupError(f"the operation was not admitted on {on!r}")
    return row


def _containers(row: Resolved) -> Sequence[str]:
    """Return the ids of the containers from which an object inherits tags, nearest first."""
    warehouse = warehouse_of(row)
    above: tuple[UUID, ...] = ()
    if isinstance(row, ResolvedNamespace):
        above = row.ancestors
    elif isinstance(row, ResolvedTable | ResolvedView | ResolvedGenericTable):
        above = (*row.namespace.ancestors, row.namespace.id)
    inside = [str(id) for id in reversed(above)]
    return inside if warehouse is None or row.key == warehouse.key else [*inside, str(warehouse.id)]


async def _columns(connection: Connection, table_id: UUID) -> Columns:
    excerpt = (await excerpts_of(connection, [table_id])).get(table_id)
    if excerpt is None:
        raise ColumnNotFound(
            "The columns of the table cannot be determined: its schemas cannot be read. Attach the tag to the whole "
            "table instead."
        )
    return known_columns(excerpt)


def _target_tag(row: NamedAttachment, *, inherited: bool = False) -> TargetTag:
    within = row.object_id if row.object_type == ObjectType.NAMESPACE else None
    source = TagSource(type=row.object_type, warehouse_id=row.warehouse_id, namespace_id=within)
    return TargetTag(
        tag_definition_id=row.tag_id,
        name=row.name,
        created_at=_created_at(row),
        updated_at=_updated_at(row),
        value=row.value,
        inherited_from=source if inherited else None,
    )


def _attachment(row: Attachment) -> TagAttachment:
    kind = ObjectType(row.object_type)
    at = "table" if kind is ObjectType.COLUMN else kind.value
    own = {} if kind is ObjectType.WAREHOUSE else {f"{at}_id": row.object_id}
    target = AttachmentTarget(type=CARDS[kind].in_bodies, warehouse_id=row.warehouse_id, field_id=row.field_id, **own)
    return TagAttachment(
        target=target,
        created_at=_created_at(row),
        updated_at=_updated_at(row),
        attached_by=row.attached_by,
        value=row.value,
    )


def _created_at(row: Attachment | NamedAttachment) -> datetime:
    """Return the time at which the tag was first attached. It survives if the tag is taken over with its object."""
    return min(row.created_at, row.attached_at)


def _updated_at(row: Attachment | NamedAttachment) -> datetime | None:
    return row.attached_at if row.attached_at > row.created_at else None


def _token(row: Attachment) -> str:
    return f"{row.object_id}:{-1 if row.field_id is None else row.field_id}"


def _place(token: str) -> tuple[UUID, int]:
    id, _, field = token.partition(":")
    if not -1 <= int(field) < 2**31:
        raise ValueError(token)
    return UUID(id), int(field)
