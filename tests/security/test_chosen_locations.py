# SPDX-License-Identifier: Apache-2.0
"""Locations that clients choose, in every storage layout: below the base, free, and outside of others' folders."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stack.location_layouts import LAYOUTS, warehouse
from tests.support.stack.views import body as view_body
from tests.support.stack.world import SCHEMA, Person, World, error_triple, unique


class Places:
    """A warehouse with the namespaces `mine`, in which Carol may create, and `theirs`, in which she may not."""

    def __init__(self, world: World, layout: str) -> None:
        self.world = world
        self.root = warehouse(world, **LAYOUTS[layout])
        self.base = ""
        self.folders: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        for name in ("mine", "theirs"):
            made = world.admin.post(f"{self.root}/namespaces", {"namespace": [name]}).json()["properties"]
            self.base = made["location"]
            self.ids[name] = made["namespace_id"]
            self.folders[name] = f"{made['location']}{name}-{made['namespace_id']}"
        world.grant("create", world.carol, "namespace", self.ids["mine"])

    def table(self, by: Person, location: str, *, staged: bool = False) -> tuple[int, str]:
        body = {"name": unique("t"), "schema": SCHEMA, "location": location, "stage-create": staged}
        return _outcome(by.post(f"{self.root}/namespaces/mine/tables", body))

    def view(self, by: Person, location: str) -> tuple[int, str]:
        return _outcome(by.post(f"{self.root}/namespaces/mine/views", view_body(unique("v"), location=location)))

    def generic(self, by: Person, location: str) -> tuple[int, str]:
        path = f"/lakekeeper/v1/{self.root.rpartition('/')[2]}/namespaces/mine/generic-tables"
        body = {"name": unique("g"), "format": "lance", "base-location": location}
        return _outcome(by.post(path, body))

    def every_kind(self, by: Person, stem: str) -> list[tuple[int, str]]:
        return [
            self.table(by, f"{stem}/{unique('a')}"),
            self.table(by, f"{stem}/{unique('b')}", staged=True),
            self.view(by, f"{stem}/{unique('c')}"),
            self.generic(by, f"{stem}/{unique('d')}"),
        ]


def _outcome(answer: Any) -> tuple[int, str]:
    return (200, "") if answer.status_code == 200 else error_triple(answer)[:2]


@pytest.mark.threat("LG-LOC-16")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_chosen_locations_are_accepted_in_every_layout(world: World, layout: str) -> None:
    places = Places(world, layout)
    free, refused = (200, ""), (400, "InvalidLocation")
    assert places.every_kind(world.carol, f"{places.base}chosen/deep") == [free] * 4
    # The folder of the table's own namespace, and that of another one in which Carol may not create.
    assert places.every_kind(world.carol, places.folders["mine"]) == [free] * 4
    before = world.snapshot()
    assert places.every_kind(world.carol, places.folders["theirs"]) == [refused] * 4
    folder = places.folders["theirs"].rpartition("/")[2].upper()
    assert places.every_kind(world.carol, f"{places.base}{folder}") == [refused] * 4
    assert places.table(world.carol, f"{places.folders['theirs']}/{places.ids['mine']}/t") == refused
    for folder in places.folders.values():
        assert places.table(world.carol, folder) == refused
        assert places.table(world.carol, f"{places.base}prefix-{folder.rpartition('/')[2]}-suffix") == refused
    assert world.snapshot().rows == before.rows
    assert world.snapshot().objects == before.objects
    assert places.every_kind(world.admin, places.folders["theirs"]) == [free] * 4
    world.grant("create", world.carol, "namespace", places.ids["theirs"])
    assert places.every_kind(world.carol, places.folders["theirs"]) == [free] * 4


@pytest.mark.threat("LG-LOC-16")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_chosen_location_is_below_the_base_empty_and_free(world: World, layout: str) -> None:
    places = Places(world, layout)
    name = unique("chosen")
    location = f"{places.base}{name}"
    assert places.table(world.carol, location) == (200, "")
    for overlapping in (
        location,
        f"{location}/below",
        f"{places.base}{name.upper()}",
        f"{places.base}{name.upper()}/x",
    ):
        assert places.table(world.carol, overlapping) == (409, "LocationAlreadyTaken"), overlapping
    for outside in (places.base, places.base.rpartition("/")[0] + "2/t", f"s3://{world.bucket}/t", "s3://other/t"):
        assert places.table(world.carol, outside) == (400, "InvalidLocation"), outside
    filled = f"{places.base}{unique('filled')}"
    key = f"{filled.removeprefix(f's3://{world.bucket}/')}/foreign.parquet"
    world.s3.put_object(Bucket=world.bucket, Key=key, Body=b"x")
    assert places.table(world.carol, filled)[0] == 400
    for staged in (False, True):
        body = {"name": unique("later"), "schema": SCHEMA, "stage-create": staged}
        assert world.carol.post(f"{places.root}/namespaces/mine/tables", body).status_code == 200


@pytest.mark.threat("LG-LOC-16")
def test_a_table_created_by_a_commit_obeys_the_same_rule(world: World) -> None:
    places = Places(world, "full-hierarchy")

    def commit(location: str) -> tuple[int, str]:
        name = unique("t")
        updates = [
            {"action": "assign-uuid", "uuid": "00000000-0000-0000-0000-000000000007"},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": location},
        ]
        body = {"requirements": [{"type": "assert-create"}], "updates": updates}
        return _outcome(world.carol.post(f"{places.root}/namespaces/mine/tables/{name}", body))

    assert commit(f"{places.base}{unique('chosen')}") == (200, "")
    assert commit(f"{places.folders['mine']}/{unique('t')}") == (200, "")
    assert commit(f"{places.folders['theirs']}/{unique('t')}") == (400, "InvalidLocation")
    assert commit(places.folders["mine"]) == (400, "InvalidLocation")


@pytest.mark.threat("LG-LOC-16")
def test_a_view_moves_to_a_chosen_location_but_not_into_a_foreign_folder(world: World) -> None:
    places = Places(world, "full-hierarchy")
    name = unique("v")
    views = f"{places.root}/namespaces/mine/views"
    assert world.carol.post(views, view_body(name)).status_code == 200

    def move(location: str) -> tuple[int, str]:
        body = {"requirements": [], "updates": [{"action": "set-location", "location": location}]}
        return _outcome(world.carol.post(f"{views}/{name}", body))

    assert move(f"{places.folders['theirs']}/{unique('v')}") == (400, "InvalidLocation")
    assert move(places.folders["mine"]) == (400, "InvalidLocation")
    assert move(f"{places.base}{unique('moved')}") == (200, "")
