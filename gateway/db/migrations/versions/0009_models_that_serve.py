# SPDX-License-Identifier: Apache-2.0
"""Which relationship models there are and which of them serves"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "relationship_models",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("store_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), server_default=sa.func.clock_timestamp(), nullable=False),
        sa.Column("recorded_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("model_id", name=op.f("relationship_models_pkey")),
    )
    op.create_table(
        "model_switches",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("previous_id", sa.Text(), nullable=True),
        sa.Column("switched_at", sa.DateTime(timezone=True), server_default=sa.func.clock_timestamp(), nullable=False),
        sa.Column("switched_by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"], ["relationship_models.model_id"], name=op.f("model_switches_model_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["previous_id"], ["relationship_models.model_id"], name=op.f("model_switches_previous_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("model_switches_pkey")),
    )
    op.create_table(
        "model_steps",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("cursor", sa.Text(), nullable=True),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["model_id"], ["relationship_models.model_id"], name=op.f("model_steps_model_id_fkey")),
        sa.PrimaryKeyConstraint("model_id", "step", name=op.f("model_steps_pkey")),
    )


def downgrade() -> None:
    op.drop_table("model_steps")
    op.drop_table("model_switches")
    op.drop_table("relationship_models")
