# SPDX-License-Identifier: Apache-2.0
"""The subcommands of `lakegate conformance`. Each checks an installed extension of one kind, such as a secret store."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.common import ends_on, settings_for, trust

if TYPE_CHECKING:
    from gateway.settings import Settings

_BROKEN = 1
_NAME = "kit"  # the id of a verifier or sink in the settings, which the author does not choose


@click.group()
def conformance() -> None:
    """Check an installed extension against the rules of its kind.

    Each rule that holds is printed. Exit code 1: a rule is broken, or the extension cannot be opened; the message says
    which and why.
    """


@conformance.command("secrets")
@click.argument("name")
def check_secrets(name: str) -> None:
    """Check the secret store NAME, as the setting SECRET_BACKEND names it. Its secrets stay as they are."""
    from gateway.assembly.secret_stores import NoSuchSecretStore, open_provided_store
    from lakegate.conformance.secrets import SecretSubject, check_secret_store

    with ends_on(NoSuchSecretStore):
        open_provided_store(name)
    _run(check_secret_store(SecretSubject(name, lambda: open_provided_store(name)), passed=_print_passed))


@conformance.command("authorizers")
@click.argument("name")
@click.option(
    "--expected",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File with a JSON array of answers that the authorizer must give.",
)
def check_authorizers(name: str, expected: Path) -> None:
    """Check the authorizer NAME, as the setting AUTHORIZERS names it. It is asked, and changes nothing.

    The names `rows` and `openfga` check Lakegate's own implementations on the systems of the gateway's settings.
    """
    import msgspec

    from gateway.assembly.authorizers import OPENFGA, open_provided_authorizer, own_authorizer
    from gateway.extensions import NoSuchExtension
    from gateway.fga.row_authorizer import ROWS
    from lakegate.conformance.authorizers import AuthorizerSubject, Expected, check_authorizer
    from lakegate.value_messages import in_words

    own = name in (ROWS, OPENFGA)
    try:
        answers = msgspec.json.decode(expected.read_bytes(), type=list[Expected])
        if not own:
            open_provided_authorizer(name)
    except NoSuchExtension as missing:
        raise click.ClickException(str(missing)) from None
    except (OSError, msgspec.MsgspecError) as error:
        raise click.ClickException(
            f"the file {expected} has no expected answers: {in_words(error, list[Expected])}"
        ) from None

    async def check_own(settings: Settings) -> None:
        async with own_authorizer(name, settings) as open:
            await check_authorizer(AuthorizerSubject(name, open, answers), passed=_print_passed)

    if own:
        _run(check_own(settings_for()))
    else:
        subject = AuthorizerSubject(name, lambda: open_provided_authorizer(name), answers)
        _run(check_authorizer(subject, passed=_print_passed))


_OPTIONS = click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An entry of the setting OPTIONS. Repeat it for several.",
)


@conformance.command("verifiers")
@click.argument("kind")
@_OPTIONS
def check_verifiers(kind: str, options: tuple[str, ...]) -> None:
    """Check the verifier KIND, as the setting VERIFIERS__<ID>__KIND names it. It is asked about invented changes."""
    from gateway.assembly.verifiers import open_provided_verifier
    from gateway.extensions import NoSuchExtension
    from lakegate.conformance.verifiers import VerifierSubject, check_verifier

    with ends_on(NoSuchExtension, ValueError):
        open_provided_verifier(kind, _NAME, options)
    subject = VerifierSubject(_NAME, lambda: open_provided_verifier(kind, _NAME, options))
    _run(check_verifier(subject, passed=_print_passed))


@conformance.command("events")
@click.argument("kind")
@click.option(
    "--reader",
    required=True,
    metavar="MODULE:FUNCTION",
    help="Asynchronous function that returns the (key, event id) of each stored event, in the order of storage.",
)
@_OPTIONS
def check_events(kind: str, reader: str, options: tuple[str, ...]) -> None:
    """Check the event sink KIND, as the setting EVENTS__SINKS__<ID>__KIND names it. Its storage must be empty.

    The events of the check stay in the storage.
    """
    from pkgutil import resolve_name

    from gateway.assembly.events import open_sink
    from gateway.extensions import NoSuchExtension
    from gateway.settings.events import EventSinkSettings
    from lakegate.conformance.events import SinkSubject, check_event_sink

    opened = partial(open_sink, _NAME, EventSinkSettings(kind=kind, options=options), trust())
    with ends_on(NoSuchExtension):
        opened()
    try:
        read = resolve_name(reader)
    except (ImportError, AttributeError, ValueError) as error:
        raise click.ClickException(f"the reader {reader!r} cannot be imported: {error}") from None

    async def check() -> None:
        sink = opened()
        try:
            await check_event_sink(SinkSubject(sink, read), passed=_print_passed)
        finally:
            await sink.close()

    _run(check())


@conformance.command("storage")
@click.argument("name")
@click.option(
    "--profile",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File with the JSON of the storage profile of a warehouse that is only for this check.",
)
@click.option(
    "--credential",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with the JSON of its storage credential, if it has one.",
)
def check_storage_provider(name: str, profile: Path, credential: Path | None) -> None:
    """Check the storage type NAME of profiles, with one warehouse. Its files outside of a new folder stay as they are.

    Endpoints of the profile may be in every network.
    """
    from gateway.scope.profile import STORED
    from gateway.storage.connector import Connector
    from gateway.storage.provider import ClientOptions
    from gateway.storage.registry import ProviderUnusable, provider_named
    from lakegate.conformance.storage import StorageSubject, check_storage

    with ends_on(ProviderUnusable):
        provider = provider_named(name)
    if provider is None:
        raise click.ClickException(f"no installed package provides the storage type {name!r}")
    connector = Connector(STORED.endpoints)
    options = ClientOptions(rules=STORED, route=connector.route)
    given = None if credential is None else _json_of(credential)
    try:
        _run(check_storage(StorageSubject(name, provider, _json_of(profile), given, options), passed=_print_passed))
    finally:
        connector.close()


def _json_of(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. If it is unreadable, end the command with a message that contains nothing of
    the file.
    """
    import msgspec

    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise click.ClickException(f"the file {path} cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError:
        raise click.ClickException(f"the file {path} contains no JSON object") from None


def _print_passed(rule: str) -> None:
    click.echo(f"holds   {rule}")


def _run(checks: Coroutine[Any, Any, None]) -> None:
    """Run a kit. If a rule is broken, end the command with it."""
    from lakegate.conformance.rules import ConformanceError

    try:
        asyncio.run(checks)
    except ConformanceError as error:
        click.echo(f"BROKEN  {error.rule}")
        click.echo(f"        {error.detail}", err=True)
        sys.exit(_BROKEN)
