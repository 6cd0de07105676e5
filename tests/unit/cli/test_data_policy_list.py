# SPDX-License-Identifier: Apache-2.0
"""`lakegate data-policy list` without a gateway: options that are refused before any request."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from gateway.cli import main

AT_NOTHING = ["--gateway", "http://127.0.0.1:1", "--token", "t"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--user", "oidc~ann"], "--user needs --table"),
        (["--table", "people"], "table/WAREHOUSE/NAMESPACE.NAME"),
        (["--table", "01a0d2c4-0000-7000-8000-000000000004"], "table/WAREHOUSE/NAMESPACE.NAME"),
    ],
)
def test_a_table_is_named_by_two_ids_and_a_user_needs_one(options: list[str], reason: str) -> None:
    done = CliRunner().invoke(main, ["data-policy", "list", *AT_NOTHING, *options])
    assert (done.exit_code, reason in done.output) == (2, True), done.output
