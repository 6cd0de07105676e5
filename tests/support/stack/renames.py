# SPDX-License-Identifier: Apache-2.0
"""Renames of tables and views."""

from __future__ import annotations

import httpx

from tests.support.stack.world import Person, World


def rename(
    by: Person, world: World, kind: str, source: tuple[str, str], destination: tuple[str, str]
) -> httpx.Response:
    """Rename (namespace, name) to (namespace, name); `kind` is `tables` or `views`."""
    return by.post(
        f"{world.root}/{kind}/rename",
        {
            "source": {"namespace": [source[0]], "name": source[1]},
            "destination": {"namespace": [destination[0]], "name": destination[1]},
        },
    )
