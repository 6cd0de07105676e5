# SPDX-License-Identifier: Apache-2.0
"""Lock an object for a change of its grants, and record grants that are all new, using one statement each.

They serve the common case. If another case applies, they return `None` and change nothing. The caller then uses the
statements of `grants`, which also return the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import TABULARS, ObjectKey, ObjectType, table_of
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.grants.grants import lock_name
from gateway.db.tuples.desired_tuples import path_above
from gateway.db.tuples.outbox import FIRST_BACKGROUND_TRY_SECONDS, Pending, key_arrays

_TABULAR: Final = frozenset({*TABULARS, ObjectType.COLUMN})


@dataclass(frozen=True, slots=True)
class NewGrant:
    """A grant to record. `expires_at` has a time zone, or is None for a grant without an expiry."""

    privilege: Privilege
    principal: Principal
    reason: str | None
    expires_at: datetime | None
    acts_for: str | None = None


async def lock_object(connection: AsyncConnection, on: ObjectKey, *, kept: bool) -> list[ObjectKey] | None:
    """Lock the grants on an object, the object and its containers, and return the containers, starting with the
    project.

    It does the work of `grants.lock_object`, `grants.lock_object_shared` and `tables.containers`. A row that changed
    while the statement waited for a lock is not found. Return None for such an object, an absent one, and one outside
    of namespaces.
    """
    if on.type not in _TABULAR:
        return None
    id = UUID(table_of(on).id if on.type is ObjectType.COLUMN else on.id)
    row = (await connection.execute(_LOCK_KEPT if kept else _LOCK, {"name": lock_name(on), "id": id})).one_or_none()
    if row is None:
        return None
    return path_above(row.project_id, str(row.warehouse_id), [str(each) for each in (*row.ancestors, row.namespace_id)])


def _lock(condition: str) -> TextClause:
    return text(
        f"""
        with serial as materialized (select pg_advisory_xact_lock(hashtextextended(:name, 7)))
        select w.project_id, w.id as warehouse_id, n.ancestors, n.id as namespace_id
        from serial, tables t join namespaces n on n.id = t.namespace_id join warehouses w on w.id = t.warehouse_id
        where t.id = cast(:id as uuid) and {condition} for key share of t, n
        """  # noqa: S608 - composed of constants; every value is a bound parameter
    )


_LOCK: Final = _lock("t.deleted_at is null")
_LOCK_KEPT: Final = _lock("true")


async def grant_new(
    connection: AsyncConnection,
    entries: Sequence[NewGrant],
    *,
    on: ObjectKey,
    by: str,
    keys: Sequence[TupleKey],
    warehouse_id: UUID | None,
) -> list[Pending] | None:
    """Record that `by` makes these grants on an object, and enqueue `keys`, the tuples that they require.

    Call it in a later statement than `lock_object`. The principals are locked against deletion. Return None if a
    principal does not exist, or if one of the grants is already recorded by any grantor, even if it expired.
    """
    user_ids = sorted({each.principal.id for each in entries if each.principal.type is PrincipalType.USER})
    role_ids = sorted({each.principal.id for each in entries if each.principal.type is PrincipalType.ROLE})
    values = {
        "ids": [uuid7() for _ in entries],
        "privileges": [each.privilege.value for each in entries],
        "principal_types": [each.principal.type.value for each in entries],
        "principal_ids": [each.principal.id for each in entries],
        "reasons": [each.reason for each in entries],
        "ends": [each.expires_at for each in entries],
        "limits": [each.acts_for for each in entries],
        "on_type": on.type.value,
        "on_id": on.id,
        "granted_by": by,
        "users": user_ids,
        "roles": [UUID(id) for id in role_ids],
        "principals": len(user_ids) + len(role_ids),
        **key_arrays(keys),
        "warehouse_id": warehouse_id,
        "later": FIRST_BACKGROUND_TRY_SECONDS,
    }
    ids = sorted((await connection.execute(_GRANT, values)).scalars())
    if not ids:
        return None
    return [Pending(id, key, False, warehouse_id) for id, key in zip(ids, keys, strict=True)]


_GRANT = text(
    """
    with entries as materialized (
        select * from unnest(cast(:ids as uuid[]), cast(:privileges as text[]), cast(:principal_types as text[]),
            cast(:principal_ids as text[]), cast(:reasons as text[]), cast(:ends as timestamptz[]),
            cast(:limits as text[]))
            as e(id, privilege, principal_type, principal_id, reason, expires_at, acts_for)),
    known as materialized (
        select (select count(*) from (
                select 1 from users u where u.id = any(cast(:users as text[])) order by u.id for key share) held)
            + (select count(*) from (
                select 1 from roles r where r.id = any(cast(:roles as uuid[])) order by r.id for key share) held)
            as principals),
    free as materialized (
        select known.principals = :principals and not exists (
            select 1 from entries e join grants g on g.privilege = e.privilege
                and g.principal_type = e.principal_type and g.principal_id = e.principal_id
                and g.object_type = :on_type and g.object_id = :on_id) as it
        from known),
    given as (
        insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by,
            reason, expires_at, acts_for)
        select e.id, e.privilege, e.principal_type, e.principal_id, :on_type, :on_id, :granted_by, e.reason,
            e.expires_at, e.acts_for
        from entries e, free where free.it)
    insert into outbox (subject_type, subject_id, relation, object_type, object_id, warehouse_id, takes_away, step,
        not_before)
    select a.subject_type, a.subject_id, a.relation, a.object_type, a.object_id, cast(:warehouse_id as uuid),
        false, 0, clock_timestamp() + make_interval(secs => :later)
    from free, unnest(cast(:subject_types as text[]), cast(:subject_ids as text[]), cast(:relations as text[]),
            cast(:object_types as text[]), cast(:object_ids as text[]))
        with ordinality as a(subject_type, subject_id, relation, object_type, object_id, ord)
    where free.it order by a.ord returning id
    """
)
