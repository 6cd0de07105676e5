# SPDX-License-Identifier: Apache-2.0
"""The command ``lakegate engine``: probe engines, and list the results.

A probe tests whether an engine enforces restrictions. It creates a canary table, which has rows and columns that the
engine must hide, and has the engine read it: by a command, by Trino, or with `lakegate.reader`.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from gateway.cli.common import trust
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
    """Have an engine read a restricted table of random values, and let the gateway evaluate what it showed.

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
            # Sent inside of the block, at whose end the canary is dropped: the probe must be closed before.
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
    """Create the canary table for the test users in the gateway's settings, and have the gateway read it through the
    engine.
    """
    challenge = api.send("POST", path, body={"engine": engine_id}).json()
    if "user" not in challenge:
        raise click.ClickException(
            f"the settings of the gateway have no address of {printable(engine_id)}. The operator can set "
            "LAKEGATE__ENGINE_PROBES__ENGINES__<NAME>__URL. A self-test needs --user and one of --command, "
            "--trino-url and --reader"
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
    """Return the warehouse in `--on`. An unknown warehouse ends the command."""
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


_READABLE: Final = ("shown", "masked", "kept")
_REASON: Final = "probe of an engine"
_POLICIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "mask": {"kind": "mask", "action": "show-last-4", "columns": [{"name": "masked"}]},
    "filter": {
        "kind": "row-filter",
        "test": {"type": "compare", "operator": "eq", "column": {"name": "kept"}, "value": True},
    },
}


@contextmanager
def canary(api: Management, warehouse: Warehouse, challenge: Mapping[str, Any], subject: str) -> Iterator[str]:
    """Context manager. Create the canary table, yield its name `namespace.table`, and drop it with its files after the
    block.

    `subject` may not read the column `hidden`. Two data policies mask the column `masked` and filter the rows for it.
    The control user of the challenge, if any, may read everything. Without PyIceberg, or if the table cannot be created
    or dropped, the command ends with a message.
    """
    try:
        import pyarrow
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, RESTError
    except ImportError:
        raise click.ClickException(
            "this command needs PyIceberg with PyArrow: pip install 'lakegate[reader]'"
        ) from None
    rows: list[dict[str, Any]] = challenge["rows"]
    data = pyarrow.table({name: [row[name] for row in rows] for name in (*_READABLE, "hidden")})
    [namespace], name = challenge["namespace"], challenge["table"]
    properties = {"uri": f"{api.base}/catalog", "warehouse": warehouse.name, "token": api.token}
    if api.project is not None:
        properties["header.X-Project-ID"] = api.project
    try:
        catalog = load_catalog("probe", type="rest", **properties)
        with suppress(NamespaceAlreadyExistsError):
            catalog.create_namespace(namespace)
        table = catalog.create_table((namespace, name), data.schema)
        try:
            table.append(data)
            id = str(table.metadata.table_uuid)
            _grant(api, warehouse, id, challenge.get("control"), subject)
            with ExitStack() as policies:
                for kind, definition in _POLICIES.items():
                    policies.enter_context(_policy(api, warehouse, id, f"{name}_{kind}", definition, subject))
                yield f"{namespace}.{name}"
        finally:
            catalog.purge_table((namespace, name))
    except RESTError as error:
        raise click.ClickException(
            f"the canary {namespace}.{name} could not be used: {printable(str(error))}"
        ) from None


def _grant(api: Management, warehouse: Warehouse, table: str, control: str | None, subject: str) -> None:
    on = f"/warehouse/{warehouse.id}/table/{table}"
    for column in _READABLE:
        api.send("POST", f"{on}/columns/{column}/grants", body={"writes": [_granted("select", subject)]})
    if control is not None:
        api.send("POST", f"{on}/grants", body={"writes": [_granted("select", control)]})


@contextmanager
def _policy(
    api: Management, warehouse: Warehouse, table: str, name: str, definition: Mapping[str, Any], subject: str
) -> Iterator[None]:
    """Context manager. Restrict `subject` on the table by a data policy during the block. Other principals are not
    restricted.
    """
    body = {"name": name, "definition": definition, "applies-to": "subjects"}
    path = f"/data-policy/{api.send('POST', '/data-policy', body=body).json()['id']}"
    try:
        api.send("POST", f"{path}/grants", body={"writes": [_granted("subject", subject)]})
        bound = {"type": "table", "id": table, "warehouse-id": warehouse.id}
        api.send("POST", f"{path}/bindings", body={"add": [bound]})
        yield
    finally:
        api.send("DELETE", path, query={"force": "true"})


