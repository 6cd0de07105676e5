# SPDX-License-Identifier: Apache-2.0
"""Definer views: read with the owner's rights only through engines that the settings trust (LG-DEC-12)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.toxic import second_gateway
from tests.support.stack.columns import give, take, wide
from tests.support.stack.definer_views import OWNER, grant_view, load, referenced, through, view_id
from tests.support.stack.exchanging import acting, delegating
from tests.support.stack.roles import add, make
from tests.support.stack.views import body, replace
from tests.support.stack.world import Person, Table, World, error_triple, unique

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def trusting(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a gateway whose settings trust etl with definer views."""
    log = tmp_path_factory.mktemp("trusting") / "log"
    settings = {
        "TRUSTED_ENGINES__TRINO__IDENTITIES__OIDC__SUBJECTS": "etl",
        "REFERENCED_BY__MAX_NESTING_DEPTH": "3",
    }
    with second_gateway(world.ready, Path(log), **settings) as (base, _):
        yield base


@pytest.fixture
def engine(world: World, trusting: str) -> Iterator[Person]:
    """Yield the engine at the gateway that trusts it, with `delegate` on the warehouse."""
    world.strip(world.etl)
    with delegating(world, world.etl, "warehouse", world.warehouse):
        person = Person("etl", world.etl.id, world.etl.token, trusting)
        yield person
        person.http.close()


@pytest.fixture
def table(world: World, ns: str) -> Table:
    """Create a table that the steward may read and carol may not see."""
    for person in (world.steward, world.carol):
        world.strip(person)
    made = world.table(ns)
    world.grant("select", world.steward, "table", made.uuid)
    return made


@pytest.fixture
def view(world: World, engine: Person, table: Table, ns: str) -> tuple[str, str]:
    """Create a view of the steward through the engine; carol may read it."""
    space = world.namespace_id(ns)
    world.grant("create", world.steward, "namespace", space)
    name = unique("v")
    made = through(engine, world, world.steward).post(
        f"{world.root}/namespaces/{ns}/views", body(name, properties={OWNER: "steward"})
    )
    assert made.status_code == 200, made.text
    grant_view(world, name, world.carol)
    return ns, name


def test_view_reader_reads_the_table_with_the_owners_rights(
    world: World, engine: Person, table: Table, view: tuple[str, str]
) -> None:
    carol = through(engine, world, world.carol)
    assert error_triple(carol.get(table.path))[0] == 404
    assert load(carol, table, view).status_code == 200
    vended = load(carol, table, view, at="/credentials")
    assert vended.status_code == 200
    records = world.sql(
        "select convert_from(record, 'UTF8') as record from audit_log where operation = 'vend_credentials' "
        "order by at desc limit 1"
    )
    for view_owner_facts in (
        f'"id":"{world.steward.id}"',
        f'"asked_by":"{world.carol.id}"',
        f'"engine":"{engine.id}"',
    ):
        assert view_owner_facts in records[0]["record"]


@pytest.mark.threat("LG-DEC-12")
def test_view_chain_of_an_untrusted_engine_is_ignored(
    world: World, engine: Person, table: Table, view: tuple[str, str]
) -> None:
    """The test sends the engine's token to a gateway without trusted engines, and carol's own token to the trusting
    gateway.
    """
    elsewhere = acting(world, world.etl, world.carol)
    assert error_triple(load(elsewhere, table, view))[0] == 404
    own = Person("carol", world.carol.id, world.carol.token, str(engine.http.base_url))
    assert error_triple(load(own, table, view))[0] == 404
    assert error_triple(load(own, table, ("no", "view")))[0] == 404


def test_every_view_of_a_chain_must_be_readable_to_its_subject(
    world: World, engine: Person, table: Table, view: tuple[str, str], ns: str
) -> None:
    bob = through(engine, world, world.bob)
    stranger = through(engine, world, world.contractor)
    world.strip(world.contractor)
    assert error_triple(load(stranger, table, view))[0] == 404, (
        "a user without rights on the view must not see the table through it"
    )
    # An invoker view does not change the subject: bob, who owns it, must be allowed to read the next one.
    world.grant("create", world.bob, "namespace", world.namespace_id(ns))
    outer = unique("outer")
    assert bob.post(f"{world.root}/namespaces/{ns}/views", body(outer)).status_code == 200
    carol = through(engine, world, world.carol)
    assert error_triple(load(carol, table, (ns, outer), view))[0] == 404
    grant_view(world, outer, world.carol)
    assert load(carol, table, (ns, outer), view).status_code == 200
    # Visibility does not include reading.
    unreadable = unique("seen")
    assert bob.post(f"{world.root}/namespaces/{ns}/views", body(unreadable)).status_code == 200
    grant_view(world, unreadable, world.carol, "describe")
    assert error_triple(load(carol, table, (ns, unreadable), view))[0] == 403


