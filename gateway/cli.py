# SPDX-License-Identifier: Apache-2.0
"""The ``lakegate`` command: one function for each verb, which imports what it needs when it runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

if TYPE_CHECKING:
    import ssl

    from gateway.settings import Settings
    from gateway.tasks.model_changes import Models
    from gateway.trust import Trust

Answer = TypeVar("Answer")

_FAILED = 1
_DIFFERS = 3
_DEFAULT_DATA = Path(".lakegate")


def _settings(require: Callable[[Settings], object] | None = None) -> Settings:
    """Read the settings; a problem with them ends the command with its description."""
    from gateway import settings

    try:
        read = settings.load()
        if require is not None:
            require(read)
    except settings.SettingsError as error:
        raise click.ClickException(f"the settings cannot be used\n{error}") from None
    return read


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Lakegate: an Iceberg REST catalog in which every operation is decided."""


@main.command()
def version() -> None:
    """Print the version."""
    try:
        click.echo(installed_version("lakegate"))
    except PackageNotFoundError:
        click.echo("unknown (not installed)")


@main.command()
def serve() -> None:
    """Serve the catalog and management APIs until a signal says stop."""
    from gateway import serving
    from gateway.settings import Settings

    settings = _settings(Settings.require_serving)
    asyncio.run(_require_our_database(settings))
    try:
        serving.serve(settings)
    except serving.CannotListen as error:
        raise click.ClickException(f"cannot listen on {error}") from None


async def _require_our_database(settings: Settings) -> None:
    """End the command when the database is of another version, or was used with another key: workers could only fail,
    one after the other. One that does not answer yet is waited for by them.
    """
    from gateway.access.outage import DatabaseUnavailable
    from gateway.db.credentials import StorageCredentials
    from gateway.db.engine import Database
    from gateway.db.migrate import SchemaMismatch, require_current_schema
    from gateway.db.secrets import Sealer, SecretUnreadable
    from gateway.db.servers import RestoredDatabase, require_home
    from gateway.settings import asyncpg_url

    url = asyncpg_url(settings.write_url())
    try:
        sealer = Sealer(settings.encryption_keys())
    except ValueError as unfit:
        raise click.ClickException(f"PG_ENCRYPTION_KEY cannot be used: {unfit}") from None
    tls = _postgres_tls(settings)
    database = Database(url, pool_size=1, acquire_timeout=settings.pg_acquire_timeout, tls=tls)
    try:
        await require_current_schema(url, tls=tls)
        await StorageCredentials(database, sealer).require_right_key()
        async with database.read() as connection:
            await require_home(connection)
    except (RestoredDatabase, SchemaMismatch, SecretUnreadable) as refused:
        raise click.ClickException(f"cannot serve: {refused}") from None
    except DatabaseUnavailable:
        return
    finally:
        await database.close()


def _trust() -> Trust:
    """Whom to trust; certificates that cannot be used end the command."""
    from gateway.settings import certificate_sources
    from gateway.trust import CertificatesUnusable, trusted

    try:
        return trusted(*certificate_sources())
    except CertificatesUnusable as unusable:
        raise click.ClickException(str(unusable)) from None


def _postgres_tls(settings: Settings) -> ssl.SSLContext | str:
    from gateway.trust import CertificatesUnusable, for_postgres

    try:
        return for_postgres(settings.pg_ssl_mode, _trust(), settings.pg_ssl_root_cert)
    except CertificatesUnusable as unusable:
        raise click.ClickException(str(unusable)) from None


@main.command()
def migrate() -> None:
    """Bring the database schema and the relationship model up to date, and let the model serve. Safe to repeat and to
    run twice at once.
    """
    from gateway.db.migrate import SchemaMismatch, run_migrations
    from gateway.settings import Settings, asyncpg_url

    settings = _settings(Settings.write_url)

    async def run() -> str:
        await run_migrations(asyncpg_url(settings.write_url()), tls=_postgres_tls(settings))
        async with _models(settings) as models:
            return await models.upgrade(by=_operator())

    try:
        model = _about_models(run())
    except SchemaMismatch as refused:
        raise click.ClickException(str(refused)) from None
    click.echo(f"the database has the newest schema; the relationship model is {model}")


@main.group()
def model() -> None:
    """The relationship model: test it, write a version, let it serve, go back."""


@model.command("test")
def model_test() -> None:
    """Run the tests beside the model, in fga_model/tests of the checkout."""
    from gateway.embedded.policies import test_model

    sys.exit(test_model())


@model.command("status")
def model_status() -> None:
    """List the recorded models; the one that serves is marked."""

    async def run() -> None:
        async with _models(_settings()) as models:
            active, recorded = await models.known()
        for each in recorded:
            mark = "*" if active and active.model_id == each.model_id else " "
            when = each.recorded_at.strftime("%Y-%m-%d %H:%M")
            click.echo(f"{mark} {each.version:6} {each.model_id}  {each.content_hash[:12]}  {when}  {each.recorded_by}")

    _about_models(run())


