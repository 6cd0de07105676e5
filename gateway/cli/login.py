# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate login``, ``logout`` and ``token``: logins of users at a terminal, and tokens for clients."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gateway.cli.common import settings_for, trust
from gateway.cli.exit_codes import ExitCode, Failure
from gateway.cli.profiles import chosen_profile, with_profile

if TYPE_CHECKING:
    from gateway.identity.oauth_client import DeviceCode, DeviceLogin, Tokens
    from gateway.identity.token_storage import Keyring, StoredLogin

Answer = TypeVar("Answer")
Command = TypeVar("Command", bound=Callable[..., Any])

#: A token that expires within this many seconds is renewed before it is printed.
_TOO_SHORT = 60.0
#: Seconds that a renewal may take, and seconds that another command waits for the lock. The wait must be longer.
_RENEWAL, _WAIT = 30.0, 45.0


def _at_a_provider(command: Command) -> Command:
    """Add the two options that select the login: client and issuer."""
    for option in (
        click.option("--client-id", help="Public client at the provider. Default: the setting UI__OPENID_CLIENT_ID."),
        click.option(
            "--issuer", help="Issuer of the provider. Default: UI__OPENID_PROVIDER_URI, or else OPENID_PROVIDER_URI."
        ),
    ):
        command = option(command)
    return with_profile(command)


@click.command()
@_at_a_provider
def login(issuer: str | None, client_id: str | None) -> None:
    """Log in with a code that you enter in a browser, on this machine or another one (RFC 8628). Each profile has a
    login of its own.

    The tokens are stored in the system's keyring (package `keyring`), or else in a file that only you can read.
    """
    issuer, client_id, scope = _provider(issuer, client_id)

    def show(code: DeviceCode) -> None:
        click.echo(f"Open {code.verification_uri} and enter the code {code.user_code}")
        if code.verification_uri_complete is not None:
            click.echo(f"or open {code.verification_uri_complete}")

    tokens = _at(issuer, client_id, scope, lambda flow: flow.run(show))
    login = _stored_login(issuer, client_id)
    # Without the lock, a running renewal of an older login would replace this one.
    with _exit_on_token_errors(), login.locked(seconds=_WAIT):
        login.store(tokens)
    click.echo("You are logged in; `lakegate token` prints your token for clients.")


@click.command()
@_at_a_provider
def logout(issuer: str | None, client_id: str | None) -> None:
    """Delete the stored tokens of the login. They stay valid until they expire: the provider does not revoke them."""
    issuer, client_id, _ = _provider(issuer, client_id)
    login = _stored_login(issuer, client_id)
    with _exit_on_token_errors(), login.locked(seconds=_WAIT):
        gone = login.forget()
    click.echo("You are logged out." if gone else "You were not logged in.")


@click.command()
@_at_a_provider
def token(issuer: str | None, client_id: str | None) -> None:
    """Print only the token of the login. A token that expires soon is renewed first."""
    click.echo(current_token(issuer, client_id))


def current_token(issuer: str | None = None, client_id: str | None = None, *, gateway: str | None = None) -> str:
    """Return the token of the login, renewed if it expires soon. Without a login the command ends with a message.

    `gateway` is the option of the command. With it, the login of a profile that is only the default is not used:
    another gateway must not get its token.
    """
    issuer, client_id, scope = _provider(issuer, client_id, gateway)
    login = _stored_login(issuer, client_id, gateway)
    with _exit_on_token_errors():
        tokens = _tokens_of(login)
        if _ends(tokens):
            with login.locked(seconds=_WAIT):
                # The previous holder of the lock has probably renewed the tokens, and its refresh token is used up.
                tokens = _tokens_of(login)
                if _ends(tokens):
                    tokens = _renewed(tokens, issuer, client_id, scope)
                    login.store(tokens)
    return tokens.access_token


def _tokens_of(login: StoredLogin) -> Tokens:
    tokens = login.stored()
    if tokens is None:
        raise Failure("you are not logged in; log in with `lakegate login`", ExitCode.NOT_SIGNED_IN)
    return tokens


