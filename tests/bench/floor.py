# SPDX-License-Identifier: Apache-2.0
"""The floor: the same bytes from the same server after one indexed read of PostgreSQL, without a decision."""

from __future__ import annotations

import os
from uuid import UUID

from litestar import Litestar, MediaType, Response, get
from litestar.types import ASGIApp
from sqlalchemy import bindparam, select
from sqlalchemy.ext.asyncio import create_async_engine

from gateway.db.schema.tables import tables

_STATEMENT = select(tables.c.metadata).where(tables.c.id == bindparam("id"))


def create_app() -> ASGIApp:
    """Create the application of one worker; it reads BENCH_POSTGRES, BENCH_PREFIX and BENCH_POOL."""
    engine = create_async_engine(os.environ["BENCH_POSTGRES"], pool_size=int(os.environ["BENCH_POOL"]))
    autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
    prefix = os.environ["BENCH_PREFIX"].encode()

    @get("/table/{table:uuid}")
    async def send_table(table: UUID) -> Response[bytes]:
        async with autocommit.connect() as connection:
            document = (await connection.execute(_STATEMENT, {"id": table})).scalar_one()
        return Response(prefix + document + b"}", media_type=MediaType.JSON)

    return Litestar([send_table], openapi_config=None, logging_config=None)
