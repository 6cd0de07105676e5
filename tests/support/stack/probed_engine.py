# SPDX-License-Identifier: Apache-2.0
"""An engine for probes, run as a command: reads a table for a user with the engine's own identity.

`python -m tests.support.stack.probed_engine KIND` reads the variables of `lakegate engine probe`, and GATEWAY and
ENGINE_TOKEN. `enforcing` reads with `lakegate.reader`. `raw` reads with PyIceberg, which ignores restrictions. The
kinds `unfiltered` and `unmasked` ignore one data policy, and `silent` shows nothing. `unreachable` reads nothing and
ends with the exit code for an engine that is down.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import httpx
from pyiceberg.catalog import load_catalog

from tests.support.stack.exchanging import EXCHANGE, JWT, unsigned

_NOT_RUN = 75


def main(kind: str) -> int:
    """Print the rows of the canary. Return the exit code."""
    if kind == "unreachable":
        return _NOT_RUN
    if "LAKEGATE_TOKEN" in os.environ:
        print("the engine got the token of the operator")
        return 1
    rows = _raw().to_pylist()
    if kind == "enforcing":
        rows = _enforced()
    if kind == "unfiltered":
        rows = [{"shown": row["shown"], "masked": _masked(row["masked"])} for row in rows]
    if kind == "unmasked":
        rows = [{"shown": row["shown"], "masked": row["masked"]} for row in rows if row["kept"]]
    if kind != "silent":
        print(rows)
    return 0


def _masked(value: str) -> str:
    return "".join("n" if char.isdigit() else "x" for char in value[:-4]) + value[-4:]


def _enforced() -> list[dict[str, Any]]:
    from lakegate.reader import Reader

    reader = Reader(os.environ["GATEWAY"], os.environ["LAKEGATE_PROBE_WAREHOUSE"], os.environ["ENGINE_TOKEN"])
    user = reader.as_named(os.environ["LAKEGATE_PROBE_USER"].partition("~")[2])
    rows: list[dict[str, Any]] = user.table(os.environ["LAKEGATE_PROBE_TABLE"]).to_arrow().to_pylist()
    return rows


def _raw() -> Any:
    base, name = os.environ["GATEWAY"], os.environ["LAKEGATE_PROBE_TABLE"]
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
    return catalog.load_table(name).scan().to_arrow()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
