# SPDX-License-Identifier: Apache-2.0
"""Use cases of tag definitions, which are the vocabulary of a project.

Attachments to objects are in `tag_attachments.py`. The rules of tag definitions and values are functions here. They are
pure, and a violation raises the error of the response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args
from uuid import UUID

from uuid_utils.compat import uuid7

from gateway.access.door.permit import Permit
from gateway.access.management_errors import (
    InvalidTagDefinition,
    InvalidTagValue,
    TagDefinitionInUse,
    TagNameAlreadyExists,
    TagScopeNarrowed,
    TagScopeNotAllowed,
    pending_during_outage,
)
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.project import ProjectRef, ResolvedProject
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.tag import TagRef
from gateway.access.operations.tags import (
    CreateTag,
    DeleteTag,
    GetTag,
    ListTags,
    TagDefinition,
    TagDefinitionList,
    TagTarget,
    UpdateTag,
)
from gateway.db.policies import tags
from gateway.db.policies.data_policy_revisions import touch
from gateway.db.tuples.ownership import record_deleted, record_new_in_project
from gateway.features.kit import UseCases
from gateway.iceberg.errors import CatalogError
from gateway.iceberg.identifiers import fold

#: Maximum number of allowed values of a tag.
MAX_ALLOWED_VALUES: Final = 1_000

#: First segments of names that are reserved for the server.
RESERVED: Final = frozenset({"system", "lakekeeper", "lakegate"})

_ORDER: Final = get_args(TagTarget)


def require_name(name: str) -> None:
    """Raise InvalidTagDefinition if a segment of the name is empty, or the name is reserved."""
    segments = name.split(".")
    if any(not segment.strip() for segment in segments):
        raise InvalidTagDefinition(
            f"The name {name!r} has an empty segment. Dots separate the segments of a name, as in pii.email."
        )
    if fold(segments[0]) in RESERVED:
        raise InvalidTagDefinition(f"Names that begin with {segments[0]!r} are reserved. Choose another name.")


def require_values(kind: str, values: Sequence[str] | None) -> tuple[str, ...]:
    """Return the allowed values of a new tag, sorted. Raises InvalidTagDefinition if they do not fit the kind."""
    if kind == "enumerated" and not values:
        raise InvalidTagDefinition("An enumerated tag needs at least one value in allowed-values.")
    return _added(kind, (), values, "allowed-values")


def with_values(kind: str, present: Sequence[str], added: Sequence[str] | None) -> tuple[str, ...]:
    """Return the allowed values after `added` was added, sorted. Raises InvalidTagDefinition if they do not fit the
    kind.
    """
    return _added(kind, present, added, "add-allowed-values")


def _added(kind: str, present: Sequence[str], added: Sequence[str] | None, member: str) -> tuple[str, ...]:
    if added and kind != "enumerated":
        raise InvalidTagDefinition(f"Only an enumerated tag has allowed values, and this tag is {kind}. Omit {member}.")
    if added is not None and len(set(added)) != len(added):
        raise InvalidTagDefinition(f"{member} contains a value twice. Give each value once.")
    found = tuple(sorted({*present, *(added or ())}))
    if len(found) > MAX_ALLOWED_VALUES:
        raise InvalidTagDefinition(
            f"The tag would have {len(found)} allowed values; at most {MAX_ALLOWED_VALUES} are possible. Use a tag "
            "with free text."
        )
    return found


def widened(present: Sequence[str], scope: Sequence[str]) -> tuple[str, ...]:
    """Return the new scope in a fixed order. Raises TagScopeNarrowed if it lacks a type of the current scope."""
    missing = [each for each in present if each not in scope]
    if missing:
        raise TagScopeNarrowed(
            f"The scope of a tag can only be widened, and the new scope lacks {', '.join(missing)}. Send the present "
            "scope with the additional types."
        )
    return tuple(each for each in _ORDER if each in scope)


def require_in_scope(name: str, scope: Sequence[str], target: str) -> None:
    """Raise TagScopeNotAllowed if objects of the type `target` may not carry the tag."""
    if target not in scope:
        raise TagScopeNotAllowed(
            f"The tag {name} cannot be attached to a {target}: its scope is {', '.join(scope)}. The owner of the tag "
            "can widen the scope."
        )


def require_value(name: str, kind: str, allowed: Sequence[str], value: str | None) -> None:
    """Raise InvalidTagValue if the tag may not have this value. None means no value."""
    if kind == "marker" and value is not None:
        raise InvalidTagValue(f"The tag {name} is a marker and has no value. Leave `value` out.")
    if kind != "marker" and value is None:
        raise InvalidTagValue(f"The tag {name} needs a `value`.")
    if kind == "enumerated" and value not in allowed:
        shown = ", ".join(allowed[:20]) + (", …" if len(allowed) > 20 else "")
        raise InvalidTagValue(f"The tag {name} does not allow this value; letter case matters. Allowed: {shown}.")


class Tags(UseCases):
    """Create, list, change and delete the tags of projects."""

    async def create(self, permit: Permit[CreateTag]) -> TagDefinition:
        """Define a tag. The caller becomes its owner. Raises InvalidTagDefinition or TagNameAlreadyExists."""
        request = permit.operation.request
        require_name(request.name)
        allowed = require_values(request.value_kind, request.allowed_values)
        project = permit.row(permit.operation.project, ResolvedProject)
        id = uuid7()
        tag = ObjectKey(ObjectType.TAG, str(id))
        permit.pending_audit.add_details(tag_id=str(id))
        try:
            async with self._database.change(permit) as connection:
                row = await tags.create(
                    connection,
                    id=id,
                    project_id=project.id,
                    name=request.name,
                    description=request.description,
                    scope=[each for each in get_args(TagTarget) if each in request.scope],
                    value_kind=request.value_kind,
                    allowed_values=allowed,
                )
                pending = await record_new_in_project(connection, permit.actor, tag, project.key)
        except tags.TagClash as clash:
            raise _clash_error(clash, permit.operation.project) from clash
        await self._delivery.deliver_or_defer(pending)
        return _wire(row)

    async def list(self, permit: Permit[ListTags]) -> TagDefinitionList:
        """Return the tags of the project in order of creation, without their allowed values."""
        operation = permit.operation
        page = self._page_of(operation, UUID)
        async with self._database.read() as connection:
            rows = await tags.page(
                connection,
                operation.project.project_id,
                named=operation.named,
                after=page.after,
                limit=page.limit,
            )
        return TagDefinitionList(
            tag_definitions=[_wire(row, listed=True) for row in page.rows(rows)],
            next_page_token=page.next_token(rows, lambda row: row.id),
        )

    async def get(self, permit: Permit[GetTag]) -> TagDefinition:
        """Return one tag with its allowed values."""
        async with self._database.read() as connection:
            row = await tags.get(connection, permit.operation.tag.tag_id)
        if row is None:
            raise not_found(permit.operation.tag)
        return _wire(row)

    async def update(self, permit: Permit[UpdateTag]) -> TagDefinition:
        """Change the name and description, widen the scope, or add allowed values.

        Data policies that refer to the tag follow a new name. Raises InvalidTagDefinition, TagScopeNarrowed or
        TagNameAlreadyExists. Raises TagDefinitionInUse for a new name if a data policy that is older than the tag
        refers to the current name: it would no longer cover the tagged objects.
        """
        operation = permit.operation
        request = operation.request
        require_name(request.name)
        try:
            async with self._database.change(permit) as connection:
                present = await tags.held(connection, operation.tag.tag_id)
                if present is None:
                    raise not_found(operation.tag)
                renamed = fold(request.name) != fold(present.name)
                if renamed and await tags.named_by_policy(
                    connection, present.id, present.project_id, present.name, by_name_alone=True
                ):
                    raise TagDefinitionInUse(
                        "A data policy that was written before the tag was defined refers to it by its name. Write the "
                        "policy again first, or keep the name."
                    )
                row = await tags.change(
                    connection,
                    present.id,
                    name=request.name,
                    description=request.description,
                    scope=widened(present.scope, request.scope),
                    allowed_values=with_values(present.value_kind, present.allowed_values, request.add_allowed_values),
                )
                if renamed:
                    # A policy may already refer to the new name, so cached decisions must not be used again.
                    await touch(connection, project_id=present.project_id, warehouse_id=None)
        except tags.TagClash as clash:
            raise _clash_error(clash, operation.tag) from clash
        return _wire(row)

    async def delete(self, permit: Permit[DeleteTag]) -> None:
        """Delete a tag that is not in use, and the grants on it. Return when these grants are revoked everywhere.

        Raises TagDefinitionInUse. Raises RevocationPending if the deletion is recorded but OpenFGA has not confirmed it
        yet.
        """
        ref = permit.operation.tag
        try:
            async with self._database.change(permit) as connection:
                row = await tags.held(connection, ref.tag_id)
                if row is None:
                    raise not_found(ref)
                if await tags.named_by_policy(connection, row.id, row.project_id, row.name):
                    # If the tag were deleted, the policy would apply to a later tag of this name, which can have
                    # another owner.
                    raise TagDefinitionInUse("A data policy refers to the tag by its name. Change the policy first.")
                await tags.delete(connection, ref.tag_id)
                gone, parent = ObjectKey(ObjectType.TAG, str(row.id)), ObjectKey(ObjectType.PROJECT, row.project_id)
                pending = await record_deleted(
                    connection, gone, parent, above=(), warehouse_id=None, by=permit.actor.id
                )
        except tags.TagClash as clash:
            raise _clash_error(clash, ref) from clash
        with pending_during_outage(
            "The tag is deleted, but the revocation of the grants on it is not yet complete. The gateway retries it; "
            "no further request is needed."
        ):
            await self._delivery.deliver(pending)


def _clash_error(clash: tags.TagClash, about: TagRef | ProjectRef) -> CatalogError:
    match clash:
        case tags.NameTaken():
            return TagNameAlreadyExists("A tag with this name already exists in the project. Choose another name.")
        case tags.InUse():
            return TagDefinitionInUse(
                "The tag is in use: an object carries it, or a data policy is bound to it. Detach it everywhere, also "
                "from dropped tables that can be restored, and remove the bindings. GET "
                "/management/v1/tag-definition/{id}/attachments lists the objects."
            )
        case _:
            return not_found(about)


def _wire(row: tags.TagRow, *, listed: bool = False) -> TagDefinition:
    return TagDefinition(
        id=row.id,
        name=row.name,
        scope=list(row.scope),
        value_kind=row.value_kind,
        created_at=row.created_at,
        description=row.description,
        allowed_values=list(row.allowed_values) if row.value_kind == "enumerated" and not listed else None,
        updated_at=row.updated_at,
    )
