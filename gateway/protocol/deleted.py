# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints about dropped tables and views that can still be restored."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, Request

#: How many tables and views one request brings back.
MAX_TARGETS = 100


class DeletedTabular(Answer, frozen=True, omit_defaults=True):
    """A table or view that was dropped and can be brought back until `expiration-date`. That is left out when its end
    was cancelled: then it stays until it is brought back.
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
    """`GET …/deleted-tabulars`."""

    tabulars: list[DeletedTabular]
    next_page_token: str | None = None


class UndropTarget(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """What is to come back."""

    type: Literal["table", "view", "generic-table"]
    id: UUID


class UndropRequest(Request, frozen=True):
    """`POST …/deleted-tabulars/undrop`."""

    targets: Annotated[tuple[UndropTarget, ...], msgspec.Meta(min_length=1, max_length=MAX_TARGETS)]
