# SPDX-License-Identifier: Apache-2.0
"""Create the blocks of the chain over audit records, and the membership of each sealed record in a block.

Records of earlier versions are sealed by the first runs of the sealer.
"""

from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table audit_blocks (
            number bigint constraint audit_blocks_pkey primary key,
            first uuid not null,
            last uuid not null,
            count integer not null,
            records_digest bytea not null,
            previous bytea not null,
            sealed_at timestamptz not null,
            digest bytea not null)
        """
    )
    op.execute(
        """
        create table audit_block_records (
            record_id uuid constraint audit_block_records_pkey primary key,
            block bigint not null)
        """
    )
    op.execute("create index audit_block_records_block_idx on audit_block_records (block)")
