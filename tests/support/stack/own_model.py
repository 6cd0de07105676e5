# SPDX-License-Identifier: Apache-2.0
"""`lakegate` commands for a relationship model of the operator."""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import asynccontextmanager
from typing import Any

from gateway.db.engine.database import Database
from gateway.features.server.model_changes import Models, OpenFgaAddress
from gateway.settings import Secret
from gateway.settings.postgres import asyncpg_url
from lakegate.local.ready import Ready
from tests.support.lakegate_command import run_lakegate


@asynccontextmanager
async def connected(ready: Ready, **more: Any) -> Any:
    """Yield the commands on models, connected to the stack's PostgreSQL and OpenFGA."""
    database = Database(asyncpg_url(Secret(ready.postgres)), pool_size=2, acquire_timeout=10)
    try:
        yield Models(database, OpenFgaAddress(ready.openfga.url, ready.openfga.token, "lakegate", 10.0), **more)
    finally:
        await database.close()


def known(ready: Ready) -> tuple[str, set[str]]:
    """Return (id of the active model, ids of all recorded models)."""

    async def run() -> tuple[str, set[str]]:
        async with connected(ready) as models:
            active, recorded = await models.known()
            return active.model_id, {each.model_id for each in recorded}

    return asyncio.run(run())


def lakegate(ready: Ready, *arguments: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("LAKEGATE__")}
    settings = {
        "LAKEGATE__PG_DATABASE_URL_WRITE": ready.postgres,
        "LAKEGATE__OPENFGA__ENDPOINT": ready.openfga.url,
        "LAKEGATE__OPENFGA__API_KEY": ready.openfga.token,
    }
    return run_lakegate(*arguments, environment=plain | settings, timeout=240)
