# SPDX-License-Identifier: Apache-2.0
"""Renames and moves do not evade policies that name an object by its id or its name (LG-DEC-31)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.support.stack.namespace_moves import move_namespace
from tests.support.stack.world import POLICIES_APPLY_S, SCHEMA, World, send_until_decided, unique

_KEYS = {"X-Iceberg-Access-Delegation": "vended-credentials"}
_BETWEEN = "%1F"  # separator of namespace levels in a path


@contextmanager
def rules(world: World, *locations: dict[str, Any]) -> Iterator[None]:
    """Forbid vending for objects in these places until the block ends."""
    url = f"{world.ready.opa.url}/v1/data/policy_data/credentials"
    headers = {"Authorization": f"Bearer {world.ready.opa.token}"}
    before = httpx.get(url, headers=headers, trust_env=False, timeout=60).raise_for_status().json()["result"]
    now = {"rules": [*before["rules"], *({**location, "ask": {"no_vending": True}} for location in locations)]}
    httpx.put(url, headers=headers, json=now, trust_env=False, timeout=60).raise_for_status()
    time.sleep(POLICIES_APPLY_S)
    try:
        yield
    finally:
        httpx.put(url, headers=headers, json=before, trust_env=False, timeout=60).raise_for_status()
        time.sleep(POLICIES_APPLY_S)


def vended(world: World, namespace: str, name: str) -> bool:
    """Return True if a load of the table vends credentials."""
    path = f"{world.root}/namespaces/{namespace}/tables/{name}"
    answer = send_until_decided(lambda: world.admin.get(path, headers=_KEYS))
    assert answer.status_code == 200, answer.text
    return bool(answer.json().get("storage-credentials"))


def rename(world: World, source: tuple[str, str], destination: tuple[str, str]) -> None:
    body = {
        side: {"namespace": namespace.split(_BETWEEN), "name": name}
        for side, (namespace, name) in (("source", source), ("destination", destination))
    }
    done = send_until_decided(lambda: world.admin.post(f"{world.root}/tables/rename", body))
    assert done.status_code == 204, done.text


def child(world: World, parent: str, name: str) -> str:
    """Create a child namespace; return its levels as they appear in a path."""
    body = {"namespace": [*parent.split(_BETWEEN), name]}
    made = send_until_decided(lambda: world.admin.post(f"{world.root}/namespaces", body))
    assert made.status_code == 200, made.text
    return f"{parent}{_BETWEEN}{name}"


def table_in(world: World, namespace: str) -> None:
    """Create a table named `t`."""
    body = {"name": "t", "schema": SCHEMA}
    made = send_until_decided(lambda: world.admin.post(f"{world.root}/namespaces/{namespace}/tables", body))
    assert made.status_code == 200, made.text


@pytest.mark.threat("LG-DEC-31")
def test_policy_by_name_applies_after_a_rename_and_a_move(world: World) -> None:
    guarded, other = world.namespace(), world.namespace()
    name = unique("people")
    world.table(guarded, name)
    with rules(world, {"namespace": [guarded], "table": name}):
        assert not vended(world, guarded, name)
        rename(world, (guarded, name), (guarded, f"{name}_2"))
        assert not vended(world, guarded, f"{name}_2")
        rename(world, (guarded, f"{name}_2"), (other, "harmless"))
        assert not vended(world, other, "harmless")
    assert vended(world, other, "harmless")


@pytest.mark.threat("LG-DEC-31")
def test_policy_by_id_applies_to_its_object_only(world: World) -> None:
    guarded, other = world.namespace(), world.namespace()
    table = world.table(guarded, "one")
    world.table(other, "two")
    id = str(world.sql("select id from tables where name = 'one' and location = $1", table.location)[0][0])
    with rules(world, {"ids": [id]}, {"ids": [world.namespace_id(guarded)], "table": "never"}):
        rename(world, (guarded, "one"), (other, "harmless"))
        assert not vended(world, other, "harmless")
        assert vended(world, other, "two")


@pytest.mark.threat("LG-DEC-31")
def test_namespace_policy_applies_after_the_namespace_is_moved(world: World) -> None:
    guarded = world.namespace()
    world.table(guarded, "t")
    with rules(world, {"namespace": [guarded]}):
        moved = unique("moved")
        move_namespace(world, guarded, [moved])
        assert not vended(world, moved, "t")
    assert vended(world, moved, "t")


@pytest.mark.threat("LG-DEC-31")
def test_namespace_policy_applies_after_moves_of_namespace_and_table(world: World) -> None:
    guarded, other = world.namespace(), world.namespace()
    world.table(guarded, "t")
    below = child(world, guarded, "below")
    table_in(world, below)
    with rules(world, {"namespace": [guarded]}):
        once, twice = unique("once"), unique("twice")
        move_namespace(world, guarded, [once])
        move_namespace(world, once, [twice])
        rename(world, (twice, "t"), (other, "direct"))
        assert not vended(world, other, "direct")
        rename(world, (f"{twice}{_BETWEEN}below", "t"), (other, "deeper"))
        assert not vended(world, other, "deeper")
    assert vended(world, other, "direct")
    assert vended(world, other, "deeper")


@pytest.mark.threat("LG-DEC-31")
def test_policy_of_a_renamed_parent_applies_to_later_tables_that_leave_it(world: World) -> None:
    guarded, other = world.namespace(), world.namespace()
    plain, free = unique("plain"), unique("free")
    with rules(world, {"namespace": [guarded]}):
        move_namespace(world, guarded, [plain])
        first, second = child(world, plain, "first"), child(world, plain, "second")
        table_in(world, first)
        table_in(world, second)
        rename(world, (first, "t"), (other, "a"))
        assert not vended(world, other, "a")
        move_namespace(world, second, [free])
        assert not vended(world, free, "t")
        rename(world, (free, "t"), (other, "b"))
        assert not vended(world, other, "b")
    assert vended(world, other, "b")


@pytest.mark.threat("LG-DEC-31")
def test_move_in_a_renamed_namespace_records_only_the_former_name(world: World) -> None:
    """The namespace's own former names are not repeated for the table.

    They would exhaust the limit on former names, beyond which every rule matches.
    """
    guarded = world.namespace()
    plain = unique("plain")
    move_namespace(world, guarded, [plain])
    first, second = child(world, plain, "first"), child(world, plain, "second")
    table_in(world, first)
    rename(world, (first, "t"), (second, "t"))
    found = world.sql("select levels from former_table_names where levels[1] = any($1)", [guarded, plain])
    assert [row["levels"] for row in found] == [[plain, "first", "t"]]


@pytest.mark.threat("LG-DEC-31")
def test_policies_of_all_former_namespace_names_apply_to_a_leaving_table(world: World) -> None:
    guarded, other = world.namespace(), world.namespace()
    world.table(guarded, "t")
    last = guarded
    for _ in range(22):
        to = unique("turn")
        move_namespace(world, last, [to])
        last = to
    rename(world, (last, "t"), (other, "t"))
    with rules(world, {"namespace": [guarded]}):
        assert not vended(world, other, "t")


@pytest.mark.threat("LG-DEC-31")
def test_many_renames_keep_every_former_name(world: World) -> None:
    space = world.namespace()
    name = unique("people")
    world.table(space, name)
    rename(world, (space, name), (space, "n0"))
    for attempt in range(1, 23):
        rename(world, (space, f"n{attempt - 1}"), (space, f"n{attempt}"))
    with rules(world, {"namespace": [space], "table": name}):
        assert not vended(world, space, "n22")


def test_former_names_are_deleted_with_their_object(world: World) -> None:
    space = world.namespace()
    name = unique("gone")
    world.table(space, name)
    rename(world, (space, name), (space, "last"))
    count = "select count(*) from former_table_names where levels = $1"
    assert world.sql(count, [space, name])[0][0] == 1
    path = f"{world.root}/namespaces/{space}/tables/last"
    assert send_until_decided(lambda: world.admin.delete(path)).status_code == 204
    assert world.sql(count, [space, name])[0][0] == 0
