# SPDX-License-Identifier: Apache-2.0
"""The commands ``lakegate warehouse``: show and change the settings of a warehouse.

They send the same requests as `lakegate apply`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.apply import run_changes
from gateway.cli.catalog_client import client_of, exit_on_errors
from gateway.cli.management import PROJECT, Command, as_uuid, at_a_gateway, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.apply.client import Api
    from gateway.apply.session import Located
    from gateway.apply.state import Resource

#: (field of a warehouse in the file of `lakegate apply`, form of its value in the help).
SETTINGS = (
    ("name", "TEXT"),
    ("status", "active|inactive"),
    ("protected", "true|false"),
    ("managed-access", "true|false"),
    ("managed-by", "self-managed|instance-admin"),
    ("policy-loss", "refuse-restricted|refuse|announce"),
    ("delete-profile", "'{type: soft, expiration-seconds: 604800}'"),
    ("allowed-format-versions", "'[2, 3]'"),
    ("default-format-version", "1|2|3"),
    ("task-queues", "'{soft_deletion: {max-seconds-since-last-heartbeat: 300}}'"),
    ("storage", "'{type: …}'"),
    ("credential", "'{type: …}'"),
)


@dataclass(frozen=True, slots=True)
class _Present:
    """An existing warehouse, with the ids that requests need."""

    api: Api
    resource: Resource
    located: Located


@click.group()
def warehouse() -> None:
    """Show and change the settings of a warehouse."""


@warehouse.command()
@click.argument("warehouse")
@PROJECT
@at_a_gateway
def show(warehouse: str, project: str | None, gateway: str | None, token: str | None) -> None:
    """Print the settings of WAREHOUSE (name or id) as YAML, with the names of `lakegate apply`."""
    import yaml

    from gateway.apply.warehouses import warehouse_settings

    with _present(warehouse, project, gateway, token) as present:
        settings = {"id": present.resource.id, **warehouse_settings(present.resource)}
    click.echo(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=120), nl=False)


def _setting_options(command: Command) -> Command:
    """Add an option for each setting. Its value is written as in a file of `lakegate apply`, in YAML."""
    for name, form in reversed(SETTINGS):
        command = click.option(f"--{name}", metavar=form)(command)
    return command


@warehouse.command("set")
@click.argument("warehouse")
@_setting_options
@click.option(
    "--secrets-dir",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Directory of the files that `{file: …}` in --credential may name.",
)
@PROJECT
@at_a_gateway
def set_settings(
    warehouse: str,
    secrets_dir: Path | None,
    project: str | None,
    gateway: str | None,
    token: str | None,
    **values: str | None,
) -> None:
    """Change the given settings of WAREHOUSE (name or id). Others stay as they are.

    The values are those of a warehouse in a file of `lakegate apply`, in YAML. A credential refers to secrets:
    `{env: LAKEGATE_APPLY_NAME}`, or `{file: PATH}` with --secrets-dir. It is stored again, even if it is the same.
    """
    from gateway.apply.kinds import Executor
    from gateway.apply.planner import plan, plan_lines
    from gateway.apply.state import State
    from gateway.settings import variable

    stated = {name.replace("_", "-"): value for name, value in values.items() if value is not None}
    if not stated:
        raise click.UsageError("give at least one setting")
    with _present(warehouse, project, gateway, token) as present:
        desired = _desired(present.resource, stated)
        before = State({desired.address: present.resource})
        planned = plan(State({desired.address: desired}), before)
        click.echo("\n".join(plan_lines(planned, prune=False)))
        executor = Executor(present.api, before, present.located, secrets=secrets_dir, variables=variable)
        executor.prepare(planned.changes)
        run_changes(executor, planned)


@contextmanager
def _present(name: str, project: str | None, gateway: str | None, token: str | None) -> Iterator[_Present]:
    """Context manager. Yield the warehouse with this name or id, with its settings. Errors end the command."""
    from gateway.apply.session import MANAGEMENT, Located
    from gateway.apply.state import Address, Kind, Resource
    from gateway.apply.warehouses import warehouse_fields

    with exit_on_errors(), client_of(gateway, token) as api:
        query = {"warehouseStatus": "active,inactive"}
        rows = api.get(f"{MANAGEMENT}/warehouse", project=project, query=query)["warehouses"]
        # As in paths, a text in the form of a UUID is always an id, even if another warehouse has this text as its
        # name.
        member, wanted = ("name", name) if (id := as_uuid(name)) is None else ("id", id)
        row: Mapping[str, Any] | None = next((each for each in rows if each[member] == wanted), None)
        if row is None:
            raise click.ClickException(
                f"you see no warehouse {printable(name)} in the project. Check the name, and select another project "
                "with --project."
            )
        located = Located()
        located.add(above := Address(Kind.PROJECT, row["project-id"]), row["project-id"])
        located.add(address := Address(Kind.WAREHOUSE, row["name"], above), row["id"])
        yield _Present(api, Resource(address, warehouse_fields(api, row, queues=True), id=row["id"]), located)


def _desired(present: Resource, stated: Mapping[str, str]) -> Resource:
    """Return the warehouse with the settings that the options contain. Raises InvalidSource."""
    from gateway.apply.document import read_document
    from gateway.apply.kinds import desired_state
    from gateway.apply.source import InvalidSource, Source, read_source
    from gateway.apply.state import Kind

    entry: dict[str, Any] = {"id": present.id, "name": present.address.name}
    for name, text in stated.items():
        entry[name] = text if name == "name" else read_source(f"--{name}", text).value
    project = present.address.within(Kind.PROJECT).name
    content = {"projects": [{"id": project, "name": project, "warehouses": [entry]}]}
    source = Source("the options", content, {})
    try:
        # A credential in the file is always stored again, because the gateway does not return the current credential
        # for a comparison.
        state = desired_state([(source, read_document(source))], now=datetime.now(UTC), rotate=True)
    except InvalidSource as error:
        raise InvalidSource(str(error).replace("projects[0].warehouses[0].", "--")) from None
    [desired] = state.of_kind(Kind.WAREHOUSE)
    return replace(desired, address=present.address)
