# SPDX-License-Identifier: Apache-2.0
"""Run the work of an operator's command on PostgreSQL, OpenFGA and OPA, and name the one that it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

if TYPE_CHECKING:
    from gateway.settings import Settings

Answer = TypeVar("Answer")

_PATIENCE_SECONDS = 2.0
_PORTS = {"http": 80, "https": 443}


def run_on_services(settings: Settings, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return the result of `work`. If it takes some seconds, print which service of the settings does not answer.

    `Commands` turns its errors into messages. Each wait of `work` for a connection has a limit.
    """
    return asyncio.run(_announced(settings, work))


async def _announced(settings: Settings, work: Coroutine[Any, Any, Answer]) -> Answer:
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=_PATIENCE_SECONDS)
    if not done:
        for name in await _silent(settings):
            if not task.done():
                click.echo(f"no answer yet from {name} …", err=True)
    return await task


async def _silent(settings: Settings) -> list[str]:
    """Return the services that accept no connection now, each with its address."""
    from gateway.embedded.pg_ready import accepts_connections

    host, port = postgres_address(settings)
    engines = {"OpenFGA": settings.openfga.endpoint, "OPA": settings.opa.url}
    tries = {f"PostgreSQL at {host}:{port}": accepts_connections(host, port, timeout=_PATIENCE_SECONDS)}
    for name, url in engines.items():
        parts = urlsplit(url)
        at = (parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0))
        tries[f"{name} at {at[0]}:{at[1]}"] = _accepts(*at)
    answers = await asyncio.gather(*tries.values())
    return [name for name, answered in zip(tries, answers, strict=True) if not answered]


def postgres_address(settings: Settings) -> tuple[str, int]:
    """Return (host, port) of the primary. Raises SettingsError without its URL."""
    url = urlsplit(settings.write_url().reveal())
    return url.hostname or "127.0.0.1", url.port or 5432


async def _accepts(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
