# SPDX-License-Identifier: Apache-2.0
"""The golden table as tests over HTTP: each privilege allows exactly its actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectType
from tests.support.goldens.golden_table import COLUMNS, ROWS, Column, Row
from tests.support.stack.world import SCHEMA, Person, Table, World, unique

#: Actions of the table without an endpoint of their own, the list filter, and storage validation, which takes seconds.
BY_CHECK = {
    ("W", "can_update_storage"),
    ("W", "can_adopt_files"),
    ("T", "can_move"),
    ("W", "can_include_in_list"),
    ("N", "can_include_in_list"),
    ("T", "can_include_in_list"),
    ("T2", "can_include_in_list"),
}
_DENIED = {401, 403, 404}


@dataclass
class Site:
    """The objects of a row: a namespace of its own with two tables, in the shared warehouse."""

    world: World
    namespace: str
    namespace_id: str
    table: Table
    beside: Table
    subject: Person
    other: Person

    def location(self, letter: str) -> tuple[str, str]:
        """Return (kind, id) of the object of a letter, as grants name it."""
        world = self.world
        return {
            "S": ("server", ""),
            "P": ("project", world.project),
            "W": ("warehouse", world.warehouse),
            "N": ("namespace", self.namespace_id),
            "T": ("table", self.table.uuid),
            "T2": ("table", self.beside.uuid),
        }[letter]


def _verdict(answer: httpx.Response) -> bool:
    """Return True if the door admitted the request.

    A failure behind the door (409, 400) was admitted; any other status fails the test.
    """
    if answer.status_code in _DENIED:
        return False
    assert answer.status_code in {200, 204, 409}, answer.text
    return True


def _check(site: Site, letter: str, action: str) -> bool:
    kind, id = site.location(letter)
    about = {"warehouse-id": site.world.warehouse} | ({f"{kind}-id": id} if kind != "warehouse" else {})
    answer = site.subject.post(
        "/management/v1/permissions/check", {"operation": {kind: {**about, "action": action.removeprefix("can_")}}}
    )
    assert answer.status_code == 200, answer.text
    return bool(answer.json()["allowed"])


def _reads(site: Site) -> bool:
    """Read from the object store with vended keys."""
    given = _credentials(site)
    if given is None:
        return False
    key = site.table.answer["metadata-location"].removeprefix(f"s3://{site.world.bucket}/")
    assert site.world.store_of(given).get_object(Bucket=site.world.bucket, Key=key)["Body"].read()
    return True


def _writes(site: Site) -> bool:
    given = _credentials(site)
    if given is None:
        return False
    key = site.table.location.removeprefix(f"s3://{site.world.bucket}/") + "/data/golden.bin"
    try:
        site.world.store_of(given).put_object(Bucket=site.world.bucket, Key=key, Body=b"1")
    except ClientError as refused:
        assert refused.response["ResponseMetadata"]["HTTPStatusCode"] == 403, refused
        return False
    return True


def _credentials(site: Site) -> dict[str, str] | None:
    answer = site.subject.get(f"{site.table.path}/credentials")
    if not _verdict(answer):
        return None
    given: dict[str, str] = answer.json()["storage-credentials"][0]["config"]
    return given


def _renames(site: Site) -> bool:
    """Rename within the namespace and, if that was allowed, back."""
    here, there = site.table.name, unique("renamed")

    def rename(source: str, destination: str) -> bool:
        names = [{"namespace": [site.namespace], "name": name} for name in (source, destination)]
        body = {"source": names[0], "destination": names[1]}
        return _verdict(site.subject.post(f"{site.world.root}/tables/rename", body))

    return rename(here, there) and rename(there, here)


def _creates_view(site: Site) -> httpx.Response:
    version = {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "trino"}],
        "default-namespace": [site.namespace],
    }
    body = {"name": unique("v"), "schema": SCHEMA | {"schema-id": 0}, "view-version": version, "properties": {}}
    return site.subject.post(f"{site.world.root}/namespaces/{site.namespace}/views", body)


def _gives(site: Site, letter: str, privilege: str) -> bool:
    """Grant to another user; the administrator revokes it afterwards."""
    kind, id = site.location(letter)
    path = site.world.grants_path(kind, id)
    grant = {"type": privilege, "user": site.other.id}
    if not _verdict(site.subject.post(path, {"writes": [grant]})):
        return False
    taken = site.world.admin.post(path, {"deletes": [grant]})
    assert taken.status_code == 204, taken.text
    return True


def _endpoints(site: Site) -> dict[tuple[str, str], Callable[[], bool]]:
    """Return the request of each action.

    An action that removes an object is last in its column, and the next row recreates the object.
    """
    world, person, namespace = site.world, site.subject, f"{site.world.root}/namespaces/{site.namespace}"

    def does(method: str, path: str, body: object = None) -> Callable[[], bool]:
        return lambda: _verdict(person.send(method, path, **({} if body is None else {"json": body})))

    comment = {"action": "set-properties", "updates": {"comment": "x"}}
    warehouse = f"/management/v1/warehouse/{world.warehouse}"
    return {
        ("W", "can_get_metadata"): does("GET", f"/management/v1/warehouse/{world.warehouse}"),
        ("W", "can_get_config"): does("GET", f"/catalog/v1/config?warehouse={world.ready.warehouse}"),
        ("W", "can_rename"): does("POST", f"{warehouse}/rename", {"new-name": world.ready.warehouse}),
        ("W", "can_modify_soft_deletion"): does(
            "POST", f"{warehouse}/delete-profile", {"delete-profile": {"type": "hard"}}
        ),
        # The namespace is not empty either.
        ("W", "can_delete"): does("DELETE", warehouse),
        ("W", "can_list_namespaces"): does("GET", f"{world.root}/namespaces"),
        ("W", "can_create_namespace"): does("POST", f"{world.root}/namespaces", {"namespace": [unique("top")]}),
        ("N", "can_get_metadata"): does("GET", namespace),
        ("N", "can_list_tables"): does("GET", f"{namespace}/tables"),
        ("N", "can_create_table"): does("POST", f"{namespace}/tables", {"name": unique("t"), "schema": SCHEMA}),
        ("N", "can_create_view"): lambda: _verdict(_creates_view(site)),
        ("N", "can_create_namespace"): does(
            "POST", f"{world.root}/namespaces", {"namespace": [site.namespace, unique("inner")]}
        ),
        ("N", "can_update_properties"): does("POST", f"{namespace}/properties", {"updates": {"a": "b"}}),
        # The namespace is not empty: 409 means that the door admitted the delete, 403 or 404 that it did not.
        ("N", "can_delete"): does("DELETE", namespace),
        ("T", "can_get_metadata"): does("GET", site.table.path),
        ("T2", "can_get_metadata"): does("GET", site.beside.path),
        ("T", "can_read_data"): lambda: _reads(site),
        ("T", "can_write_data"): lambda: _writes(site),
        ("T", "can_commit"): does("POST", site.table.path, {"requirements": [], "updates": [comment]}),
        ("T", "can_rename"): lambda: _renames(site),
        ("T", "can_drop"): does("DELETE", site.table.path),
        **{
            (letter, "can_read_assignments"): does("GET", world.grants_path(*site.location(letter)))
            for letter in ("W", "N", "T")
        },
    }


def _tried(site: Site, row: Row, column: Column) -> dict[str, bool]:
    """Try each action behind a cell; return the verdicts."""
    endpoints = _endpoints(site)
    found = {}
    for letter, action in row.questions(column):
        if action == "can_change_ownership":
            found[action] = _gives(site, letter, "ownership")
        elif action.startswith("can_grant_"):
            found[action] = _gives(site, letter, action.removeprefix("can_grant_"))
        elif (letter, action) in BY_CHECK:
            found[action] = _check(site, letter, action)
        else:
            found[action] = endpoints[letter, action]()
    return found


def possible_cases(row: Row) -> bool:
    """Return True if the row's privileges can be granted over HTTP."""
    type = {"S": "server", "P": "project", "W": "warehouse", "N": "namespace", "T": "table"}[row.on]
    grantable = GRANTABLE[ObjectType(type)]
    return all(each in set(Privilege) and Privilege(each) in grantable for each in row.privileges)


