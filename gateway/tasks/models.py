# SPDX-License-Identifier: Apache-2.0
"""Noticing that another relationship model serves, in every process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable
from gateway.db.engine import Database
from gateway.db.models import ActiveModel, active_model
from gateway.fga.client import FgaClient
from gateway.fga.model import ModelNotReady

_log = structlog.get_logger("tasks.models")


class ModelWatch:
    """Keeps one process's client on the model that PostgreSQL says serves.

    `fits` returns when this process can decide by a model, and raises ModelNotReady when it lacks what is demanded:
    then nothing is asked, as if OpenFGA were down, until another one serves. A process that cannot read the row cannot
    resolve objects either, so it decides nothing by a model that may be over.
    """

    def __init__(
        self, database: Database, client: FgaClient, *, fits: Callable[[ActiveModel], Awaitable[object]]
    ) -> None:
        self._database = database
        self._client = client
        self._fits = fits
        self._followed: str | None = client.model_id

    async def run(self, *, every: float) -> None:
        """Look every so many seconds for as long as the process lives."""
        while True:
            try:
                await self.look()
            except (DatabaseUnavailable, DecisionEngineUnavailable) as outage:
                _log.warning("model.read_failed", reason=str(outage))
            except Exception:
                # Must outlive every surprise; the surprise itself is told in full.
                _log.exception("model.watch_failed")
            await asyncio.sleep(every)

    async def look(self) -> None:
        """Read once which model serves, and follow. Raises DatabaseUnavailable and DecisionEngineUnavailable."""
        async with self._database.read() as connection:
            active = await active_model(connection)
        if active is None or active.model_id == self._followed:
            return
        # Whatever comes of it, the model that was followed is over: should the new one not be read, it is not asked on.
        self._followed = None
        try:
            await self._fits(active)
        except ModelNotReady as reason:
            self._client.withhold(str(reason))
            self._followed = active.model_id
            _log.error("model.refused", model_id=active.model_id, reason=str(reason))
        except BaseException:
            self._client.withhold(f"The relationship model {active.model_id} serves by now and could not be read.")
            raise
        else:
            self._client.use_model(active.model_id)
            self._followed = active.model_id
            _log.info("model.switched", model_id=active.model_id, version=active.version)
