# SPDX-License-Identifier: Apache-2.0
"""`lakegate.reader` on a running gateway: a trusted service reads real files with the rights of a user."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyiceberg.exceptions import ForbiddenError

from lakegate.reader import ExchangeFailed, LoadFailed, Reader
from tests.contract.columns import evolve, give, wide
from tests.contract.world import Table, World
from tests.e2e.lake import catalog_of

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
    acting = (service.as_user(world.carol.token), service.as_named(world.carol.id.partition("~")[2]))
    for reader in acting:
        opened = reader.table((table.namespace, table.name))
        assert opened.to_arrow().to_pylist() == MASKED
        assert opened.to_arrow(row_filter="card = '4111-1111'").num_rows == 0
        assert opened.to_arrow(["name"], row_filter="id = 0", limit=1).to_pylist() == [{"name": "Ada"}]


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


def test_preview_prints_the_rows_of_the_user(world: World, table: Table, service: Reader) -> None:
    done = world.lakegate(*preview(world, table, world.carol.id))
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == MASKED
    named = ("--column", "name", "--limit", "1")
    assert json.loads(world.lakegate(*preview(world, table, world.carol.id), *named).stdout) == {"name": "Ada"}


def test_preview_of_another_provider_or_without_the_rights_is_refused(
    world: World, table: Table, service: Reader
) -> None:
    """The subject of another provider would name another user at the provider of the caller."""
    other = world.lakegate(*preview(world, table, f"ldap~{world.carol.id.partition('~')[2]}"))
    assert other.returncode == 1 and "identity provider" in other.stderr
    world.revoke("enforcer", world.etl, "warehouse", world.warehouse)
    refused = world.lakegate(*preview(world, table, world.carol.id))
    assert refused.returncode == 1 and "refused the table" in refused.stderr
    assert world.etl.token not in refused.stderr and "Ada" not in refused.stdout + refused.stderr


def preview(world: World, table: Table, principal: str) -> list[str]:
    """Return the arguments of a preview by the service."""
    named = f"{table.namespace}.{table.name}"
    where = ["--gateway", world.base, "--token", world.etl.token, "--warehouse", str(world.ready.warehouse)]
    return ["data-policy", "preview", *where, "--table", named, "--as", principal]
