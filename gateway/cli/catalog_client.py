# SPDX-License-Identifier: Apache-2.0
"""Connect a command to the API of one gateway, and end it with a message and an exit code after an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

import click

from gateway.cli.common import tls_for
from gateway.cli.exit_codes import ExitCode, Failure, code_of_status
from gateway.cli.login import current_token
from gateway.cli.management import Command, Management, at_a_gateway, gateway_address, printable
from gateway.cli.profiles import chosen_profile

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gateway.apply.client import Api
    from gateway.apply.references import Finder, Reference


def client_of(gateway: str | None, token: str | None, seconds: float | None = None) -> Api:
    """Return a client of the gateway's API for the caller. A request may take `seconds`."""
    from gateway.apply.client import Api

    base = gateway_address(gateway)
    return Api(base, token or current_token(gateway=gateway), tls=tls_for(base), seconds=seconds)


@contextmanager
def exit_on_errors(code: ExitCode | None = None) -> Iterator[None]:
    """Context manager. For an expected error, end the command with its message, from which control characters are
    removed.

    The exit code is `code`, or else that of the error. Messages contain names that other users chose.
    """
    from gateway.apply import ApplyError

    try:
        yield
    except ApplyError as error:
        text = "\n".join(map(printable, str(error).split("\n")))
        raise Failure(text, _code_of(error) if code is None else code) from None


def _code_of(error: Exception) -> ExitCode:
    """Return the exit code for an error of the package `gateway.apply`."""
    from gateway.apply.client import ApiError
    from gateway.apply.references import InvalidReference, NotFound

    match error:
        case ApiError():
            return code_of_status(error.status)
        case NotFound():
            return ExitCode.NOT_FOUND
        case InvalidReference():
            return ExitCode.USAGE
    return ExitCode.FAILED


def default_project(gateway: str | None) -> str | None:
    """Return the project of the profile; None if it has none."""
    profile = chosen_profile(gateway)
    return None if profile is None else profile.project


@contextmanager
def finder_of(api: Management) -> Iterator[Finder]:
    """Context manager. Yield a finder with the options of a client of the management API."""
    from gateway.apply.references import Finder

    with exit_on_errors(), client_of(api.gateway, api.given_token) as client:
        yield Finder(client, api.project)


def path_of_object(api: Management, reference: Reference, below: str = "") -> str:
    """Return the path of an object below `/management/v1`, with `/grants` or `/tags` after it. An unknown object ends
    the command.
    """
    from gateway.apply.session import MANAGEMENT

    with finder_of(api) as finder:
        address, located = finder.find(reference), finder.session.located
        path = located.tags_path(address) if below == "/tags" else f"{located.path(address)}{below}"
        return path.removeprefix(MANAGEMENT)


def target_of(api: Management, reference: Reference) -> dict[str, str]:
    """Return an object in the form of bindings of data policies: `type`, `id` and `warehouse-id`."""
    from gateway.apply.references import object_of

    with finder_of(api) as finder:
        [(kind, fields)] = object_of(finder, finder.find(reference)).items()
    further = {name: value for name, value in fields.items() if name == "warehouse-id" and kind != "warehouse"}
    return {"type": kind, "id": fields.get(f"{kind}-id", ""), **further}


def with_finder(command: Command) -> Command:
    """Add the options that select the gateway, the user and the project. The command gets the parameter `finder`."""

    @wraps(command)
    def run(*arguments: Any, gateway: str | None, token: str | None, project: str | None, **options: Any) -> Any:
        from gateway.apply.references import Finder

        with exit_on_errors(), client_of(gateway, token) as api:
            done = command(*arguments, finder=Finder(api, project or default_project(gateway)), **options)
            for note in api.notes:
                click.echo(f"warning: {note}", err=True)
            return done

    option = click.option("--project", help="Id or name of the project. Default: the default project.")
    return option(at_a_gateway(cast(Command, run)))


class ReferenceType(click.ParamType["Reference"]):
    """A reference to an object, such as `table/demo/hr.people`.

    With `kinds`, only these are accepted, and the kind may be left out: the first one that fits is used.
    """

    name = "object"

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the references that begin with a text."""
        from gateway.cli.completion import complete_reference

        return complete_reference(ctx, incomplete, self._kinds)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Reference:
        """Return the reference."""
        from gateway.apply.references import InvalidReference, Reference, parse_reference
        from gateway.apply.state import Kind

        if isinstance(value, Reference):
            return value
        fault = ""
        named = [each for each in self._kinds if str(value).startswith(f"{each}/")]
        for kind in named or self._kinds or (None,):
            try:
                return parse_reference(str(value), kind=None if kind is None else Kind(kind))
            except InvalidReference as error:
                fault = fault or str(error)
        self.fail(fault, param, ctx)


def confirm_by_name(name: str, consequence: str, *, yes: bool) -> None:
    """Ask for the name of the object that the command destroys. Any other answer ends the command."""
    import sys

    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure(f"{consequence} There is no terminal for the question; give --yes to do it.", ExitCode.USAGE)
    click.echo(printable(consequence), err=True)
    if click.prompt(f"Type {printable(name)} to do it", err=True) != name:
        raise Failure("nothing was changed", ExitCode.FAILED)


Added = Callable[[Command], Command]
YES: Added[Any] = click.option("--yes", is_flag=True, help="Do not ask.")
