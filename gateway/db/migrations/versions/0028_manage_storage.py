# SPDX-License-Identifier: Apache-2.0
"""Grant `manage_storage` to the owners of existing warehouses (relationship model 1.6)"""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

# Until now `modify`, which ownership implies, was enough to change the storage. Owners keep that right, with the end
# and the grantor of their ownership: an owner who is deleted, or whose ownership ends, loses both.
_GRANTS = """
    insert into grants (
        id, privilege, principal_type, principal_id, object_type, object_id, granted_by, reason, expires_at)
    select gen_random_uuid(), 'manage_storage', g.principal_type, g.principal_id, g.object_type, g.object_id,
        g.granted_by, 'Owner of the warehouse when relationship model 1.6 was introduced', g.expires_at
    from grants g
    where g.object_type = 'warehouse' and g.privilege = 'ownership'
        and (g.expires_at is null or g.expires_at > clock_timestamp())
    on conflict do nothing
"""

# The step of model 1.6 in gateway/tasks/model_changes.py delivers the tuples before that model serves. These rows are
# for a deployment that skips model 1.6. A process of the version before would only have them refused, so they wait.
_OUTBOX = """
    insert into outbox (
        subject_type, subject_id, relation, object_type, object_id, warehouse_id, takes_away, not_before)
    select distinct g.principal_type, g.principal_id, g.privilege, g.object_type, g.object_id, g.object_id::uuid,
        false, clock_timestamp() + interval '10 minutes'
    from grants g where g.object_type = 'warehouse' and g.privilege = 'manage_storage'
"""


def upgrade() -> None:
    op.execute(_GRANTS)
    op.execute(_OUTBOX)


def downgrade() -> None:
    # The version before has no such privilege.
    op.execute("delete from outbox where relation = 'manage_storage'")
    op.execute("delete from grants where privilege = 'manage_storage'")
