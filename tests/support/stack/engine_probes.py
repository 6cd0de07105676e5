# SPDX-License-Identifier: Apache-2.0
"""Probes of engines: open, post results, read the state."""

from __future__ import annotations

from typing import Any

import httpx

from gateway.features.engines.probe_challenges import masked_as
from tests.support.stack.world import Person, World


def canaries(world: World) -> list[str]:
    """Return the names of the tables in the namespace of canaries."""
    return [each["name"] for each in world.sql("select name from tables where name like 'canary!_%' escape '!'")]


def policies(world: World) -> list[str]:
    """Return the names of the data policies of canaries."""
    return [each["name"] for each in world.sql("select name from data_policies where name like 'canary!_%' escape '!'")]


def path_of(world: World) -> str:
    """Return the path of the probes in the warehouse."""
    return f"/management/v1/warehouse/{world.warehouse}/engine-probe"


def opened(world: World, engine: Person, *, by: Person | None = None) -> dict[str, Any]:
    """Open a probe, and return its values."""
    answer = (by or world.admin).post(path_of(world), {"engine": engine.id})
    assert answer.status_code == 201, answer.text
    challenge: dict[str, Any] = answer.json()
    return challenge


def posted(world: World, challenge: dict[str, Any], output: str, *, by: Person | None = None) -> httpx.Response:
    """Post an output of the engine."""
    return (by or world.admin).post(f"{path_of(world)}/{challenge['id']}/result", {"output": output})


def shown(challenge: dict[str, Any]) -> str:
    """Return the output of an engine that enforces the restriction."""
    kept = [row for row in challenge["rows"] if row["kept"]]
    return "\n".join(f"{row['shown']} {masked_as(row['masked'])}" for row in kept)


def state(world: World, engine: Person) -> dict[str, Any]:
    """Return the state of an engine in the list."""
    listed = world.admin.get(path_of(world)).json()["engine-probes"]
    [found] = [each for each in listed if each["engine"] == engine.id]
    result: dict[str, Any] = found
    return result


def passed(world: World, engine: Person) -> None:
    """Record a passed probe by the gateway, which other tests make with an engine (`tests/integration`)."""
    world.sql(
        "insert into engine_probes (engine, warehouse_id, verdict, probed_at, valid_until) values "
        "($1, $2::uuid, 'passed', clock_timestamp(), clock_timestamp() + interval '7 days') on conflict (engine, "
        "warehouse_id) do update set verdict = excluded.verdict, valid_until = excluded.valid_until",
        engine.id,
        world.warehouse,
    )
