# SPDX-License-Identifier: Apache-2.0
"""A gateway with the default settings: an engine with `enforcer` is not trusted before the gateway saw it enforce."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gateway.cli.engines import canary
from gateway.cli.management import Management, Warehouse
from gateway.features.engines.probe_challenges import masked_as
from lakegate.reader import Reader
from tests.support.engines.lake import catalog_of
from tests.support.load.kills import Killable
from tests.support.servers.loopback import Reply, Request, serving
from tests.support.stack.columns import give, wide
from tests.support.stack.engine_probes import opened, path_of, posted, shown, state
from tests.support.stack.exchanging import acting
from tests.support.stack.world import Table, World

pytestmark = pytest.mark.servers

Shows = Callable[[str, str], str]
"""Returns what an engine shows of a table (its name) to a user (its id)."""


class Service:
    """The HTTP service of an engine. `shows` can be replaced; None: the service fails."""

    shows: Shows | None = None
    url = ""


@contextmanager
def service() -> Iterator[Service]:
    """Serve the reads of an engine on loopback."""
    running = Service()

    def answer(request: Request) -> Reply:
        if running.shows is None:
            return 500, {}, b""
        asked = {name: value for name, [value] in request.query.items()}
        try:
            return 200, {}, running.shows(asked["table"], asked["user"]).encode()
        except Exception as error:
            return 200, {}, str(error).encode()

    with serving(answer) as served:
        running.url = f"{served.url}/read"
        yield running


def enforcing(world: World, *, identity: str | None = None) -> Shows:
    """Return an engine that applies restrictions, with its own identity (etl by default)."""
    reader = Reader(world.base, str(world.ready.warehouse), identity or world.etl.token)

    def shows(table: str, user: str) -> str:
        return str(reader.as_named(user.partition("~")[2]).table(f"lakegate_probe.{table}").to_arrow().to_pylist())

    return shows


def ignoring(world: World) -> Shows:
    """Return an engine that ignores restrictions: it shows every user the raw rows."""

    def shows(table: str, user: str) -> str:
        person = {world.carol.id: world.carol, world.bob.id: world.bob}[user]
        through = catalog_of(world, acting(world, world.etl, person, proven=False))
        return str(through.load_table(("lakegate_probe", table)).scan().to_arrow().to_pylist())

    return shows


@pytest.fixture(scope="module")
def running(stopped_gateway: Killable) -> Iterator[tuple[World, Service]]:
    """Start a gateway that needs probes, knows the address of etl, and has the analyst vouched for."""
    users = stopped_gateway.ready.users
    with (
        service() as engine,
        stopped_gateway.serving(
            ENGINE_PROBES__REQUIRED="true",
            ENGINE_PROBES__VALID_DAYS="2",
            ENGINE_PROBES__VOUCHED=f"oidc~jobs,{users['analyst'].id}",
            ENGINE_PROBES__ENGINES__ETL__IDENTITY=users["etl"].id,
            ENGINE_PROBES__ENGINES__ETL__KIND="http",
            ENGINE_PROBES__ENGINES__ETL__URL=engine.url,
            ENGINE_PROBES__ENGINES__ETL__USER=users["carol"].id,
            ENGINE_PROBES__ENGINES__ETL__CONTROL=users["bob"].id,
        ) as world,
    ):
        yield world, engine


@pytest.fixture
def site(running: tuple[World, Service]) -> Iterator[tuple[World, Service, Table]]:
    """Return a table of which carol may read one column. The engine etl was never probed, and its service fails."""
    world, engine = running
    people = (world.etl, world.analyst, world.carol, world.steward)
    world.sql("delete from engine_probes")
    engine.shows = None
    for person in people:
        world.strip(person)
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    world.grant("project_admin", world.steward, "project", world.project)
    table = wide(world, world.namespace())
    assert give(world, table, "name", world.carol).status_code == 204
    yield world, engine, table
    for person in people:
        world.strip(person)


def run(
    world: World, change: Callable[[dict[str, Any]], None] = lambda _: None, between: Callable[[], None] | None = None
) -> list[dict[str, Any]]:
    """Probe etl as the steward, who granted it nothing, and return the answer.

    `change` changes what the steward writes into the canary. With `between`, the probe is run before and after it.
    """
    challenge = opened(world, world.etl, by=world.steward)
    path = f"{path_of(world)}/{challenge['id']}/run"
    assert (challenge["user"], challenge["control"]) == (world.carol.id, world.bob.id)
    change(challenge)
    warehouse = Warehouse(world.warehouse, str(world.ready.warehouse))
    with canary(Management(world.base, world.steward.token), warehouse, challenge, world.carol.id):
        answers = [] if between is None else [world.steward.post(path, {}).json()]
        if between is not None:
            between()
        return [*answers, world.steward.post(path, {}).json()]


def only_the_expected(challenge: dict[str, Any]) -> None:
    """Leave in the canary only what the test user may see, so that an engine need not enforce anything."""
    kept = [row for row in challenge["rows"] if row["kept"]]
    challenge["rows"] = [{**row, "masked": masked_as(row["masked"]), "hidden": ""} for row in kept]


@pytest.mark.threat("LG-DEC-42")
def test_engine_is_trusted_only_by_what_the_gateway_itself_saw(site: tuple[World, Service, Table]) -> None:
    world, engine, table = site
    carol = acting(world, world.etl, world.carol)

    def trusted() -> bool:
        return carol.get(table.path).status_code == 200

    assert not trusted(), "the engine was never probed"
    challenge = opened(world, world.etl)
    assert posted(world, challenge, shown(challenge)).json()["self-test"] == "passed"
    assert not trusted(), "the prober computed the output from the values"

    def repair() -> None:
        assert "verdict" not in state(world, world.etl)
        engine.shows = enforcing(world)

    unreached, passed = run(world, between=repair)
    assert unreached["error"]["type"] == "EngineUnreachable"
    assert (passed["verdict"], passed["trusted"]) == ("passed", True), passed
    assert trusted()
    [row] = world.sql("select valid_until - probed_at as time from engine_probes")
    assert row["time"].total_seconds() == pytest.approx(2 * 86_400, abs=1)
    world.sql("update engine_probes set valid_until = clock_timestamp()")
    assert not trusted(), "the result is too old"
    world.sql("update engine_probes set warn_until = clock_timestamp() + interval '1 day'")
    assert trusted()
    assert state(world, world.etl)["warned"] is True
    posted(world, opened(world, world.etl), "")
    assert not trusted(), "a failed self-test ends the warning time"


@pytest.mark.threat("LG-DEC-42")
def test_engine_that_enforces_nothing_or_has_another_identity_fails(site: tuple[World, Service, Table]) -> None:
    world, engine, table = site
    carol = acting(world, world.etl, world.carol)
    engine.shows = ignoring(world)
    [failed] = run(world)
    assert failed["verdict"] == "failed", failed
    assert "value" in failed["detail"]
    [failed] = run(world, only_the_expected)
    assert "control user" in failed["detail"], "the engine had nothing to hide"
    world.grant("delegate", world.analyst, "warehouse", world.warehouse)
    try:
        engine.shows = enforcing(world, identity=world.analyst.token)
        [failed] = run(world)
    finally:
        world.strip(world.analyst)
    assert failed["verdict"] == "failed", "another identity answers at the address"
    assert carol.get(table.path).status_code == 403


@pytest.mark.threat("LG-DEC-42")
def test_engine_that_the_operator_vouches_for_is_trusted_until_a_probe_fails(
    site: tuple[World, Service, Table],
) -> None:
    world, _, table = site
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.analyst, "warehouse", world.warehouse)
    vouched, other = (acting(world, engine, world.carol) for engine in (world.analyst, world.etl))
    assert (vouched.get(table.path).status_code, other.get(table.path).status_code) == (200, 403)
    challenge = opened(world, world.analyst)
    assert state(world, world.analyst)["trusted"] is True
    assert posted(world, challenge, "").json()["trusted"] is False
    assert vouched.get(table.path).status_code == 403
    world.revoke("enforcer", world.analyst, "warehouse", world.warehouse)
    world.sql("delete from engine_probes")
    assert vouched.get(table.path).status_code == 403, "the operator vouches for an enforcer, and grants nothing"
