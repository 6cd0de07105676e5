# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints for dropped tables and views that can still be restored."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, Request

#: The maximum number of tables and views that one request restores.
MAX_TARGETS = 100


class DeletedTabular(Answer, frozen=True, omit_defaults=True):
    """A dropped table or view that can be restored until `expiration-date`. The date is absent if the deletion task was
    cancelled: then the object is kept until it is restored.
    """

    id: UUID
    name: str
    namespace: list[str]
    typ: str
    warehouse_id: UUID
    created_at: datetime
    deleted_at: datetime
    expiration_date: datetime | None = None


class DeletedTabulars(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/deleted-tabulars`."""

    tabulars: list[DeletedTabular]
    next_page_token: str | None = None


class UndropTarget(Request, frozen=True):
    """A table or view to restore."""

    type: Literal["table", "view", "generic-table"]
    id: UUID


class UndropRequest(Request, frozen=True):
    """Request of `POST …/deleted-tabulars/undrop`."""

    targets: Annotated[tuple[UndropTarget, ...], msgspec.Meta(min_length=1, max_length=MAX_TARGETS)]
