# SPDX-License-Identifier: Apache-2.0
"""Open the authorizers that the settings name: that of PostgreSQL's rows, and those of installed packages.

A package provides one as an entry point of the group `lakegate.authorizers`. It refers to a function without parameters
that returns a `gateway.access.authorizers.Authorizer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from gateway.access.authorizers import Authorizer, NarrowedRelationships
from gateway.access.ports import Relationships
from gateway.assembly.extensions import ExtensionGroup, NoSuchExtension, find_extension
from gateway.db.engine import Database
from gateway.db.held_tuples import HeldTuples
from gateway.fga.client import FgaClient
from gateway.fga.row_authorizer import ROWS, FollowedModel, RowAuthorizer
from gateway.telemetry.health import HealthMonitor


@dataclass(frozen=True, slots=True)
class Authorizers:
    """The opened authorizers, in the order of the settings."""

    opened: tuple[Authorizer, ...] = ()

    def narrow(self, relationships: Relationships) -> Relationships:
        """Return `relationships`, narrowed by the authorizers; the same object if there are none."""
        return NarrowedRelationships(relationships, self.opened) if self.opened else relationships

    def watch(self, health: HealthMonitor) -> None:
        """Report the status of each authorizer in `/health`."""
        for each in self.opened:
            health.register("authorizers", each.name, each.ping)


WITHOUT_AUTHORIZERS: Final = Authorizers()


def open_authorizers(names: Sequence[str], database: Database, fga: FgaClient, stack: AsyncExitStack) -> Authorizers:
    """Open the authorizers with these names. `stack` closes them. Raises NoSuchExtension."""
    opened: list[Authorizer] = []
    for name in dict.fromkeys(names):
        authorizer: Authorizer = (
            RowAuthorizer(FollowedModel(fga), HeldTuples(database)) if name == ROWS else open_provided_authorizer(name)
        )
        stack.push_async_callback(authorizer.close)
        opened.append(authorizer)
    return Authorizers(tuple(opened))


def open_provided_authorizer(name: str) -> Authorizer:
    """Return the authorizer of an installed package. Raises NoSuchExtension."""
    authorizer = find_extension(ExtensionGroup.AUTHORIZERS, name, built_in=(ROWS,))()
    if not isinstance(authorizer, Authorizer) or authorizer.name != name:
        raise NoSuchExtension(
            f"The extension {name!r} of the group {ExtensionGroup.AUTHORIZERS} returned no authorizer with this name."
        )
    return authorizer
