# SPDX-License-Identifier: Apache-2.0
"""Commands of operators on a running stack, with the settings that `lakegate up` writes, and with wrong ones."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from gateway.cli import main
from lakegate.local.ready import Ready


@pytest.fixture(scope="module")
def variables(stack: Ready) -> dict[str, str]:
    """Return the variables of the gateway, as a shell reads them."""
    script = f"set -a; . {stack.environment}; env -0"
    found = subprocess.run(["sh", "-c", script], env={}, capture_output=True, text=True, check=True).stdout
    return {name: value for name, _, value in (line.partition("=") for line in found.split("\0")) if "__" in name}


def test_the_written_settings_are_private_and_work_for_commands(stack: Ready) -> None:
    file = Path(stack.environment)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    lakegate = f"{sys.executable} -m gateway.cli"
    script = f"set -a; . {file}; set +a; {lakegate} migrate --check && {lakegate} model status"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "the database has the schema of this version" in done.stdout and stack.openfga.model_id in done.stdout


def test_the_audit_is_verified_with_the_written_settings(variables: dict[str, str]) -> None:
    done = CliRunner().invoke(main, ["audit", "verify"], env=variables)
    # A new stack has sealed nothing yet, which is exit code 3.
    assert done.exit_code in (0, 3) and "verified blocks: " in done.output, done.output


@pytest.mark.parametrize(
    ("command", "variable", "message"),
    [
        ("authz reconcile --dry-run", "LAKEGATE__OPA__TOKEN", "OPA rejected the gateway's token with status 401"),
        ("authz reconcile --dry-run", "LAKEGATE__OPENFGA__API_KEY", "OpenFGA rejected the API key with status 401"),
        ("model push", "LAKEGATE__OPENFGA__API_KEY", "OpenFGA rejected the API key with status 401"),
    ],
)
def test_a_wrong_token_is_one_line_with_the_setting(
    variables: dict[str, str], command: str, variable: str, message: str
) -> None:
    done = CliRunner().invoke(main, command.split(), env={**variables, variable: "wrong"})
    assert done.exit_code == 1
    [line] = [each for each in done.output.splitlines() if not each.startswith("no answer yet")]
    assert message in line and f"Correct {variable}" in line


@pytest.mark.parametrize("command", ["audit verify", "migrate", "live-credentials"])
@pytest.mark.parametrize(
    ("change", "message"),
    [("password", "PostgreSQL refused the user name or the password"), ("name", "PostgreSQL has no database")],
)
def test_a_refused_database_is_one_line_with_the_setting(
    variables: dict[str, str], command: str, change: str, message: str
) -> None:
    url = urlsplit(variables["LAKEGATE__PG_DATABASE_URL_WRITE"])
    wrong = (
        url._replace(path="/absent") if change == "name" else url._replace(netloc=f"lakegate:x@{_address(url.netloc)}")
    )
    done = CliRunner().invoke(
        main, command.split(), env={**variables, "LAKEGATE__PG_DATABASE_URL_WRITE": wrong.geturl()}
    )
    assert done.exit_code == 1
    [line] = [each for each in done.output.splitlines() if not each.startswith("no answer yet")]
    assert message in line and "LAKEGATE__PG_DATABASE_URL_WRITE" in line


def _address(netloc: str) -> str:
    return netloc.rpartition("@")[2]


def test_the_status_of_the_stack_has_its_addresses_and_no_secret(stack: Ready) -> None:
    data = Path(stack.environment).parent
    done = CliRunner().invoke(main, ["status", "--data", str(data)])
    assert done.exit_code == 0, done.output
    assert stack.catalog_uri in done.output and "running: " in done.output
    assert stack.users["admin"].client_secret not in done.output and stack.openfga.token not in done.output


def test_the_status_without_a_stack_names_the_command(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["status", "--data", str(tmp_path)])
    assert done.exit_code == 1 and "lakegate up" in done.output
