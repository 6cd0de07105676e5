# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate trino``: check the bridge (the policies of Trino's own OPA), and serve tokens to Trino."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.common import trust
from gateway.cli.management import gateway_address

if TYPE_CHECKING:
    import ssl

    from aiohttp import web

    from gateway.identity.engine_tokens import EngineTokens


_SECONDS = 30.0


@click.group()
def trino() -> None:
    """Check the connection between Trino, the OPA beside it, and the gateway, and serve tokens to Trino."""


@trino.command("check")
@click.option("--opa", required=True, help="Address of the OPA beside Trino, as in access-control.properties.")
@click.option("--key", envvar="LAKEGATE_BRIDGE_ENGINE_KEY", help="The secret in Trino's addresses of that OPA.")
@click.option("--user", required=True, help="A user of Trino.")
@click.option("--catalog", required=True, help="A catalog of Trino.")
@click.option("--table", help="A table of the catalog: SCHEMA.TABLE.")
@click.option("--columns", default="", help="Columns of the table, with commas between them.")
@click.option("--ca-file", type=click.Path(path_type=Path), help="Certificates to trust, if not the system's.")
@click.option(
    "--cert", type=click.Path(path_type=Path), help="Trino's client certificate and its key, in one PEM file."
)
def trino_check(
    opa: str,
    key: str | None,
    user: str,
    catalog: str,
    table: str | None,
    columns: str,
    ca_file: Path | None,
    cert: Path | None,
) -> None:
    """Query the OPA beside Trino about a user, and explain each failure. Nothing is changed.

    The exit code is 1 if a step failed.
    """
    import httpx2

    from lakegate.local.trino_check import BridgeCheck, Question

    schema, dot, name = (table or "").rpartition(".")
    if table is not None and not (dot and schema and name):
        raise click.UsageError("--table must be SCHEMA.TABLE")
    named = tuple(each.strip() for each in columns.split(",") if each.strip())
    question = Question(user=user, catalog=catalog, table=(schema, name) if table else None, columns=named)
    failed = False
    with httpx2.Client(base_url=opa, timeout=_SECONDS, trust_env=False, verify=_tls(ca_file, cert)) as http:
        for finding in BridgeCheck(http, key, question).run():
            click.echo(f"{'✓' if finding.passed else '✗'} {finding.text}")
            if not finding.passed:
                failed = True
                click.echo(f"  {finding.remedy}")
    sys.exit(int(failed))


def _tls(ca_file: Path | None, cert: Path | None) -> ssl.SSLContext:
    """Return the TLS configuration. Unusable files end the command with a message."""
    import ssl

    try:
        context = ssl.create_default_context(cafile=ca_file)
        if cert is not None:
            context.load_cert_chain(cert)
    except (OSError, ssl.SSLError) as error:
        raise click.ClickException(f"the certificates cannot be used: {error}") from None
    return context


_TOKEN_SECONDS = 15.0
_LONGEST_REQUEST = 1 << 18


@trino.command("tokens")
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
    """Return (host, port). Only loopback addresses are accepted, because the secret is sent without encryption."""
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
    provider = OAuthClient(client_id, client_secret=secret, tls=tls, seconds=_TOKEN_SECONDS)
    exchange = httpx2.AsyncClient(
        base_url=f"{gateway_address(gateway)}/catalog/v1/oauth/tokens",
        timeout=_TOKEN_SECONDS,
        trust_env=False,
        verify=tls,
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
    """Return the HTTP application with `POST /tokens`. It logs neither requests nor responses."""
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
