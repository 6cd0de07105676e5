# SPDX-License-Identifier: Apache-2.0
"""Several grantors of one privilege, the history of grants, and deliveries that may still be under way"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_GRANT = ("privilege", "principal_type", "principal_id", "object_type", "object_id")


def upgrade() -> None:
    # Its name was cut by the server, so it is looked up.
    op.execute(
        """
        do $$ declare name text; begin
            select conname into strict name from pg_constraint where conrelid = 'grants'::regclass and contype = 'u';
            execute format('alter table grants drop constraint %I', name);
        end $$
        """
    )
    op.create_unique_constraint("grants_key", "grants", [*_GRANT, "granted_by"])
    op.drop_index("grants_object_type_object_id_idx", table_name="grants")
    op.drop_index("grants_principal_type_principal_id_idx", table_name="grants")
    op.create_index("grants_object_type_object_id_id_idx", "grants", ["object_type", "object_id", "id"])
    op.create_index("grants_principal_type_principal_id_id_idx", "grants", ["principal_type", "principal_id", "id"])
    op.create_index("grants_ending_idx", "grants", ["expires_at"], postgresql_where=sa.text("expires_at IS NOT NULL"))
    op.create_table(
        "grant_history",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("grant_id", sa.UUID(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in (*_GRANT, "granted_by")),
        sa.Column("granted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.Column("ended_because", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "ended_because in ('revoked', 'expired', 'object deleted', 'principal deleted', 'replaced')",
            name=op.f("grant_history_ended_because_check"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("grant_history_pkey")),
    )
    for of in ("object", "principal"):
        columns = [f"{of}_type", f"{of}_id", "id"]
        op.create_index(f"grant_history_{of}_type_{of}_id_id_idx", "grant_history", columns)
    op.add_column("outbox", sa.Column("step", sa.SmallInteger(), server_default="0", nullable=False))
    op.add_column("outbox", sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index(
        "outbox_object_id_subject_id_relation_idx", "outbox", ["object_id", "subject_id", "relation"], unique=False
    )


def downgrade() -> None:
    op.drop_index("outbox_object_id_subject_id_relation_idx", table_name="outbox")
    op.drop_column("outbox", "sent_at")
    op.drop_column("outbox", "step")
    op.drop_table("grant_history")
    op.drop_index("grants_ending_idx", table_name="grants")
    op.drop_index("grants_principal_type_principal_id_id_idx", table_name="grants")
    op.drop_index("grants_object_type_object_id_id_idx", table_name="grants")
    op.create_index("grants_principal_type_principal_id_idx", "grants", ["principal_type", "principal_id"])
    op.create_index("grants_object_type_object_id_idx", "grants", ["object_type", "object_id"])
    op.drop_constraint("grants_key", "grants", type_="unique")
    # Of several grantors the one with the longest grant stays.
    op.execute(
        """
        delete from grants g using grants o
        where (o.privilege, o.principal_type, o.principal_id, o.object_type, o.object_id)
            = (g.privilege, g.principal_type, g.principal_id, g.object_type, g.object_id)
            and (coalesce(o.expires_at, 'infinity'), o.id) > (coalesce(g.expires_at, 'infinity'), g.id)
        """
    )
    op.create_unique_constraint("grants_privilege_principal_object_key", "grants", list(_GRANT))
