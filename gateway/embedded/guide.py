# SPDX-License-Identifier: Apache-2.0
"""Text that `lakegate up` prints: addresses, users, and configuration to paste into an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.embedded.engines import EngineFile
from gateway.embedded.ready import Ready
from gateway.embedded.secrets import write_private

_USERS = """\
{rights}
Each user has a file in {clients} that contains <name>:<password>. Users: {users}"""

_NO_RIGHTS = "Before the bootstrap no user has a right. The caller of the bootstrap becomes the administrator."

_RIGHTS = """\
admin administers the server. In the warehouse {warehouse}, alice may read, and bob may read, write and create.
trino and trino-bridge have the rights that Trino needs. At first the other users have no right."""

_TRINO = """\
sh {directory}/opa.sh    # in a terminal of its own
set -a; . {directory}/trino.env; set +a    # before Trino's launcher; copy the two properties files to its etc/"""

_LOGIN = """\
{variable}=$(curl -s -K {clients}/{user} -d grant_type=client_credentials {endpoint} \\
  | python3 -c 'import json,sys; print(json.load(sys.stdin)["access_token"])')"""


def write_clients(directory: Path, ready: Ready) -> None:
    """Write a curl configuration for each user, so that a request for a token needs no secret on a command line."""
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
        "data, logs, secrets": str(data),
    }
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), Text(value))
    return table


def _block(console: Console, title: str, text: str) -> None:
    console.rule(title, align="left", style="dim")
    # For copying: no markup, no colours, no line breaks.
    console.print(Text(text), soft_wrap=True)


def show(console: Console, ready: Ready, data: Path, files: Sequence[EngineFile]) -> None:
    """Print the guide with these files of engines, which are in ``data``, and write the clients' files.

    No secret and no token is printed, only the path of a password's file.
    """
    clients = data / "clients"
    write_clients(clients, ready)
    console.rule("Lakegate is up", style="green")
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
    console.rule("Ctrl-C stops everything", style="dim")


def show_replaced_ports(console: Console, replaced: Mapping[str, tuple[int, int]]) -> None:
    """Print the parts that do not have their fixed port. ``replaced``: (fixed port, port in use) by part."""
    for part, (fixed, used) in replaced.items():
        name = part.replace("_", " ")
        console.print(
            Text(f"Port {fixed} was not free, so the {name} uses {used}. Documented examples need this change.")
        )
