# SPDX-License-Identifier: Apache-2.0
"""Files of views: deleted after a drop, replacement or move of the view, and kept by a rename."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.stack.views import create, replace
from tests.support.stack.world import SCHEMA, World, unique

pytestmark = pytest.mark.servers


def _until(true: Callable[[], bool], description: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, description
        time.sleep(0.3)


def _keys(world: World, location: str) -> set[str]:
    base = f"s3://{world.bucket}/"
    return {base + key for key, _ in world.objects(location.removeprefix(base).rstrip("/") + "/")}


def _noted(world: World, location: str) -> set[str]:
    return {
        row["location"]
        for row in world.sql("select location from pending_files where location like $1 || '%'", location)
    }


def _grow_old(world: World, location: str) -> None:
    """Expire the cleanup window of all pending files below this location."""
    world.sql(
        "update pending_files set written_at = now() - interval '2 hours' where location like $1 || '%'", location
    )


def _rename(world: World, ns: str, kind: str, name: str, to: str) -> None:
    body = {"source": {"namespace": [ns], "name": name}, "destination": {"namespace": [ns], "name": to}}
    assert world.admin.post(f"{world.root}/{kind}s/rename", body).status_code == 204


def _replaced(world: World, made: dict[str, Any], sql: str = "select 2") -> dict[str, Any]:
    answer = world.admin.post(made["path"], replace(made["metadata"]["view-uuid"], sql))
    assert answer.status_code == 200, answer.text
    done: dict[str, Any] = answer.json()
    return done


@pytest.mark.parametrize("query", ["", "?purgeRequested=true"])
def test_view_drop_deletes_its_own_files_only(world: World, ns: str, query: str) -> None:
    """They are deleted at once on request, else after the cleanup window; until then they can be registered again."""
    gone, neighbour, table = create(world, ns), create(world, ns), world.table(ns)
    _replaced(world, gone)
    location = gone["metadata"]["location"]
    assert len(_keys(world, location)) == 2
    assert world.admin.delete(f"{gone['path']}{query}").status_code == 204
    if not query:
        assert len(_keys(world, location)) == 2
        _grow_old(world, location)
    _until(lambda: not _keys(world, location), "the files of the view were not deleted")
    assert _keys(world, neighbour["metadata"]["location"]) == {neighbour["metadata-location"]}
    assert _keys(world, table.location) == {table.answer["metadata-location"]}


def test_dropped_view_location_is_blocked_until_its_files_are_deleted(world: World, ns: str) -> None:
    location = f"s3://{world.bucket}/demo/{unique('view_place')}"
    gone = create(world, ns, location=location)
    assert world.admin.delete(f"{gone['path']}?purgeRequested=true").status_code == 204
    _until(lambda: not _keys(world, location), "the files of the view were not deleted")
    body = {"name": unique("t"), "schema": SCHEMA, "location": location}
    _until(
        lambda: world.admin.post(f"{world.root}/namespaces/{ns}/tables", body).status_code == 200,
        "the place did not become free",
    )


def test_a_view_dropped_without_purge_keeps_its_files(world: World, ns: str) -> None:
    made = create(world, ns)
    assert world.admin.delete(f"{made['path']}?purgeRequested=false").status_code == 204
    assert world.sql("select 1 from tasks where payload ->> 'location' = $1", made["metadata"]["location"]) == []
    assert _keys(world, made["metadata"]["location"]) == {made["metadata-location"]}


def test_replaced_view_file_is_deleted_after_the_cleanup_window(world: World, ns: str) -> None:
    made = create(world, ns)
    location = made["metadata"]["location"]
    later = _replaced(world, made)
    assert _noted(world, location) == {made["metadata-location"]}
    assert _keys(world, location) == {made["metadata-location"], later["metadata-location"]}, (
        "the replaced file must stay for concurrent readers"
    )
    _grow_old(world, location)
    _until(lambda: _keys(world, location) == {later["metadata-location"]}, "the replaced file was not deleted")
    assert world.admin.get(made["path"]).json()["metadata-location"] == later["metadata-location"]


def test_moved_view_cleanup_deletes_files_at_the_old_location_only(world: World, ns: str) -> None:
    old, new = (f"s3://{world.bucket}/demo/{unique('moving')}" for _ in range(2))
    made = create(world, ns, location=old)
    _replaced(world, made)
    moved = world.admin.post(made["path"], {"updates": [{"action": "set-location", "location": new}]})
    assert moved.status_code == 200, moved.text
    _grow_old(world, old)
    _until(lambda: not _keys(world, old), "files at the old location were not deleted")
    assert _keys(world, new) == {moved.json()["metadata-location"]}
    assert world.table(ns, location=old).location == old


@pytest.mark.parametrize("kind", ["table", "view"])
def test_renamed_view_keeps_its_files_and_drops_are_independent(world: World, ns: str, kind: str) -> None:
    def make(name: str) -> tuple[str, str]:
        if kind == "view":
            view = create(world, ns, name)
            return view["metadata"]["location"], view["metadata-location"]
        table = world.table(ns, name)
        return table.location, table.answer["metadata-location"]

    first, moved = unique("first"), unique("moved")
    location, file = make(first)
    _rename(world, ns, kind, first, moved)
    assert _keys(world, location) == {file}
    other_place, other_file = make(first)
    assert other_place != location
    dropped = world.admin.delete(f"{world.root}/namespaces/{ns}/{kind}s/{moved}?purgeRequested=true")
    assert dropped.status_code == 204
    _until(lambda: not _keys(world, location), "the files of the dropped view were not deleted")
    assert _keys(world, other_place) == {other_file}
    assert world.admin.get(f"{world.root}/namespaces/{ns}/{kind}s/{first}").status_code == 200


def test_registered_file_is_kept_after_an_earlier_replacement(world: World, ns: str) -> None:
    made, name = create(world, ns), unique("back")
    location = made["metadata"]["location"]
    _replaced(world, made)
    assert world.admin.delete(f"{made['path']}?purgeRequested=false").status_code == 204
    body = {"name": name, "metadata-location": made["metadata-location"]}
    back = world.admin.post(f"{world.root}/namespaces/{ns}/register-view", body)
    assert back.status_code == 200, back.text
    assert _noted(world, location) == set()


def test_pending_table_file_is_deleted_after_an_interrupted_commit(world: World, ns: str) -> None:
    """A commit records the files that leave its metadata log in its transaction, so the row survives a kill."""
    table = world.table(ns, properties={"write.metadata.previous-versions-max": "1"})
    for number in range(2):
        update = {"action": "set-properties", "updates": {"n": str(number)}}
        assert world.commit(world.admin, table.path, update).status_code == 200
    assert table.answer["metadata-location"] not in _keys(world, table.location)
    assert _noted(world, table.location) == set(), "no cleanup record may stay for a deleted file"


def test_change_fails_if_its_file_was_cleaned_up(world: World, ns: str) -> None:
    """A commit that outlasts the cleanup window loses its row, and with it the right to refer to the file."""
    table = world.table(ns)
    world.sql(
        "create or replace function race_gate_sweep() returns trigger language plpgsql as $$ begin "
        "delete from pending_files where location = new.location; return null; end $$"
    )
    world.sql(
        "create trigger race_gate after insert on pending_files for each row "
        f"when (new.location like '{table.location}%') execute function race_gate_sweep()"
    )
    try:
        answer = world.commit(world.admin, table.path, {"action": "set-properties", "updates": {"a": "b"}})
        assert answer.status_code == 429, answer.text
        assert int(answer.headers["retry-after"]) >= 1
    finally:
        world.sql("drop trigger race_gate on pending_files")
        world.sql("drop function race_gate_sweep()")
    assert _keys(world, table.location) == {table.answer["metadata-location"]}
    assert world.admin.get(table.path).json()["metadata-location"] == table.answer["metadata-location"]
