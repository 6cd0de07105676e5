# SPDX-License-Identifier: Apache-2.0
"""Partition the audit records by month, index them by actor and by refusal, and create the registers of removed
partitions and of continuous export.

Partitions are ranges of ids: ids are UUIDv7, so they sort by time, and `on conflict (id)` keeps working. The table of
the version before becomes the first partition as it is, with its index. No row is copied or rewritten, except those
whose id is later than the first partition, because a clock was wrong. Gateways write meanwhile.
"""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

_DAYS_OF_FIRST = 7
"""The first partition lasts at least so many days longer, in which this migration is repeated if it is interrupted."""

# A long query of an auditor holds a lock on the table. Requests would wait behind this one as long as it waits.
_LOCK = """
    do $$
    begin
        for attempt in 1 .. 60 loop
            begin
                set local lock_timeout = '1s';
                lock table audit_log in access exclusive mode;
                set local lock_timeout = 0;
                return;
            exception when lock_not_available then
                perform pg_sleep(1);
            end;
        end loop;
        raise exception 'audit_log is in use: end the long queries on it, and run `lakegate migrate` again';
    end
    $$
"""

#: The questions of docs/auditor.md. An index of objects would more than double the cost of an insertion.
_INDEXES = {
    "actor_id_at_idx": "(actor_id, at)",
    "outcome_at_idx": "(outcome, at) where outcome <> 'allowed'",
}

_COLUMNS = """
    id uuid not null,
    at timestamptz not null,
    request_id text not null,
    actor_id text not null,
    operation text not null,
    outcome text not null,
    record bytea not null
"""

_SAME_OWNER_AND_PRIVILEGES = """
    do $$
    declare
        entry record;
        owner name := (select pg_get_userbyid(relowner) from pg_class where oid = 'audit_log_initial'::regclass);
    begin
        for entry in
            select case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as grantee,
                privilege_type, case when is_grantable then ' with grant option' else '' end as option
            from pg_class, aclexplode(relacl) where oid = 'audit_log_initial'::regclass and grantee <> relowner
        loop
            execute format('grant %s on audit_log to %s%s', entry.privilege_type, entry.grantee, entry.option);
        end loop;
        if owner <> current_user then
            execute format('alter table audit_log owner to %I', owner);
            execute format('alter table audit_log_default owner to %I', owner);
        end if;
    end
    $$
"""


def upgrade() -> None:
    end = _end_of_first(op.get_bind().scalar(sa.text("select clock_timestamp()")))
    _limit_first_partition(end)
    with op.get_context().autocommit_block():
        # It reads all rows, and blocks neither reads nor writes.
        op.execute("alter table audit_log validate constraint audit_log_initial_range")
        for name, rest in _INDEXES.items():
            # An interrupted build leaves an unusable index.
            op.execute(f"drop index concurrently if exists audit_log_initial_{name}")
            op.execute(f"create index concurrently audit_log_initial_{name} on audit_log {rest}")
    end = _constrained_end()
    _replace_table(end)
    _create_registers()


def _limit_first_partition(end: datetime) -> None:
    """Move the rows outside of the first partition to the default partition, and admit no more of them.

    It can be repeated: an interrupted migration left the default partition, and a constraint that may end earlier.
    """
    op.execute(f"create table if not exists audit_log_default ({_COLUMNS})")
    op.execute(_LOCK)
    op.execute("alter table audit_log drop constraint if exists audit_log_initial_range")
    for source, target, where in (
        ("audit_log_default", "audit_log", f"id < '{_id(end)}'"),
        ("audit_log", "audit_log_default", f"id >= '{_id(end)}'"),
    ):
        op.execute(
            f"with moved as (delete from {source} where {where} returning *) "  # noqa: S608 - names and an id of this module
            f"insert into {target} select * from moved"
        )
    op.execute(f"alter table audit_log add constraint audit_log_initial_range check (id < '{_id(end)}') not valid")


def _replace_table(end: datetime) -> None:
    """Rename the table, and attach it as the first partition of a new one. The constraint saves a scan of its rows."""
    op.execute(_LOCK)
    op.execute("alter table audit_log rename to audit_log_initial")
    op.execute("alter index audit_log_pkey rename to audit_log_initial_pkey")
    op.execute("alter index audit_log_at_idx rename to audit_log_initial_at_idx")
    op.execute(
        f"create table audit_log ({_COLUMNS}, constraint audit_log_pkey primary key (id)) partition by range (id)"
    )
    op.execute("create index audit_log_at_idx on audit_log (at)")
    for name, rest in _INDEXES.items():
        op.execute(f"create index audit_log_{name} on audit_log {rest}")
    op.execute(_SAME_OWNER_AND_PRIVILEGES)
    op.execute(f"alter table audit_log attach partition audit_log_initial for values from (minvalue) to ('{_id(end)}')")
    op.execute("alter table audit_log attach partition audit_log_default default")
    op.execute("alter table audit_log_initial drop constraint audit_log_initial_range")


def _create_registers() -> None:
    op.execute(
        """
        create table audit_removals (
            below uuid constraint audit_removals_pkey primary key,
            partition text not null,
            records bigint not null,
            removed_at timestamptz not null)
        """
    )
    op.execute(
        """
        create table audit_exports (
            name text constraint audit_exports_pkey primary key,
            block bigint not null,
            holder uuid,
            held_until timestamptz)
        """
    )


def _constrained_end() -> datetime:
    """Return the end of the first partition, which the validated constraint states."""
    bound = op.get_bind().scalar(
        sa.text(
            "select substring(pg_get_constraintdef(oid) from '''([0-9a-f-]{36})''') from pg_constraint "
            "where conname = 'audit_log_initial_range' and conrelid = 'audit_log'::regclass"
        )
    )
    return datetime.fromtimestamp(int(bound.replace("-", "")[:12], 16) / 1000, UTC)


def _end_of_first(now: datetime) -> datetime:
    """Return the first instant of the month after `now` and the time of a repetition."""
    there = (now + timedelta(days=_DAYS_OF_FIRST)).astimezone(UTC)
    return datetime(there.year + there.month // 12, there.month % 12 + 1, 1, tzinfo=UTC)


def _id(time: datetime) -> str:
    """Return the smallest UUIDv7 of a time."""
    digits = f"{int(time.timestamp() * 1000):012x}"
    return f"{digits[:8]}-{digits[8:]}-0000-0000-000000000000"
