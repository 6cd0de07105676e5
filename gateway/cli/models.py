# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate model …``: test relationship models of OpenFGA, write them, and activate a version."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gateway.cli.common import ends_on, postgres_tls, run_on_services, settings_for, trust

if TYPE_CHECKING:
    from gateway.db.engine.database import Database
    from gateway.features.server.model_changes import Models
    from gateway.settings import Settings

Answer = TypeVar("Answer")

_DIRECTORY = click.Path(file_okay=False, path_type=Path, resolve_path=True)


@click.group()
def model() -> None:
    """Test, record, activate and roll back the relationship model."""


@model.command("check")
@click.argument("directory", type=_DIRECTORY)
def model_check(directory: Path) -> None:
    """Compile the own model in DIRECTORY, and check that the gateway can use it. Needs no running stack.

    DIRECTORY contains `fga.mod`, or a folder `fga_model` with it (`lakegate init model`).
    """
    checked(directory)
    click.echo(f"{directory}: the model is valid for this version")


@model.command("test")
@click.argument("directory", type=_DIRECTORY, required=False)
def model_test(directory: Path | None) -> None:
    """Run the tests of the own model in DIRECTORY. Default: those of the model that this version contains."""
    from gateway.fga.model_source import InvalidModel, run_model_tests
    from lakegate.local.policies import test_model

    if directory is None:
        sys.exit(test_model())
    with ends_on(InvalidModel, OSError):
        result = run_model_tests(directory)
    click.echo(result.output, err=not result.passed)
    sys.exit(0 if result.passed else 1)


@model.command("status")
def model_status() -> None:
    """List the recorded models; `*` marks the active one."""

    async def run(settings: Settings) -> None:
        async with opened_models(settings) as models:
            active, recorded = await models.known()
        for each in recorded:
            mark = "*" if active and active.model_id == each.model_id else " "
            when = each.recorded_at.strftime("%Y-%m-%d %H:%M")
            click.echo(f"{mark} {each.version:8} {each.model_id}  {each.content_hash[:12]}  {when}  {each.recorded_by}")

    about_models(run)


@model.command("push")
@click.argument("directory", type=_DIRECTORY, required=False)
@click.option("--by", default=None, help="Author in the record. Default: the name of your account.")
def model_push(directory: Path | None, by: str | None) -> None:
    """Write a model to OpenFGA and record it, without activating it.

    DIRECTORY is an own model, which `lakegate model check` must accept. Default: the model of this version.
    """
    own = checked(directory) if directory else None

    async def run(settings: Settings) -> str:
        async with opened_models(settings) as models:
            return await models.push(by=by or operator(), own=own)

    pushed = about_models(run)
    click.echo(f"recorded the relationship model {pushed}; activate it with `lakegate model migrate --to {pushed}`")


@model.command("migrate")
@click.option("--to", "target", default=None, help="Id of a recorded model. Default: the newest.")
@click.option("--by", default=None, help="Author in the record. Default: the name of your account.")
@click.option(
    "--dry-run", is_flag=True, help="Compare the decisions of both models for the newest grants; change nothing."
)
@click.option(
    "--newest", default=2000, show_default=True, type=click.IntRange(min=1), help="Number of newest grants to compare."
)
def model_migrate(target: str | None, by: str | None, dry_run: bool, newest: int) -> None:
    """Write the tuples that a recorded model needs, then activate it. A repeated run continues an interrupted one."""

    async def run(settings: Settings) -> str:
        async with opened_models(settings) as models:
            chosen = await models.chosen(target)
            compared = await models.compare(chosen, limit=newest)
            for heading, changes in (("may now", compared.allowed_after), ("may no longer", compared.denied_after)):
                for change in changes:
                    click.echo(f"{heading}: {change}")
            click.echo(
                f"{compared.checked} questions: {len(compared.allowed_after)} gained, {len(compared.denied_after)} lost"
            )
            if dry_run:
                return f"{chosen} was not activated: this was a dry run"
            return f"{await models.migrate(by=by or operator(), target=chosen)} is active"

    click.echo(f"the relationship model {about_models(run)}")


@model.command("rollback")
@click.option("--by", default=None, help="Author in the record. Default: the name of your account.")
def model_rollback(by: str | None) -> None:
    """Activate the previous model. A second rollback undoes the first."""

    async def run(settings: Settings) -> str:
        async with opened_models(settings) as models:
            return await models.rollback(by=by or operator())

    click.echo(f"the relationship model {about_models(run)} is active")


@asynccontextmanager
async def opened_database(settings: Settings) -> AsyncIterator[Database]:
    """Context manager. Open the primary database. Close it after the block."""
    from gateway.assembly.adapters import event_outbox
    from gateway.db.engine.database import Database
    from gateway.settings.postgres import asyncpg_url

    database = Database(
        asyncpg_url(settings.write_url()),
        pool_size=2,
        acquire_timeout=settings.pg_acquire_timeout,
        tls=postgres_tls(settings),
        event_outbox=event_outbox(settings),
    )
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def opened_models(settings: Settings) -> AsyncIterator[Models]:
    """Context manager. Open the primary database and OpenFGA for changes of models. Close them after the block."""
    from gateway.features.server.model_changes import Models, OpenFgaAddress

    at, trust_store = settings.openfga, trust()
    key = at.api_key.reveal() if at.api_key else None
    address = OpenFgaAddress(at.endpoint, key, at.store_name, at.timeout, trust_store.context, trust_store.bundle)
    async with opened_database(settings) as database:
        yield Models(database, address)


def about_models(work: Callable[[Settings], Coroutine[Any, Any, Answer]], settings: Settings | None = None) -> Answer:
    """Return the result of `work` on models. The settings are `settings`, or else those of the environment. A refusal
    ends the command with a message.
    """
    from gateway.db.warehouses.models import SwitchedMeanwhile
    from gateway.features.server.model_changes import NoSuchModel, TuplesNotWritten
    from gateway.settings import SettingsError

    settings = settings or settings_for()
    with ends_on(NoSuchModel, SettingsError, SwitchedMeanwhile, TuplesNotWritten):
        return run_on_services(settings, work(settings))


def checked(directory: Path) -> dict[str, Any]:
    """Return the compiled model in an operator's directory. A fault ends the command with a message: file, line and
    rule.
    """
    from gateway.fga.model_source import InvalidModel, checked_model

    with ends_on(InvalidModel, OSError):
        return checked_model(directory)


def operator() -> str:
    """Return the account that runs the command. It is the default author of a record."""
    import getpass

    return getpass.getuser()
