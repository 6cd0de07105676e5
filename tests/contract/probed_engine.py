# SPDX-License-Identifier: Apache-2.0
"""An engine for probes, run as a command: reads a table for a user with the engine's own identity and PyIceberg.

`python -m tests.contract.probed_engine KIND` reads the variables of `lakegate engine probe`, and GATEWAY and
ENGINE_TOKEN. The kinds: `enforcing` removes the columns that the catalog wants hidden, `raw` ignores the restrictions,
`silent` shows nothing, and `unreachable` reads nothing and ends with the exit code for an engine that is down.
"""

from __future__ import annotations

import os
import sys

import httpx
from pyiceberg.catalog import load_catalog

from tests.contract.exchanging import EXCHANGE, JWT, unsigned

_NOT_RUN = 75


def main(kind: str) -> int:
    """Print the rows of the canary. Return the exit code."""
    if kind == "unreachable":
        return _NOT_RUN
    base, name = os.environ["GATEWAY"], os.environ["LAKEGATE_PROBE_TABLE"]
    if "LAKEGATE_TOKEN" in os.environ:
        print("the engine got the token of the operator")
        return 1
    subject = os.environ["LAKEGATE_PROBE_USER"].partition("~")[2]
    exchanged = httpx.post(
        f"{base}/catalog/v1/oauth/tokens",
        data={
            "grant_type": EXCHANGE,
            "subject_token": unsigned(subject),
            "subject_token_type": JWT,
            "scope": "catalog",
        },
        headers={"Authorization": f"Bearer {os.environ['ENGINE_TOKEN']}"},
        trust_env=False,
        timeout=60,
    )
    token: str = exchanged.raise_for_status().json()["access_token"]
    warehouse = os.environ["LAKEGATE_PROBE_WAREHOUSE"]
    catalog = load_catalog("engine", type="rest", uri=f"{base}/catalog", warehouse=warehouse, token=token)
    rows = catalog.load_table(name).scan().to_arrow()
    if kind == "enforcing":
        rows = rows.select(["shown"])
    if kind != "silent":
        print(rows.to_pylist())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