def _granted(privilege: str, user: str) -> dict[str, Any]:
    return {"privilege": privilege, "principal": {"user": user}, "reason": _REASON}


SECONDS: Final = 300.0
"""The time limit of one run of an engine."""
NOT_RUN: Final = 75
"""The exit code of a command that could not reach its engine (EX_TEMPFAIL). Then no result is posted."""
MAX_OUTPUT: Final = 65_536
_CALL_SECONDS: Final = 60.0


class EngineNotReached(Exception):
    """The engine could not be reached, so the probe has no result."""


Run = Callable[[str], str]
"""Returns the output of the engine for the name of a canary, `namespace.table`. Raises EngineNotReached."""


def by_command(command: str, warehouse: str, subject: str) -> Run:
    """Return a function that runs a command as the engine. Environment variables contain the table, the warehouse and
    the user.

    The output includes standard error, because messages can show values too.
    """
    words = shlex.split(command)
    if not words:
        raise click.UsageError("--command must not be empty")

    def run(table: str) -> str:
        from gateway.settings import tool_environment

        own = {
            "LAKEGATE_PROBE_TABLE": table,
            "LAKEGATE_PROBE_WAREHOUSE": warehouse,
            "LAKEGATE_PROBE_USER": subject,
        }
        # The command belongs to the engine. It must read with the engine's credentials, not with the operator's token.
        environment = tool_environment(**own)
        environment.pop("LAKEGATE_TOKEN", None)
        try:
            done = subprocess.run(
                words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EngineNotReached(f"the command {words[0]} could not be run: {error}") from None
        if done.returncode == NOT_RUN:
            raise EngineNotReached(f"the command {words[0]} could not reach its engine (exit code {NOT_RUN})")
        return done.stdout.decode(errors="replace")

    return run


def by_reader(gateway: str, warehouse: str, token: str, subject: str) -> Run:
    """Return a function that reads the table for the user with `lakegate.reader`, as a service. `token` is the
    service's own.
    """

    def run(table: str) -> str:
        from lakegate.reader import ExchangeFailed, LoadFailed, Reader, ReadFailed, RestrictionNotSupported

        reader = Reader(gateway, warehouse, token).as_named(subject.partition("~")[2] or subject)
        try:
            return str(reader.table(table).to_arrow().to_pylist())
        except (ExchangeFailed, LoadFailed) as error:
            if error.status is None or error.status >= 500:
                raise EngineNotReached(f"the reader could not reach the gateway: {error}") from None
            return str(error)
        except (ReadFailed, RestrictionNotSupported) as error:
            return str(error)

    return run


@dataclass(frozen=True, slots=True)
class Trino:
    """The address of a Trino, its catalog, and the user of the session. `token`, if given, is sent as a bearer
    token.
    """

    url: str
    catalog: str
    user: str
    token: str | None = None

    def run(self, table: str) -> str:
        """Return the rows and error messages of several statements on the canary table. Raises EngineNotReached."""
        import httpx2

        namespace, _, name = table.partition(".")
        on = f'"{self.catalog}"."{namespace}"."{name}"'
        headers = {"X-Trino-User": self.user, "X-Trino-Source": "lakegate-engine-probe"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            with httpx2.Client(timeout=_CALL_SECONDS, verify=trust().context, headers=headers) as client:
                return "\n".join(self._result(client, statement) for statement in statements(on))
        except (httpx2.HTTPError, ValueError) as error:
            raise EngineNotReached(f"Trino at {self.url} did not answer: {error}") from None

    def _result(self, client: Any, statement: str) -> str:
        ends = time.monotonic() + SECONDS
        answer = client.post(f"{self.url.rstrip('/')}/v1/statement", content=statement.encode())
        found: list[str] = []
        while True:
            answer.raise_for_status()
            page: Mapping[str, Any] = answer.json()
            found += [" ".join(map(str, row)) for row in page.get("data", ())]
            if "error" in page:
                found.append(str(page["error"].get("message")))
            if "nextUri" not in page:
                return "\n".join(found)
            if time.monotonic() > ends:
                raise EngineNotReached(f"Trino at {self.url} did not finish a statement in {SECONDS:g} seconds")
            answer = client.get(page["nextUri"])


def statements(table: str) -> Sequence[str]:
    """Return the SQL statements of a probe. `table` is its quoted name. Some statements are expected to fail."""
    from gateway.verification.engine_reads import STATEMENTS

    return [each.format(table) for each in STATEMENTS]
