# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate trino tokens``: serve Trino's token requests on its own machine, until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
from typing import TYPE_CHECKING

import click

from gateway.cli.common import trust
from gateway.cli.management import gateway_address

if TYPE_CHECKING:
    import ssl

    from aiohttp import web

    from gateway.identity.engine_tokens import EngineTokens

_SECONDS = 15.0
_LONGEST_REQUEST = 1 << 18


@click.command("tokens")
@click.option("--listen", default="127.0.0.1:8283", show_default=True, help="A loopback address and a port.")
@click.option("--gateway", required=True, help="Address of the gateway: https://lakegate.example")
@click.option("--token-endpoint", required=True, help="The token endpoint of Trino's identity provider.")
@click.option("--credential", envvar="LAKEGATE_TRINO_CREDENTIAL", default="", help="ID:SECRET. Use the variable.")
@click.option("--scope", help="The scope of Trino's own token, if the provider needs one.")
def tokens(listen: str, gateway: str, token_endpoint: str, credential: str, scope: str | None) -> None:
    """Serve tokens to Trino and renew them. Set `iceberg.rest-catalog.oauth2.server-uri` to this address.

    Trino's own token comes from the identity provider. Exchanges for users are sent to the gateway.
    """
    client_id, colon, secret = credential.partition(":")
    if not (client_id and colon and secret):
        raise click.UsageError("LAKEGATE_TRINO_CREDENTIAL must be ID:SECRET")
    host, port = _address(listen)
    try:
        asyncio.run(_serve(host, port, gateway, token_endpoint, client_id, secret, scope))
    except OSError as error:
        raise click.ClickException(f"cannot listen on {listen}: {error.strerror}") from None


def _address(listen: str) -> tuple[str, int]:
    """Return (host, port). Only loopback is accepted: the secret would cross the network without encryption."""
    host, _, port = listen.rpartition(":")
    try:
        loopback = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        loopback = False
    if not loopback or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise click.UsageError("--listen must be a loopback address and a port: 127.0.0.1:8283")
    return host.strip("[]"), int(port)


async def _serve(
    host: str, port: int, gateway: str, endpoint: str, client_id: str, secret: str, scope: str | None
) -> None:
    import httpx2
    from aiohttp import web

    from gateway.identity.engine_tokens import EngineTokens
    from gateway.identity.oauth_client import OAuthClient

    tls: ssl.SSLContext = trust().context
    provider = OAuthClient(client_id, client_secret=secret, tls=tls, seconds=_SECONDS)
    exchange = httpx2.AsyncClient(
        base_url=f"{gateway_address(gateway)}/catalog/v1/oauth/tokens", timeout=_SECONDS, trust_env=False, verify=tls
    )
    async with provider, exchange:
        service = EngineTokens(provider=provider, endpoint=endpoint, secret=secret, scope=scope, gateway=exchange)
        runner = web.AppRunner(application(service), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
            click.echo(f"Serving tokens for {client_id} at http://{host}:{port}/tokens")
            await _until_signal()
        finally:
            await runner.cleanup()


def application(service: EngineTokens) -> web.Application:
    """Return the HTTP application: `POST /tokens`, which logs neither a request nor a response."""
    from aiohttp import web

    async def answer(request: web.Request) -> web.Response:
        form = {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
        found = await service.answer(form, request.headers.get("Authorization"))
        headers = {"Cache-Control": "no-store", "Pragma": "no-cache"}
        return web.Response(body=found.body, status=found.status, content_type="application/json", headers=headers)

    built = web.Application(client_max_size=_LONGEST_REQUEST)
    built.router.add_post("/tokens", answer)
    return built


async def _until_signal() -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    await ended.wait()
