# SPDX-License-Identifier: Apache-2.0
"""The command line: it starts quickly, and reports configuration errors clearly before any server starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from lakegate.local.ready import Ready
from tests.support.rows import parts

pytestmark = pytest.mark.servers


def _lakegate(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("LAKEGATE__")}
    return subprocess.run(
        [sys.executable, "-m", "gateway.cli", *arguments],
        env=plain | {f"LAKEGATE__{name}": value for name, value in settings.items()},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def closed_port() -> Iterator[int]:
    with parts.closed_port() as port:
        yield port


def test_version_is_printed_without_loading_the_server() -> None:
    script = (
        "import sys; from gateway import cli; cli.main(['version'], standalone_mode=False); print(sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines()[0] == "0.1.0"
    assert not {"'litestar'", "'granian'", "'sqlalchemy'", "'msgspec'"} & set(done.stdout.strip("[]\n").split(", "))


@pytest.mark.parametrize("verb", ["serve", "migrate", "wait-for-db", "healthcheck", "up", "demo"])
def test_misspelt_setting_stops_every_command(verb: str) -> None:
    done = _lakegate(verb, OPENID_AUDIENC="x")
    assert done.returncode == 1
    assert "did you mean LAKEGATE__OPENID_AUDIENCE?" in done.stderr and "Traceback" not in done.stderr


def test_serving_without_a_database_ends_with_the_reason_and_no_traceback() -> None:
    done = _lakegate(
        "serve",
        OPENID_PROVIDER_URI="https://issuer.example",
        OPENID_AUDIENCE="lakegate",
        PG_ENCRYPTION_KEY="k" * 32,
        PG_DATABASE_URL_WRITE=f"postgresql://u:secret@127.0.0.1:{parts.free_port()}/x",
        LISTEN_PORT=str(parts.free_port()),
        METRICS__PORT=str(parts.free_port()),
        WORKERS="1",
    )
    output = done.stdout + done.stderr
    assert done.returncode == 1
    assert "nothing listens at the address of PostgreSQL" in output and "gateway.start_failed" in output
    assert "Traceback" not in output and "secret" not in output


def test_serving_without_an_audience_is_refused() -> None:
    done = _lakegate("serve", OPENID_PROVIDER_URI="https://issuer.example", PG_ENCRYPTION_KEY="k")
    assert done.returncode == 1
    assert "LAKEGATE__OPENID_AUDIENCE must be set" in done.stderr


def test_wait_for_an_absent_database_exits_with_1(closed_port: int) -> None:
    url = f"postgresql://u:s3cret@127.0.0.1:{closed_port}/d"
    done = _lakegate("wait-for-db", "-r", "1", "-b", "0.05", PG_DATABASE_URL_WRITE=url)
    assert done.returncode == 1
    assert "accepted no connection in 2 attempts" in done.stderr and "s3cret" not in done.stderr


def test_wait_for_a_present_database_exits_with_0(stack: Ready) -> None:
    assert _lakegate("wait-for-db", "-r", "0", PG_DATABASE_URL_WRITE=stack.postgres).returncode == 0


def test_health_check_calls_the_gateway_of_its_settings(stack: Ready, closed_port: int) -> None:
    port = stack.catalog_uri.rsplit(":", 1)[1].split("/")[0]
    assert _lakegate("healthcheck", LISTEN_PORT=port).returncode == 0
    refused = _lakegate("healthcheck", LISTEN_PORT=str(closed_port))
    assert refused.returncode == 1 and "did not answer" in refused.stderr


def test_migrating_again_changes_nothing(stack: Ready) -> None:
    """Another test may have left a different model as the newest one, so migrate twice and compare the second run."""
    first, again = (
        _lakegate(
            "migrate",
            PG_DATABASE_URL_WRITE=stack.postgres,
            OPENFGA__ENDPOINT=stack.openfga.url,
            OPENFGA__API_KEY=stack.openfga.token,
        )
        for _ in range(2)
    )
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert "the relationship model is " in again.stdout
    assert again.stdout == first.stdout


def test_taken_port_is_named_in_the_error(stack: Ready) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = str(squatter.getsockname()[1])
        done = _lakegate(
            "serve",
            METRICS__PORT=port,
            OPENID_PROVIDER_URI=stack.issuer,
            OPENID_AUDIENCE="lakegate",
            PG_ENCRYPTION_KEY=psutil.Process(stack.pids["gateway"][0]).environ()["LAKEGATE__PG_ENCRYPTION_KEY"],
            PG_DATABASE_URL_WRITE=stack.postgres,
        )
    assert done.returncode == 1
    assert f"METRICS__PORT {port}" in done.stderr and "Traceback" not in done.stderr
