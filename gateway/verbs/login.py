# SPDX-License-Identifier: Apache-2.0
"""``lakegate login``, ``logout`` and ``token``: who people are at a terminal, for the clients they start."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gateway.verbs.edge import settings_for, trust

if TYPE_CHECKING:
    from gateway.identity.device import DeviceCode, DeviceLogin
    from gateway.identity.kept_tokens import Keeper

Answer = TypeVar("Answer")
Command = TypeVar("Command", bound=Callable[..., Any])

#: A token that ends sooner than a client may need to begin with it is renewed first, in seconds.
_TOO_SHORT = 60.0


def _at_a_provider(command: Command) -> Command:
    """The two options that say where the login is."""
    for option in (
        click.option("--client-id", help="Public client of the provider; default: the setting UI__OPENID_CLIENT_ID."),
        click.option("--issuer", help="The provider; default: as for the page at /ui."),
    ):
        command = option(command)
    return command


@click.command()
@_at_a_provider
def login(issuer: str | None, client_id: str | None) -> None:
    """Log in by a code that is entered in a browser, on this machine or another one (RFC 8628).

    The tokens go to the system's keyring where there is one (package `keyring`), else to a file that only you can read.
    """
    issuer, client_id, scope = _provider(issuer, client_id)

    def show(code: DeviceCode) -> None:
        click.echo(f"Open {code.verification_uri} and enter the code {code.user_code}")
        if code.verification_uri_complete is not None:
            click.echo(f"or open {code.verification_uri_complete}")

    tokens = _at(issuer, client_id, scope, lambda flow: flow.run(show))
    _keeper(issuer, client_id).keep(tokens)
    click.echo("You are logged in; `lakegate token` prints your token for clients.")


@click.command()
@_at_a_provider
def logout(issuer: str | None, client_id: str | None) -> None:
    """Forget the tokens of the login. They stay good to their own end; the provider is not told."""
    issuer, client_id, _ = _provider(issuer, client_id)
    gone = _keeper(issuer, client_id).forget()
    click.echo("You are logged out." if gone else "You were not logged in.")


@click.command()
@_at_a_provider
def token(issuer: str | None, client_id: str | None) -> None:
    """Print the token of the login and nothing else, renewed when it is about to end."""
    issuer, client_id, scope = _provider(issuer, client_id)
    keeper = _keeper(issuer, client_id)
    tokens = keeper.kept()
    if tokens is None:
        raise click.ClickException("you are not logged in; `lakegate login` does it")
    if tokens.expires_at - time.time() < _TOO_SHORT:
        refresh_token = tokens.refresh_token
        if refresh_token is None:
            raise click.ClickException("your login has ended; `lakegate login` begins a new one")
        tokens = _at(issuer, client_id, scope, lambda flow: flow.refresh(refresh_token))
        keeper.keep(tokens)
    click.echo(tokens.access_token)


def _provider(issuer: str | None, client_id: str | None) -> tuple[str, str, str]:
    """(issuer, client id, scope), given or from the settings."""
    settings = settings_for()
    issuer, client_id = issuer or settings.sign_in_issuer(), client_id or settings.ui.openid_client_id
    if issuer is None or client_id is None:
        raise click.ClickException("name the provider with --issuer and its public client with --client-id")
    return issuer, client_id, settings.ui.openid_scope


def _keeper(issuer: str, client_id: str) -> Keeper:
    from gateway.identity.kept_tokens import keeper
    from gateway.settings import state_directory

    return keeper(issuer, client_id, Path(state_directory()) / "logins", keyring=_keyring())


def _keyring() -> Any:
    """The package, when it is installed and has a place to keep things in."""
    with suppress(ImportError):
        import keyring
        import keyring.backends.fail

        if not isinstance(keyring.get_keyring(), keyring.backends.fail.Keyring):
            return keyring
    return None


def _at(issuer: str, client_id: str, scope: str, ask: Callable[[DeviceLogin], Coroutine[Any, Any, Answer]]) -> Answer:
    import httpx

    from gateway.identity.device import DeviceLogin, LoginFailed

    async def run() -> Answer:
        async with httpx.AsyncClient(
            timeout=15.0, follow_redirects=False, trust_env=False, verify=trust().context
        ) as http:
            return await ask(DeviceLogin(http, issuer=issuer, client_id=client_id, scope=scope))

    try:
        return asyncio.run(run())
    except LoginFailed as failed:
        raise click.ClickException(str(failed)) from None