def pairwise(rows: Sequence[Row]) -> dict[Row, tuple[Column, ...]]:
    """Return the columns to try for each row.

    Each pair of privileges and column, and each pair of level and column, is tried once for each verdict of the
    table. Rows without a column of their own are left out.
    """
    tried: set[tuple[object, str, bool]] = set()
    found: dict[Row, tuple[Column, ...]] = {}
    for row in rows:
        columns = []
        for column in COLUMNS:
            pairs = {(about, column.title, row.holds(column)) for about in (row.privileges, row.on)}
            if not pairs <= tried:
                columns.append(column)
                tried |= pairs
        if columns:
            found[row] = tuple(columns)
    return found


def _cases(rows: Sequence[Row]) -> list[Any]:
    """Return the parameters (row, columns) of a test: the pairs in every run, all cells in a long one."""
    pairs = [pytest.param(row, columns, id=row.title) for row, columns in pairwise(rows).items()]
    complete = [pytest.param(row, COLUMNS, id=f"{row.title}, complete", marks=pytest.mark.long) for row in rows]
    return [*pairs, *complete]


@pytest.mark.parametrize(("row", "tried_columns"), _cases([row for row in ROWS if possible_cases(row)]))
def test_privileges_of_a_row_allow_exactly_its_actions(
    world: World, row: Row, tried_columns: tuple[Column, ...]
) -> None:
    subject, other = world.contractor, world.steward
    world.strip(subject)
    world.strip(other)
    namespace = world.namespace()
    site = Site(
        world=world,
        namespace=namespace,
        namespace_id=world.namespace_id(namespace),
        table=world.table(namespace),
        beside=world.table(namespace),
        subject=subject,
        other=other,
    )
    for privilege in row.privileges:
        world.grant(privilege, subject, *site.location(row.on))
    try:
        # Actions that drop the table are last.
        columns = sorted(tried_columns, key=lambda column: "drop" in column.title)
        wrong = {}
        for column in columns:
            held_actions = {action: row.holds(column) for _, action in row.questions(column)}
            tried = _tried(site, row, column)
            if tried != held_actions:
                wrong[column.title] = {action: got for action, got in tried.items() if got != held_actions[action]}
        assert wrong == {}, f"{row.title}: these cells differ from the golden table: {wrong}"
    finally:
        if row.on == "S":
            for privilege in row.privileges:
                world.revoke(privilege, subject, "server", "")
        world.strip(subject)
        world.strip(other)


