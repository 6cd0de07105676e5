# SPDX-License-Identifier: Apache-2.0
"""Send requests of subcommands to the management API, with the access token of the user who runs the command.

The gateway decides each request and records the user, as for every other client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import UUID

import click

from gateway.apply.client import error_id, notes_of, remedy, transport_text
from gateway.cli.common import settings_for, tls_for
from gateway.cli.exit_codes import ExitCode, Failure, code_of_status
from gateway.cli.login import current_token
from gateway.cli.profiles import chosen_profile, with_profile
from gateway.cli.texts import line as line
from gateway.cli.texts import printable as printable

if TYPE_CHECKING:
    import httpx2

Command = TypeVar("Command", bound=Callable[..., Any])

PROJECT = click.option("--project", help="Id of the project. Default: the default project of the gateway.")
_SECONDS = 30.0
_ADDRESS = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")


def at_a_gateway(command: Command) -> Command:
    """Add the options that select the gateway and the user. The command gets the parameters `gateway` and `token`."""
    for option in (
        click.option("--gateway", help="Address of the gateway. Default: the setting BASE_URI."),
        click.option(
            "--token",
            envvar="LAKEGATE_TOKEN",
            help="Access token. Default: the environment variable LAKEGATE_TOKEN, or else the stored login.",
        ),
    ):
        command = option(command)
    return with_profile(command)


def gateway_address(given: str | None) -> str:
    """Return the address of the gateway without a final slash: `given`, or else that of the profile or the settings.

    A final `/catalog` is removed: engines have it in their configuration. A missing address ends the command.
    """
    profile = None if given else chosen_profile()
    base = given or (settings_for().base_uri if profile is None else profile.gateway)
    if not base:
        raise click.ClickException(
            "give the address of the gateway with --gateway, set LAKEGATE__BASE_URI, or add a profile with `lakegate "
            "profile add`"
        )
    if not _ADDRESS.fullmatch(base):
        raise Failure(f"{base!r} is no address of a gateway, such as https://lake.example.com", ExitCode.USAGE)
    return base.rstrip("/").removesuffix("/catalog").rstrip("/")


def with_api(*, project: bool = True) -> Callable[[Command], Command]:
    """Add the options that select the gateway, the user and, if `project` is set, the project. The command gets the
    parameter `api`.
    """

    def decorated(command: Command) -> Command:
        @wraps(command)
        def run(*arguments: Any, gateway: str | None, token: str | None, **options: Any) -> Any:
            of = options.pop("project") if project else None
            return command(*arguments, api=Management(gateway, token, of), **options)

        added = at_a_gateway(cast(Command, run))
        return PROJECT(added) if project else added

    return decorated


@dataclass(frozen=True)
class Management:
    """Client of the management API of one gateway, for one user. `project` is the id of the project; None for the
    default.

    `gateway` and `given_token` are the options of the command. Without them, the first request uses the profile or the
    settings, and the stored login. A missing address or login ends the command with a message.
    """

    gateway: str | None
    given_token: str | None
    project: str | None = None

    @cached_property
    def base(self) -> str:
        """The address of the gateway, without a final slash."""
        return gateway_address(self.gateway)

    @cached_property
    def token(self) -> str:
        """The access token of the user."""
        return self.given_token or current_token(gateway=self.gateway)

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        below: str = "/management/v1",
        accepted: Collection[str] = (),
        seconds: float = _SECONDS,
    ) -> httpx2.Response:
        """Send a request, and return its response. `below` is the part of the API that precedes `path`.

        An error response ends the command with its message, unless its type is `accepted`. Facts about the caller in
        its headers are printed as a warning.
        """
        import httpx2

        headers = {"Authorization": f"Bearer {self.token}"}
        if self.project is not None:
            headers["X-Project-ID"] = self.project
        url = f"{self.base}{below}{path}"
        try:
            with httpx2.Client(timeout=seconds, verify=tls_for(self.base)) as client:
                answer = client.request(method, url, params=dict(query or {}), json=body, headers=headers)
        except httpx2.TransportError as error:
            text = f"the gateway at {self.base} did not answer: {transport_text(error)}{remedy(0)}"
            raise Failure(text, ExitCode.NO_ANSWER) from None
        if answer.headers.get("content-type", "").startswith("text/html"):
            text = f"another server than a gateway answers at {self.base}. Check the address."
            raise Failure(text, ExitCode.NO_ANSWER)
        if answer.is_error and not any(error_message(answer).startswith(f"{type}: ") for type in accepted):
            raise Failure(_whole_message(answer), code_of_status(answer.status_code))
        for note in notes_of(answer.headers):
            click.echo(f"warning: {note}", err=True)
        return answer

    def pages(self, path: str, member: str, query: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the entries of all pages of a list. If an error is returned, the command ends with its message."""
        page: str | None = None
        while True:
            asked = {**(query or {}), **({} if page is None else {"pageToken": page})}
            answer = self.send("GET", path, query=asked).json()
            yield from answer[member]
            page = answer.get("next-page-token")
            if page is None:
                return

    def path_of(self, noun: str, member: str, given: str) -> str:
        """Return the path of an object, which is given by its id, or by its name in the list `member`. An unknown name
        ends the command.
        """
        if (id := as_uuid(given)) is not None:
            return f"/{noun}/{id}"
        for each in self.pages(f"/{noun}", member):
            if each["name"] == given:
                return f"/{noun}/{each['id']}"
        raise click.ClickException(
            f"the project has no {noun.replace('-', ' ')} {printable(given)}. List them with `lakegate {noun} list`."
        )


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A warehouse of the gateway, with its id and name."""

    id: str
    name: str


def warehouse_named(api: Management, place: str, name: str) -> Warehouse:
    """Return the active warehouse with this name or id. `place` is the value of `--on`, for messages.

    An unknown warehouse ends the command.
    """
    warehouses = api.send("GET", "/warehouse", query={"warehouseStatus": "active"}).json()["warehouses"]
    # As in paths, a text in the form of a UUID is always an id, even if another warehouse has this text as its name.
    member, wanted = ("name", name) if (id := as_uuid(name)) is None else ("id", id)
    for each in warehouses:
        if each[member] == wanted:
            return Warehouse(each["id"], each["name"])
    raise click.ClickException(
        f"--on {place}: you see no active warehouse of this name or id in the project. Check the name, and select "
        "another project with --project."
    )


def as_uuid(text: str) -> str | None:
    """Return the text as a UUID in canonical form; None if it is not a UUID."""
    try:
        return str(UUID(text))
    except ValueError:
        return None


def error_message(answer: httpx2.Response) -> str:
    """Return the message of an error response, or its status if the response does not come from the gateway.

    Messages repeat names that other users chose, so control characters are removed.
    """
    try:
        error = answer.json()["error"]
        return printable(f"{error['type']}: {error['message']}")
    except (ValueError, KeyError, TypeError):
        return f"the answer has the status {answer.status_code}"


def _whole_message(answer: httpx2.Response) -> str:
    """Return the message of an error response, the remedy, and the error id."""
    message = error_message(answer)
    end = "" if message.endswith(".") else "."
    text = f"{message}{end}{remedy(answer.status_code)}"
    try:
        id = error_id(answer.json()["error"])
    except (ValueError, KeyError, TypeError, AttributeError):
        id = None
    return text if id is None else f"{text}\n  Error id: {printable(id)}"
