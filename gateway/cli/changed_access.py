# SPDX-License-Identifier: Apache-2.0
"""The output of ``lakegate model diff --database``: which principals gain and lose which actions on which objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.common import ends_on
from gateway.cli.models import about_models, opened_database

if TYPE_CHECKING:
    from gateway.access.decisions.recorded_grants import World
    from gateway.access.nouns.refs import ObjectKey
    from gateway.access.tuples import Principal
    from gateway.fga.world_diff import AccessChange, Because
    from gateway.settings import Settings

_SHOWN = 5


def print_changed_access(old: Mapping[str, Any], new: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what changes for which principals in the database of the settings. A fault ends the command."""
    from gateway.fga.implications import TooComplex
    from gateway.fga.model_diff import compare_models
    from gateway.fga.world_diff import Incomplete, changed_access

    world = about_models(recorded_world)
    with ends_on(Incomplete, TooComplex):
        rows = changed_access(old, new, compare_models(old, new, max(world.nested_namespaces(), 1)), world)
    for row in rows:
        click.echo(_json(row, world) if as_json else _text(row, world))
    if not as_json:
        gaining = {who for row in rows if row.gains for who in row.principals}
        changed = {who for row in rows for who in row.principals}
        click.echo(f"{len(changed)} principals change, {len(gaining)} of them gain rights")


async def recorded_world(settings: Settings) -> World:
    """Return the grants in the database of the settings, with the positions of their objects."""
    from gateway.db.tuples.recorded_grants import read_world

    async with opened_database(settings) as database:
        return await read_world(database)


def _text(row: AccessChange, world: World) -> str:
    lines = [f"{_named(row.object, world)}: {_principals(row.principals)}"]
    for kind, change in (("", row.own), *row.below):
        where = f" on every {kind} below" if kind else ""
        lines += [f"  + {each}{where}" for each in sorted(change.gained)]
        lines += [f"  - {each}{where}" for each in sorted(change.lost)]
    lines += [f"    {_reason(each, world)}" for each in row.because]
    if row.apart_from:
        named = [_named(each, world) for each in row.apart_from[:_SHOWN]]
        more = f" and {len(row.apart_from) - _SHOWN} more" if len(row.apart_from) > _SHOWN else ""
        lines.append(f"    apart from {', '.join(named)}{more}")
    return "\n".join(lines)


def _reason(because: Because, world: World) -> str:
    grants = [
        f"{relation} on {_named(on, world)} of {principal.type} {principal.id}"
        for relation, on, principal in because.grants
    ]
    model = "new" if because.gained else "old"
    return f"{', '.join(because.actions)}: the {model} model gives it by {' and '.join(grants) or 'no grant'}"


def _principals(principals: tuple[Principal, ...]) -> str:
    if not principals:
        return "every user without a grant here or above"
    shown = ", ".join(f"{each.type} {each.id}" for each in principals[:_SHOWN])
    return f"{shown} and {len(principals) - _SHOWN} more" if len(principals) > _SHOWN else shown


def _named(key: ObjectKey, world: World) -> str:
    place = world.places.get(key)
    return f"{key.type} {place.name if place is not None else ''} ({key.id})"


def _json(row: AccessChange, world: World) -> str:
    import msgspec

    changes = [
        {"kind": kind or row.object.type, "below": bool(kind), "gained": sorted(each.gained), "lost": sorted(each.lost)}
        for kind, each in (("", row.own), *row.below)
        if each.gained or each.lost
    ]
    because = [
        {
            "kind": each.kind or row.object.type,
            "below": bool(each.kind),
            "actions": each.actions,
            "gained": each.gained,
            "grants": [{"relation": relation, "object": on, "principal": who} for relation, on, who in each.grants],
        }
        for each in row.because
    ]
    fields = {
        "object": row.object,
        "name": world.places[row.object].name,
        "principals": row.principals,
        "every_user": not row.principals,
        "changes": changes,
        "apart_from": row.apart_from,
        "because": because,
    }
    return msgspec.json.encode(fields).decode()