@model.command("push")
@click.option("--by", default=None, help="Who is told in the record; the name of your account by default.")
def model_push(by: str | None) -> None:
    """Write this version's model next to those that are there and record it. It does not serve yet."""

    async def run() -> str:
        async with _models(_settings()) as models:
            return await models.push(by=by or _operator())

    click.echo(f"recorded the relationship model {_about_models(run())}; `lakegate model migrate` lets it serve")


@model.command("migrate")
@click.option("--to", "target", default=None, help="The id of a recorded model; the newest by default.")
@click.option("--by", default=None, help="Who is told in the record; the name of your account by default.")
@click.option("--dry-run", is_flag=True, help="Only compare what both models say about the newest grants.")
def model_migrate(target: str | None, by: str | None, dry_run: bool) -> None:
    """Write the tuples a recorded model needs, then let it serve. Interrupted, it goes on where it was."""

    async def run() -> str:
        async with _models(_settings()) as models:
            chosen = await models.chosen(target)
            compared = await models.compare(chosen)
            for what, changes in (("may now", compared.gained), ("may no longer", compared.lost)):
                for change in changes:
                    click.echo(f"{what}: {change}")
            click.echo(f"{compared.asked} questions: {len(compared.gained)} gained, {len(compared.lost)} lost")
            if dry_run:
                return f"{chosen} does not serve: this was a dry run"
            return f"{await models.migrate(by=by or _operator(), target=chosen)} serves"

    click.echo(f"the relationship model {_about_models(run())}")


@model.command("rollback")
@click.option("--by", default=None, help="Who is told in the record; the name of your account by default.")
def model_rollback(by: str | None) -> None:
    """Let the model serve that did before the present one. A second time undoes the first."""

    async def run() -> str:
        async with _models(_settings()) as models:
            return await models.rollback(by=by or _operator())

    click.echo(f"the relationship model {_about_models(run())} serves")


@asynccontextmanager
async def _models(settings: Settings) -> AsyncIterator[Models]:
    """The verbs on models, on the primary and the OpenFGA of these settings."""
    from gateway.db.engine import Database
    from gateway.settings import asyncpg_url
    from gateway.tasks.model_changes import Models, OpenFgaAddress

    at = settings.openfga
    database = Database(
        asyncpg_url(settings.write_url()),
        pool_size=2,
        acquire_timeout=settings.pg_acquire_timeout,
        tls=_postgres_tls(settings),
    )
    trust = _trust()
    key = at.api_key.reveal() if at.api_key else None
    try:
        yield Models(database, OpenFgaAddress(at.endpoint, key, at.store_name, at.timeout, trust.context, trust.bundle))
    finally:
        await database.close()


def _about_models(work: Coroutine[Any, Any, Answer]) -> Answer:
    """The result of work on models; what it refuses or cannot reach ends the command with its description."""
    from gateway.access.outage import DatabaseUnavailable, DecisionEngineUnavailable
    from gateway.db.models import SwitchedMeanwhile
    from gateway.fga.model import ModelNotReady
    from gateway.tasks.model_changes import NoSuchModel, TuplesNotWritten

    outages = (DatabaseUnavailable, DecisionEngineUnavailable)
    try:
        return asyncio.run(work)
    except (ModelNotReady, NoSuchModel, SwitchedMeanwhile, TuplesNotWritten, *outages) as error:
        raise click.ClickException(str(error)) from None


def _operator() -> str:
    import getpass

    return getpass.getuser()


@main.command("wait-for-db")
@click.option("-r", "--retries", default=15, show_default=True, type=click.IntRange(min=0))
@click.option("-b", "--backoff", default=2.0, show_default=True, help="Seconds between two tries.")
def wait_for_db(retries: int, backoff: float) -> None:
    """Wait until the primary takes connections; exit 1 if it does not."""
    from urllib.parse import urlsplit

    from gateway.embedded.pg_ready import accepts_connections
    from gateway.settings import Settings

    url = urlsplit(_settings(Settings.write_url).write_url().reveal())
    host, port = url.hostname or "127.0.0.1", url.port or 5432

    async def wait() -> bool:
        for attempt in range(retries + 1):
            if await accepts_connections(host, port, timeout=backoff):
                return True
            if attempt < retries:
                await asyncio.sleep(backoff)
        return False

    if not asyncio.run(wait()):
        raise click.ClickException(f"PostgreSQL at {host}:{port} took no connection after {retries + 1} tries")


@main.command()
def healthcheck() -> None:
    """Ask the gateway of these settings whether it is well; exit 1 if not."""
    import httpx

    settings = _settings()
    # An address to listen on everywhere is none to connect to.
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.bind_ip, settings.bind_ip)
    try:
        answer = httpx.get(f"http://{host}:{settings.listen_port}/health", timeout=5.0, trust_env=False)
    except httpx.TransportError as error:
        raise click.ClickException(f"no answer: {error}") from None
    click.echo(answer.text)
    if answer.status_code != httpx.codes.OK:
        sys.exit(_FAILED)


