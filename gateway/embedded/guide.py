# SPDX-License-Identifier: Apache-2.0
"""Text that `lakegate up` prints: addresses, users, and configuration to paste into an engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.embedded.ready import Ready
from gateway.embedded.secrets import write_private

_SPARK = """\
spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions
spark.sql.catalog.lakegate=org.apache.iceberg.spark.SparkCatalog
spark.sql.catalog.lakegate.type=rest
spark.sql.catalog.lakegate.uri={catalog}
spark.sql.catalog.lakegate.warehouse={warehouse}
spark.sql.catalog.lakegate.rest.auth.type=oauth2
spark.sql.catalog.lakegate.token=$TOKEN
spark.sql.catalog.lakegate.token-refresh-enabled=false
spark.sql.catalog.lakegate.header.X-Iceberg-Access-Delegation=vended-credentials
spark.sql.catalog.lakegate.rest-catalog-purge=true"""

_PYICEBERG = """\
load_catalog("lakegate", type="rest", uri="{catalog}", warehouse="{warehouse}", token=os.environ["TOKEN"])"""

_DUCKDB = """\
CREATE SECRET lakegate (TYPE ICEBERG, TOKEN '…');
ATTACH '{warehouse}' AS lakegate (TYPE ICEBERG, ENDPOINT '{catalog}', SECRET lakegate,
                          ACCESS_DELEGATION_MODE 'vended_credentials');"""

_TRINO = """\
connector.name=iceberg
iceberg.catalog.type=rest
iceberg.rest-catalog.uri={catalog}
iceberg.rest-catalog.warehouse={warehouse}
iceberg.rest-catalog.security=OAUTH2
iceberg.rest-catalog.oauth2.token=…
iceberg.rest-catalog.session=USER
iceberg.rest-catalog.vended-credentials-enabled=true
iceberg.rest-catalog.nested-namespace-enabled=true
iceberg.metadata-cache.enabled=false
fs.native-s3.enabled=true
s3.endpoint={endpoint}
s3.region={region}
s3.path-style-access=true"""

_SIGN_IN = """\
alice's password is what follows the colon in {clients}/alice"""

_EXAMPLE_COMMAND = """\
TOKEN=$(curl -s -K {clients}/alice -d grant_type=client_credentials {endpoint} \\
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


def show(console: Console, ready: Ready, data: Path) -> None:
    """Print the guide, and write the clients' files.

    No secret and no token is printed, only the path of a password's file.
    """
    clients = data / "clients"
    write_clients(clients, ready)
    console.rule("Lakegate is up", style="green")
    console.print(_endpoint_lines(ready, data))
    others = ", ".join(name for name in ready.users if name != "alice")
    _block(console, "With a browser", _SIGN_IN.format(clients=clients))
    title = f"A token of alice, good for one hour (in her place: {others})"
    _block(console, title, _EXAMPLE_COMMAND.format(clients=clients, endpoint=ready.token_endpoint))
    fields = {
        "catalog": ready.catalog_uri,
        "warehouse": ready.warehouse or "WAREHOUSE",
        "endpoint": ready.s3.endpoint,
        "region": ready.s3.region,
    }
    for title, template in (("Spark", _SPARK), ("PyIceberg", _PYICEBERG), ("DuckDB", _DUCKDB), ("Trino", _TRINO)):
        _block(console, title, template.format(**fields))
    console.rule("Ctrl-C stops everything", style="dim")


def show_replaced_ports(console: Console, replaced: Mapping[str, tuple[int, int]]) -> None:
    """Print the parts that do not have their fixed port. ``replaced``: (fixed port, port in use) by part."""
    for part, (fixed, used) in replaced.items():
        name = part.replace("_", " ")
        console.print(
            Text(f"Port {fixed} was not free, so the {name} uses {used}. Documented examples need this change.")
        )
