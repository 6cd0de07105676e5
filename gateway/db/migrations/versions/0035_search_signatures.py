# SPDX-License-Identifier: Apache-2.0
"""Index the names of tables with a signature of their trigrams, which search compares first."""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

# The bits of all trigrams of `pg_trgm` of a text of words of a-z and 0-9 with blanks between them. A word has two
# blanks before it and one behind it, so no trigram ends with two blanks or has its only blank in the middle. An index
# is built without the schemas of extensions, so the function cannot call `show_trgm`. In SQL it would take nine times
# as long. The cost is high so that the planner prefers an index that contains the result.
_SIGNATURE = """
    create or replace function search_signature(key text) returns bit(256)
    language plpgsql immutable strict parallel safe cost 10000 as $$
    declare
        padded bytea := convert_to('  ' || replace(key, ' ', '   ') || ' ', 'UTF8');
        signature bit(256) := 0::bit(256);
        a int := 32;
        b int := 32;
        c int;
    begin
        for n in 2 .. length(padded) - 1 loop
            c := get_byte(padded, n);
            if b <> 32 or (a = 32 and c <> 32) then
                signature := set_bit(signature, (a * 7919 + b * 104729 + c * 1299709) % 251, 1);
            end if;
            a := b;
            b := c;
        end loop;
        return signature;
    end
    $$
"""

_INDEX = """
    create index concurrently tables_signature_idx
        on tables (namespace_id, search_signature(search_key)) include (id, search_key)
        where staged_by is null and deleted_at is null
"""


def upgrade() -> None:
    op.execute(_SIGNATURE)
    # Outside of a transaction, writes to the table go on meanwhile. An interrupted build leaves an unusable index, and
    # the next run of this step begins with the function again.
    with op.get_context().autocommit_block():
        op.execute("drop index concurrently if exists tables_signature_idx")
        op.execute(_INDEX)
        op.execute("drop index concurrently if exists tables_search_idx")
