# SPDX-License-Identifier: Apache-2.0
"""Keep the id of each tag that a data policy names, so that the tag can be renamed."""

import json

from alembic import op
from sqlalchemy import text

from gateway.iceberg.identifiers import fold

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None

_POLICIES = """
    select p.id, p.project_id,
        array(select distinct named #>> '{}' from jsonb_path_query(p.definition, '$.**.tag') as named) as named
    from data_policies p
    where p.definition @? '$.**.tag'
"""


def upgrade() -> None:
    op.execute("alter table data_policies add column tag_ids jsonb not null default '{}'")
    connection = op.get_bind()
    tags = {
        (row.project_id, row.name_key): str(row.id)
        for row in connection.execute(text("select project_id, name_key, id from tags"))
    }
    for row in connection.execute(text(_POLICIES)).all():
        keys = [fold(each) for each in row.named if each]
        ids = {key: tags[row.project_id, key] for key in keys if (row.project_id, key) in tags}
        connection.execute(
            text("update data_policies set tag_ids = cast(:ids as jsonb) where id = :id"),
            {"ids": json.dumps(ids), "id": row.id},
        )
