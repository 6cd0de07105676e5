# SPDX-License-Identifier: Apache-2.0
"""A governed copy writes only into tables that its service created: ownership that was given proves nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakegate.spark.catalog_client import CatalogClient
from lakegate.spark.config import RestCatalog
from tests.support.stack.world import World


@pytest.fixture
def client(world: World) -> Iterator[CatalogClient]:
    """Return the client of a service whose identity is bob's."""
    uri = f"{world.base}/catalog"
    client = CatalogClient(RestCatalog(uri=uri, warehouse=str(world.ready.warehouse), token=world.bob.token))
    yield client
    client.close()


def test_service_recognizes_the_tables_that_it_created(world: World, ns: str, client: CatalogClient) -> None:
    world.grant("create", world.bob, "namespace", world.namespace_id(ns))
    assert client.has_created(world.table(ns, by=world.bob).uuid)


def test_table_of_another_owner_is_no_target_whatever_its_owner_grants(
    world: World, ns: str, client: CatalogClient
) -> None:
    table = world.table(ns)
    assert not client.has_created(table.uuid), "the service may not read its grants"
    world.grant("ownership", world.bob, "table", table.uuid)
    assert client.load_own((ns, table.name)) is not None
    assert not client.has_created(table.uuid)
