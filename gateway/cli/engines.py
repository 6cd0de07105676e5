# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate engine``: probe engines that must enforce restrictions, and list the results."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from gateway.cli.engine_probes import MAX_OUTPUT, EngineNotReached, Run, Trino, by_command, by_reader, canary
from gateway.cli.management import Management, Warehouse, line, printable, warehouse_named, with_api

_FAILED = 1
_NOT_RUN = 2
_RUN_SECONDS = 240.0
"""The time limit of a probe by the gateway, which reads the canary several times."""
_ON = click.option("--on", "place", required=True, metavar="WAREHOUSE", help="warehouse/NAME or warehouse/ID.")


@click.group()
def engine() -> None:
    """Probe engines that must enforce restrictions, and list the results."""


@engine.command()
@click.option("--engine", "engine_id", required=True, help="The engine's own user id, such as oidc~trino.")
@_ON
@click.option("--user", "subject", help="Id of the test user of a self-test, such as oidc~probe. It needs no grants.")
@click.option("--command", help="Self-test: a command that has the engine read the table for the test user.")
@click.option("--trino-url", help="Self-test: address of Trino's HTTP API.")
@click.option("--trino-catalog", default="lakegate", show_default=True, help="The catalog of Trino for the warehouse.")
@click.option("--trino-user", help="The test user's name in Trino. Default: --user without the provider.")
@click.option("--trino-token", envvar="LAKEGATE_PROBE_TRINO_TOKEN", help="The test user's token for Trino.")
@click.option("--reader", is_flag=True, help="Self-test: read with lakegate.reader as the engine.")
@click.option("--engine-token", envvar="LAKEGATE_PROBE_ENGINE_TOKEN", help="The engine's own token, for --reader.")
@click.option("--token-file", type=click.Path(path_type=Path), help="File with the access token, instead of --token.")
@with_api()
def probe(
    engine_id: str,
    place: str,
    subject: str | None,
    command: str | None,
    trino_url: str | None,
    trino_catalog: str,
    trino_user: str | None,
    trino_token: str | None,
    reader: bool,
    engine_token: str | None,
    token_file: Path | None,
    api: Management,
) -> None:
    """Have an engine read a restricted table of random values, and let the gateway judge what it showed.

    The gateway itself reads through the engine, at the address in its settings. With --command, --trino-url or --reader
    this command reads instead: a self-test, which gives no trust if it passes.

    The exit code is 1 if the probe failed: the engine is no longer trusted in the warehouse. It is 2 if the engine was
    not reached: then nothing changed.
    """
    ways = (command is not None) + (trino_url is not None) + reader
    if ways > 1 or (ways == 1) != (subject is not None):
        raise click.UsageError(
            "a self-test needs --user and one of --command, --trino-url and --reader; a probe by the gateway needs none"
        )
    if reader and not engine_token:
        raise click.UsageError("--reader needs the engine's own token: set LAKEGATE_PROBE_ENGINE_TOKEN")
    if token_file is not None:
        api = replace(api, given_token=_token_in(token_file))
    warehouse = _warehouse(api, place)
    path = f"/warehouse/{warehouse.id}/engine-probe"
    if subject is None:
        _probe_by_gateway(api, warehouse, path, engine_id)
        return
    run: Run
    if trino_url is not None:
        name = trino_user or subject.partition("~")[2] or subject
        run = Trino(trino_url, trino_catalog, name, trino_token).run
    elif reader:
        run = by_reader(api.base, warehouse.name, engine_token or "", subject)
    else:
        run = by_command(command or "", warehouse.name, subject)
    challenge = api.send("POST", path, body={"engine": engine_id}).json()
    try:
        with canary(api, warehouse, challenge, subject) as table:
            output = run(table)
            # A part of a longer output proves nothing: the rest could show hidden values.
            body = {"output": output if len(output) <= MAX_OUTPUT else ""}
            # Within the block: the canary is dropped only when the probe is closed.
            state = api.send("POST", f"{path}/{challenge['id']}/result", body=body).json()
    except EngineNotReached as error:
        click.echo(f"{error}. No result was posted.", err=True)
        sys.exit(_NOT_RUN)
    if state["self-test"] == "passed":
        click.echo("self-test passed: the engine showed what it should. It gives no trust; the gateway has to read.")
        return
    click.echo(f"failed: {printable(state['detail'])}")
    sys.exit(_FAILED)


def _probe_by_gateway(api: Management, warehouse: Warehouse, path: str, engine_id: str) -> None:
    """Create the canary for the test users in the gateway's settings, and have the gateway read it."""
    challenge = api.send("POST", path, body={"engine": engine_id}).json()
    if "user" not in challenge:
        raise click.ClickException(
            f"the settings of the gateway have no address of {printable(engine_id)}: its operator sets "
            "LAKEGATE__ENGINE_PROBES__ENGINES__<NAME>__URL. A self-test needs --user and the way to the engine"
        )
    with canary(api, warehouse, challenge, challenge["user"]):
        answer = api.send(
            "POST", f"{path}/{challenge['id']}/run", accepted=("EngineUnreachable",), seconds=_RUN_SECONDS
        )
    if answer.is_error:
        click.echo(printable(answer.json()["error"]["message"]), err=True)
        sys.exit(_NOT_RUN)
    state = answer.json()
    click.echo(f"{state['verdict']}: {printable(state['detail'])}")
    if state["verdict"] != "passed":
        sys.exit(_FAILED)


@engine.command("list")
@_ON
@with_api()
def list_probes(place: str, api: Management) -> None:
    """List the probed engines of a warehouse: engine, state, time of the probe, and its end, separated by tabs."""
    warehouse = _warehouse(api, place)
    for each in api.send("GET", f"/warehouse/{warehouse.id}/engine-probe").json()["engine-probes"]:
        times = (each.get("probed-at", "-"), each.get("valid-until", each.get("warn-until", "-")))
        click.echo(line(each["engine"], _state(each), *times))


def _state(probe: dict[str, Any]) -> str:
    if probe.get("warned"):
        return "warned"
    if probe.get("verdict") == "passed" and not probe["trusted"]:
        return "expired"
    return str(probe.get("verdict", "not probed"))


def _warehouse(api: Management, place: str) -> Warehouse:
    """Return the warehouse that `--on` names. An unknown one ends the command."""
    kind, _, name = place.partition("/")
    if kind != "warehouse" or not name:
        raise click.UsageError(f"--on {place}: write warehouse/NAME or warehouse/ID")
    return warehouse_named(api, place, name)


def _token_in(file: Path) -> str:
    """Return the token in a file. An unreadable file ends the command."""
    try:
        return file.read_text().strip()
    except (OSError, ValueError) as error:
        raise click.ClickException(f"--token-file: the token cannot be read: {error}") from None
