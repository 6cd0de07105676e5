# SPDX-License-Identifier: Apache-2.0
"""Record no owners of locations that are retired below managed access"""

from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

_OF_OBJECT = "permanent_owners(old.kind, old.id)"
_WITHIN = "permanent_owners(old.kind, old.id, old.namespace_id)"


def upgrade() -> None:
    # Owners below managed access hand out no rights on what they own. Registered in a namespace of their own, it would
    # be theirs to hand out, so its files can only be adopted.
    op.execute(
        """
        create function permanent_owners(of_type text, of_id uuid, within uuid) returns text[] language sql stable as $$
            select case when exists (
                select 1 from namespaces n join warehouses w on w.id = n.warehouse_id
                where n.id = within and (w.managed_access or n.managed_access or exists (
                    select 1 from namespaces a where a.id = any(n.ancestors) and a.managed_access))
            ) then '{}'::text[] else permanent_owners(of_type, of_id) end
        $$
        """
    )
    _replace(_OF_OBJECT, _WITHIN)


def downgrade() -> None:
    _replace(_WITHIN, _OF_OBJECT)
    op.execute("drop function permanent_owners(text, uuid, uuid)")


def _replace(before: str, after: str) -> None:
    """Replace an expression in the trigger function that records retired locations."""
    op.execute(
        f"""
        do $do$ declare body text := pg_get_functiondef('retire_location()'::regprocedure); begin
            if position('{before}' in body) = 0 then raise exception 'retire_location() is of another version'; end if;
            execute replace(body, '{before}', '{after}');
        end $do$
        """
    )
