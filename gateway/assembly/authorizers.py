# SPDX-License-Identifier: Apache-2.0
"""Open the authorizers in the settings, which can refuse what OpenFGA allows.

One is built in and evaluates PostgreSQL's rows. A package provides an authorizer as an entry point of the group
`lakegate.authorizers`. The entry point refers to a function without parameters that returns a
`gateway.access.decisions.authorizers.Authorizer`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from gateway.access.actor import Actor
from gateway.access.decisions.authorizers import Authorizer, NarrowedRelationships
from gateway.access.ports import Pin, Question, Relationships
from gateway.assembly.adapters import open_database, open_openfga
from gateway.assembly.extensions import ExtensionGroup, NoSuchExtension, find_extension
from gateway.db.engine.database import Database
from gateway.db.tuples.held_tuples import HeldTuples
from gateway.fga.client import FgaClient
from gateway.fga.relationships import FgaRelationships
from gateway.fga.row_authorizer import ROWS, FollowedModel, RowAuthorizer
from gateway.settings import Settings, certificate_sources
from gateway.telemetry.health import HealthMonitor
from gateway.tls import trusted

OPENFGA: Final = "openfga"


@dataclass(frozen=True, slots=True)
class Authorizers:
    """The opened authorizers, in the order of the settings."""

    opened: tuple[Authorizer, ...] = ()

    def narrow(self, relationships: Relationships) -> Relationships:
        """Return `relationships`, restricted by the authorizers. If there are none, return the same object."""
        return NarrowedRelationships(relationships, self.opened) if self.opened else relationships

    async def refuses(self, relationships: Relationships, actor: Actor, question: Question, now: datetime) -> bool:
        """Return True if `relationships` allows the question, and an authorizer refuses it.

        Raises DecisionEngineUnavailable if a result is missing.
        """
        held = await relationships.check(actor, [question], now=now)
        narrowed = NarrowedRelationships(relationships, self.opened)
        return held == [True] and await narrowed.narrow(actor, [question], held, now=now) == [False]

    def watch(self, health: HealthMonitor) -> None:
        """Report the status of each authorizer to the health monitor, for `/health`."""
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


class OpenFgaAuthorizer:
    """OpenFGA as an authorizer, for the conformance kit. No setting enables it, because OpenFGA always decides."""

    name = OPENFGA

    def __init__(self, client: FgaClient) -> None:
        self._client = client
        self._relationships = FgaRelationships(client)

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Return one result for each check, in order. Raises the errors of `FgaRelationships`."""
        return await self._relationships.check(actor, questions, now=now, pin=pin, paced=paced)

    async def ping(self) -> None:
        """Raise an error if OpenFGA does not respond."""
        await self._client.ping()

    async def close(self) -> None:
        """Do nothing: the client is closed by its owner."""


@asynccontextmanager
async def own_authorizer(name: str, settings: Settings) -> AsyncIterator[Callable[[], Authorizer]]:
    """Yield a function that opens the authorizer `rows` or `openfga` on the systems in the settings.

    Raises the errors of `open_database` and `open_openfga`.
    """
    async with AsyncExitStack() as stack:
        trust = trusted(*certificate_sources())
        database = await open_database(settings, trust, stack)
        fga = await open_openfga(settings, trust, database, stack)
        if name == OPENFGA:
            yield lambda: OpenFgaAuthorizer(fga)
        else:
            yield lambda: RowAuthorizer(FollowedModel(fga), HeldTuples(database))