def _ends(tokens: Tokens) -> bool:
    return tokens.expires_at - time.time() < _TOO_SHORT


def _renewed(tokens: Tokens, issuer: str, client_id: str, scope: str) -> Tokens:
    refresh_token = tokens.refresh_token
    if refresh_token is None:
        raise Failure("your login has expired; log in again with `lakegate login`", ExitCode.NOT_SIGNED_IN)
    return _at(issuer, client_id, scope, lambda flow: flow.refresh(refresh_token), seconds=_RENEWAL)


def _provider(issuer: str | None, client_id: str | None, gateway: str | None = None) -> tuple[str, str, str]:
    """Return (issuer, client id, scope). For a missing argument, the value of the profile or of the settings is
    used.
    """
    settings, profile = settings_for(), chosen_profile(gateway)
    if profile is not None:
        issuer, client_id = issuer or profile.issuer, client_id or profile.client_id
    issuer, client_id = issuer or settings.sign_in_issuer(), client_id or settings.ui.openid_client_id
    if issuer is None or client_id is None:
        raise Failure(
            "you are not logged in, and no provider for the login is known. Give its issuer with --issuer and its "
            "public client with --client-id, here or in `lakegate profile add`; or give a token in LAKEGATE_TOKEN",
            ExitCode.NOT_SIGNED_IN,
        )
    return issuer, client_id, settings.ui.openid_scope


def _stored_login(issuer: str, client_id: str, gateway: str | None = None) -> StoredLogin:
    from gateway.identity.token_storage import StoredLogin
    from gateway.settings import state_directory

    profile = chosen_profile(gateway)
    return StoredLogin(
        issuer,
        client_id,
        Path(state_directory()) / "logins",
        profile=None if profile is None else profile.name,
        keyring=_keyring(),
        warn=_print_code,
    )


def _print_code(sentence: str) -> None:
    """Print to standard error, because standard output must contain only the token."""
    click.echo(sentence, err=True)


def _keyring() -> Keyring | None:
    """Return the backend that the package `keyring` selects. Return None if the package or a recommended backend is
    missing.

    A recommended backend has priority 1 or more. Backends of lower priority store nothing, or use a file of their own.
    """
    try:
        import keyring
    except ImportError:
        return None
    try:
        backend = keyring.get_keyring()
        # To compute its priority, a backend queries the system, which can raise any error.
        return backend if backend.priority >= 1 else None
    except Exception as error:
        _print_code(f"the system's keyring cannot be used ({type(error).__name__}); a file is used instead")
        return None


@contextmanager
def _exit_on_token_errors() -> Iterator[None]:
    """Context manager. End the command with a message if the tokens cannot be read or stored."""
    from gateway.identity.token_storage import KeyringError, LockTimeout

    try:
        yield
    except KeyringError as refused:
        raise click.ClickException(
            f"{refused}. The keyring may contain your login; unlock the keyring, or log in again"
        ) from None
    except LockTimeout:
        raise click.ClickException(
            f"another lakegate command has used this login for more than {_WAIT:.0f} seconds; try again when that "
            "command has ended"
        ) from None
    except OSError as error:
        raise click.ClickException(f"the file with your login cannot be read or written: {error}") from None


def _at(
    issuer: str,
    client_id: str,
    scope: str,
    login_flow: Callable[[DeviceLogin], Coroutine[Any, Any, Answer]],
    *,
    seconds: float | None = None,
) -> Answer:
    """Return the result of `login_flow`, which sends requests to the provider.

    An error ends the command, and so does a run longer than `seconds`.
    """
    from gateway.identity.oauth_client import DeviceLogin, LoginFailed, OAuthClient

    async def run() -> Answer:
        async with (
            asyncio.timeout(seconds),
            OAuthClient(client_id, tls=trust().context) as oauth,
        ):
            return await login_flow(DeviceLogin(oauth, issuer=issuer, scope=scope))

    try:
        return asyncio.run(run())
    except LoginFailed as failed:
        raise click.ClickException(str(failed)) from None
    except TimeoutError:
        raise click.ClickException("the provider did not answer in time; try again") from None
