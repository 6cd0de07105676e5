# SPDX-License-Identifier: Apache-2.0
"""Read the tags that the answer of a load contains as labels."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec
from sqlalchemy import text

from gateway.db.engine.database import Database
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import AnyRow

# Two branches, because each has its own partial index.
_LABELS = DirectRead(
    text(
        """
        select a.object_id, cast(null as integer) as field_id, t.name, coalesce(a.value, '') as value
        from tag_attachments a join tags t on t.id = a.tag_id
        where a.field_id is null and a.object_id in (
            select cast(each as uuid) from jsonb_array_elements_text(cast(cast(:places as text) as jsonb)) as each)
        union all
        select a.object_id, a.field_id, t.name, coalesce(a.value, '')
        from tag_attachments a join tags t on t.id = a.tag_id
        where a.field_id is not null and a.object_id = cast(:id as uuid)
        """
    )
)


async def labels(database: Database, id: UUID, containers: Sequence[UUID]) -> Sequence[AnyRow]:
    """Return the tags of an object, its columns and its containers: rows of object_id, field_id, name and value.

    The field id is None for a tag of an object, and the value is empty for a tag without one. Raises
    DatabaseUnavailable.
    """
    places = msgspec.json.encode([id, *containers]).decode()
    return await database.read_all(_LABELS, {"places": places, "id": id})