@main.command()
@click.option("--ready-file", type=click.Path(dir_okay=False, path_type=Path), help="Write addresses and keys there.")
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), default=_DEFAULT_DATA, show_default=True)
@click.option("--empty", is_flag=True, help="Leave the server un-bootstrapped.")
def up(ready_file: Path | None, data: Path, empty: bool) -> None:
    """Run the whole stack on this machine until Ctrl-C."""
    from gateway.embedded import up as embedded

    _embedded(embedded.run(_settings(), data=data.resolve(), ready_file=ready_file, empty=empty))


@main.command()
def demo() -> None:
    """Run the pipeline on real data and show that the door is real."""
    from gateway.embedded import demo as embedded

    sys.exit(_embedded(embedded.run(_settings())))


@main.command()
@click.option("--catalog", is_flag=True, help="Only the Iceberg REST catalog's routes.")
def openapi(catalog: bool) -> None:
    """Print the OpenAPI document of the HTTP APIs."""
    import json

    import gateway.api.build  # noqa: F401 - importing it is what serves every operation
    from gateway.api.openapi import is_catalog, openapi_document

    document = openapi_document(is_catalog) if catalog else openapi_document()
    click.echo(json.dumps(document, indent=2))


@main.group()
def authz() -> None:
    """Relationships: what OpenFGA holds and what the rows want."""


@authz.command()
@click.option("--dry-run", is_flag=True, help="Change nothing, only tell.")
@click.option(
    "--restored",
    type=click.Choice(["revoke", "give-back"]),
    help="PostgreSQL was restored: grants that OpenFGA does not have (revoked since the backup) end, or hold again.",
)
def reconcile(dry_run: bool, restored: Literal["revoke", "give-back"] | None) -> None:
    """Compare all relationships in OpenFGA with all that the rows want, and make both agree.

    Gateways may serve meanwhile, but for a restored database: it is refused until `--restored` says what holds. Exit
    code 0: both agree, or do now; 3: they differ, in a dry run or because a grant is only to be reported; 1: it could
    not be found out.
    """
    from gateway import app
    from gateway.settings import Settings
    from gateway.tasks.drift import Finding
    from gateway.telemetry.logs import configure_logging

    configure_logging(level="WARNING", stream=sys.stderr.buffer)

    def tell(finding: Finding) -> None:
        click.echo(f"{finding.kind:<16} {finding.text}")

    try:
        compared = asyncio.run(
            app.reconcile(_settings(Settings.write_url), repair=not dry_run, tell=tell, restored=restored)
        )
    except _start_failures() as error:
        raise click.ClickException(str(error)) from None
    click.echo(compared.summary())
    if compared.drift and (dry_run or compared.left):
        sys.exit(_DIFFERS)


@main.group()
def secrets() -> None:
    """Storage credentials at rest."""


@secrets.command("rotate")
@click.option("--dry-run", is_flag=True, help="Change nothing, only count.")
def rotate_secrets(dry_run: bool) -> None:
    """Seal every stored credential with PG_ENCRYPTION_KEY; what PG_ENCRYPTION_KEY_OTHER sealed is opened with that.

    Gateways that know both keys may serve meanwhile, and it can be cut short and begun anew. Exit code 0: the first key
    opens everything, the other one may go; 3: not yet, in a dry run or because something was stored meanwhile; 1: it
    could not be done, and the message says why.
    """
    from gateway import app
    from gateway.settings import Settings
    from gateway.tasks.keys import NotAllReadable
    from gateway.telemetry.logs import configure_logging

    configure_logging(level="WARNING", stream=sys.stderr.buffer)
    settings = _settings(Settings.require_encryption_key)
    failures: tuple[type[Exception], ...] = (NotAllReadable, *_start_failures())
    try:
        changed = asyncio.run(app.change_keys(settings, seal=not dry_run))
    except failures as error:
        raise click.ClickException(str(error)) from None
    except ValueError as unfit:
        raise click.ClickException(f"PG_ENCRYPTION_KEY cannot be used: {unfit}") from None
    click.echo(changed.summary())
    if not changed.complete:
        sys.exit(_DIFFERS)


def _start_failures() -> tuple[type[Exception], ...]:
    """What keeps a verb from starting its parts or from passing the door, each with a text for people."""
    from gateway.access.outage import AuditUnavailable, CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable
    from gateway.db.migrate import SchemaMismatch
    from gateway.db.servers import RestoredDatabase
    from gateway.fga.model import ModelNotReady
    from gateway.iceberg.errors import CatalogError
    from gateway.tasks.reconcile import NothingToGoBy
    from gateway.trust import CertificatesUnusable

    outages = (AuditUnavailable, CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable)
    refusals = (CatalogError, CertificatesUnusable, ModelNotReady, NothingToGoBy, RestoredDatabase, SchemaMismatch)
    return (*refusals, *outages)


@main.command("settings-table", hidden=True)
def settings_table() -> None:
    """Print the table of all settings, the text of docs/settings.md."""
    from gateway import settings

    click.echo(settings.table(), nl=False)


def _embedded(work: Coroutine[Any, Any, int | None]) -> int:
    from gateway.embedded.errors import StackError

    try:
        return asyncio.run(work) or 0
    except StackError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
