# SPDX-License-Identifier: Apache-2.0
"""PyIceberg as tests see it: the warehouse as one person, and what lies below a table in the store."""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog import load_catalog

from tests.contract.world import Person, World


def catalog_of(world: World, person: Person, **properties: str) -> Any:
    """The catalog as this person."""
    return load_catalog(
        "lake",
        type="rest",
        uri=world.ready.catalog_uri,
        warehouse=world.ready.warehouse,
        token=person.token,
        **properties,
    )


def below(world: World, location: str) -> set[str]:
    """The keys below a location of the store."""
    return {key for key, _ in world.objects(location.removeprefix(f"s3://{world.bucket}/") + "/")}
