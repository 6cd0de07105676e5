# SPDX-License-Identifier: Apache-2.0
"""Commands of an older version on a database that a newer version migrated, as after ``helm rollback``."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from gateway.db.migrate import run_migrations
from tests.support.rows.parts import KEY, Parts, closed_port

pytestmark = pytest.mark.servers


def _command(parts: Parts, *arguments: str) -> subprocess.Popen[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("LAKEGATE__")}
    ours = {
        "PG_DATABASE_URL_WRITE": parts.database_url.replace("postgresql+asyncpg:", "postgresql:"),
        "PG_ENCRYPTION_KEY": "k" * 64,
        "PG_SSL_MODE": "disable",
        "OPENFGA__ENDPOINT": parts.openfga_url,
        "OPENFGA__API_KEY": KEY,
        "OPENID_PROVIDER_URI": "https://idp.example",
        "OPENID_AUDIENCE": "lakegate",
        "WORKERS": "1",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "gateway.cli", *arguments],
        env=plain | {f"LAKEGATE__{name}": value for name, value in ours.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return (exit code, output and errors)."""
    output, errors = process.communicate(timeout=180)
    return process.returncode, output + errors


async def _execute(url: str, *statements: str) -> list[str]:
    """Execute statements, each in autocommit. Return the first column of the last one's rows."""
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as connection:
            result = None
            for statement in statements:
                result = await connection.execute(text(statement))
            return [str(row[0]) for row in result] if result is not None and result.returns_rows else []
    finally:
        await engine.dispose()


_STATE = (
    "select version_num from alembic_version union all "
    "select table_name || '.' || column_name from information_schema.columns where table_schema = 'public' "
    "union all select relname || ' ' || n_tup_ins || ' ' || n_tup_upd || ' ' || n_tup_del from pg_stat_user_tables "
    "order by 1"
)


async def test_each_command_refuses_a_newer_schema_with_the_way_back_and_changes_nothing(parts: Parts) -> None:
    await run_migrations(parts.database_url)
    (current,) = await _execute(parts.database_url, "select version_num from alembic_version")
    await _execute(parts.database_url, "update alembic_version set version_num = '9999'")
    try:
        await asyncio.sleep(1.5)  # PostgreSQL publishes the counts of a connection at most once a second
        before = await _execute(parts.database_url, _STATE)
        for arguments in (("migrate",), ("migrate", "--check", "--wait", "600"), ("serve",)):
            code, output = await asyncio.to_thread(_ended, _command(parts, *arguments))
            assert code == 1, output
            for part in ("schema 9999", f"needs schema {current}", "nothing was changed", "roll back", "backup"):
                assert part in output, (arguments, output)
            assert "Traceback" not in output
            assert len(output.strip().splitlines()) <= 2, output
        assert await _execute(parts.database_url, _STATE) == before
    finally:
        await _execute(parts.database_url, f"update alembic_version set version_num = '{current}'")
    code, output = await asyncio.to_thread(_ended, _command(parts, "migrate", "--check"))
    assert (code, output) == (0, "the database has the schema of this version\n")


async def test_check_of_a_new_database_creates_nothing_and_can_wait_for_the_migration(parts: Parts) -> None:
    await _execute(parts.database_url, "drop schema public cascade", "create schema public")
    code, output = await asyncio.to_thread(_ended, _command(parts, "migrate", "--check"))
    assert code == 1
    assert "the database has no schema; run `lakegate migrate` first" in output
    tables = "select relname from pg_class where relnamespace = 'public'::regnamespace"
    assert await _execute(parts.database_url, tables) == []
    waiting = _command(parts, "migrate", "--check", "--wait", "170")
    await run_migrations(parts.database_url)
    assert (await asyncio.to_thread(_ended, waiting))[0] == 0


def test_check_of_an_unreachable_database_exits_with_1_after_the_wait(parts: Parts) -> None:
    with closed_port() as port:
        gone = Parts(f"postgresql+asyncpg://u:s3cret@127.0.0.1:{port}/d", parts.openfga_url)
        code, output = _ended(_command(gone, "migrate", "--check", "--wait", "1"))
    assert code == 1
    assert "cannot serve" in output
    assert "Traceback" not in output
    assert "s3cret" not in output


def test_a_wait_without_a_check_is_refused(parts: Parts) -> None:
    code, output = _ended(_command(parts, "migrate", "--wait", "5"))
    assert code == 2
    assert "--wait needs --check" in output
