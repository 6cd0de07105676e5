# SPDX-License-Identifier: Apache-2.0
"""Types of rows: PostgreSQL describes each statement, and its columns must be the fields of the type of its rows.

Without this test, a wrong type would be found only by the request that executes its statement.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import asyncpg
import pytest
from sqlalchemy import select, text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import fetch_all, fetch_optional
from gateway.db.schema.policies import tags
from tests.support.rows.described_statements import Described, call, modules, reads, sites


@asynccontextmanager
async def _described(url: str) -> AsyncIterator[Described]:
    driver = await asyncpg.connect(make_url(url).set(drivername="postgresql").render_as_string(hide_password=False))
    try:
        yield Described(driver)
    finally:
        await driver.close()


async def test_the_columns_of_each_statement_are_the_fields_of_its_rows(url: str) -> None:
    async with _described(url) as connection:
        unreached = []
        for module in modules():
            declared = sorted(sites(module))
            for function in dict.fromkeys(site.function for site in declared):
                await call(connection, module, function)
            lines = {line for name, line in connection.reached if name == module.__name__}
            unreached += [site for site in declared if not lines & set(range(site.first, site.last + 1))]
        assert not connection.wrong
        assert not unreached


async def test_the_columns_of_each_direct_read_are_the_fields_of_its_rows(url: str) -> None:
    async with _described(url) as connection:
        for read in reads():
            columns = await connection.columns(read.statement, {})
            if read.kind is not None:
                connection.note(read.kind, columns, "a direct read")
        assert not connection.wrong


class _Wrong(NamedTuple):
    id: int
    title: str


async def planted_core(connection: AsyncConnection, colour: str | None) -> None:
    """Read rows of a wrong type by a statement that only one value of a parameter reaches."""
    if colour is None:
        await fetch_all(connection, _Wrong, select(tags.c.id, tags.c.name))


async def planted_text(connection: AsyncConnection) -> None:
    """Read rows of a wrong type after a row was found."""
    if (await connection.execute(text("select id from tags"))).one_or_none() is not None:
        await fetch_optional(connection, _Wrong, text("select id, name from tags where id = :id"), {"id": 1})


@pytest.mark.parametrize("planted", ["planted_core", "planted_text"])
async def test_a_statement_with_another_column_than_its_type_is_reported(url: str, planted: str) -> None:
    async with _described(url) as connection:
        await call(connection, sys.modules[__name__], planted)
        assert [each.split(": ")[1] for each in connection.wrong] == [
            "_Wrong has ('id', 'title'), its statement ('id', 'name')"
        ]
