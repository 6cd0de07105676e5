# SPDX-License-Identifier: Apache-2.0
"""Write the configuration of engines for a running stack: `lakegate up` prints it and writes it to files.

The files for Trino and for the OPA beside it contain no secret. They refer to variables of the environment, as Trino's
``${ENV:NAME}`` does. The bridge, the policies of Trino's OPA, is an OPA bundle: one file with all policies, which
:mod:`gateway.opa.bundle` builds. The same policies give the same bytes.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.opa.bundle import BundleName, policy_bundle
from gateway.opa.policy_files import read_policies
from gateway.opa.syntax import InvalidPolicies
from lakegate.local.errors import StackError
from lakegate.local.ready import TRINO, TRINO_BRIDGE, Ready, write_private
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
    """A configuration file of an engine: its path below the directory of configurations, and its text without
    secrets.
    """

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
    trino = catalog_properties(**fields, endpoint=ready.s3.endpoint, region=ready.s3.region, renewal=RENEWING)
    found = [
        EngineFile("Spark", "spark-defaults.conf", SPARK.format(**fields) + f"{listed}\n"),
        EngineFile("PyIceberg", "lakegate_catalog.py", PYICEBERG.format(**fields)),
        EngineFile("DuckDB", "lakegate.sql", DUCKDB.format(**fields)),
        EngineFile("Trino", "trino/catalog/lakegate.properties", trino + CACHES_OFF + STATISTICS_OFF),
        EngineFile("Trino", "trino/access-control.properties", access_control_properties()),
    ]
    if ready.warehouse_id is not None:
        found.append(EngineFile("OPA of Trino", "trino/opa.sh", opa_command(tools.opa, directory / "trino")))
        tokens = tokens_command(gateway, ready.token_endpoint, directory / "trino")
        found.append(EngineFile("Tokens of Trino", "trino/tokens.sh", tokens))
    return found


def write(ready: Ready, directory: Path, tools: Tools) -> list[EngineFile]:
    """Write the configuration of all engines below ``directory``, and the files of Trino's OPA. Return the files.

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
    """Write the bundle of the bridge, and the environment variables of the bridge and of Trino. These files contain
    secrets.
    """
    bridge = ready.users[TRINO_BRIDGE]
    client = BridgeClient(
        token_endpoint=ready.token_endpoint, client_id=bridge.client_id, client_secret=bridge.client_secret
    )
    gateway = ready.catalog_uri.removesuffix("/catalog")
    variables = bridge_variables(gateway, {CATALOG_OF_TRINO: warehouse_id}, client, ready.bridge_key)
    trino = ready.users[TRINO]
    own = {ENGINE_KEY: ready.bridge_key}
    own[CREDENTIAL] = f"{trino.client_id}:{trino.client_secret}"
    write_private(directory / BUNDLE, bridge_bundle(policies)[0])
    write_private(directory / "bridge.env", environment_file(variables).encode())
    write_private(directory / "trino.env", environment_file(own).encode())


ENGINE_KEY = "LAKEGATE_BRIDGE_ENGINE_KEY"
TOKEN = "LAKEGATE_TRINO_TOKEN"  # noqa: S105 - the name of a variable
CREDENTIAL = "LAKEGATE_TRINO_CREDENTIAL"
BRIDGE = "http://127.0.0.1:8282"
BUNDLE = "lakegate-trino.tar.gz"

_CATALOG = """\
connector.name=iceberg
iceberg.catalog.type=rest
iceberg.rest-catalog.uri={catalog}
iceberg.rest-catalog.warehouse={warehouse}
iceberg.rest-catalog.security=OAUTH2
{own}iceberg.rest-catalog.session=USER
iceberg.rest-catalog.vended-credentials-enabled=true
iceberg.rest-catalog.view-endpoints-enabled=true
iceberg.rest-catalog.nested-namespace-enabled=true
"""
_STORE = """\
fs.native-s3.enabled=true
s3.endpoint={endpoint}
s3.region={region}
s3.path-style-access=true
"""
RENEWING = """\
iceberg.rest-catalog.oauth2.credential=${ENV:LAKEGATE_TRINO_CREDENTIAL}
iceberg.rest-catalog.oauth2.server-uri=http://127.0.0.1:8283/tokens
iceberg.rest-catalog.oauth2.scope=catalog
"""
"""The properties that replace `oauth2.token` if Trino gets its tokens from `lakegate trino tokens`."""

CACHES_OFF = "iceberg.metadata-cache.enabled=false\n"
"""Needed if users of one Trino catalog may not all read the same tables."""

