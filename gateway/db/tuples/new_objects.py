# SPDX-License-Identifier: Apache-2.0
"""Record the ownership of a new object and enqueue its tuples, in one statement of the transaction that inserts it.

The owner needs `traverse` on every container above. These tuples exist already if the owner has a permanent grant on
another object in the same namespace and no delivery of them is pending. The statement locks that grant, that object
and, before, the namespace until the commit. So no concurrent transaction can end the reason for `traverse` without
finding the new grant as a reason, and no delivery in the meantime finds the tuples undesired. They are not enqueued.

Then only the edge to the parent and the ownership are left. Their keys contain the id of the new object. No other
transaction knows this id before the commit, so no earlier write of these tuples can exist, and the rows require both
without an expiry. So the outbox rows are inserted with the record of a write (`sent_at`). The request writes the tuples
right after the commit, without an advisory lock and without a read of the desired tuples (`new_tuple_delivery`). A
later transaction that ends such a grant enqueues the same key. Its delivery finds the record, and is not confirmed
before that write has its outcome: the rule for every write in flight (`delivery`).

Otherwise all keys are enqueued and delivered like those of any change.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.nouns.privileges import TRAVERSE_REASONS, Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, TupleKey
from gateway.db.tuples.desired_tuples import TRAVERSE
from gateway.db.tuples.outbox import FIRST_BACKGROUND_TRY_SECONDS, Pending, key_arrays


async def record_owned(
    connection: AsyncConnection,
    created: ObjectKey,
    parent: ObjectKey,
    *,
    owner: Principal,
    by: str,
    above: Sequence[ObjectKey],
    warehouse_id: UUID,
    alone: bool = True,
) -> list[Pending]:
    """Record that `by` gives `owner` the ownership of an object that this transaction inserted with a new id, and
    enqueue the tuples. Return them.

    Call it with the namespace of the object locked against moves (`namespaces.lock_shared`). With `alone`, the
    transaction locks no further row of `tables`: the lock on another object could otherwise cause a deadlock.
    """
    own = [TupleKey(parent, "parent", created), TupleKey(owner, Privilege.OWNERSHIP.value, created)]
    paths = [TupleKey(owner, TRAVERSE, container) for container in above]
    inside = parent if alone and parent.type is ObjectType.NAMESPACE else None
    values = {
        **key_arrays([*own, *paths]),
        "own": len(own),
        "warehouse_id": warehouse_id,
        "later": FIRST_BACKGROUND_TRY_SECONDS,
        "grant_id": uuid7(),
        "privilege": Privilege.OWNERSHIP.value,
        "principal_type": owner.type.value,
        "principal_id": owner.id,
        "object_type": created.type.value,
        "object_id": created.id,
        "granted_by": by,
        "namespace": None if inside is None else UUID(inside.id),
        "looked_at": _LATEST_GRANTS,
    }
    noted = time.monotonic()
    rows = (await connection.execute(_RECORD, values)).all()
    # The ids have the order of the keys. The edge and the ownership come first, and are always enqueued.
    ordered = sorted(rows, key=lambda row: int(row.id))
    keys = [*own, *(paths if len(rows) > len(own) else ())]
    pending = [Pending(row.id, key, False, warehouse_id) for row, key in zip(ordered, keys, strict=True)]
    return [
        each if row.sent_at is None else replace(each, sent_at=row.sent_at, noted=noted)
        for each, row in zip(pending, ordered, strict=True)
    ]


_LATEST_GRANTS: Final = 16
"""The number of the owner's latest grants among which a reason for `traverse` is searched."""

_REASONS: Final = ", ".join(f"'{privilege.value}'" for privilege in sorted(TRAVERSE_REASONS))

# A row that another transaction holds is skipped: it may be about to end or to move. The lock on the object is `for
# share`, because a rename that moves it updates its row without changing a key of the table.
_RECORD: Final = text(
    f"""
    with granted as (
        insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by)
        values (cast(:grant_id as uuid), :privilege, :principal_type, :principal_id, :object_type, :object_id,
            :granted_by)),
    asked as materialized (
        select * from unnest(cast(:subject_types as text[]), cast(:subject_ids as text[]), cast(:relations as text[]),
                cast(:object_types as text[]), cast(:object_ids as text[]))
            with ordinality as a(subject_type, subject_id, relation, object_type, object_id, ord)),
    latest as materialized (
        select g.id, g.object_type, g.object_id from grants g
        where g.principal_type = :principal_type and g.principal_id = :principal_id
            and cast(:namespace as uuid) is not null
        order by g.id desc limit :looked_at),
    reason as materialized (
        select g.id from latest l join grants g on g.id = l.id
        join tables t on t.kind = l.object_type
            and t.id = case when l.object_type in ('table', 'view', 'generic_table') then l.object_id::uuid end
        where t.namespace_id = cast(:namespace as uuid) and g.privilege in ({_REASONS}) and g.expires_at is null
        limit 1 for share of t skip locked for key share of g skip locked),
    known as materialized (
        select exists (select 1 from reason) and not exists (
            select 1 from scim_users u where :principal_type = 'user' and u.user_id = :principal_id and not u.active)
        and not exists (
            select 1 from asked a join outbox o on o.object_id = a.object_id and o.subject_id = a.subject_id
                and o.relation = a.relation and o.object_type = a.object_type and o.subject_type = a.subject_type
            where a.ord > :own) as it)
    insert into outbox (subject_type, subject_id, relation, object_type, object_id, warehouse_id, takes_away, step,
        not_before, sent_at)
    select a.subject_type, a.subject_id, a.relation, a.object_type, a.object_id, cast(:warehouse_id as uuid), false, 0,
        clock_timestamp() + make_interval(secs => :later),
        case when known.it then clock_timestamp() end
    from asked a, known where a.ord <= :own or not known.it
    order by a.ord returning id, sent_at
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)
