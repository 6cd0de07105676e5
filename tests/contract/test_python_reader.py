# SPDX-License-Identifier: Apache-2.0
"""`lakegate.reader` on a running gateway: a trusted service reads real files with the rights of a user."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyiceberg.exceptions import ForbiddenError

from lakegate.reader import ExchangeFailed, LoadFailed, Reader
from tests.support.engines.lake import catalog_of
from tests.support.stack.columns import evolve, give, wide
from tests.support.stack.data_policies import change, make, target
from tests.support.stack.world import Person, Table, World, error_of

pytestmark = pytest.mark.servers

ROWS = [
    {"id": 1, "name": "Ada", "card": "4111-1111", "address": {"street": "First"}},
    {"id": 2, "name": "Bo", "card": "4222-2222", "address": None},
]
#: The fixed values and null of the columns that carol cannot read.
MASKED = [
    {"id": 0, "name": "Ada", "card": "XXXXXXXX", "address": None},
    {"id": 0, "name": "Bo", "card": "XXXXXXXX", "address": None},
]


@pytest.fixture(autouse=True)
def strangers(world: World) -> Iterator[None]:
    """Revoke the grants of carol and the service, before and after the test."""
    for person in (world.carol, world.etl):
        world.strip(person)
    yield
    for person in (world.carol, world.etl):
        world.strip(person)


@pytest.fixture
def table(world: World, ns: str) -> Table:
    """Return a table of two rows, of which carol may read one column."""
    table = wide(world, ns)
    opened = catalog_of(world, world.admin).load_table((ns, table.name))
    opened.append(pa.Table.from_pylist(ROWS, schema=opened.schema().as_arrow()))
    given = give(world, table, "name", world.carol)
    assert given.status_code == 204, given.text
    return table


@pytest.fixture
def service(world: World, table: Table) -> Reader:
    """Return the reader of a service that holds `delegate` and `enforcer`."""
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    assert world.ready.warehouse is not None
    return Reader(world.base, world.ready.warehouse, world.etl.token)


def test_service_reads_as_a_user_whose_other_columns_are_masked(world: World, table: Table, service: Reader) -> None:
    opened = service.as_user(world.carol.token).table((table.namespace, table.name))
    assert opened.to_arrow().to_pylist() == MASKED
    assert opened.to_arrow(row_filter="card = '4111-1111'").num_rows == 0
    assert opened.to_arrow(["name"], row_filter="id = 0", limit=1).to_pylist() == [{"name": "Ada"}]


def test_service_reads_no_restricted_table_for_a_user_that_it_only_names(
    world: World, table: Table, service: Reader
) -> None:
    with pytest.raises(LoadFailed) as refused:
        service.as_named(world.carol.id.partition("~")[2]).table((table.namespace, table.name))
    assert refused.value.status == 403
    world.grant("select", world.carol, "table", table.uuid)
    opened = service.as_named(world.carol.id.partition("~")[2]).table((table.namespace, table.name))
    assert opened.to_arrow().to_pylist() == ROWS, "an unrestricted table needs no proof"


def test_user_with_all_columns_reads_raw_values(world: World, table: Table, service: Reader) -> None:
    opened = service.as_user(world.admin.token).table(f"{table.namespace}.{table.name}")
    assert opened.to_arrow().to_pylist() == ROWS


def test_column_that_is_added_later_is_masked(world: World, table: Table, service: Reader) -> None:
    fields = [*table.answer["metadata"]["schemas"][0]["fields"]]
    evolve(world, table, [*fields, {"id": 6, "name": "salary", "type": "int", "required": False}], 6)
    opened = service.as_user(world.carol.token).table((table.namespace, table.name))
    assert opened.to_arrow().to_pylist() == [{**row, "salary": None} for row in MASKED]


def test_service_without_enforcer_gets_no_table(world: World, table: Table, service: Reader) -> None:
    world.revoke("enforcer", world.etl, "warehouse", world.warehouse)
    with pytest.raises(LoadFailed) as refused:
        service.as_user(world.carol.token).table((table.namespace, table.name))
    assert refused.value.status == 403


def test_service_without_delegate_cannot_act_for_the_user(world: World, table: Table, service: Reader) -> None:
    world.revoke("delegate", world.etl, "warehouse", world.warehouse)
    with pytest.raises((ExchangeFailed, LoadFailed)) as refused:
        service.as_user(world.carol.token).table((table.namespace, table.name))
    assert world.carol.token not in str(refused.value) and world.etl.token not in str(refused.value)


def test_plain_pyiceberg_with_the_token_of_the_user_gets_nothing(world: World, table: Table, service: Reader) -> None:
    with pytest.raises(ForbiddenError):
        catalog_of(world, world.carol).load_table((table.namespace, table.name))


def test_preview_prints_the_rows_of_the_user_without_the_privileges_of_an_engine(world: World, table: Table) -> None:
    done = world.lakegate(*preview(world, table, world.carol.id))
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == MASKED
    named = ("--column", "name", "--limit", "1")
    assert json.loads(world.lakegate(*preview(world, table, world.carol.id), *named).stdout) == {"name": "Ada"}
    none = world.lakegate(*preview(world, table, "oidc~nobody-of-this-name"))
    assert none.returncode == 1 and "may not read" in none.stderr


def test_preview_shows_its_caller_nothing_that_the_caller_could_not_read_itself(world: World, table: Table) -> None:
    """Neither rows without an own right to read, nor expressions without the right to read the policies."""
    world.grant("manage_grants", world.steward, "table", table.uuid)
    world.grant("describe", world.steward, "table", table.uuid)
    refused = world.lakegate(*preview(world, table, world.carol.id, by=world.steward))
    assert refused.returncode == 1 and "Ada" not in refused.stdout + refused.stderr
    world.grant("select", world.steward, "table", table.uuid)
    assert world.lakegate(*preview(world, table, world.carol.id, by=world.steward)).returncode == 0
    policy = make(world, {"kind": "mask", "action": "mask-alphanum", "columns": [{"name": "name"}]})
    try:
        assert change(world, policy, add=[target(world, table)]).status_code == 204
        path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/data-policies/preview"
        hidden = world.steward.get(path, params={"principalUser": world.carol.id})
        assert error_of(hidden)["type"] == "PreviewForbidden"
        shown = world.admin.get(path, params={"principalUser": world.carol.id})
        assert "mask-alphanum" in shown.text
        restricted = world.lakegate(*preview(world, table, world.carol.id))
        assert restricted.returncode == 1 and "not all of this table may be read" in restricted.stderr
        world.grant("exempt", world.admin, "data-policy", policy["id"])
        masked = world.lakegate(*preview(world, table, world.carol.id))
        assert masked.returncode == 0 and '"name": "xxx"' in masked.stdout, masked.stderr
    finally:
        world.admin.send("DELETE", f"/management/v1/data-policy/{policy['id']}", params={"force": "true"})
        world.strip(world.steward)


def preview(world: World, table: Table, principal: str, *, by: Person | None = None) -> list[str]:
    """Return the arguments of a preview, by the administrator if no other caller is given."""
    named = f"{table.namespace}.{table.name}"
    token = (by or world.admin).token
    where = ["--gateway", world.base, "--token", token, "--warehouse", str(world.ready.warehouse)]
    return ["data-policy", "preview", *where, "--table", named, "--as", principal]
