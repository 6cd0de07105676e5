# SPDX-License-Identifier: Apache-2.0
"""Every operation under an assumed role returns the same bytes to each member of the role.

An administrator, who owns all objects under test, and a user without rights assume one role. Both send every operation,
and each pair of responses must be equal. So no right of the administrator has an effect: neither in refusals nor in
lists, searches and checks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support.door import world as imagined
from tests.support.door.examples import EXAMPLES, Example
from tests.support.stack import exchanging, warehouses
from tests.support.stack.roles import ROLE, add
from tests.support.stack.roles import make as make_role
from tests.support.stack.views import body as view_body
from tests.support.stack.world import SCHEMA, Person, World, error_triple, unique

pytestmark = pytest.mark.generated

#: Responses about the caller's identity, operations refused under an assumed role, and operations without a token.
_ABOUT_PEOPLE = {"WhoAmI", "ListOwnDelegates", "RegisterSelf", "ExchangeToken"}
#: The credentials that the caller itself received in the role.
_OWN = {("ListPrincipalLiveCredentials", "own credentials")}
_TRIED = [
    each
    for each in EXAMPLES
    if not each.operation.is_public()
    and type(each.operation).__name__ not in _ABOUT_PEOPLE
    and (type(each.operation).__name__, each.label) not in _OWN
]


@dataclass(frozen=True)
class Ground:
    """The objects of the examples, in a warehouse of their own, and the assumed role."""

    world: World
    ids: dict[str, str]
    role: dict[str, Any]
    owner: Person
    stranger: Person

    def send(self, person: Person, example: Example) -> tuple[int, str]:
        """Return status and body, without the parts that differ between users or between responses."""

        def real(text: str) -> str:
            for imagined_id, id in self.ids.items():
                text = text.replace(imagined_id, id)
            return text

        sent: dict[str, Any] = {"headers": {**example.headers, "x-assume-role": self.role["id"]}}
        if example.body is not None:
            sent["json"] = json.loads(real(json.dumps(example.body)))
        query = {name: real(value) for name, value in example.query.items()}
        answer = person.send(example.method, real(example.url), params=query, **sent)
        return answer.status_code, self._nameless(answer)

    def _nameless(self, answer: httpx.Response) -> str:
        text = answer.text
        for person in (self.owner, self.stranger):
            text = text.replace(person.id, "<person>")
        # Answers about access contain the time of the answer.
        text = re.sub(r'"as-of":"[^"]*"', '"as-of"', text)
        # Each refusal has an id of its own, under which only its principal can read the reason.
        return re.sub(r"(?i)(error id:? |denial=)[0-9a-f-]{36}", r"\1", text)


@pytest.fixture(scope="module")
def ground(world: World) -> Iterator[Ground]:
    stranger = world.contractor
    world.strip(stranger)
    made = warehouses.make(world)
    admin, space = world.admin, f"{made.root}/namespaces/sales%1Feu"
    for levels in (["sales"], ["sales", "eu"]):
        assert admin.post(f"{made.root}/namespaces", {"namespace": levels}).status_code == 200
    table = admin.post(f"{space}/tables", {"name": "orders", "schema": SCHEMA})
    view = admin.post(f"{space}/views", view_body("recent"))
    generic = admin.post(
        f"/lakekeeper/v1/{made.id}/namespaces/sales%1Feu/generic-tables", {"name": "vectors", "format": "lance"}
    )
    assert [each.status_code for each in (table, view, generic)] == [200, 200, 200]
    rows = world.sql("select id, name, kind from tables where warehouse_id = $1", made.id)
    by_name = {row["name"]: str(row["id"]) for row in rows}
    spaces = world.sql("select id, levels from namespaces where warehouse_id = $1", made.id)
    by_depth = {len(row["levels"]): str(row["id"]) for row in spaces}
    other, role = make_role(world), make_role(world)
    for person in (admin, stranger):
        assert add(world, role, "user", person.id).status_code == 204
    ids = {
        imagined.PROJECT_ID: world.project,
        str(imagined.WAREHOUSE_ID): made.id,
        str(imagined.OUTER_ID): by_depth[1],
        str(imagined.INNER_ID): by_depth[2],
        str(imagined.TABLE_ID): by_name["orders"],
        str(imagined.VIEW_ID): by_name["recent"],
        str(imagined.GENERIC_TABLE_ID): by_name["vectors"],
        str(imagined.ROLE_ID): str(other["id"]),
        "s3://lake/": f"{table.json()['metadata']['location']}/",
    }
    yield Ground(world, ids, role, admin, stranger)
    for each in (role, other):
        assert admin.delete(f"{ROLE}/{each['id']}").status_code == 204


def test_members_of_an_empty_role_get_identical_refusals(ground: Ground) -> None:
    """The operations include changes: a refused operation has no effect for either caller."""
    different, let_in = {}, set()
    for example in _TRIED:
        about = f"{type(example.operation).__name__} {example.label}"
        powerless, mighty = (ground.send(person, example) for person in (ground.stranger, ground.owner))
        if powerless != mighty:
            different[about] = (powerless, mighty)
        required = any(demand.required for demand in example.operation.demands())
        if mighty[0] < 400 and required:
            let_in.add(about)
    assert different == {}
    assert let_in == set()
    assert len(_TRIED) > 130


def test_members_of_a_one_table_role_get_identical_responses(ground: Ground) -> None:
    """The operations are lists, searches, checks and other reads: both callers see that table and the path to it."""
    world, table = ground.world, ground.ids[str(imagined.TABLE_ID)]
    path = f"/management/v1/permissions/warehouse/{ground.ids[str(imagined.WAREHOUSE_ID)]}/table/{table}/assignments"
    entry = {"type": "select", "role": ground.role["id"]}
    assert world.admin.post(path, {"writes": [entry]}).status_code == 204
    # A tag is found in order to make a request, which this example then makes.
    making = ("FindRequestableTag",)
    requested = [
        each for each in _TRIED if not each.operation.changes() and type(each.operation).__name__ not in making
    ]
    different, seen = {}, 0
    try:
        for example in requested:
            powerless, mighty = (ground.send(person, example) for person in (ground.stranger, ground.owner))
            if powerless != mighty and not (_by_chance(example) and powerless[0] == mighty[0]):
                different[f"{type(example.operation).__name__} {example.label}"] = (powerless, mighty)
            seen += powerless[0] == 200
    finally:
        assert world.admin.post(path, {"deletes": [entry]}).status_code == 204
    assert different == {}
    assert seen > 30, "too few responses were 200, so equal responses prove nothing"


def _by_chance(example: Example) -> bool:
    """Return True if two responses to the same caller differ, as vended credentials do each time."""
    return type(example.operation).__name__ in ("VendCredentials", "LoadTable")


def test_engine_cannot_discover_role_membership(ground: Ground) -> None:
    """The engine names a user and a role.

    A member of a role without rights there, a non-member, and a missing role get the same response, with and
    without `delegate`.
    """
    world, engine = ground.world, ground.world.etl
    world.strip(engine)
    here = ground.ids[str(imagined.WAREHOUSE_ID)]
    outsider = world.people["carol"]
    world.strip(outsider)
    world.grant("delegate", engine, "warehouse", world.warehouse)
    things = (
        f"/catalog/v1/{here}/namespaces/sales%1Feu/tables/orders",
        f"/catalog/v1/{here}/namespaces",
        f"{world.root}/namespaces",
        f"/catalog/v1/config?warehouse={world.ready.warehouse}",
        "/management/v1/whoami",
    )
    try:
        for reach in ("elsewhere", "there too"):
            if reach == "there too":
                world.grant("delegate", engine, "warehouse", here)
            member = exchanging.acting(world, engine, ground.owner, proven=False)
            other = exchanging.acting(world, engine, outsider, proven=False)
            for thing in things:
                for project in ({}, {"x-project-id": world.project}, {"x-project-id": unique("p")}):
                    answers = {
                        error_triple(person.get(thing, headers={"x-assume-role": role, **project}))
                        for person, role in (
                            (member, ground.role["id"]),
                            (other, ground.role["id"]),
                            (member, "01900000-0000-7000-8000-000000000000"),
                        )
                    }
                    nameless = {
                        (status, type, text.replace(member.id, "<user>").replace(other.id, "<user>"))
                        for status, type, text in answers
                    }
                    assert len(nameless) == 1, (reach, thing, project, answers)
    finally:
        world.strip(engine)
    assert error_triple(outsider.get(things[0], headers={"x-assume-role": ground.role["id"]}))[0] == 400, (
        "a user without the role gets 400 instead of a result"
    )
