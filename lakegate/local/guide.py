# SPDX-License-Identifier: Apache-2.0
"""Text about a running stack: `lakegate up` prints a summary, `lakegate status` the whole text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakegate.local.engines import EngineFile
from lakegate.local.ready import Ready, write_private

_USERS = """\
{rights}
Each user has a file in {clients} that contains <name>:<password>. Users: {users}"""

_NO_RIGHTS = "Before the bootstrap no user has a right. The caller of the bootstrap becomes the administrator."

_RIGHTS = """\
admin administers the server. In the warehouse {warehouse}, alice may read, and bob may read, write and create.
trino and trino-bridge have the rights that Trino needs. At first the other users have no right."""

_TRINO = """\
sh {directory}/opa.sh       # in a terminal of its own
sh {directory}/tokens.sh    # in another one: it renews Trino's token
set -a; . {directory}/trino.env; set +a    # before Trino's launcher; copy the two properties files to its etc/"""

_LOGIN = """\
{variable}=$(curl -s -K {clients}/{user} -d grant_type=client_credentials {endpoint} | \
python3 -c 'import json,sys; print(json.load(sys.stdin)["access_token"])')"""


_SUMMARY = """\
catalog {catalog}, warehouse {warehouse}; in a browser {gateway}/ui
ports on 127.0.0.1: {ports}
users: admin, alice (reads), bob (writes) and others, each with <name>:<password> in {clients}
settings for lakegate commands such as migrate, audit and login (user admin or another):
  set -a; . {data}/gateway.env; set +a; lakegate login
a token of alice, or of another user:
  {token}
engines: the files in {data}/engines configure Spark, PyIceberg, DuckDB and Trino
data, logs and secrets: {data}
everything else, with the rights of the users: lakegate status{option}
Ctrl-C stops everything"""


def ports_of(ready: Ready) -> dict[str, int]:
    """Return the port of each part that users or operators connect to."""
    addresses = {
        "gateway": ready.catalog_uri,
        "metrics": ready.metrics_uri,
        "identity provider": ready.issuer,
        "OPA": ready.opa.url,
        "OpenFGA": ready.openfga.url,
        "PostgreSQL": ready.postgres,
        "object store": ready.s3.endpoint,
    }
    return {name: urlsplit(address).port or 0 for name, address in addresses.items()}


def show(console: Console, ready: Ready, data: Path) -> None:
    """Print what a user needs first, and write the configuration files of clients. No secret and no token is
    printed.
    """
    clients = data / "clients"
    write_clients(clients, ready)
    text = _SUMMARY.format(
        catalog=ready.catalog_uri,
        warehouse=ready.warehouse or "none: the server waits for its bootstrap",
        gateway=ready.catalog_uri.removesuffix("/catalog"),
        ports=", ".join(f"{name} {port}" for name, port in ports_of(ready).items()),
        clients=clients,
        data=data,
        token=_LOGIN.format(variable="TOKEN", user="alice", clients=clients, endpoint=ready.token_endpoint),
        option="" if data == Path(".lakegate").resolve() else f" --data {data}",
    )
    console.rule("Lakegate is up", style="green")
    # Users copy this text, so it has no markup, no colours and no line breaks.
    console.print(Text(text), soft_wrap=True)


def write_clients(directory: Path, ready: Ready) -> None:
    """Write a curl configuration for each user, so that a request for a token has no secret on its command line."""
    directory.mkdir(mode=0o700, exist_ok=True)
    for name, user in ready.users.items():
        write_private(directory / name, f'user = "{user.client_id}:{user.client_secret}"\n'.encode())


def _endpoint_lines(ready: Ready, data: Path) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2))
    rows = {
        "catalog": ready.catalog_uri,
        "management": ready.management_uri,
        "login page": f"{ready.catalog_uri.removesuffix('/catalog')}/ui",
        "warehouse": ready.warehouse or "none: the server waits for its bootstrap",
        "identity provider": ready.issuer,
        "object store": f"{ready.s3.endpoint}, bucket {ready.s3.bucket}",
        "OpenFGA": ready.openfga.url,
        "OPA": ready.opa.url,
        "PostgreSQL": ready.postgres.rpartition("@")[2],
        "metrics": ready.metrics_uri,
        "settings of the gateway": f"{data}/gateway.env",
        "data, logs, secrets": str(data),
    }
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), Text(value))
    return table


def _block(console: Console, title: str, text: str) -> None:
    console.rule(title, align="left", style="dim")
    # Users copy this text, so it has no markup, no colours and no line breaks.
    console.print(Text(text), soft_wrap=True)


def show_all(console: Console, ready: Ready, data: Path, files: Sequence[EngineFile]) -> None:
    """Print the whole guide. ``files`` are the configuration files of engines, below ``data``.

    No secret and no token is printed, only the path of a password's file.
    """
    clients = data / "clients"
    console.print(_endpoint_lines(ready, data))
    rights = _NO_RIGHTS if ready.warehouse is None else _RIGHTS.format(warehouse=ready.warehouse)
    users = ", ".join(ready.users)
    _block(console, "Users", _USERS.format(rights=rights, clients=clients, users=users))
    token = partial(_LOGIN.format, clients=clients, endpoint=ready.token_endpoint)
    _block(console, "A token of alice, valid for one hour", token(variable="TOKEN", user="alice"))
    if ready.warehouse_id is not None:
        gateway = ready.catalog_uri.removesuffix("/catalog")
        command = f"{token(variable='export LAKEGATE_TOKEN', user='admin')}\nlakegate export --gateway {gateway}"
        _block(console, "Commands as admin, such as export, apply and client register", command)
    for file in files:
        _block(console, f"{file.engine}: {data / 'engines' / file.path}", file.text.rstrip())
    if ready.warehouse_id is not None:
        _block(console, "Trino with its OPA", _TRINO.format(directory=data / "engines" / "trino"))


def show_replaced_ports(console: Console, replaced: Mapping[str, tuple[int, int]]) -> None:
    """Print the parts that did not get their fixed port. ``replaced`` has (fixed port, port in use) by part."""
    for part, (fixed, used) in replaced.items():
        name = part.replace("_", " ")
        console.print(
            Text(f"Port {fixed} was not free, so the {name} uses {used}. Documented examples need this change.")
        )
