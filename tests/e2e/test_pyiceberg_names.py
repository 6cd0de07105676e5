# SPDX-License-Identifier: Apache-2.0
"""PyIceberg renames, registers and finds tables and views, and its error handlers understand the gateway's errors."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.exceptions import NoSuchTableError, NoSuchViewError, TableAlreadyExistsError

from tests.support.engines.lake import catalog_of
from tests.support.stack.views import create as create_view
from tests.support.stack.world import World, unique

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


def test_renamed_table_keeps_its_rows_and_accepts_appends(world: World, ns: str) -> None:
    catalog, other = catalog_of(world, world.admin), world.namespace()
    catalog.create_table((ns, "old"), schema=ROWS.schema).append(ROWS)
    catalog.rename_table((ns, "old"), (other, "new"))
    assert not catalog.table_exists((ns, "old"))
    renamed = catalog.load_table((other, "new"))
    renamed.append(ROWS)
    assert renamed.scan().to_arrow().num_rows == 4
    with pytest.raises(NoSuchTableError):
        catalog.rename_table((ns, "old"), (ns, "x"))
    catalog.create_table((ns, "old"), schema=ROWS.schema)
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table((ns, "old"), (other, "new"))


def test_a_registered_table_has_its_rows(world: World, ns: str) -> None:
    catalog, name = catalog_of(world, world.admin), unique("t")
    table = catalog.create_table((ns, name), schema=ROWS.schema)
    table.append(ROWS)
    released = world.admin.post(f"{world.root}/namespaces/{ns}/tables/{name}/unregister").json()
    again = catalog.register_table((ns, "again"), released["metadata-location"])
    assert again.scan().to_arrow().to_pydict() == {"id": [1, 2]}
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table((ns, "again"), released["metadata-location"])


def test_views_are_found_listed_and_dropped(world: World, ns: str) -> None:
    catalog, view = catalog_of(world, world.admin), create_view(world, ns)
    assert catalog.view_exists((ns, view["name"]))
    assert catalog.list_views(ns) == [(ns, view["name"])]
    assert catalog.list_tables(ns) == []
    catalog.drop_view((ns, view["name"]))
    assert not catalog.view_exists((ns, view["name"]))
    with pytest.raises(NoSuchViewError):
        catalog.drop_view((ns, view["name"]))
