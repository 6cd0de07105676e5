# SPDX-License-Identifier: Apache-2.0
"""Endpoints for tags: definitions, the tags of objects and columns, and the objects with a tag."""

from __future__ import annotations

from uuid import UUID

from gateway.access.idempotency import RecordedSuccess
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
from gateway.access.operations.tags import CreateTag, DeleteTag, GetTag, ListTags, UpdateTag
from gateway.access.refs import TagRef
from gateway.api.context import Ctx
from gateway.api.serves import replay_by, serve
from gateway.governance.tag_attachments import TagAttachments
from gateway.governance.tags import Tags
from gateway.protocol.tags import TagDefinition


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> TagDefinition:
    """Return the current definition."""
    return await ctx.services.tags.get(await ctx.admit(GetTag(TagRef(UUID(recorded_success.detail["tag_id"])))))


serve(CreateTag, Tags.create, replay=replay_create)
serve(ListTags, Tags.list)
serve(GetTag, Tags.get)
serve(UpdateTag, Tags.update, replay=replay_by(GetTag, Tags.get))
serve(DeleteTag, Tags.delete)
serve(ListTagAttachments, TagAttachments.of_tag)
for attaching in ATTACH_TAG:
    # Attaching is idempotent, so a retry attaches again.
    serve(attaching, TagAttachments.attach, replay=replay_by(attaching, TagAttachments.attach))
for detaching in DETACH_TAG:
    serve(detaching, TagAttachments.detach)
for listing in LIST_OBJECT_TAGS:
    serve(listing, TagAttachments.list)
serve(AttachColumnTag, TagAttachments.attach, replay=replay_by(AttachColumnTag, TagAttachments.attach))
serve(DetachColumnTag, TagAttachments.detach)
serve(ListTagsOfColumn, TagAttachments.of_column)
serve(ListColumnTags, TagAttachments.of_columns)
serve(ListTagSuggestions, TagAttachments.suggest)