STATISTICS_OFF = "iceberg.table-statistics-enabled=false\n"
"""Needed if tables have row filters: `SHOW STATS` and `EXPLAIN` show statistics of hidden rows."""

_ACCESS = """\
access-control.name=opa
opa.policy.uri={opa}/v1/data/trino/allow?key={key}
opa.policy.batched-uri={opa}/v1/data/trino/batch?key={key}
opa.policy.row-filters-uri={opa}/v1/data/trino/row_filters?key={key}
opa.policy.batch-column-masking-uri={opa}/v1/data/trino/batch_column_masks?key={key}
opa.allow-permission-management-operations=false
"""
OPA_OPTIONS = (
    "--authorization=basic",
    "--set=default_authorization_decision=/trino/authz/allow",
    "--set=decision_logs.console=true",
    "--set=decision_logs.mask_decision=/trino/log/mask",
    "--set=nd_builtin_cache=true",
)
"""The options of the bridge's OPA, without its address and its bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeClient:
    """The credentials of the bridge as a client of the identity provider."""

    token_endpoint: str
    client_id: str
    client_secret: str

    def __repr__(self) -> str:
        return f"BridgeClient({self.client_id!r})"


def catalog_properties(
    *, catalog: str, warehouse: str, endpoint: str, region: str, token: str = "", renewal: str = ""
) -> str:
    """Return a file `etc/catalog/….properties`. Properties of caches and statistics are left out.

    ``catalog``: address of the catalog. ``endpoint``, ``region``: of the object store. ``token``: Trino's own token;
    empty for the variable ``TOKEN``. ``renewal``: `RENEWING` instead of a token.
    """
    own = renewal or f"iceberg.rest-catalog.oauth2.token={token or f'${{ENV:{TOKEN}}}'}\n"
    text = _CATALOG.format(catalog=catalog, warehouse=warehouse, own=own)
    return text + _STORE.format(endpoint=endpoint, region=region)


def access_control_properties(opa: str = BRIDGE, key: str = "") -> str:
    """Return `etc/access-control.properties` for an OPA at this address. By default the key is read from a variable."""
    return _ACCESS.format(opa=opa, key=key or f"${{ENV:{ENGINE_KEY}}}")


def bridge_variables(gateway: str, catalogs: Mapping[str, str], client: BridgeClient, key: str) -> dict[str, str]:
    """Return the environment of the bridge's OPA. ``catalogs``: the warehouse id of each catalog of Trino."""
    return {
        "LAKEGATE_BRIDGE_URL": gateway,
        "LAKEGATE_BRIDGE_CATALOGS": json.dumps(dict(catalogs)),
        "LAKEGATE_BRIDGE_TOKEN_ENDPOINT": client.token_endpoint,
        "LAKEGATE_BRIDGE_CLIENT_ID": client.client_id,
        "LAKEGATE_BRIDGE_CLIENT_SECRET": client.client_secret,
        ENGINE_KEY: key,
    }


def environment_file(variables: Mapping[str, str]) -> str:
    """Return a file that a shell reads with `set -a; . FILE; set +a`."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())


def tokens_command(gateway: str, token_endpoint: str, directory: Path) -> str:
    """Return shell commands that serve Trino's tokens with the variables in ``directory``."""
    command = [sys.executable, "-m", "gateway.cli", "trino", "tokens", "--gateway", gateway]
    command += ["--token-endpoint", token_endpoint]
    return f"set -a; . {shlex.quote(str(directory / 'trino.env'))}; set +a\nexec {shlex.join(command)}\n"


def opa_command(opa: Path, directory: Path, address: str = BRIDGE) -> str:
    """Return shell commands that run the bridge's OPA with the bundle and the variables in ``directory``."""
    options = [f"--addr={address.removeprefix('http://')}", *OPA_OPTIONS, "--bundle"]
    command = " \\\n  ".join([f"exec {shlex.quote(str(opa))} run --server", *map(shlex.quote, options)])
    command += f" {shlex.quote(str(directory / BUNDLE))}"
    return f"set -a; . {shlex.quote(str(directory / 'bridge.env'))}; set +a\n{command}\n"


def bridge_bundle(policies: Path) -> tuple[bytes, str]:
    """Return (bundle, revision) of the bridge in this complete folder of policies, without its tests.

    The revision is a digest of the rules. OPA writes it to each line of its decision log.

    Raises:
        StackError: the folder contains no bridge.
    """
    if not (policies / "trino").is_dir():
        raise StackError(f"{policies} contains no policies for Trino; install Lakegate again")
    try:
        built = policy_bundle(read_policies(policies), BundleName.TRINO)
    except InvalidPolicies as invalid:
        raise StackError(str(invalid)) from invalid
    return built.content, built.revision
