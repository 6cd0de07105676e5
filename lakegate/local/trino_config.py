# SPDX-License-Identifier: Apache-2.0
"""The configuration of Trino and of the OPA beside it: one source for `lakegate up`, the documentation and the tests.

The files contain no secret. They refer to variables of the environment, as Trino's ``${ENV:NAME}`` does.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
    """The client of the bridge at the identity provider."""

    token_endpoint: str
    client_id: str
    client_secret: str

    def __repr__(self) -> str:
        return f"BridgeClient({self.client_id!r})"


def catalog_properties(
    *, catalog: str, warehouse: str, endpoint: str, region: str, token: str = "", renewal: str = ""
) -> str:
    """Return a file `etc/catalog/….properties` without the properties of caches and statistics.

    ``catalog``: address of the catalog. ``endpoint``, ``region``: of the object store. ``token``: Trino's own token;
    empty for the variable ``TOKEN``. ``renewal``: `RENEWING` in place of a token.
    """
    own = renewal or f"iceberg.rest-catalog.oauth2.token={token or f'${{ENV:{TOKEN}}}'}\n"
    text = _CATALOG.format(catalog=catalog, warehouse=warehouse, own=own)
    return text + _STORE.format(endpoint=endpoint, region=region)


def access_control_properties(opa: str = BRIDGE, key: str = "") -> str:
    """Return `etc/access-control.properties` for an OPA at this address; the default key is the variable's."""
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
