# SPDX-License-Identifier: Apache-2.0
"""Endpoints for notices."""

from __future__ import annotations

from uuid import UUID

from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.notice import NoticeRef
from gateway.access.operations.notices import CreateNotice, DeleteNotice, GetNotice, ListNotices, Notice
from gateway.api.context import Ctx
from gateway.api.serves import serve
from gateway.features.notices import Notices


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> Notice:
    """Return the notice that the first request created."""
    created = GetNotice(NoticeRef(UUID(recorded_success.detail["notice_id"])))
    return await ctx.use(Notices).get(await ctx.admit(created))


serve(CreateNotice, Notices.create, replay=replay_create)
serve(ListNotices, Notices.list)
serve(GetNotice, Notices.get)
serve(DeleteNotice, Notices.delete)