def test_revocation_from_the_view_owner_affects_its_readers(
    world: World, engine: Person, table: Table, view: tuple[str, str]
) -> None:
    carol = through(engine, world, world.carol)
    assert load(carol, table, view, at="/credentials").status_code == 200
    world.revoke("select", world.steward, "table", table.uuid)
    assert error_triple(load(carol, table, view, at="/credentials"))[0] == 403, (
        "the view owner still sees the table, so the error is 403"
    )
    world.grant("select", world.steward, "table", table.uuid)
    assert load(carol, table, view, at="/credentials").status_code == 200
    world.revoke("select", world.carol, "view", view_id(world, view[1]))
    assert error_triple(load(carol, table, view, at="/credentials"))[0] == 404


def test_column_restricted_owner_lends_only_readable_columns(world: World, engine: Person, ns: str) -> None:
    for person in (world.steward, world.carol):
        world.strip(person)
    # A creator in a namespace reads the metadata of all tables in it, so the table is in another namespace.
    table = wide(world, world.namespace())
    assert give(world, table, "name", world.steward).status_code == 204
    world.grant("create", world.steward, "namespace", world.namespace_id(ns))
    view = (ns, unique("v"))
    made = through(engine, world, world.steward).post(
        f"{world.root}/namespaces/{ns}/views", body(view[1], properties={OWNER: "steward"})
    )
    assert made.status_code == 200, made.text
    grant_view(world, view[1], world.carol)
    carol = through(engine, world, world.carol)
    assert error_triple(load(carol, table, view))[0] == 403, (
        "an engine that is no enforcer gets no column-restricted table"
    )
    world.grant("enforcer", world.etl, "warehouse", world.warehouse)
    loaded = load(carol, table, view)
    held = loaded.json()["read-restrictions"]["required-column-projections"]
    assert [each["field-id"] for each in held] == [1, 3, 4]
    assert error_triple(load(carol, table, view, at="/credentials"))[:2] == (403, "NoCredentialsVended")
    assert error_triple(carol.get(table.path))[0] == 404, "the reader has no right on the table itself"
    assert give(world, table, "card", world.carol).status_code == 204
    held = load(carol, table, view).json()["read-restrictions"]["required-column-projections"]
    assert [each["field-id"] for each in held] == [1, 3, 4], "readable columns of reader and owner must not be combined"
    assert take(world, table, "name", world.steward).status_code == 204
    assert error_triple(load(carol, table, view))[0] == 404
    world.revoke("enforcer", world.etl, "warehouse", world.warehouse)


def test_definer_view_gives_read_access_only(world: World, engine: Person, table: Table, view: tuple[str, str]) -> None:
    carol = through(engine, world, world.carol)
    write = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    assert error_triple(carol.post(f"{table.path}?{referenced(view)['query']}", write))[0] == 404
    assert error_triple(carol.delete(f"{table.path}?{referenced(view)['query']}"))[0] == 404


def test_engine_needs_delegate_for_definer_views(
    world: World, engine: Person, table: Table, view: tuple[str, str]
) -> None:
    carol = through(engine, world, world.carol)
    assert load(carol, table, view).status_code == 200
    world.revoke("delegate", engine, "warehouse", world.warehouse)
    try:
        assert error_triple(load(carol, table, view))[0] == 404
    finally:
        world.grant("delegate", engine, "warehouse", world.warehouse)


@pytest.mark.threat("LG-DEC-12")
@pytest.mark.parametrize(
    "query",
    ["referenced-by=view", "referenced-by=a%1Fv&referenced-by=b%1Fv", "referenced-by=%FF%1Fv", "referenced-by=,"],
)
def test_malformed_view_chain_is_400(world: World, engine: Person, table: Table, query: str) -> None:
    answer = through(engine, world, world.carol).get(f"{table.path}?{query}")
    assert error_triple(answer)[0] == 400


