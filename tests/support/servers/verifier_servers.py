# SPDX-License-Identifier: Apache-2.0
"""A real web server for the tests of verifiers behind HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

KEY = b"k" * 32
"""The key of the secret `whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=`."""


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """Serve all paths by `handler` on a free port, and yield the address."""
    application = web.Application(client_max_size=2**26)
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def answering(body: bytes | str, *, status: int = 200, content_type: str = "application/json") -> Handler:
    """Return a handler with a fixed response."""

    async def handle(_request: web.Request) -> web.Response:
        text = body.encode() if isinstance(body, str) else body
        return web.Response(body=text, status=status, content_type=content_type)

    return handle
