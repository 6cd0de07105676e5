# SPDX-License-Identifier: Apache-2.0
"""Add indexes by which lists of access requests and break-glass activations read only rows that a grant leads to."""

from alembic import op

revision = "0064"
down_revision = "0063"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("drop index access_requests_object_type_object_id_idx")
    for table, columns in (
        ("access_requests", "object_type, object_id, id"),
        ("access_requests", "warehouse_id, id"),
        ("break_glass_activations", "principal, id"),
        ("break_glass_activations", "object_type, object_id, id"),
        ("break_glass_activations", "warehouse_id, id"),
    ):
        name = f"{table}_{columns.replace(', ', '_')}_idx"
        op.execute(f"create index {name} on {table} ({columns})")