@pytest.mark.threat("LG-DEC-12")
def test_view_chain_length_is_bounded(world: World, engine: Person, table: Table, view: tuple[str, str]) -> None:
    answer = load(through(engine, world, world.carol), table, view, view, view, view)
    assert error_triple(answer)[:2] == (400, "ReferencedByDepthExceeded")
    assert load(through(engine, world, world.steward), table, view, view, view).status_code == 200, (
        "a chain that repeats a view must be accepted"
    )


# authority to choose the owner whose rights apply


def _commit(uuid: str, *updates: dict[str, Any]) -> dict[str, Any]:
    return {"requirements": [{"type": "assert-view-uuid", "uuid": uuid}], "updates": list(updates)}


@pytest.mark.parametrize("name", [OWNER, OWNER.upper(), "Trino.Run-As-Owner"])
def test_only_the_engine_sets_a_view_owner_and_only_its_user(world: World, engine: Person, ns: str, name: str) -> None:
    base = str(engine.http.base_url)
    world.grant("create", world.bob, "namespace", world.namespace_id(ns))
    path = f"{world.root}/namespaces/{ns}/views"
    own = Person("bob", world.bob.id, world.bob.token, base)
    for value in ("steward", "bob"):
        refused = own.post(path, body(unique("v"), properties={name: value}))
        assert error_triple(refused)[:2] == (403, "ProtectedPropertyModification"), value
    bob = through(engine, world, world.bob)
    refused = bob.post(path, body(unique("v"), properties={name: "steward"}))
    assert error_triple(refused)[:2] == (403, "ProtectedPropertyModification")
    made = bob.post(path, body(viewed := unique("v"), properties={name: "bob"}))
    assert made.status_code == 200, made.text
    uuid = made.json()["metadata"]["view-uuid"]
    for update in (
        {"action": "set-properties", "updates": {name: "steward"}},
        {"action": "set-properties", "updates": {OWNER.title(): "steward"}},
    ):
        for person in (own, bob):
            refused = person.post(f"{path}/{viewed}", _commit(uuid, update))
            assert error_triple(refused)[:2] == (403, "ProtectedPropertyModification")
    removal = {"action": "remove-properties", "removals": [name]}
    assert error_triple(own.post(f"{path}/{viewed}", _commit(uuid, removal)))[:2] == (
        403,
        "ProtectedPropertyModification",
    )
    assert bob.post(f"{path}/{viewed}", _commit(uuid, removal)).status_code == 200


def test_definition_change_that_keeps_another_owner_is_refused(
    world: World, engine: Person, view: tuple[str, str]
) -> None:
    base = str(engine.http.base_url)
    path = f"{world.root}/namespaces/{view[0]}/views/{view[1]}"
    grant_view(world, view[1], world.bob, "modify")
    bob = Person("bob", world.bob.id, world.bob.token, base)
    uuid = bob.get(path).json()["metadata"]["view-uuid"]
    changed = replace(uuid, "select secrets from elsewhere")
    for person in (bob, through(engine, world, world.bob)):
        assert error_triple(person.post(path, changed))[:2] == (403, "ProtectedPropertyModification")
    other = _commit(uuid, {"action": "set-properties", "updates": {"comment": "harmless"}})
    assert bob.post(path, other).status_code == 200
    owner = Person("steward", world.steward.id, world.steward.token, base)
    assert owner.post(path, changed).status_code == 200, "the owner may change its view"
    taken = replace(uuid, "select 3")
    taken["updates"].append({"action": "set-properties", "updates": {OWNER: "bob"}})
    taken["updates"][0]["view-version"]["version-id"] = 3
    assert through(engine, world, world.bob).post(path, taken).status_code == 200, (
        "a replacement by bob makes bob the owner"
    )


def test_assumed_role_reads_the_view_with_the_roles_rights(
    world: World, engine: Person, table: Table, view: tuple[str, str]
) -> None:
    role = make(world)
    try:
        assert add(world, role, "user", world.carol.id).status_code == 204
        carol = through(engine, world, world.carol)
        headers = {"x-assume-role": role["id"]}
        path = f"{table.path}?{referenced(view)['query']}"
        assert error_triple(carol.get(path, headers=headers))[0] == 404, (
            "the assumed role must not read a view that only carol may read"
        )
        grant = {"writes": [{"type": "select", "role": role["id"]}]}
        granted = world.admin.post(world.grants_path("view", view_id(world, view[1])), grant)
        assert granted.status_code == 204, granted.text
        assert carol.get(path, headers=headers).status_code == 200
    finally:
        assert world.admin.delete(f"/management/v1/role/{role['id']}").status_code == 204
