# SPDX-License-Identifier: Apache-2.0
"""Move tables from another catalog with PyIceberg by the recipe of docs/warehouses.md; they keep their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import ForbiddenError

from tests.support.docs_commands import block, run_python
from tests.support.engines.lake import catalog_of
from tests.support.stack.world import World, unique

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_tables_of_another_catalog_are_adopted_with_the_catalog_property(world: World, tmp_path: Path) -> None:
    store = {
        "s3.endpoint": world.ready.s3.endpoint,
        "s3.region": world.ready.s3.region,
        "s3.access-key-id": world.ready.s3.access_key,
        "s3.secret-access-key": world.ready.s3.secret_key,
    }
    base = f"s3://{world.bucket}/demo/{unique('old')}"
    old: Any = load_catalog("old", type="sql", uri=f"sqlite:///{tmp_path}/old.db", warehouse=base, **store)
    outer, inner = (unique("moved"),), (unique("moved"), "inner")
    rows = pa.table({"id": [1, 2, 3]})
    for namespace in (outer, inner):
        old.create_namespace(namespace)
        old.create_table((*namespace, "t"), schema=rows.schema).append(rows)
    plain = catalog_of(world, world.admin)
    plain.create_namespace(outer)
    with pytest.raises(ForbiddenError, match="X-Lakegate-Adopt"):
        plain.register_table((*outer, "t"), old.load_table((*outer, "t")).metadata_location)
    new = catalog_of(world, world.admin, **{"header.X-Lakegate-Adopt": "true"})

    new.create_namespace(inner[:1])
    recipe = block("docs/warehouses.md", "def move(").text
    for _ in range(2):
        run_python(recipe[recipe.index("def move(") :], old=old, new=new)
    for namespace in (outer, inner):
        table = plain.load_table((*namespace, "t"))
        assert table.location() == old.load_table((*namespace, "t")).location()
        assert table.scan().to_arrow().to_pylist() == rows.to_pylist()
        table.append(rows)
        assert plain.load_table((*namespace, "t")).scan().to_arrow().num_rows == 6
