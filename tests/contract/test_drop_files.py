# SPDX-License-Identifier: Apache-2.0
"""Files of dropped objects: the warehouse's setting for drops that do not say so, and the header of the response."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.stack.warehouses import Made, make
from tests.support.stack.world import SCHEMA, World, send_until_decided, unique

_WEEK = 604_800


def made(world: World, **profile: Any) -> Made:
    """Return a warehouse with this delete profile."""
    stated: dict[str, Any] = {"delete-profile": profile}
    return make(world, **stated)


def dropped(world: World, path: str, query: str = "") -> str:
    """Drop an object, and return the note of the response."""
    answer = send_until_decided(lambda: world.admin.delete(f"{path}{query}"))
    assert answer.status_code == 204, answer.text
    assert answer.content == b""
    return answer.headers["x-lakegate-files"]


def purges(world: World, warehouse: Made) -> int:
    """Return the number of scheduled deletions of files in a warehouse."""
    count = "select count(*) as n from tasks where queue = 'tabular_purge' and warehouse_id = $1::text::uuid"
    return int(world.sql(count, warehouse.id)[0]["n"])


@pytest.mark.parametrize(
    ("absent", "query", "note"),
    [
        ("purge", "", "deleted"),
        ("keep", "", "kept"),
        ("keep", "?purgeRequested=true", "deleted"),
        ("purge", "?purgeRequested=false", "kept"),
    ],
)
def test_a_drop_without_the_parameter_follows_the_warehouse(world: World, absent: str, query: str, note: str) -> None:
    warehouse = made(world, **{"type": "hard", "absent-purge-requested": absent})
    assert dropped(world, warehouse.table(world.admin), query) == note
    assert purges(world, warehouse) == (1 if note == "deleted" else 0)


@pytest.mark.parametrize(("query", "seconds"), [("", 10), ("?purgeRequested=true", 0)])
def test_an_engine_that_states_nothing_can_delete_the_files_itself_first(
    world: World, query: str, seconds: int
) -> None:
    warehouse = made(world, **{"type": "hard"})
    dropped(world, warehouse.table(world.admin), query)
    wait = (
        "select extract(epoch from scheduled_for - created_at)::float8 as seconds from tasks "
        "where queue = 'tabular_purge' and warehouse_id = $1::text::uuid"
    )
    assert [round(row["seconds"]) for row in world.sql(wait, warehouse.id)] == [seconds]


def test_views_generic_tables_and_recursive_drops_follow_the_warehouse(world: World) -> None:
    warehouse = made(world, **{"type": "hard", "absent-purge-requested": "keep"})
    space = warehouse.table(world.admin).rsplit("/tables/", 1)[0]
    generic = f"/lakekeeper/v1/{warehouse.id}{space.removeprefix(warehouse.root)}/generic-tables"
    answer = send_until_decided(lambda: world.admin.post(generic, {"name": "g", "format": "lance"}))
    assert answer.status_code == 200, answer.text
    assert dropped(world, f"{generic}/g") == "kept"
    view = {
        "name": unique("v"),
        "schema": SCHEMA,
        "view-version": {
            "version-id": 1,
            "timestamp-ms": 1,
            "schema-id": 0,
            "summary": {},
            "default-namespace": ["x"],
            "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
        },
        "properties": {},
    }
    answer = send_until_decided(lambda: world.admin.post(f"{space}/views", view))
    assert answer.status_code == 200, answer.text
    assert dropped(world, f"{space}/views/{view['name']}") == "kept"
    drop = send_until_decided(lambda: world.admin.delete(f"{space}?recursive=true"))
    assert drop.status_code == 204, drop.text
    assert purges(world, warehouse) == 0
    files = "select count(*) as n from pending_files where warehouse_id = $1::text::uuid"
    assert world.sql(files, warehouse.id)[0]["n"] == 0


def test_the_note_of_a_soft_deletion_has_its_end(world: World) -> None:
    warehouse = made(world, **{"type": "soft", "expiration-seconds": _WEEK})
    for query, files in (("", "deleted"), ("?purgeRequested=false", "kept")):
        note, _, until = dropped(world, warehouse.table(world.admin), query).partition("; restorable-until=")
        assert note == files
        end = datetime.strptime(until, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        assert abs(end - datetime.now(UTC) - timedelta(seconds=_WEEK)) < timedelta(minutes=2)
    listed = world.admin.get(f"/management/v1/warehouse/{warehouse.id}/deleted-tabulars").json()["tabulars"]
    assert len(listed) == 2
    forced = dropped(world, warehouse.table(world.admin), "?force=true")
    assert forced == "deleted"


def test_the_setting_is_answered_only_if_it_was_changed(world: World) -> None:
    warehouse = made(world, type="soft", **{"expiration-seconds": 60})
    assert world.admin.get(warehouse.path).json()["delete-profile"] == {"type": "soft", "expiration-seconds": 60}
    kept = {"type": "soft", "expiration-seconds": 60, "absent-purge-requested": "keep"}
    done = world.admin.post(f"{warehouse.path}/delete-profile", {"delete-profile": kept})
    assert (done.status_code, done.json()["delete-profile"]) == (200, kept)
    wrong = {**kept, "absent-purge-requested": "ask"}
    assert world.admin.post(f"{warehouse.path}/delete-profile", {"delete-profile": wrong}).status_code == 400
