# SPDX-License-Identifier: Apache-2.0
"""Profiles: the addresses of several gateways, with the provider of the login of each. They contain no secret.

They are in the file `profiles.json`, beside the logins.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from gateway.cli.common import settings_for
from gateway.cli.exit_codes import ExitCode, Failure
from gateway.cli.output import print_rows, with_format

Command = TypeVar("Command", bound=Callable[..., Any])

_META: Final = "gateway.cli.profile"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Profile:
    """One gateway: its address, and the issuer and the client of the login there. `project` is the default project."""

    name: str
    gateway: str
    issuer: str | None = None
    client_id: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class Profiles:
    """All profiles by name, and the name of the one that is used without a choice."""

    used: str | None = None
    by_name: Mapping[str, Profile] = field(default_factory=dict)


def with_profile(command: Command) -> Command:
    """Add the option `--profile`, which `chosen_profile` reads."""

    def choose(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            context.meta[_META] = value

    help = "Profile of the gateway (`lakegate profile`). Default: LAKEGATE__PROFILE."
    return click.option("--profile", expose_value=False, callback=choose, help=help)(command)


def chosen_profile(gateway: str | None = None) -> Profile | None:
    """Return the profile of the command; None if it uses none.

    It is that of --profile. Otherwise it is that of LAKEGATE__PROFILE, unless `gateway` has the address, or else that
    of `lakegate profile use`, unless `gateway` or the setting BASE_URI has it. An unknown profile ends the command.
    """
    context = click.get_current_context(silent=True)
    settings = settings_for()
    chosen = None if context is None else context.meta.get(_META)
    # A variable is a default, too: its login must not reach the address of one command.
    name = chosen or (None if gateway else settings.profile)
    known = read_profiles()
    if name is None:
        return None if gateway or settings.base_uri or known.used is None else known.by_name.get(known.used)
    if name not in known.by_name:
        names = ", ".join(known.by_name) or "none"
        raise Failure(
            f"there is no profile {name!r}. Profiles: {names}. Add it with `lakegate profile add`.", ExitCode.USAGE
        )
    return known.by_name[name]


def _file() -> Path:
    from gateway.settings import state_directory

    return Path(state_directory()) / "profiles.json"


def read_profiles() -> Profiles:
    """Return the stored profiles. An unreadable file ends the command."""
    file = _file()
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        by_name = {name: Profile(name, **each) for name, each in content["profiles"].items()}
        return Profiles(content.get("used"), by_name)
    except (FileNotFoundError, NotADirectoryError):
        return Profiles()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(
            f"the file {file} with the profiles cannot be read: {error}. Correct or remove it.", ExitCode.FAILED
        ) from None


def _write(profiles: Profiles) -> None:
    """Replace the file at once, so that another command never reads a part of it."""
    file = _file()
    entries = {
        name: {key: value for key, value in asdict(each).items() if value and key != "name"}
        for name, each in profiles.by_name.items()
    }
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as written:
            json.dump({"used": profiles.used, "profiles": entries}, written, indent=2)
        Path(part).replace(file)
    except OSError as error:
        raise Failure(f"the file {file} cannot be written: {error}", ExitCode.FAILED) from None


@click.group("profile")
def profile() -> None:
    """Keep the addresses of several gateways. Each profile has a login of its own."""


@profile.command()
@click.argument("name")
@click.argument("gateway")
@click.option("--issuer", help="Issuer of the provider of the login.")
@click.option("--client-id", help="Public client at the provider.")
@click.option("--project", help="Id of the default project.")
def add(name: str, gateway: str, issuer: str | None, client_id: str | None, project: str | None) -> None:
    """Add the profile NAME for the gateway at an address, or replace it. The first one is used from then on.

    Example: lakegate profile add prod https://lake.example.com
    """
    from gateway.cli.management import gateway_address

    if not _NAME.fullmatch(name):
        raise click.UsageError("a name has letters, digits, dots, hyphens and underscores")
    known = read_profiles()
    made = Profile(name, gateway_address(gateway), issuer, client_id, project)
    _write(Profiles(known.used or name, {**known.by_name, name: made}))
    click.echo(f"added the profile {name}; log in with `lakegate --profile {name} login`")


@profile.command("list")
@with_format
def list_profiles(form: str) -> None:
    """List the profiles. The one in use is marked.

    Example: lakegate profile list
    """
    known = read_profiles()
    rows = ({**asdict(each), "used": each.name == known.used} for each in known.by_name.values())
    print_rows(form, ("name", "gateway", "used", "issuer", "project"), rows, empty="There are no profiles.")


@profile.command()
@click.argument("name")
def use(name: str) -> None:
    """Use the profile NAME for commands that name no other gateway.

    Example: lakegate profile use prod
    """
    known = read_profiles()
    _require(known, name)
    _write(replace(known, used=name))
    click.echo(f"the profile {name} is used")


@profile.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove the profile NAME. Log out of it first with `lakegate --profile NAME logout`.

    Example: lakegate profile remove prod
    """
    known = read_profiles()
    _require(known, name)
    rest = {each: one for each, one in known.by_name.items() if each != name}
    _write(Profiles(None if known.used == name else known.used, rest))
    click.echo(f"removed the profile {name}")


def _require(known: Profiles, name: str) -> None:
    if name not in known.by_name:
        raise Failure(f"there is no profile {name!r}; `lakegate profile list` shows all", ExitCode.NOT_FOUND)
