# SPDX-License-Identifier: Apache-2.0
"""PyIceberg for tests: the catalog of the warehouse as one user, and the keys of a table in the object store."""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog import load_catalog

from tests.support.stack.world import Person, World


def catalog_of(world: World, person: Person, **properties: str) -> Any:
    """Return the PyIceberg catalog as this user; `properties` are further ones and replace the usual ones."""
    own = {"uri": world.ready.catalog_uri, "warehouse": world.ready.warehouse, "token": person.token}
    return load_catalog("lake", type="rest", **{**own, **properties})


def below(world: World, location: str) -> set[str]:
    """Return the keys below a location of the object store."""
    return {key for key, _ in world.objects(location.removeprefix(f"s3://{world.bucket}/") + "/")}