#: The columns about T that apply to a generic table, with the tried actions; it has no commits.
_GENERIC = {
    "see T": ("can_get_metadata",),
    "T: read data": ("can_read_data",),
    "T: write, commit, rename, drop": ("can_write_data", "can_rename", "can_drop"),
    "N: create in it": ("can_create_generic_table",),
    "see who holds what": ("can_read_assignments",),
}


def _keys_of(made: dict[str, Any], world: World, person: Person, path: str, *, write: bool) -> bool:
    """Use vended keys on the object store."""
    answer = person.get(f"{path}/credentials")
    if not _verdict(answer):
        return False
    keys = world.store_of(answer.json()["storage-credentials"][0]["config"])
    key = f"{made['table']['base-location'].removeprefix(f's3://{world.bucket}/').rstrip('/')}/golden"
    try:
        keys.put_object(Bucket=world.bucket, Key=key, Body=b"1") if write else keys.get_object(
            Bucket=world.bucket, Key=key
        )
    except ClientError as refused:
        assert refused.response["ResponseMetadata"]["HTTPStatusCode"] == 403, refused
        return False
    return True


def _has_generic_table(row: Row) -> bool:
    """Return True if a generic table, or its namespace, takes the privileges of a row about N or T."""
    return row.on == "N" or (row.on == "T" and {*row.privileges} <= {*GRANTABLE[ObjectType.GENERIC_TABLE]})


@pytest.mark.parametrize(
    ("row", "tried_columns"), _cases([row for row in ROWS if _has_generic_table(row) and possible_cases(row)])
)
def test_privileges_of_a_row_allow_exactly_its_generic_table_actions(
    world: World, row: Row, tried_columns: tuple[Column, ...]
) -> None:
    """A generic table has the same verdicts as a table, except for commits."""
    person = world.contractor
    world.strip(person)
    namespace, name = world.namespace(), unique("g")
    top = f"/lakekeeper/v1/{world.warehouse}"
    within = f"{top}/namespaces/{namespace}/generic-tables"
    path = f"{within}/{name}"
    made = world.admin.post(within, {"name": name, "format": "lance"}).json()
    assert _keys_of(made, world, world.admin, path, write=True)
    [found] = world.sql("select id::text from tables where name = $1", name)
    kind, id = ("generic-table", found["id"]) if row.on == "T" else ("namespace", world.namespace_id(namespace))
    for privilege in row.privileges:
        world.grant(privilege, person, kind, id)

    def renames() -> bool:
        sides = [{"namespace": [namespace], "name": each} for each in (name, f"{name}_")]
        there, back = ({"source": a, "destination": b} for a, b in (sides, sides[::-1]))
        return all(_verdict(person.post(f"{top}/generic-tables/rename", body)) for body in (there, back))

    tried: dict[str, Callable[[], bool]] = {
        "can_get_metadata": lambda: _verdict(person.get(path)),
        "can_read_data": lambda: _keys_of(made, world, person, path, write=False),
        "can_write_data": lambda: _keys_of(made, world, person, path, write=True),
        "can_rename": renames,
        "can_create_generic_table": lambda: _verdict(person.post(within, {"name": unique("g"), "format": "csv"})),
        "can_read_assignments": lambda: _verdict(person.get(world.grants_path(kind, id))),
        "can_drop": lambda: _verdict(person.delete(path)),
    }
    try:
        wrong = {}
        # Actions that drop the table are last.
        for column in sorted(tried_columns, key=lambda column: "drop" in column.title):
            held_actions = row.holds(column)
            found_out = {action: tried[action]() for action in _GENERIC.get(column.title, ())}
            wrong.update({action: got for action, got in found_out.items() if got != held_actions})
        assert wrong == {}, f"{row.title}: these cells differ from the golden table: {wrong}"
    finally:
        world.strip(person)
