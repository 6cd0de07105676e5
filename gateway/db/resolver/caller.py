# SPDX-License-Identifier: Apache-2.0
"""SQL expressions that the resolver's statements select beside an object's rows: the time, revisions, the caller's
roles.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import (
    CTE,
    Column,
    ColumnElement,
    Label,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    cast,
    func,
    literal_column,
    null,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB

from gateway.access.actor import Actor
from gateway.access.tuples import PrincipalType
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import fields_of
from gateway.db.schema.break_glass import break_glass_activations
from gateway.db.schema.changes import outbox
from gateway.db.schema.grants import grants
from gateway.db.schema.policies import engine_probes
from gateway.db.schema.principals import roles, scim_users
from gateway.db.schema.warehouses import server

#: Separator of the values of a list that is sent as one text. Names contain no control characters.
BETWEEN = "\x1e"


class ClockRow(msgspec.Struct, frozen=True):
    """The columns that every resolution reads: the time, the server's revisions, and those about the caller
    (`_of_caller`).

    `absent` is [project id, ids of namespaces]: the location of the object if the statement did not find it.
    """

    now: datetime
    revision: UUID
    time_boxes: UUID
    revocations_pending: bool
    caller_roles: list[str] | None
    next_expiry: datetime | None
    group_roles: list[str] | None
    deactivated: bool
    break_glass: list[str] | None
    absent: tuple[str, list[str]] | None


class EngineRow(NamedTuple):
    """The columns that a resolution reads about an engine that acts for the caller.

    `delegations` and `probes` are JSON.
    """

    now: datetime
    revision: UUID
    time_boxes: UUID
    caller_roles: list[str] | None
    next_expiry: datetime | None
    group_roles: list[str] | None
    deactivated: bool
    delegations: Any
    probes: Any


# All parts of the statement use one time. So a grant that expires while the statement runs is either valid with an
# expiry in all parts, or in none.
_MOMENT = func.statement_timestamp()
_now = _MOMENT.label("now")


def caller_of(actor: Actor) -> dict[str, str]:
    """Return the parameters by which statements select the roles of the caller.

    They are the principal and, for groups in the token, their provider and names. An assumed role replaces the caller
    and has no groups.
    """
    if actor.assumed_role is not None:
        identity = {"caller_type": PrincipalType.ROLE.value, "caller_id": str(actor.assumed_role)}
        return {**identity, "provider": "", "groups": ""}
    identity = {"caller_type": PrincipalType.USER.value, "caller_id": actor.id}
    return {**identity, "provider": actor.provider, "groups": BETWEEN.join(actor.groups)}


def word(constant: str) -> ColumnElement[str]:
    """Return a constant of this package as an SQL literal."""
    return literal_column(f"'{constant}'", Text)


def _roles_and_grants() -> tuple[CTE, ColumnElement[bool]]:
    """Return (the roles of the caller, the condition that a grant is held by the caller or by one of these roles).

    Ownership of a role implies membership in it, as in the model.
    """
    live = grants.c.expires_at.is_(None) | (grants.c.expires_at > _MOMENT)
    # Literals, because a generic plan cannot use the partial index for parameters.
    gives = or_(grants.c.privilege == word("assignee"), grants.c.privilege == word("ownership"))
    membership = and_(grants.c.object_type == word("role"), gives, live)
    held = (
        select(grants.c.object_id.label("role_id"))
        .where(
            membership,
            grants.c.principal_type == bindparam("caller_type"),
            grants.c.principal_id == bindparam("caller_id"),
        )
        .cte("held_roles", recursive=True)
    )
    through = select(grants.c.object_id).where(
        membership, grants.c.principal_type == word("role"), grants.c.principal_id == held.c.role_id
    )
    # The last select is the recursive term; the two before it are the initial term.
    every = held.union(select(cast(roles.c.id, Text)).where(_by_group()), through)
    to_caller = and_(
        grants.c.principal_type == bindparam("caller_type"), grants.c.principal_id == bindparam("caller_id")
    )
    to_role = and_(grants.c.principal_type == word("role"), grants.c.principal_id.in_(select(every.c.role_id)))
    return every, or_(to_caller, to_role)


def _by_group() -> ColumnElement[bool]:
    """Return the condition that a role maps to a group in the token: it has the group's provider, and its name as
    source.
    """
    groups = func.string_to_array(bindparam("groups", type_=Text), BETWEEN)
    return and_(roles.c.provider_id == bindparam("provider"), roles.c.source_id == any_(groups))


def _of_caller(*, engine: bool = False) -> tuple[Label[Any], ...]:
    """Return the columns about the caller.

    Without `engine`, they are: the ids of the caller's roles, or null; the first expiry of a grant to the caller or to
    one of these roles; id and project of the roles of groups in the token, or null; True if the caller is deactivated;
    the caller's active break-glass activations, or null. With `engine` also the live grants of `delegate` on the
    objects whose ids are `places`, or null, and the state of the caller's probes as an engine in the warehouses among
    them, or null; then no activations.
    """
    every, theirs = _roles_and_grants()
    ends = select(func.min(grants.c.expires_at)).where(grants.c.expires_at > _MOMENT, theirs)
    roles_held = select(func.array_agg(every.c.role_id)).scalar_subquery()
    named = cast(roles.c.id, Text) + word(BETWEEN) + roles.c.project_id
    by_group = select(func.array_agg(named)).where(_by_group()).scalar_subquery()
    inactive = select(scim_users.c.user_id).where(scim_users.c.user_id == bindparam("caller_id"), ~scim_users.c.active)
    columns = (
        roles_held.label("caller_roles"),
        ends.scalar_subquery().label("next_expiry"),
        by_group.label("group_roles"),
        inactive.exists().label("deactivated"),
    )
    return (*columns, _delegations(theirs), _probes()) if engine else (*columns, _break_glass())


def _break_glass() -> Label[Any]:
    """Return the column with id and object id of each active break-glass activation of the caller, or null."""
    active = (
        select(
            func.array_agg(
                cast(break_glass_activations.c.id, Text) + word(BETWEEN) + break_glass_activations.c.object_id
            )
        )
        .where(
            # A literal, because a generic plan cannot use the partial index for a parameter.
            break_glass_activations.c.status == word("active"),
            break_glass_activations.c.principal == bindparam("caller_id"),
            break_glass_activations.c.ends_at > _MOMENT,
        )
        .scalar_subquery()
    )
    return active.label("break_glass")


def _delegations(theirs: ColumnElement[bool]) -> Label[Any]:
    """Return the column with type, id, principal type, expiry and limits of each grant, which `delegate_grants`
    reads.
    """
    each = func.jsonb_build_array(
        grants.c.object_type, grants.c.object_id, grants.c.principal_type, grants.c.expires_at, grants.c.acts_for
    )
    live = or_(grants.c.expires_at.is_(None), grants.c.expires_at > _MOMENT)
    here = grants.c.object_id == any_(func.string_to_array(bindparam("places", type_=Text), BETWEEN))
    held = select(func.jsonb_agg(each, type_=JSONB)).where(grants.c.privilege == word("delegate"), here, live, theirs)
    return held.scalar_subquery().label("delegations")


def _probes() -> Label[Any]:
    """Return the column with the state of each probe, which `probe_states` reads."""
    each = func.jsonb_build_array(
        engine_probes.c.warehouse_id,
        engine_probes.c.verdict,
        engine_probes.c.valid_until,
        engine_probes.c.warn_until,
        engine_probes.c.challenge[literal_column("'table'", Text)].astext,
        engine_probes.c.challenge[literal_column("'expires-at'", Text)].astext,
    )
    here = cast(engine_probes.c.warehouse_id, Text) == any_(
        func.string_to_array(bindparam("places", type_=Text), BETWEEN)
    )
    known = select(func.jsonb_agg(each, type_=JSONB)).where(engine_probes.c.engine == bindparam("caller_id"), here)
    return known.scalar_subquery().label("probes")


def _grant_expiries() -> Select[Any]:
    ends = grants.c.expires_at
    within = and_(ends > bindparam("after", type_=ends.type), ends <= bindparam("until", type_=ends.type))
    return select(ends).where(within, _roles_and_grants()[1]).distinct().order_by(ends)


GRANT_EXPIRIES = DirectRead(_grant_expiries())


def _columns() -> Select[Any]:
    live = or_(grants.c.expires_at.is_(None), grants.c.expires_at > _MOMENT)
    table_id = func.split_part(grants.c.object_id, literal_column("'.'"), literal_column("1"))
    is_requested = any_(func.string_to_array(bindparam("tables", type_=Text), BETWEEN))
    on_columns = and_(grants.c.object_type == word("column"), table_id == is_requested)
    return select(grants.c.object_id).where(on_columns, live, _roles_and_grants()[1]).distinct()


#: Ids of the columns of given tables on which the caller or one of the caller's roles holds a grant.
COLUMNS = DirectRead(_columns())


def _of_server(column: Column[Any]) -> Label[Any]:
    return select(column).scalar_subquery().label(column.name)


#: One row that every resolution reads: the time, the server's revisions, and the columns about the caller.
CLOCK: Select[Any] = select(
    _now,
    _of_server(server.c.revision),
    _of_server(server.c.time_boxes),
    select(outbox.c.id).where(outbox.c.takes_away).exists().label("revocations_pending"),
    *_of_caller(),
    cast(null(), JSONB).label("absent"),
)
ONLY_CLOCK = DirectRead(CLOCK, ClockRow)

#: Like `ONLY_CLOCK`, for an engine that acts for a caller: with the engine's grants of `delegate` and its probes on the
#: objects `places`.
ENGINE_CLOCK = DirectRead(
    select(_now, _of_server(server.c.revision), _of_server(server.c.time_boxes), *_of_caller(engine=True)),
    EngineRow,
)


def with_database_time(query: Select[Any]) -> Select[Any]:
    """Left-join the query to `CLOCK`, so that the result has one row, with the time, even if the query finds
    nothing.
    """
    found = query.subquery("found")
    clock = CLOCK.subquery("clock")
    return select(*clock.c, *found.c).select_from(clock.outerjoin(found, true()))


def without_database_time(query: Select[Any]) -> Select[Any]:
    """Return the query with the columns of `with_database_time`. Those of `CLOCK` are null."""
    found = query.subquery("found")
    columns: list[ColumnElement[Any]] = [null().label(name) for name in fields_of(ClockRow)]
    return select(*columns, *found.c)
