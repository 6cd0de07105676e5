# SPDX-License-Identifier: Apache-2.0
"""`lakegate data-policy preview` without a gateway: its arguments, and the extra that it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import click
import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.cli.data_policy_previews import _opened, _text
from gateway.cli.management import Management


@pytest.mark.parametrize("principal", ["ann", "oidc~"])
def test_principal_must_be_the_id_of_a_user(principal: str) -> None:
    arguments = ["--gateway", "http://localhost:1", "--token", "t", "--warehouse", "w", "--table", "n.t"]
    done = CliRunner().invoke(main, ["data-policy", "preview", *arguments, "--as", principal])
    assert done.exit_code == 2 and "oidc~ann" in done.output


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each == "lakegate" or each.startswith("lakegate.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(click.ClickException, match=r"lakegate\[reader\]"):
        _opened(Management("http://localhost:1", "t"), "w", "n.t")


def test_command_line_starts_without_the_packages_of_the_extra() -> None:
    """The extra is optional, and its import would delay each command."""
    program = "import sys, gateway.cli; print({'pyarrow', 'pyiceberg', 'numpy', 'lakegate'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "set()"


def test_values_that_json_lacks_are_printed_as_text() -> None:
    values = [b"\x00\xff", date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC), Decimal("1.20"), UUID(int=1)]
    assert json.loads(json.dumps(values, default=_text)) == [
        "00ff",
        "2026-01-02",
        "2026-01-02T00:00:00+00:00",
        "1.20",
        "00000000-0000-0000-0000-000000000001",
    ]
