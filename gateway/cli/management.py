# SPDX-License-Identifier: Apache-2.0
"""Requests of subcommands to the management API, with the access token of the user who runs the command.

The gateway decides each request and records the user, as for every other client.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import click

from gateway.apply.client import notes_of
from gateway.cli.common import settings_for, trust
from gateway.cli.login import current_token

if TYPE_CHECKING:
    import httpx2

Command = TypeVar("Command", bound=Callable[..., Any])

_SECONDS = 30.0


def at_a_gateway(command: Command) -> Command:
    """Add the options that select the gateway and the user. The command gets `gateway` and `token`."""
    for option in (
        click.option("--gateway", help="Address of the gateway. Default: the setting BASE_URI."),
        click.option(
            "--token",
            envvar="LAKEGATE_TOKEN",
            help="Access token. Default: the environment variable LAKEGATE_TOKEN, or else the stored login.",
        ),
    ):
        command = option(command)
    return command


def gateway_address(given: str | None) -> str:
    """Return the address of the gateway, `given` or that in the settings, without a final slash.

    A final `/catalog` is removed: engines have it in their configuration. A missing address ends the command.
    """
    base = given or settings_for().base_uri
    if not base:
        raise click.ClickException("give the address of the gateway with --gateway, or set LAKEGATE__BASE_URI")
    return base.rstrip("/").removesuffix("/catalog").rstrip("/")


@dataclass(frozen=True, slots=True)
class Management:
    """The management API of one gateway, for one user. `project` is the id of the project; None for the default."""

    base: str
    token: str
    project: str | None = None

    @classmethod
    def of(cls, gateway: str | None, token: str | None, project: str | None = None) -> Management:
        """Return the API at `gateway`, else at the address in the settings. Without `token` the login is used.

        A missing address or login ends the command with a message.
        """
        return cls(gateway_address(gateway), token or current_token(), project)

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
        """Return the answer to a request below a part of the API. An error answer ends the command with its message,
        unless its type is `accepted`. What its headers state about the caller is printed as a warning.
        """
        import httpx2

        headers = {"Authorization": f"Bearer {self.token}"}
        if self.project is not None:
            headers["X-Project-ID"] = self.project
        url = f"{self.base}{below}{path}"
        try:
            with httpx2.Client(timeout=seconds, verify=trust().context) as client:
                answer = client.request(method, url, params=dict(query or {}), json=body, headers=headers)
        except httpx2.TransportError as error:
            raise click.ClickException(f"the gateway at {self.base} did not answer: {error}") from None
        if answer.is_error and not any(error_message(answer).startswith(f"{type}: ") for type in accepted):
            raise click.ClickException(error_message(answer))
        for note in notes_of(answer.headers):
            click.echo(f"warning: {note}", err=True)
        return answer


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A warehouse of the gateway."""

    id: str
    name: str


def warehouse_named(api: Management, place: str, name: str) -> Warehouse:
    """Return the active warehouse with this name or id. `place` is the value of `--on`, for messages.

    An unknown warehouse ends the command.
    """
    warehouses = api.send("GET", "/warehouse", query={"warehouseStatus": "active"}).json()["warehouses"]
    # As in paths, a text in the form of a UUID is always an id: another warehouse can have it as its name.
    member, wanted = ("name", name) if (id := as_uuid(name)) is None else ("id", id)
    for each in warehouses:
        if each[member] == wanted:
            return Warehouse(each["id"], each["name"])
    raise click.ClickException(
        f"--on {place}: you see no active warehouse of this name or id in the project. Check the name, and select "
        "another project with --project."
    )


def as_uuid(text: str) -> str | None:
    """Return the text as a UUID in its usual form; None if it is none."""
    try:
        return str(UUID(text))
    except ValueError:
        return None


def error_message(answer: httpx2.Response) -> str:
    """Return the message of an error answer, or its status if the answer is not of the gateway.

    Messages repeat names that other users chose, so control characters are removed.
    """
    try:
        error = answer.json()["error"]
        return printable(f"{error['type']}: {error['message']}")
    except (ValueError, KeyError, TypeError):
        return f"the answer has the status {answer.status_code}"


def printable(text: str) -> str:
    """Return the text with a space for each control character, which could change what a terminal shows."""
    return "".join(char if char.isprintable() else " " for char in text)
