# SPDX-License-Identifier: Apache-2.0
"""The command `lakegate client register`: the object of a grant."""

from __future__ import annotations

import json

import click.testing
import httpx2
import pytest

from gateway.cli import main
from gateway.cli.management import Management

LAKE = "01990000-0000-7000-8000-00000000000a"
IMPOSTOR = "01990000-0000-7000-8000-00000000000b"


@pytest.mark.parametrize(("given", "found"), [(LAKE, LAKE), (LAKE.upper(), LAKE), ("lake", LAKE), (IMPOSTOR, IMPOSTOR)])
def test_the_id_of_a_warehouse_does_not_find_a_warehouse_of_this_name(
    monkeypatch: pytest.MonkeyPatch, given: str, found: str
) -> None:
    """An engine received a privilege on the warehouse that somebody had named like the id of another."""
    written: list[str] = []

    def send(api: Management, method: str, path: str, **given: object) -> httpx2.Response:
        if path.endswith("/grants"):
            written.append(path)
        listed = [{"id": IMPOSTOR, "name": LAKE}, {"id": LAKE, "name": "lake"}]
        answer = {"warehouses": listed, "user-type": "application"}
        return httpx2.Response(201, content=json.dumps(answer).encode())

    monkeypatch.setattr(Management, "send", send)
    arguments = ["client", "register", "oidc~trino", "--name", "trino", "--grant", "inspector", "--on"]
    options = ["--gateway", "http://gateway", "--token", "t"]
    done = click.testing.CliRunner().invoke(main, [*arguments, f"warehouse/{given}", *options])
    assert (done.exit_code, written) == (0, [f"/warehouse/{found}/grants"]), done.output
