# SPDX-License-Identifier: Apache-2.0
"""Detect a change of the active relationship model, in every process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable
from gateway.db.engine.database import Database
from gateway.db.warehouses.models import ActiveModel, read_active_model
from gateway.fga.client import FgaClient
from gateway.fga.model import ModelNotReady

_log = structlog.get_logger("tasks.models")


class ModelWatch:
    """Keeps a process's OpenFGA client on the model that is active in PostgreSQL.

    `require_model` raises ModelNotReady if the model lacks a relation that this process needs. Then the client is
    disabled, as in an outage of OpenFGA, until another model is active. A process that cannot read the row cannot
    resolve objects either, so it decides nothing by an outdated model.
    """

    def __init__(
        self, database: Database, client: FgaClient, *, require_model: Callable[[ActiveModel], Awaitable[object]]
    ) -> None:
        self._database = database
        self._client = client
        self._fits = require_model
        self._followed: str | None = client.model_id

    async def run(self, *, every: float) -> None:
        """Check every `every` seconds until the process ends."""
        while True:
            try:
                await self.look()
            except (DatabaseUnavailable, DecisionEngineUnavailable) as outage:
                _log.warning("model.read_failed", reason=str(outage))
            except Exception:
                # The loop must survive unexpected errors; they are logged with their traceback.
                _log.exception("model.watch_failed")
            await asyncio.sleep(every)

    async def look(self) -> None:
        """Read the active model once and switch to it. Raises DatabaseUnavailable and DecisionEngineUnavailable."""
        active = await read_active_model(self._database)
        if active is None or active.model_id == self._followed:
            return
        # The old model is no longer active in any case. If the new one cannot be read, no model is used.
        self._followed = None
        try:
            await self._fits(active)
        except ModelNotReady as reason:
            self._client.block_checks(str(reason))
            self._followed = active.model_id
            _log.error("model.refused", model_id=active.model_id, reason=str(reason))
        except BaseException:
            self._client.block_checks(f"The relationship model {active.model_id} is active now, but could not be read.")
            raise
        else:
            self._client.use_model(active.model_id)
            self._followed = active.model_id
            _log.info("model.switched", model_id=active.model_id, version=active.version)
