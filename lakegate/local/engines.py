# SPDX-License-Identifier: Apache-2.0
"""Configuration of engines for a running stack: `lakegate up` prints it and writes it to files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lakegate.local import trino_config
from lakegate.local.bundle import bridge_bundle
from lakegate.local.ready import Ready
from lakegate.local.secrets import TRINO, TRINO_BRIDGE, write_private
from lakegate.local.spark_jars import ARCHIVES
from lakegate.local.toolchain import Tools

SPARK = """\
spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions
spark.sql.catalog.lakegate=org.apache.iceberg.spark.SparkCatalog
spark.sql.catalog.lakegate.type=rest
spark.sql.catalog.lakegate.uri={catalog}
spark.sql.catalog.lakegate.warehouse={warehouse}
spark.sql.catalog.lakegate.rest.auth.type=oauth2
spark.sql.catalog.lakegate.token=<bearer token>
spark.sql.catalog.lakegate.token-refresh-enabled=false
spark.sql.catalog.lakegate.header.X-Iceberg-Access-Delegation=vended-credentials
spark.sql.catalog.lakegate.rest-catalog-purge=true
"""

PYICEBERG = """\
from pyiceberg.catalog import load_catalog
catalog = load_catalog("lakegate", type="rest", uri="{catalog}", warehouse="{warehouse}", token=TOKEN)
"""

DUCKDB = """\
CREATE SECRET lakegate (TYPE ICEBERG, TOKEN '<bearer token>');
ATTACH '{warehouse}' AS lakegate (TYPE ICEBERG, ENDPOINT '{catalog}', SECRET lakegate,
                           ACCESS_DELEGATION_MODE 'vended_credentials');
"""
_NO_JARS = "# spark.jars: install Iceberg's archives with `lakegate setup --with-spark`, and start the stack again"
CATALOG_OF_TRINO = "lakegate"


@dataclass(frozen=True, slots=True)
class EngineFile:
    """A file of an engine: its path below the directory of configuration, and its text without secrets."""

    engine: str
    path: str
    text: str


def engine_files(ready: Ready, directory: Path, tools: Tools) -> list[EngineFile]:
    """Return the configuration for the running stack, in files below ``directory``."""
    jars = [tools.jars / archive.file_name for archive in ARCHIVES]
    installed = all(jar.is_file() for jar in jars)
    listed = f"spark.jars={','.join(map(str, jars))}" if installed else _NO_JARS
    gateway = ready.catalog_uri.removesuffix("/catalog")
    fields = {"catalog": ready.catalog_uri, "warehouse": ready.warehouse or "WAREHOUSE"}
    trino = trino_config.catalog_properties(
        **fields, endpoint=ready.s3.endpoint, region=ready.s3.region, renewal=trino_config.RENEWING
    )
    found = [
        EngineFile("Spark", "spark-defaults.conf", SPARK.format(**fields) + f"{listed}\n"),
        EngineFile("PyIceberg", "lakegate_catalog.py", PYICEBERG.format(**fields)),
        EngineFile("DuckDB", "lakegate.sql", DUCKDB.format(**fields)),
        EngineFile(
            "Trino", "trino/catalog/lakegate.properties", trino + trino_config.CACHES_OFF + trino_config.STATISTICS_OFF
        ),
        EngineFile("Trino", "trino/access-control.properties", trino_config.access_control_properties()),
    ]
    if ready.warehouse_id is not None:
        found.append(
            EngineFile("OPA of Trino", "trino/opa.sh", trino_config.opa_command(tools.opa, directory / "trino"))
        )
        tokens = trino_config.tokens_command(gateway, ready.token_endpoint, directory / "trino")
        found.append(EngineFile("Tokens of Trino", "trino/tokens.sh", tokens))
    return found


def write(ready: Ready, directory: Path, tools: Tools) -> list[EngineFile]:
    """Write the configuration of all engines below ``directory``, and what Trino's OPA needs. Return the files.

    Raises:
        StackError: the policies for Trino are missing.
    """
    files = engine_files(ready, directory, tools)
    (directory / "trino" / "catalog").mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in files:
        write_private(directory / file.path, file.text.encode())
    if ready.warehouse_id is not None:
        _write_bridge(ready, ready.warehouse_id, directory / "trino", tools.policies)
    return files


def _write_bridge(ready: Ready, warehouse_id: str, directory: Path, policies: Path) -> None:
    """Write the bundle, and the variables of the bridge and of Trino. These files contain secrets."""
    bridge = ready.users[TRINO_BRIDGE]
    client = trino_config.BridgeClient(
        token_endpoint=ready.token_endpoint, client_id=bridge.client_id, client_secret=bridge.client_secret
    )
    gateway = ready.catalog_uri.removesuffix("/catalog")
    variables = trino_config.bridge_variables(gateway, {CATALOG_OF_TRINO: warehouse_id}, client, ready.bridge_key)
    trino = ready.users[TRINO]
    own = {trino_config.ENGINE_KEY: ready.bridge_key}
    own[trino_config.CREDENTIAL] = f"{trino.client_id}:{trino.client_secret}"
    write_private(directory / trino_config.BUNDLE, bridge_bundle(policies)[0])
    write_private(directory / "bridge.env", trino_config.environment_file(variables).encode())
    write_private(directory / "trino.env", trino_config.environment_file(own).encode())
