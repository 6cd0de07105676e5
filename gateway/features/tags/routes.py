# SPDX-License-Identifier: Apache-2.0
"""Endpoints for tags: definitions, the tags of objects and columns, and the objects with a tag."""

from __future__ import annotations

from uuid import UUID

from litestar import Response

from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.tag import TagRef
from gateway.access.operations.tag_attachments import (
    ATTACH_TAG,
    DETACH_TAG,
    LIST_OBJECT_TAGS,
    AttachColumnTag,
    DetachColumnTag,
    ListColumnTags,
    ListTagAttachments,
    ListTagsOfColumn,
    ListTagSuggestions,
)
from gateway.access.operations.tags import AppliedTag, CreateTag, DeleteTag, GetTag, ListTags, TagDefinition, UpdateTag
from gateway.api.answers import stating_restriction
from gateway.api.context import Ctx
from gateway.api.serves import replay_by, serve, serves
from gateway.features.tags.tag_attachments import Attaching, TagAttachments
from gateway.features.tags.tags import Tags


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> TagDefinition:
    """Return the current definition."""
    return await ctx.use(Tags).get(await ctx.admit(GetTag(TagRef(UUID(recorded_success.detail["tag_id"])))))


def _serve_attaching(operation: type[Attaching]) -> None:
    async def attach(ctx: Ctx) -> Response[AppliedTag]:
        permit = await ctx.admit(await ctx.read(operation))
        return stating_restriction(await ctx.use(TagAttachments).attach(permit))

    async def attach_again(ctx: Ctx, recorded_success: RecordedSuccess) -> Response[AppliedTag]:
        # Attaching is idempotent, so a retry attaches again.
        return await attach(ctx)

    serves(operation, replay=attach_again)(attach)


serve(CreateTag, Tags.create, replay=replay_create)
serve(ListTags, Tags.list)
serve(GetTag, Tags.get)
serve(UpdateTag, Tags.update, replay=replay_by(GetTag, Tags.get))
serve(DeleteTag, Tags.delete)
serve(ListTagAttachments, TagAttachments.of_tag)
for attaching in (*ATTACH_TAG, AttachColumnTag):
    _serve_attaching(attaching)
for detaching in DETACH_TAG:
    serve(detaching, TagAttachments.detach)
for listing in LIST_OBJECT_TAGS:
    serve(listing, TagAttachments.list)
serve(DetachColumnTag, TagAttachments.detach)
serve(ListTagsOfColumn, TagAttachments.of_column)
serve(ListColumnTags, TagAttachments.of_columns)
serve(ListTagSuggestions, TagAttachments.suggest)
