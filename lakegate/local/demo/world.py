# SPDX-License-Identifier: Apache-2.0
"""Shared state and requests of the trials: callers, names of tables, and the Spark engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lakegate.local.demo.board import Observation
from lakegate.local.demo.keys import VendedKey, vended
from lakegate.local.demo.people import Caller, Lake, Reply, SetupRefused
from lakegate.local.demo.spark import Worker
from lakegate.local.ready import Ready

GOLD = "gold.route_punctuality"
OTHER_GOLD = "gold.aircraft_utilisation"
CONTRACT_GOLD = "gold.carrier_delays_by_weather"
SILVER = "silver.flights"
SHARED_SILVER = "silver.weather"


@dataclass(slots=True)
class World:
    """A running stack after the pipeline. ``vended_keys`` contains the storage keys that trials received, by table."""

    ready: Ready
    people: dict[str, Caller]
    lake: Lake
    spark: Worker
    vended_keys: dict[str, VendedKey] = field(default_factory=dict)

    async def load(self, caller: str, ident: str, *, vend: bool = False) -> Reply:
        """Load a table as ``caller``. ``vend``: request credentials for the storage."""
        return await self.people[caller].call("GET", self.lake.table(ident), vend=vend)

    async def metadata_location(self, caller: str, ident: str) -> str:
        """Return the location of the table's current metadata file."""
        body = await self.people[caller].must("GET", self.lake.table(ident))
        return str(body["metadata-location"])

    async def key_for(self, caller: str, ident: str) -> VendedKey:
        """Return a new storage key for the table, and record it in ``vended_keys``.

        Raises:
            SetupRefused: the catalog vended none.
        """
        reply = await self.load(caller, ident, vend=True)
        key = vended(reply.body) if reply.status == 200 else None
        if key is None:
            raise SetupRefused(f"{caller} was given no key for {ident}: {reply}")
        self.vended_keys[ident] = key
        return key

    async def count(self, caller: str, ident: str) -> str | None:
        """Return the number of rows that Spark counts in a new session of ``caller``, None if the statement failed."""
        answer = await self.spark.query(self._token(caller), f"SELECT count(*) FROM {ident}")  # noqa: S608 - a constant
        return None if answer.error else str(answer.rows[0][0])

    async def statement_refused(self, caller: str, statement: str, signs: tuple[str, ...]) -> Observation:
        """Run a statement that must fail, with an error that contains one of the ``signs``."""
        answer = await self.spark.query(self._token(caller), statement)
        if answer.error is None:
            return Observation(False, f"it worked: {answer.rows[:1]}")
        text = f"{answer.error} {answer.message or ''}"
        return Observation(any(sign in text for sign in signs), answer.refusal())

    def _token(self, caller: str) -> str:
        token = self.people[caller].token
        if token is None:
            raise SetupRefused(f"{caller} has no token")
        return token


def same_status(reply: Reply, status: int, error: str | None = None) -> Observation:
    """Return the observation of an answer that must have this status and, if given, this type of error."""
    return Observation(reply.status == status and error in (None, reply.error), str(reply))


def clock(milliseconds: int) -> str:
    """Format a time, in milliseconds since 1970, as HH:MM:SSZ in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%H:%M:%SZ")


def minutes_left(milliseconds: int) -> float:
    """Return the minutes from now until a time in milliseconds since 1970."""
    return (milliseconds / 1000 - datetime.now(UTC).timestamp()) / 60


def names(identifiers: list[dict[str, Any]]) -> list[str]:
    """Return the sorted names of table identifiers."""
    return sorted(str(identifier["name"]) for identifier in identifiers)
