# SPDX-License-Identifier: Apache-2.0
"""Random sequences of requests of an owner who may rename, delete, attach and detach tags, and move tables.

The owner manages no data policy. After each of the owner's requests, the policies mask at least the columns of the
table's files that they masked before, whatever the tags are called by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx
import pytest
from hypothesis import HealthCheck, Phase, event, example, given, settings
from hypothesis import strategies as st

from gateway.db.engine.database import Database
from gateway.db.policies.policy_inputs import inputs_within
from gateway.obligations.binding_columns import TableColumns
from gateway.obligations.data_policies import Mask, PolicyInputs
from gateway.obligations.projections import columns_of
from tests.support.stack.adoption import register
from tests.support.stack.columns import wide
from tests.support.stack.data_policies import POLICY, change, loads, make, target
from tests.support.stack.policy_files import at, owner
from tests.support.stack.tags import EVERYWHERE, TAG, attach, define, detach, tags_path
from tests.support.stack.world import Loop, Person, Table, World, send_until_decided, unique

__all__ = ["owner"]

Step = tuple[str, int, int]

#: The steps of the owner, and those of the manager of the policies, who may narrow them.
_BY_OWNER = ("rename", "rename", "swap", "replace", "detach", "detach", "detach", "attach", "move", "register", "nest")
_BY_MANAGER = ("write", "bind", "unbind", "mark")
_STEPS = st.lists(
    st.tuples(st.sampled_from((*_BY_OWNER, *_BY_MANAGER)), st.integers(0, 2), st.integers(0, 3)),
    min_size=6,
    max_size=14,
)
_COLUMNS = ("name", "card")
_BELOW = "%1F"


@dataclass(frozen=True)
class Judge:
    """Reads policy inputs from the database of the stack."""

    database: Database
    loop: Loop

    def inputs(self, table: UUID, containers: list[UUID]) -> PolicyInputs:
        """Return the inputs of a table in these containers."""

        async def read() -> PolicyInputs | None:
            async with self.database.read() as connection:
                return (await inputs_within(connection, {table: containers}))[table]

        found = self.loop.run(read())
        assert found is not None
        return found


@pytest.fixture(scope="module")
def judge(world: World) -> Iterator[Judge]:
    """Yield a connection to the database of the stack."""
    made = Judge(
        Database(
            world.ready.postgres.replace("postgresql://", "postgresql+asyncpg://"), pool_size=1, acquire_timeout=30
        ),
        Loop(),
    )
    yield made
    made.loop.run(made.database.close())
    made.loop.close()


@dataclass
class Sequence:
    """The objects of one example. `tags` are the present tags, whatever their names are."""

    world: World
    judge: Judge
    owner: Person
    spaces: tuple[str, str, str]
    table: Table
    names: tuple[str, ...]
    tags: list[dict[str, Any]]
    policies: list[dict[str, Any]]
    bound: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    known: frozenset[tuple[str, int]] = frozenset()

    def take(self, step: Step) -> None:
        """Send the requests of a step, and compare what is masked before and after it."""
        before, (kind, first, second) = self.known, step
        answers = getattr(self, f"_{kind}")(first, second)
        for answer in answers:
            assert answer.status_code < 500, answer.text
            event(f"{kind} {'permitted' if answer.status_code < 300 else 'refused'}")
        now = self.known = self.masked()
        assert kind in _BY_MANAGER or before <= now, step
        assert loads(self.owner, self.table) == (403 if now else 200), "the decision knows the same masks"

    def masked(self) -> frozenset[tuple[str, int]]:
        """Return the policies with the ids of the columns that they mask, as the database has them."""
        statement = "select metadata, containers_of_table(namespace_id, name_key) as above from tables where id = $1"
        (row,) = self.world.sql(statement, self.id)
        inputs = self.judge.inputs(self.id, row["above"])
        found: set[tuple[str, int]] = set()
        for one in inputs.bound:
            assert isinstance(one.policy.definition, Mask)
            exact, whole = TableColumns(columns_of(row["metadata"]), inputs).masked(one.policy.definition, one, [])
            found |= {(one.policy.id, id) for id in exact | whole}
        return frozenset(found)

    @property
    def id(self) -> UUID:
        """The id of the table's row, another one after each registration."""
        statement = "select id from tables where metadata_location = $1 and kind = 'table'"
        id: UUID = self.world.sql(statement, self.table.answer["metadata-location"])[0]["id"]
        return id

    def _ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        return send_until_decided(lambda: self.owner.send(method, path, json=body))

    def _called(self, tag: dict[str, Any], name: str) -> list[httpx.Response]:
        answer = self._ask("POST", f"{TAG}/{tag['id']}", {"name": name, "scope": EVERYWHERE})
        if answer.status_code == 200:
            tag["name"] = name
        return [answer]

    def _rename(self, tag: int, name: int) -> list[httpx.Response]:
        return self._called(self.tags[tag], self.names[name])

    def _swap(self, first: int, second: int) -> list[httpx.Response]:
        one, other = self.tags[first], self.tags[second % 3]
        names = one["name"], other["name"]
        return [*self._called(one, unique("free")), *self._called(other, names[0]), *self._called(one, names[1])]

    def _replace(self, tag: int, _: int) -> list[httpx.Response]:
        """Delete a tag that no object carries, and define another one of its name."""
        gone = self._ask("DELETE", f"{TAG}/{self.tags[tag]['id']}")
        if gone.status_code == 204:
            self.tags[tag] = own_tag(self.world, self.owner, self.tags[tag]["name"])
        return [gone]

    def _place(self, place: int) -> str:
        if place < 2:
            return tags_path(self.world, "table", str(self.id), _COLUMNS[place])
        if place == 2:
            return tags_path(self.world, "table", str(self.id))
        return tags_path(self.world, "namespace", self.world.namespace_id(self.table.namespace))

    def _attach(self, tag: int, place: int) -> list[httpx.Response]:
        return [attach(self.world, self.tags[tag], self._place(place), by=self.owner)]

    def _mark(self, tag: int, place: int) -> list[httpx.Response]:
        return [attach(self.world, self.tags[tag], self._place(place))]

    def _detach(self, tag: int, place: int) -> list[httpx.Response]:
        return [detach(self.world, self.tags[tag], self._place(place), by=self.owner)]

    def _move(self, to: int, _: int) -> list[httpx.Response]:
        space = self.spaces[to]
        if space == self.table.namespace:
            return []
        ends = {
            "source": {"namespace": self.table.namespace.split(_BELOW), "name": self.table.name},
            "destination": {"namespace": space.split(_BELOW), "name": self.table.name},
        }
        answer = self._ask("POST", f"{self.world.root}/tables/rename", ends)
        if answer.status_code == 204:
            self.table = at(self.world, space, self.table.name, self.table)
        return [answer]

    def _register(self, to: int, _: int) -> list[httpx.Response]:
        dropped = self._ask("DELETE", f"{self.table.path}?purgeRequested=false")
        if dropped.status_code != 204:
            return [dropped]
        # Under a new name: a name that the table left before may miss a policy that was unbound since.
        space, file, name = self.spaces[to], self.table.answer["metadata-location"], unique("again")
        answer = send_until_decided(lambda: register(self.owner, self.world, space, file, name))
        assert answer.status_code == 200, answer.text
        self.table = at(self.world, space, name, self.table)
        return [dropped, answer]

    def _nest(self, to: int, _: int) -> list[httpx.Response]:
        """Move the inner namespace into another of the two outer ones."""
        inner, outer = self.spaces[2], self.spaces[to % 2]
        id, place = self.world.namespace_id(inner), f"{outer}{_BELOW}{inner.rpartition(_BELOW)[2]}"
        path = f"/management/v1/warehouse/{self.world.warehouse}/namespace/{id}/move"
        answer = self._ask("POST", path, {"destination": place.split(_BELOW)})
        if answer.status_code < 300:
            if self.table.namespace == inner:
                self.table = at(self.world, place, self.table.name, self.table)
            self.spaces = (*self.spaces[:2], place)
        return [answer]

    def _write(self, policy: int, name: int) -> list[httpx.Response]:
        """Let a policy name a tag, also a name that no tag has yet."""
        present = self.policies[policy % 2]
        body = {"name": present["name"], "definition": _mask(self.names[name])}
        done = send_until_decided(lambda: self.world.admin.send("PUT", f"{POLICY}/{present['id']}", json=body))
        assert done.status_code == 200, done.text
        return []

    def _bind(self, policy: int, place: int) -> list[httpx.Response]:
        bound = (
            {"type": "warehouse", "id": self.world.warehouse},
            {**target(self.world, self.table), "id": str(self.id)},
            {"type": "namespace", "id": self.world.namespace_id(self.spaces[0]), "warehouse-id": self.world.warehouse},
            {"type": "tag", "id": self.tags[policy]["id"]},
        )[place]
        done = change(self.world, self.policies[policy % 2], add=[bound])
        assert done.status_code == 204, done.text
        self.bound.append((policy % 2, bound))
        return []

    def _unbind(self, which: int, _: int) -> list[httpx.Response]:
        if self.bound:
            policy, bound = self.bound.pop(which % len(self.bound))
            change(self.world, self.policies[policy], remove=[bound])
        return []


