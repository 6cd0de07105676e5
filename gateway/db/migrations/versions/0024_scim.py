# SPDX-License-Identifier: Apache-2.0
"""Users and groups that identity providers keep here by SCIM, and the tokens they come with"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import UUID

revision = "0024"
down_revision = "0022"
branch_labels = None
depends_on = None


def _now(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False)


def upgrade() -> None:
    op.create_table(
        "scim_users",
        sa.Column("id", UUID(as_uuid=True), primary_key=True),
        sa.Column("user_id", sa.Text(), sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("user_name_key", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text()),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        _now("created_at"),
        _now("updated_at"),
        sa.UniqueConstraint("user_id", name=op.f("scim_users_user_id_key")),
        sa.UniqueConstraint("provider_id", "user_name_key", name=op.f("scim_users_provider_id_user_name_key_key")),
        sa.UniqueConstraint("provider_id", "external_id", name=op.f("scim_users_provider_id_external_id_key")),
    )
    op.create_table(
        "scim_groups",
        sa.Column("role_id", UUID(as_uuid=True), sa.ForeignKey("roles.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text()),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        _now("created_at"),
        _now("updated_at"),
    )
    op.create_table(
        "scim_tokens",
        sa.Column("id", UUID(as_uuid=True), primary_key=True),
        sa.Column("provider_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), sa.ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        _now("created_at"),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint("length(digest) = 32", name=op.f("scim_tokens_digest_check")),
    )


def downgrade() -> None:
    op.drop_table("scim_tokens")
    op.drop_table("scim_groups")
    op.drop_table("scim_users")
