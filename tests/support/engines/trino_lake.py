# SPDX-License-Identifier: Apache-2.0
"""A real Trino with its bridge, and the users who send it statements."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.engines.trino import Refused, Trino, trino_server
from tests.support.stack.columns import give
from tests.support.stack.exchanging import delegating
from tests.support.stack.trino_bridge import Bridge, bridged
from tests.support.stack.world import Person, World, unique

#: Messages of a refusal, of Trino or of the catalog: an object that the user may not see is reported as not existing.
_MESSAGES = (
    "Access Denied",
    "does not exist",
    "Cannot access",
    "Failed analyzing stored view",
    "Forbidden",
    "not found",
)


@dataclass(frozen=True)
class Lake:
    """A schema with a table and two views, a Trino with its bridge, and users by their role in the schema."""

    trino: Trino
    bridge: Bridge
    service: Person
    schema: str
    people: Mapping[str, Person]
    snapshots: list[str] = field(default_factory=list)

    def may(self, person: Person, sql: str, *, extra: Mapping[str, str] | None = None, source: str = "") -> bool:
        """Return True if Trino runs the statement, False if it is refused; any other failure fails the test."""
        try:
            self.trino.run(person, sql.format(s=self.schema), extra=extra, source=source)
        except Refused as refused:
            assert any(each in str(refused) for each in _MESSAGES), refused
            return False
        return True

    def __getattr__(self, name: str) -> Person:
        try:
            found: Person = self.__dict__["people"][name]
        except KeyError:
            raise AttributeError(name) from None
        return found


def _people(world: World, schema: str) -> dict[str, Person]:
    """Return the users by role. `other` has its own schema and a grant on one view of this one; `columns` may read two
    of three columns of `orders`.
    """
    people = {
        "stranger": world.contractor,
        "other": world.bob,
        "columns": world.carol,
        "reader": world.analyst,
        "owner": world.steward,
    }
    for person in people.values():
        world.strip(person)
    id = world.namespace_id(schema)
    world.grant("ownership", people["owner"], "namespace", id)
    world.grant("select", people["reader"], "namespace", id)
    world.grant("ownership", people["other"], "namespace", world.namespace_id(world.namespace(unique("others"))))
    return {**people, "manager": world.admin}


@dataclass(frozen=True)
class Engine:
    """A real Trino and its bridge."""

    trino: Trino
    bridge: Bridge


@contextmanager
def running(world: World, folder: Path) -> Iterator[Engine]:
    """Run the bridge and Trino, which use the services alice and etl at the gateway. Raises Missing."""
    begun = time.monotonic()
    with bridged(world, folder) as bridge, trino_server(world, bridge, folder, world.alice) as trino:
        print(f"\nTrino answers after {time.monotonic() - begun:.0f} s")
        yield Engine(trino, bridge)
        print(f"\nTrino ran for {time.monotonic() - begun:.0f} s and held {trino.peak_mib()} MiB at most")


@contextmanager
def trino_lake(world: World, engine: Engine) -> Iterator[Lake]:
    """Create the schema and users of a module, and the grants that Trino's services need."""
    bridge_service, service = world.etl, world.alice
    for each in (bridge_service, service):
        world.strip(each)
    schema = world.namespace(unique("trino"))
    people = _people(world, schema)
    # Trino reads the catalog's configuration as itself, so its service must see the warehouse, and nothing in it.
    world.grant("describe", service, "namespace", world.namespace_id(world.namespace()))
    with (
        delegating(world, bridge_service, "warehouse", world.warehouse),
        delegating(world, service, "warehouse", world.warehouse),
        _enforcing(world, service),
        _enforcing(world, bridge_service),
    ):
        lake = Lake(engine.trino, engine.bridge, service, schema, people)
        _fill(world, lake)
        yield lake
    world.strip(service)


@contextmanager
def _enforcing(world: World, service: Person) -> Iterator[None]:
    """Grant the service `enforcer` on the warehouse until the end of the block."""
    world.grant("enforcer", service, "warehouse", world.warehouse)
    try:
        yield
    finally:
        world.revoke("enforcer", service, "warehouse", world.warehouse)


def _fill(world: World, lake: Lake) -> None:
    """Create, as the owner, a table with two snapshots and a view of each kind; grant one view to the other team."""
    for sql in (
        "create table {s}.orders (id bigint, region varchar, ssn varchar) with (partitioning = array['region'])",
        "insert into {s}.orders values (1, 'EU', '1')",
        "insert into {s}.orders values (2, 'US', '2')",
        "create view {s}.lent as select region from {s}.orders",
        "create view {s}.shared security invoker as select region from {s}.orders",
    ):
        lake.trino.run(lake.owner, sql.format(s=lake.schema))
    view = world.admin.get(f"{world.root}/namespaces/{lake.schema}/views/lent").json()
    assert view["metadata"]["properties"]["trino.run-as-owner"] == "steward"
    world.grant("select", lake.other, "view", view["metadata"]["view-uuid"])
    orders = world.admin.get(f"{world.root}/namespaces/{lake.schema}/tables/orders").json()
    for column in ("id", "region"):
        assert give(world, orders["metadata"]["table-uuid"], column, lake.columns).status_code == 204
    written = [each for each in orders["metadata"]["snapshots"] if int(each["summary"].get("added-records", 0))]
    lake.snapshots.extend(str(each["snapshot-id"]) for each in written)