def own_tag(world: World, owner: Person, name: str) -> dict[str, Any]:
    """Define a tag of the owner."""
    tag = define(world, name=name)
    world.grant("ownership", owner, "tag", tag["id"])
    return tag


def _mask(name: str) -> dict[str, Any]:
    return {"kind": "mask", "action": "mask-to-fixed-value", "columns": [{"tag": name}]}


@pytest.fixture
def outer(world: World, owner: Person) -> tuple[str, str]:
    """Create two namespaces of the owner, whose objects the owner may tag."""
    made = world.namespace(), world.namespace()
    for each in made:
        for privilege in ("ownership", "manage_tags"):
            world.grant(privilege, owner, "namespace", world.namespace_id(each))
    return made


@pytest.mark.generated
@pytest.mark.threat("LG-DEC-39")
@settings(
    deadline=None, max_examples=8, suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate)
)
@given(steps=_STEPS)
@example(steps=[("mark", 1, 1), ("write", 1, 1), ("swap", 0, 1), ("rename", 1, 3), ("detach", 0, 0), ("detach", 1, 1)])
@example(
    steps=[("rename", 0, 3), ("register", 2, 0), ("detach", 0, 0), ("replace", 0, 0), ("nest", 1, 0), ("move", 0, 0)]
)
@example(
    steps=[("rename", 1, 3), ("mark", 1, 1), ("rename", 1, 1), ("replace", 1, 0), ("detach", 1, 1), ("unbind", 1, 0)]
)
def test_an_owner_of_tags_and_tables_lifts_no_mask_by_any_sequence_of_requests(
    world: World, judge: Judge, owner: Person, outer: tuple[str, str], steps: list[Step]
) -> None:
    sequence = _begin(world, judge, owner, outer)
    try:
        for step in steps:
            sequence.take(step)
    finally:
        world.remove_policies()
        send_until_decided(lambda: world.admin.delete(f"{sequence.table.path}?purgeRequested=true"))


def _begin(world: World, judge: Judge, owner: Person, outer: tuple[str, str]) -> Sequence:
    """Create a table with a tagged and masked column, two more tags, and a policy for a tag that does not exist yet."""
    names = tuple(unique("tag") for _ in range(4))
    tags = [own_tag(world, owner, name) for name in names[:3]]
    inner = [outer[0], unique("inner")]
    made = send_until_decided(lambda: world.admin.post(f"{world.root}/namespaces", {"namespace": inner}))
    assert made.status_code == 200, made.text
    table = wide(world, outer[0], by=owner)
    policies = [make(world, _mask(names[0])), make(world, _mask(names[3]))]
    sequence = Sequence(world, judge, owner, (*outer, _BELOW.join(inner)), table, names, tags, policies)
    for policy in (0, 1):
        sequence.take(("bind", policy, 0))
    sequence.take(("mark", 0, 0))
    return sequence
