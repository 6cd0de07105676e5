# SPDX-License-Identifier: Apache-2.0
"""Read the data policies that are bound to tables, and the values that mapping tables give to a principal.

Row filters of the policies compare these values with columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
from cachetools import LRUCache
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.resolved import Governed, NewTable, ResolvedNamespace, ResolvedTable
from gateway.db.engine.database import Database
from gateway.db.pools.compiled_reads import DirectRead
from gateway.iceberg.identifiers import fold
from gateway.obligations.data_policies import BoundPolicy, PolicyInputs

#: Maximum number of entries of the cache. The inputs of a table with few policies take some kilobytes.
_ENTRIES: Final = 2048

# The function `policy_inputs` (`policy_inputs.sql`) alone defines what a decision depends on, and what moves carry. One
# statement reads all rows from one snapshot, so a policy that moves from a table to a tag is found on one of them.
_INPUTS = DirectRead(
    text(
        """
        with asked as materialized (
            select cast(each ->> 'of' as uuid) as of_id, each ->> 'new' as new_name, array(
                select cast(a.id as uuid) from jsonb_array_elements_text(each -> 'in') with ordinality as a(id, level)
                order by a.level) as containers
            from jsonb_array_elements(cast(cast(:objects as text) as jsonb)) as each),
        objects as (
            select a.of_id, a.containers || coalesce(data_policy_names_of(
                n.warehouse_id, n.path_key, coalesce(t.name_key, a.new_name)), '{}') as containers
            from asked a left join tables t on t.id = a.of_id
                left join namespaces n on n.id = coalesce(t.namespace_id, a.of_id)),
        inputs as materialized (
            select o.of_id, i.* from objects o cross join lateral policy_inputs(o.of_id, o.containers) as i),
        bound as (
            select i.of_id, i.ref_id as policy_id, cast(null as uuid) as tag_id, i.recorded
            from inputs i where i.kind = 'binding'
            union
            select i.of_id, b.policy_id, i.ref_id, '{}'
            from inputs i join data_policy_bindings b on b.object_id = i.ref_id and b.object_type = 'tag'
            where i.kind = 'tag')
        select o.of_id,
            (select cast(jsonb_agg(jsonb_build_object(
                'policy', jsonb_build_object(
                    'id', d.id, 'version', d.version, 'definition', d.definition, 'applies_to', d.applies_to,
                    'allow_append', d.allow_append,
                    'tag_ids', coalesce((select jsonb_agg(jsonb_build_array(g.key, g.value))
                        from jsonb_each_text(d.tag_ids) as g), '[]')),
                'tag', b.tag_id,
                'recorded', to_jsonb(b.recorded),
                'released', coalesce((select jsonb_agg(r.field_id order by r.field_id) from inputs r
                    where r.kind = 'release' and r.ref_id = d.id and r.of_id = o.of_id), '[]'))
                order by d.id, b.tag_id, b.recorded) as text)
                from bound b join data_policies d on d.id = b.policy_id where b.of_id = o.of_id) as bound,
            (select cast(jsonb_agg(distinct jsonb_build_array(i.ref_id, i.field_id)) as text)
                from inputs i where i.kind = 'tag' and i.of_id = o.of_id) as tagged_fields,
            (select cast(jsonb_agg(distinct jsonb_build_array(t.id, t.name)) as text)
                from inputs i join tags t on t.id = i.ref_id where i.kind = 'tag' and i.of_id = o.of_id) as tag_names,
            (select cast(jsonb_agg(jsonb_build_array(i.field_id, i.label) order by i.field_id, i.label) as text)
                from inputs i where i.kind = 'former column' and i.of_id = o.of_id) as former_columns
        from objects o
        """
    )
)

_VALUES = DirectRead(
    text(
        """
        select m.name_key, e.value
        from mapping_tables m join mapping_entries e on e.mapping_id = m.id
        where m.project_id = cast(:project as text)
            and m.name_key in (select jsonb_array_elements_text(cast(cast(:names as text) as jsonb)))
            and ((e.principal_type = 'user' and e.principal_id = cast(:user as text))
                or (e.principal_type = 'role' and e.principal_id in (
                    select jsonb_array_elements_text(cast(cast(:roles as text) as jsonb)))))
        """
    )
)

# Subjects of data policies that are a role of the provider, or that contain such a role, directly or through further
# roles.
_SUBJECTS_BY_GROUP = DirectRead(
    text(
        """
        with recursive holders as (
            select g.object_id as policy_id, g.principal_id as role_id
            from grants g
            where g.object_type = 'data_policy' and g.privilege = 'subject' and g.principal_type = 'role'
                and g.object_id in (select jsonb_array_elements_text(cast(cast(:policies as text) as jsonb)))
                and (g.expires_at is null or g.expires_at > clock_timestamp())
            union
            select h.policy_id, g.principal_id
            from holders h join grants g on g.object_type = 'role' and g.object_id = h.role_id
            where g.principal_type = 'role' and g.privilege in ('assignee', 'ownership')
                and (g.expires_at is null or g.expires_at > clock_timestamp()))
        select distinct h.policy_id
        from holders h join roles r on cast(r.id as text) = h.role_id
        where r.provider_id = cast(:provider as text)
        """
    )
)

_bound = msgspec.json.Decoder(tuple[BoundPolicy, ...])
_tagged_fields = msgspec.json.Decoder(tuple[tuple[str, int | None], ...])
_tag_names = msgspec.json.Decoder(tuple[tuple[str, str], ...])
_former_columns = msgspec.json.Decoder(tuple[tuple[int, str], ...])


class PolicyRows:
    """Reads the inputs of data policies on the primary, and caches the inputs of tables.

    The cache key contains the revision of the data policies in the warehouse, which was read before the inputs. Each
    change of a policy, binding or tag writes a new revision in its own transaction.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache: LRUCache[Any, PolicyInputs | None] = LRUCache(_ENTRIES)

    async def inputs(self, rows: Sequence[Governed]) -> Mapping[UUID, PolicyInputs | None]:
        """Return the inputs of each row, by its id. For a namespace, they are those of a new table in it.

        Policies that are bound to names are those of the table's current name, even if it had another name when it was
        resolved.

        The inputs are None if a stored policy cannot be read: a later version wrote it. Raises DatabaseUnavailable.
        """
        keys = {row.id: _key(row) for row in rows}
        found = {id: self._cache[key] for id, key in keys.items() if key in self._cache}
        missing = [
            {
                "of": str(row.id),
                "in": [*map(str, containers_of(row))],
                "new": fold(row.name) if isinstance(row, NewTable) else None,
            }
            for row in rows
            if row.id not in found
        ]
        if not missing:
            return found
        # Without a revision, the key would stay the same when tags change, so such rows are not cached. Only guardrails
        # cause reads without a revision.
        cached = {row.id for row in rows if row.warehouse.data_policy_revision is not None}
        for row in await self._database.read_all(_INPUTS, {"objects": msgspec.json.encode(missing).decode()}):
            found[row.of_id] = _inputs_from(row)
            if row.of_id in cached:
                self._cache[keys[row.of_id]] = found[row.of_id]
        return found

    async def mapped(
        self, project_id: str, names: Sequence[str], user: str, roles: Sequence[str]
    ) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return (name of the mapping table, its values for the user and the roles) for each of `names`.

        If `user` is empty, only the values of the roles are returned. Raises DatabaseUnavailable.
        """
        if not names:
            return ()
        parameters = {
            "project": project_id,
            "names": _text([fold(name) for name in names]),
            "user": user,
            "roles": _text(list(roles)),
        }
        values: dict[str, set[str]] = {}
        for row in await self._database.read_all(_VALUES, parameters):
            values.setdefault(row.name_key, set()).add(row.value)
        return tuple((name, tuple(sorted(values.get(fold(name), ())))) for name in names)

    async def subjects_by_group(self, policy_ids: Sequence[str], provider: str) -> frozenset[str]:
        """Return the policies among `policy_ids` whose subjects include a role that maps to a group of this provider.

        The result is not cached, because memberships of roles write no data policy revision. Raises
        DatabaseUnavailable.
        """
        parameters = {"policies": _text(policy_ids), "provider": provider}
        return frozenset(row.policy_id for row in await self._database.read_all(_SUBJECTS_BY_GROUP, parameters))


async def inputs_within(
    connection: AsyncConnection, places: Mapping[UUID, Sequence[UUID]]
) -> dict[UUID, PolicyInputs | None]:
    """Return the inputs of each object as this transaction sees them.

    `places` has the containers of each object, nearest first and the warehouse last. If they differ from the containers
    in the object's row, the inputs are those that the object would have there under its current name.
    """
    objects = [{"of": str(id), "in": [*map(str, above)]} for id, above in places.items()]
    rows = await connection.execute(_INPUTS.statement, {"objects": msgspec.json.encode(objects).decode()})
    return {row.of_id: _inputs_from(row) for row in rows}


def _key(row: Governed) -> tuple[object, ...]:
    """Return the key under which the inputs of a row may be cached. It changes after a move or commit of the object.

    A rename that changes which policies apply also changes the revision (`policy_inputs.sql`).
    """
    namespace = row if isinstance(row, ResolvedNamespace) else row.namespace
    at = (
        row.metadata_location
        if isinstance(row, ResolvedTable)
        else fold(row.name)
        if isinstance(row, NewTable)
        else None
    )
    return row.id, at, namespace.id, namespace.ancestors, row.warehouse.id, row.warehouse.data_policy_revision


def containers_of(row: Governed) -> list[UUID]:
    """Return the ids of an object's containers, nearest first. The last one is the warehouse."""
    if isinstance(row, ResolvedNamespace):
        return [*reversed(row.ancestors), row.warehouse.id]
    nearest = [] if isinstance(row, NewTable) else [row.namespace.id]
    return [*nearest, *reversed(row.namespace.ancestors), row.warehouse.id]


def _inputs_from(row: Any) -> PolicyInputs | None:
    try:
        bound = _bound.decode(row.bound or "[]")
        # Messages show the names of tags, including tags that are no longer on the table.
        known = {id: name for each in bound for name, id in each.policy.tag_ids}
        names = known | dict(_tag_names.decode(row.tag_names or "[]"))
        return PolicyInputs(
            bound=tuple(msgspec.structs.replace(each, policy=each.policy.with_tag_ids()) for each in bound),
            tagged_fields=_tagged_fields.decode(row.tagged_fields or "[]"),
            tag_names=tuple(names.items()),
            former_columns=_former_columns.decode(row.former_columns or "[]"),
        )
    except msgspec.MsgspecError:
        return None


def _text(values: Sequence[str]) -> str:
    return msgspec.json.encode(list(values)).decode()
